//! What the catalog says: an immutable value to read from, cheap to clone (topics are shared).
//!
//! Guarantees: topics are found by name and by id; the order of names is stable. Changes only by applying entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, Timestamp, TopicId, TopicName,
    TopicPartition,
};
use floe_replication::replica::Opened;
use floe_replication::{Chain, Leader, Member, Sealed};

use crate::consensus::Configuration;
use crate::rule::{Rule, keeps};

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
    /// Who votes on entries and who listens; empty while only one node was ever asked.
    pub configuration: Configuration,
    /// Registered nodes.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Lives of nodes that were replaced, oldest first, bounded: one that comes back is refused by name.
    pub(crate) past_lives: BTreeMap<NodeId, Vec<Incarnation>>,
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
    /// The life of its data directory; every copy it has is of this life, unless [`Partition::copies`] says otherwise.
    /// 0: registered by a release that did not say.
    pub incarnation: Incarnation,
    /// The life of its process.
    pub boot: Boot,
    /// Where its doors are reached from outside, and, as door `peer`, by other nodes.
    pub endpoints: Vec<Endpoint>,
    /// The newest version of the peer protocol that it speaks; 0: registered by a release without one.
    pub protocol: u32,
}

/// One advertised address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Which door: `kafka`, `http`, `produce`, `consume`, `metrics`, `peer`.
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
    /// How many copies of each partition there are to be.
    pub replication_factor: u32,
    /// q: how many members must hold a record before it is acknowledged. Chosen when the topic begins; it does not follow the
    /// replica set (rule QuorumFixed).
    pub quorum: u32,
    /// Whether its partitions have a table, so that leaders need leases.
    pub has_table: bool,
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
    /// Who holds it, leader included; the first is the one that should lead when nothing speaks against it.
    pub replicas: Vec<Member>,
    /// Earlier generations with a lease that was not proven ended when the open one began, and who led them.
    pub leases: Vec<(LeaderEpoch, Member)>,
    /// Copies whose life is not that of their node's directory, by node: the log gave them one of their own.
    pub copies: BTreeMap<NodeId, Incarnation>,
    /// First offset kept; only rises.
    pub log_start: Offset,
    /// Earlier generations that hold records at or above the log start, oldest first.
    pub sealed: Vec<Sealed>,
    /// What else is known of those, where there is anything.
    pub(crate) facts: BTreeMap<LeaderEpoch, Facts>,
}

/// What is known of a sealed generation beside its chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Smallest and largest time of its records.
    pub(crate) times: Option<Times>,
    /// Nodes that were allowed to forget it, and the entry that last did (rule ForgetVoidsClaim).
    pub(crate) let_go: BTreeMap<NodeId, u64>,
}

/// The times of a generation's records; offsets are found by time without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The smallest.
    pub min: Timestamp,
    /// The largest.
    pub max: Timestamp,
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

    /// What a node's copy of the partition is now known as, whether there is anything in it or not; `None` for a node that is
    /// not registered or has not said which life it is.
    pub fn copy(&self, partition: &Partition, node: NodeId) -> Option<Member> {
        let known = self.nodes.get(&node)?.incarnation;
        let own = partition.copies.get(&node).copied();
        let incarnation = own.or((known != Incarnation(0)).then_some(known))?;
        Some(Member { node, incarnation })
    }

    /// Rule WipedIsNoFollower: whether a member or holder is still that life of its node's data. One that is not neither
    /// witnesses nor holds anything, whatever the lists of past entries say.
    pub fn is_current(&self, partition: &Partition, member: Member) -> bool {
        let is_over = || match self.copy(partition, member.node) {
            Some(now) => now != member,
            // Registered by a release that did not say which life it is: what entries of that time name is right.
            None => !self.nodes.contains_key(&member.node),
        };
        !keeps(Rule::WipedIsNoFollower) || !is_over()
    }

    /// Rule LeaderDoesNotResume: whether the process that is to lead, or leads, is the one that is registered.
    pub fn is_running(&self, leader: Leader) -> bool {
        let is_that_boot = |node: &Node| node.boot == leader.boot;
        !keeps(Rule::LeaderDoesNotResume) || self.nodes.get(&leader.node).is_some_and(is_that_boot)
    }

    /// Who of a sealed generation's holders counts.
    pub fn current_holders<'a>(
        &'a self,
        partition: &'a Partition,
        sealed: &'a Sealed,
    ) -> impl Iterator<Item = Member> + 'a {
        let holders = sealed.holders.iter().copied();
        holders.filter(|holder| self.is_current(partition, *holder))
    }

    pub(crate) fn partition_mut(&mut self, at: TopicPartition) -> Option<&mut Partition> {
        let topic = self.topics.get_mut(self.names.get(&at.topic)?)?;
        // Cheap: looked up before the topic is copied, so a refusal copies nothing.
        topic.partition(at.partition)?;
        Arc::make_mut(topic)
            .partitions
            .get_mut(at.partition.0 as usize)
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

    /// A partition's open generation, as a replica is told of it.
    pub fn opened(&self, partition: &Partition) -> Opened {
        Opened {
            epoch: partition.epoch,
            start: partition.start,
            leader: partition.leader,
            members: partition.replicas.clone(),
            quorum: self.quorum as usize,
            has_table: self.has_table,
            leases: partition.leases.iter().map(|(epoch, _)| *epoch).collect(),
        }
    }

    /// The leases that a seal of the partition's open generation has to end or to pass on (rule LeaseGatesAllEarlier); what
    /// `floe_replication::Seal::with_leases` takes.
    pub fn leases(&self, partition: &Partition) -> Vec<(LeaderEpoch, Member)> {
        if !self.has_table {
            return Vec::new();
        }
        let mut leases = partition.leases.clone();
        leases.push((partition.epoch, partition.leader.member()));
        leases
    }
}

impl Partition {
    /// A partition whose first generation is open.
    pub fn first(
        index: PartitionIndex,
        epoch: LeaderEpoch,
        leader: Leader,
        replicas: Vec<Member>,
    ) -> Self {
        Self {
            index,
            epoch,
            start: Offset::ZERO,
            leader,
            replicas,
            leases: Vec::new(),
            copies: BTreeMap::new(),
            log_start: Offset::ZERO,
            sealed: Vec::new(),
            facts: BTreeMap::new(),
        }
    }

    /// The chain of its generations.
    pub fn chain(&self) -> Chain<'_> {
        Chain {
            sealed: &self.sealed,
            epoch: self.epoch,
            start: self.start,
        }
    }

    /// A sealed generation that holds records at or above the log start.
    pub fn sealed(&self, epoch: LeaderEpoch) -> Option<&Sealed> {
        let at = self
            .sealed
            .binary_search_by_key(&epoch, |sealed| sealed.epoch);
        at.ok().map(|at| &self.sealed[at])
    }

    /// Where a generation below the open one ended. Those that hold no records, or none that are kept, are not in the chain:
    /// they ended where the next one starts, or lie below the log start with all that is in them.
    pub fn end_of(&self, epoch: LeaderEpoch) -> Option<Offset> {
        if epoch >= self.epoch {
            return None;
        }
        let after = self.sealed.partition_point(|sealed| sealed.epoch < epoch);
        let next = self.sealed.get(after);
        Some(match next {
            Some(sealed) if sealed.epoch == epoch => sealed.end,
            Some(next) => next.start,
            None => self.start,
        })
    }

    /// Smallest and largest time of a sealed generation's records, where its seal said.
    pub fn times(&self, epoch: LeaderEpoch) -> Option<Times> {
        self.facts.get(&epoch)?.times
    }

    /// The entry that last let the node forget its copy of a sealed generation.
    pub fn let_go(&self, node: NodeId, epoch: LeaderEpoch) -> Option<u64> {
        self.facts.get(&epoch)?.let_go.get(&node).copied()
    }
}
