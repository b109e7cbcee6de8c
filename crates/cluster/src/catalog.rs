//! What the catalog says: an immutable value to read from, cheap to clone (topics are shared).
//!
//! Guarantees: topics are found by name and by id; the order of names is stable. Changes only by applying entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use floe_model::{
    Boot, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName, TopicPartition,
};
use floe_replication::{Chain, Leader, Member, Sealed};

/// Identity of a cluster: 128 random bits, made with its first node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    /// As 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TopicId(self.0).fmt(f)
    }
}

/// The cluster's metadata as of one entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Which cluster; from the node's identity, not from entries.
    pub cluster: ClusterId,
    /// The node that decides placement and runs seals; what consensus says now, not from entries.
    pub controller: Option<NodeId>,
    /// Index of the last entry applied; rises with every change.
    pub index: u64,
    /// Registered nodes.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Topics by name.
    pub topics: BTreeMap<TopicName, Arc<Topic>>,
    /// Names by id.
    pub names: BTreeMap<TopicId, TopicName>,
    /// Deleted topics that some node has not confirmed yet.
    pub tombstones: BTreeMap<TopicId, Tombstone>,
    /// First producer id of the next block.
    pub next_producer_id: u64,
    /// Names that had a life before: the largest epoch of it. The next life starts above, since clients that know a topic by
    /// name only ignore metadata with a smaller epoch.
    pub(crate) last_epochs: BTreeMap<TopicName, LeaderEpoch>,
    /// Stands for names forgotten from `last_epochs`, which is bounded.
    pub(crate) epoch_floor: Option<LeaderEpoch>,
    /// Names that hold `.` or `_`, by what they collide in.
    pub(crate) collisions: BTreeMap<String, TopicName>,
}

/// What stays of a deleted topic until every node has removed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Its name.
    pub name: TopicName,
    /// How many partitions it had.
    pub partitions: u32,
    /// Nodes that have not confirmed.
    pub waiting: Vec<NodeId>,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The life of its process.
    pub boot: Boot,
    /// Where its doors are reached from outside.
    pub endpoints: Vec<Endpoint>,
}

/// One advertised address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Which door: `kafka`, `http`, `produce`, `consume`, `metrics`.
    pub door: String,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// One life of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// Identity of this life.
    pub id: TopicId,
    /// Partition `i` is at place `i`.
    pub partitions: Vec<Partition>,
    /// What was set for this topic, by name, as given; the rest comes from the node's defaults.
    pub overrides: BTreeMap<String, String>,
    /// One of Floe's own: doors do not write it, nobody deletes it.
    pub internal: bool,
}

/// One partition as the catalog knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub index: PartitionIndex,
    /// Number of the open generation.
    pub epoch: LeaderEpoch,
    /// Where the open generation starts.
    pub start: Offset,
    /// Who writes it.
    pub leader: Leader,
    /// Who holds it, leader included.
    pub replicas: Vec<Member>,
    /// First offset kept; only rises.
    pub log_start: Offset,
    /// Earlier generations that hold records at or above the log start, oldest first.
    pub sealed: Vec<Sealed>,
}

impl Catalog {
    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    /// The topic of this id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(self.names.get(&id)?)
    }

    /// One partition.
    pub fn partition(&self, tp: TopicPartition) -> Option<&Partition> {
        self.topic_by_id(tp.topic)?.partition(tp.partition)
    }
}

impl Topic {
    /// The partition of this number.
    pub fn partition(&self, index: PartitionIndex) -> Option<&Partition> {
        self.partitions.get(index.0 as usize)
    }

    /// The full address of one of its partitions.
    pub fn address(&self, index: PartitionIndex) -> TopicPartition {
        TopicPartition {
            topic: self.id,
            partition: index,
        }
    }
}

impl Partition {
    /// The chain of its generations.
    pub fn chain(&self) -> Chain<'_> {
        Chain {
            sealed: &self.sealed,
            epoch: self.epoch,
            start: self.start,
        }
    }
}
