//! Creating and deleting topics.

/// A topic to create.
#[derive(Clone, Debug, Default)]
pub struct NewTopic {
    /// Its name, unchecked.
    pub name: String,
    /// How many partitions; `None` (Kafka's -1) takes the node's default.
    pub partitions: Option<i32>,
    /// How many copies; `None` (Kafka's -1) leaves it to the node.
    pub replication_factor: Option<i16>,
    /// Settings by Kafka's names.
    pub settings: Vec<(String, String)>,
    /// Check only.
    pub validate_only: bool,
}
