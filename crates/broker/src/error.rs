//! Every refusal and failure a caller of the broker can meet, grouped by what it does next. The doors translate them
//! exhaustively.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use floe_cluster::InvalidSetting;
use floe_model::{InvalidTopicName, LeaderEpoch, Offset, ProducerId, TopicName, TopicPartition};
use floe_wire::batch::{Class, Refusal};

/// The node cannot do it now; nothing is wrong with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The journal or the memory budget is full for the moment: come again after this long.
    #[error("the node is busy; try again in {} ms", .retry_after.as_millis())]
    Busy {
        /// When to come again.
        retry_after: Duration,
    },
    /// The disk is full: retrying helps after something was deleted.
    #[error("the data directory's disk is full; free space or delete topics, then try again")]
    DiskFull,
    /// The node is stopping, or a write failed and it is about to end.
    #[error("the node is stopping")]
    Stopping,
    /// The nodes did not agree on it: nobody leads the catalog, or another one does since. Nothing has changed.
    #[error(
        "the cluster has no leader for its catalog at the moment, and nothing was changed; a majority of its nodes must reach one \
         another: try again"
    )]
    NotAgreed,
    /// It was asked of the catalog's leader, and what came of it is not known here.
    #[error(
        "the change was given to the catalog's leader and its outcome is not known; look whether it holds, then try again"
    )]
    Undecided,
}

/// Why a batch was not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// No such topic or partition here: refresh metadata.
    #[error("unknown topic or partition {0}")]
    UnknownPartition(TopicPartition),
    /// Another node leads it, or soon will: refresh metadata. What was not acknowledged may be there or not.
    #[error("{0} is not led by this node (any more); find its leader and try again")]
    NotLeader(TopicPartition),
    /// The topic is one of Floe's own.
    #[error(
        "topic '{0}' belongs to Floe itself; clients cannot write it, produce to another topic"
    )]
    NotWritable(TopicName),
    /// The batch is not taken; its class says what to do.
    #[error("{reason}")]
    Batch {
        /// What kind of refusal.
        class: Class,
        /// The record at fault, from 0, if one is.
        record: Option<u32>,
        /// What is wrong, what the limit is, what to do.
        reason: String,
    },
    /// A batch of this producer is missing before this one.
    #[error("producer {producer}: sequence {sequence} does not follow {expected} (next expected)")]
    OutOfOrderSequence {
        /// Which producer.
        producer: ProducerId,
        /// What came.
        sequence: i32,
        /// What would follow.
        expected: i32,
    },
    /// Already appended, too long ago to name its offset.
    #[error(
        "producer {producer}: sequence {sequence} was appended before; its offset is no longer known"
    )]
    DuplicateSequence {
        /// Which producer.
        producer: ProducerId,
        /// What came.
        sequence: i32,
    },
    /// A newer session of this producer has written here.
    #[error("producer {producer}: epoch {epoch} is older than {current}")]
    StaleProducerEpoch {
        /// Which producer.
        producer: ProducerId,
        /// What came.
        epoch: i16,
        /// What holds.
        current: i16,
    },
    /// Appended, but not durable in the caller's time: it may be later, or never. Try again, idempotently if twice is too often.
    #[error(
        "{} and the batch is not durable yet, but may become so; free space if need be, then try again (an idempotent producer's \
         retry is never appended twice)",
        if *.is_disk_full { "the data directory's disk is full" } else { "the disk is slow or stuck" }
    )]
    Undecided {
        /// It waits for room on the disk.
        is_disk_full: bool,
    },
    /// Try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<Refusal> for ProduceError {
    fn from(refusal: Refusal) -> Self {
        Self::Batch {
            class: refusal.class(),
            record: refusal.record,
            reason: refusal.to_string(),
        }
    }
}

/// Why a partition could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No such topic or partition here: refresh metadata.
    #[error("unknown topic or partition {0}")]
    UnknownPartition(TopicPartition),
    /// Another node leads it, or soon will: refresh metadata.
    #[error("{0} is not led by this node (any more); find its leader and try again")]
    NotLeader(TopicPartition),
    /// The reader's epoch is older than the partition's: refresh metadata.
    #[error("leader epoch {given} is older than {current}")]
    FencedEpoch {
        /// The reader's.
        given: LeaderEpoch,
        /// The partition's.
        current: LeaderEpoch,
    },
    /// The reader's epoch is newer than the partition's: try again.
    #[error("leader epoch {given} is newer than {current}")]
    UnknownEpoch {
        /// The reader's.
        given: LeaderEpoch,
        /// The partition's.
        current: LeaderEpoch,
    },
    /// The position is outside what is kept.
    #[error("offset {offset} is out of range; kept are {log_start} up to {end}")]
    OutOfRange {
        /// What was asked for.
        offset: Offset,
        /// First offset kept.
        log_start: Offset,
        /// One past the last readable.
        end: Offset,
    },
    /// Bytes on disk are damaged and no copy repairs them: exactly this range cannot be read.
    #[error("offsets {from} up to {to} are damaged on disk and cannot be read; go on at {to}")]
    Damaged {
        /// First offset lost.
        from: Offset,
        /// First offset after the damage.
        to: Offset,
    },
    /// Try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why an offset could not be looked up: the same as for reading.
pub type OffsetError = FetchError;

/// Why a topic was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateTopicError {
    /// The name is illegal.
    #[error(transparent)]
    Name(#[from] InvalidTopicName),
    /// Another name that differs in `.` and `_` only exists.
    #[error("topic name '{name}' collides with '{existing}': they differ in '.' and '_' only")]
    Collision {
        /// What was asked for.
        name: TopicName,
        /// What is there.
        existing: TopicName,
    },
    /// It is there already.
    #[error("topic '{0}' already exists")]
    Exists(TopicName),
    /// Zero, or above the limit.
    #[error("{partitions} partitions asked for; give 1 to {limit}")]
    Partitions {
        /// What was asked for.
        partitions: i64,
        /// The most.
        limit: u32,
    },
    /// More copies than nodes.
    #[error(
        "replication factor {factor} asked for, {nodes} node(s) registered; give 1 to {nodes}, or leave it to the cluster"
    )]
    ReplicationFactor {
        /// What was asked for.
        factor: i64,
        /// How many nodes there are.
        nodes: u32,
    },
    /// One or more settings are refused.
    #[error("{}", floe_cluster::settings::join(.0))]
    Settings(Vec<InvalidSetting>),
    /// Try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a topic was not deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteTopicError {
    /// It is not there.
    #[error("unknown topic {0}")]
    Unknown(String),
    /// One of Floe's own.
    #[error("topic '{0}' belongs to Floe itself and cannot be deleted")]
    Internal(TopicName),
    /// Try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process runs on it.
    #[error("data directory {} is in use by another process; stop it or give another directory", .0.display())]
    Locked(PathBuf),
    /// Made for another cluster or by another node.
    #[error("data directory {} belongs to {found}, not to {expected}; give the right directory, cluster or node.id", .dir.display())]
    OtherIdentity {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
    /// A setting of the log that cannot be used; the text names it.
    #[error("{0}")]
    Setting(String),
    /// Written by a newer release.
    #[error("{} has format {found}; this release reads up to {supported}: use a newer release", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u32,
        /// The newest this release reads.
        supported: u32,
    },
    /// Cannot be written.
    #[error("data directory {} cannot be written: {source}; give this user the right to, or another directory", .dir.display())]
    Unwritable {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is there cannot be understood.
    #[error("data directory {} is damaged: {what}", .dir.display())]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// What was found.
        what: String,
    },
    /// Reading or writing failed.
    #[error("data directory {}: {what}: {source}", .dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
        /// During which step.
        what: String,
        /// Why.
        source: io::Error,
    },
}
