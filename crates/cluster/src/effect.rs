//! What nodes have to do because of applied commands. Values only; who is concerned finds out by what it holds and leads.
//!
//! Guarantees: each is harmless when it comes again, so that a node that learns by snapshot ([`duties`](crate::duties)) and
//! one that applies every entry end up the same.

use floe_model::{LeaderEpoch, NodeId, Offset, TopicId, TopicPartition};
use floe_replication::replica::Opened;

/// Something to do, for the nodes it concerns.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A generation has ended here: whoever holds more drops the excess.
    Sealed {
        /// Which partition.
        partition: TopicPartition,
        /// The generation.
        epoch: LeaderEpoch,
        /// Its end.
        end: Offset,
        /// Acknowledged records above the end may be lost, and somebody accepted that.
        lossy: bool,
    },
    /// A generation is open: its members open it in their logs.
    Opened {
        /// Which partition.
        partition: TopicPartition,
        /// The generation.
        opened: Opened,
    },
    /// The lease of an earlier generation is proven ended: the leader waits for it no more.
    LeaseEnded {
        /// Which partition.
        partition: TopicPartition,
        /// The earlier generation.
        epoch: LeaderEpoch,
    },
    /// The node may remove what it has of a sealed generation, unless it copied that after this entry.
    Forgotten {
        /// Which partition.
        partition: TopicPartition,
        /// Which node.
        node: NodeId,
        /// The generation.
        epoch: LeaderEpoch,
        /// Index of the entry.
        index: u64,
    },
    /// A topic is gone: nodes remove its data and positions, then confirm.
    Deleted {
        /// Which life.
        topic: TopicId,
        /// How many partitions it had.
        partitions: u32,
    },
    /// Offsets below this are not readable any more and may be removed.
    LogStartAdvanced {
        /// Which partition.
        partition: TopicPartition,
        /// The new log start.
        to: Offset,
    },
    /// A block of producer ids belongs to the node.
    ProducerIdsReserved {
        /// Which node.
        node: NodeId,
        /// The first one.
        first: u64,
        /// How many.
        count: u64,
    },
}
