//! What can be asked of the catalog. Commands are imperative and carry every choice already made (random ids, leaders, ends),
//! so that applying one decides nothing but whether its condition holds.

use std::collections::BTreeMap;

use floe_model::{LeaderEpoch, NodeId, Offset, TopicId, TopicName, TopicPartition};
use floe_replication::{Leader, Member};

use crate::Node;

/// One change of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A node is here, under this boot, reached at these addresses; replaces what was known of it.
    RegisterNode(Node),
    /// A topic begins. Refused if its name is taken or collides.
    CreateTopic {
        /// Its name.
        name: TopicName,
        /// The identity of this life, random.
        id: TopicId,
        /// Who holds and leads each partition.
        partitions: Vec<NewPartition>,
        /// Settings that differ from the defaults.
        overrides: BTreeMap<String, String>,
        /// Whether it is one of Floe's own.
        internal: bool,
    },
    /// Generations end and the next ones begin; each fails alone.
    SealAndOpen(Vec<Transition>),
    /// A topic ends; a tombstone stays until every registered node has confirmed.
    DeleteTopic(TopicId),
    /// A node has removed what it had of these.
    ConfirmDeleted {
        /// Which node.
        node: NodeId,
        /// Which lives of topics.
        topics: Vec<TopicId>,
    },
    /// Offsets below these may be forgotten. Never lowers one.
    AdvanceLogStart(Vec<(TopicPartition, Offset)>),
    /// The next block of producer ids goes to this node.
    ReserveProducerIds(NodeId),
}

/// The first generation of a new partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartition {
    /// Who writes.
    pub leader: Leader,
    /// Who holds, leader included.
    pub members: Vec<Member>,
}

/// One generation's end and its successor's begin: what `floe_replication::Seal` decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Which partition.
    pub partition: TopicPartition,
    /// The generation that must be open; its successor has the next number.
    pub epoch: LeaderEpoch,
    /// Where it ends and the next one starts.
    pub end: Offset,
    /// Whether acknowledged records above the end may be lost.
    pub lossy: bool,
    /// Who is proven to hold it whole.
    pub holders: Vec<Member>,
    /// Who writes the next one.
    pub leader: Leader,
    /// Who holds the next one.
    pub members: Vec<Member>,
}
