//! The kind of a group. Values only.

/// How a group's partitions are assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// By a member that leads; Kafka's classic protocol. Also positions without members, stored by a Kafka client.
    #[default]
    Classic,
    /// By the server; HTTP consumers.
    Assigned,
}
