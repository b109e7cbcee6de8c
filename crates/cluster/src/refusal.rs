//! Why a command, or one of its list, changed nothing. Refusals are expected: conditions are there to fail.

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, TopicId, TopicName, TopicPartition,
};
use floe_replication::{Leader, Member};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is taken.
    #[error("topic '{0}' exists")]
    TopicExists(TopicName),
    /// A name that differs in `.` and `_` only is taken.
    #[error("topic name collides with '{0}'")]
    Collides(TopicName),
    /// The id is that of another topic, or of one being deleted: to be tried again with another one.
    #[error("topic id {0} is taken")]
    IdTaken(TopicId),
    /// No such topic or partition.
    #[error("unknown topic {0}")]
    UnknownTopic(TopicId),
    /// Another generation is open by now.
    #[error("{partition}: epoch {epoch} is not open; {open} is")]
    NotOpen {
        /// Which partition.
        partition: TopicPartition,
        /// Named by the command.
        epoch: LeaderEpoch,
        /// What is open.
        open: LeaderEpoch,
    },
    /// The command does not fit the partition as it is now.
    #[error("{partition}: {why}")]
    Unfit {
        /// Which partition.
        partition: TopicPartition,
        /// Why.
        why: Unfit,
    },
    /// Who speaks is not the node that is registered.
    #[error("node {node}: {why}")]
    Node {
        /// Which node.
        node: NodeId,
        /// Why.
        why: NotThatNode,
    },
}

/// Why a command does not fit a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A generation of so few could not be relied on.
    #[error("{members} member(s) named, {quorum} needed")]
    TooFewMembers {
        /// Named.
        members: usize,
        /// The topic's q.
        quorum: usize,
    },
    /// Too few are proven to hold the generation that is to be sealed.
    #[error("{holders} holder(s) whose data is of their present life, {quorum} needed")]
    TooFewHolders {
        /// Named, and current.
        holders: usize,
        /// The topic's q.
        quorum: usize,
    },
    /// Ends rise.
    #[error("end {end} lies below the start {start} of the open generation")]
    EndBelowStart {
        /// Named.
        end: Offset,
        /// Of the open generation.
        start: Offset,
    },
    /// The member is another life of its node's data than the present one.
    #[error("node {} has other data now than life {:x} that is named", .0.node, .0.incarnation.0)]
    NotCurrent(Member),
    /// The process that is to lead is not the one that is registered.
    #[error("process {} of node {} is not the one that runs", .0.boot, .0.node)]
    NotRunning(Leader),
    /// The leader is one of the members.
    #[error("the leader is no member")]
    LeaderNotMember,
    /// A node has one copy.
    #[error("node {0} is named twice")]
    Twice(NodeId),
    /// q is at least one, and no more than the copies there are to be.
    #[error("{quorum} of {replication_factor} copies cannot be needed")]
    Quorum {
        /// Named.
        quorum: u32,
        /// Named.
        replication_factor: u32,
    },
    /// No sealed generation of this number has records that are kept.
    #[error("epoch {0} is not a sealed generation that is kept")]
    NotSealed(LeaderEpoch),
    /// Members hold on to what there is.
    #[error("node {0} is a member of the open generation")]
    StillMember(NodeId),
    /// Too few others hold it.
    #[error("{others} other holder(s), {quorum} needed")]
    StillNeeded {
        /// Other holders whose data is of their present life.
        others: usize,
        /// The topic's q.
        quorum: usize,
    },
    /// The copy that is claimed was let go since.
    #[error("the copy was let go by entry {0}, after it was ordered")]
    LetGo(u64),
}

/// Why a node is not the one that is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotThatNode {
    /// Never registered.
    #[error("not registered")]
    Unknown,
    /// A process of before; a later one of the same data has registered.
    #[error("process {given} is over, {known} runs now")]
    EarlierBoot {
        /// Named.
        given: Boot,
        /// Known.
        known: Boot,
    },
    /// Not the process that has registered.
    #[error("process {given} has not registered, {known} has")]
    OtherBoot {
        /// Named.
        given: Boot,
        /// Known.
        known: Boot,
    },
    /// Data of a life that was replaced.
    #[error("this data directory (life {:x}) was replaced and must not come back", .0.0)]
    Replaced(Incarnation),
    /// Other data than is known under this id: another node by mistake, or a lost directory that nobody has replaced.
    #[error(
        "other data (life {:x}) is known under this id than life {:x}: give this node an id of its own, or replace the lost one",
        known.0,
        given.0
    )]
    OtherLife {
        /// Named.
        given: Incarnation,
        /// Known.
        known: Incarnation,
    },
    /// A life has a number.
    #[error("a life of a directory is not 0")]
    NoLife,
}
