//! What can be asked of the catalog. Commands are imperative and carry every choice already made (random ids, leaders, ends),
//! so that applying one decides nothing but whether its condition holds.

use std::collections::BTreeMap;

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, TopicId, TopicName, TopicPartition,
};
use floe_replication::{Leader, Member};

use crate::{Node, Times};

/// One change of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A node is here, under this boot, reached at these addresses. Refused for an earlier boot than is known, and for another
    /// life of its data than is known: that is [`ReplaceNode`](Self::ReplaceNode)'s.
    RegisterNode(Node),
    /// A node comes back under its own id with other data: an empty directory that an operator gave it, or one whose damage it
    /// has noticed. Everything the catalog says of its earlier life is over.
    ReplaceNode {
        /// The node as it is now.
        node: Node,
        /// The life that must be the known one.
        replaces: Incarnation,
    },
    /// Copies on one node have another life than was known: damaged ones, or bound under one of their own. Each fails alone.
    RenewCopies {
        /// Which node.
        node: NodeId,
        /// The life of its directory; must be the known one.
        incarnation: Incarnation,
        /// The life of its process; must be the known one.
        boot: Boot,
        /// Which copies.
        copies: Vec<RenewedCopy>,
    },
    /// A topic begins. Refused if its name is taken or collides, or if a generation would open with fewer than q members.
    CreateTopic(NewTopic),
    /// Generations end and the next ones begin; each fails alone.
    SealAndOpen(Vec<Transition>),
    /// Leases of earlier generations are proven ended.
    EndLeases(Vec<(TopicPartition, LeaderEpoch)>),
    /// Members have copied sealed generations whole; each fails alone.
    AddHolders(Vec<Claim>),
    /// Nodes may remove what they have of sealed generations; each fails alone.
    Forget(Vec<Forgetting>),
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

/// A topic to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTopic {
    /// Its name.
    pub name: TopicName,
    /// The identity of this life, random.
    pub id: TopicId,
    /// How many copies each partition is to have.
    pub replication_factor: u32,
    /// q; see [`floe_replication::quorum`].
    pub quorum: u32,
    /// Whether its partitions have a table.
    pub has_table: bool,
    /// Who holds and leads each partition.
    pub partitions: Vec<NewPartition>,
    /// Settings that differ from the defaults.
    pub overrides: BTreeMap<String, String>,
    /// Whether it is one of Floe's own.
    pub internal: bool,
}

/// The first generation of a new partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartition {
    /// Who writes.
    pub leader: Leader,
    /// Who holds, leader included; the first is to lead when nothing speaks against it.
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
    /// Smallest and largest time of its records, if there are any and the holders said.
    pub times: Option<Times>,
    /// Leases not proven ended, of this generation and of those before.
    pub leases: Vec<(LeaderEpoch, Member)>,
    /// Who writes the next one.
    pub leader: Leader,
    /// Who holds the next one; the first is to lead when nothing speaks against it.
    pub members: Vec<Member>,
}

/// A copy that has another life than was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewedCopy {
    /// Of which partition.
    pub partition: TopicPartition,
    /// The life that must be the known one; its node's, if the copy had none of its own.
    pub was: Incarnation,
    /// The life it has.
    pub is: Incarnation,
}

/// A claim to hold a sealed generation whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The life that copied it.
    pub member: Member,
    /// Which partition.
    pub partition: TopicPartition,
    /// Which generation.
    pub epoch: LeaderEpoch,
    /// Index of the catalog as of which the copy was ordered ([`floe_replication::message::Order::as_of`]).
    pub as_of: u64,
}

/// A node that wants to remove what it has of a sealed generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgetting {
    /// Which node.
    pub node: NodeId,
    /// Which partition.
    pub partition: TopicPartition,
    /// Which generation.
    pub epoch: LeaderEpoch,
}
