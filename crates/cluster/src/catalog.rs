//! What the catalog says: an immutable value to read from, cheap to clone (topics are shared).
//!
//! Guarantees: topics are found by name and by id; the order of names is stable. Changes only by applying entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName,
    TopicPartition,
};

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
    /// Which cluster.
    pub cluster: ClusterId,
    /// Index of the last entry applied; rises with every change.
    pub index: u64,
    /// The node that decides placement and runs seals.
    pub controller: Option<NodeId>,
    /// Registered nodes.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Topics by name.
    pub topics: BTreeMap<TopicName, Arc<Topic>>,
    /// Names by id.
    pub names: BTreeMap<TopicId, TopicName>,
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
    pub leader: Replica,
    /// Who holds it, leader included.
    pub replicas: Vec<Replica>,
    /// First offset kept; only rises.
    pub log_start: Offset,
    /// Earlier generations that hold records at or above the log start, oldest first.
    pub sealed: Vec<Sealed>,
}

/// One life of one node's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// The life of its data for this partition.
    pub incarnation: Incarnation,
    /// The life of its process, where leadership is bound to it.
    pub boot: Boot,
}

/// A generation whose end is fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its number.
    pub epoch: LeaderEpoch,
    /// Its first offset.
    pub start: Offset,
    /// The offset after its last.
    pub end: Offset,
    /// Acknowledged records above `end` may have been lost: damage on every copy that was there to ask.
    pub lossy: bool,
}

impl Catalog {
    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        let name = TopicName::parse(name).ok()?;
        self.topics.get(&name)
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
