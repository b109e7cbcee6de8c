//! What can go wrong, grouped by what the caller does next.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use floe_model::{LeaderEpoch, Offset};

/// Why a directory cannot be opened as a log.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{dir} is in use by another process; stop that one or choose another data directory")]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// It belongs to another cluster or node.
    #[error("{dir} holds the data of {found}, not of {expected}; choose another data directory")]
    OtherIdentity {
        /// The directory.
        dir: PathBuf,
        /// What it says it is.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// Written by a newer release.
    #[error("{path} has format {found}, this release reads up to {known}; use a newer release")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: u16,
        /// The newest one known here.
        known: u16,
    },
    /// There is data and no readable identity (rule IdentityIsLife).
    #[error(
        "{dir} holds data but no readable identity (node.id); restore that file or start with an empty directory"
    )]
    NoIdentity {
        /// The directory.
        dir: PathBuf,
    },
    /// The journal is not whole: a file cut or taken from outside, so that what was acknowledged last may have been in it.
    #[error(
        "{path} has {found} of its {expected} bytes, and what was acknowledged last may have been in the rest; put the file \
         back as it was, or start with an empty directory"
    )]
    JournalCut {
        /// The file.
        path: PathBuf,
        /// Bytes it has; 0 if it is not there.
        found: u64,
        /// Bytes it was made with.
        expected: u64,
    },
    /// A setting cannot be used.
    #[error("{0}")]
    Config(String),
    /// The disk failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The disk failed. After one of these on a write the log is poisoned.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{action} {path}: {source}")]
pub struct Failure {
    /// What was tried.
    pub action: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the system said.
    pub source: Arc<io::Error>,
}

impl Failure {
    /// Whether room was asked for and there is none: nothing was written, so it is a refusal.
    pub(crate) fn is_full(&self) -> bool {
        let is_asked = ["allocate", "create", "make"].contains(&self.action);
        let kind = self.source.kind();
        is_asked && [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&kind)
    }
}

/// Why an append is not accepted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// A higher epoch has been seen.
    #[error("epoch is fenced by {fence}")]
    Fenced {
        /// The fence.
        fence: LeaderEpoch,
    },
    /// That generation is not the open one.
    #[error("epoch is not open here; open is {open:?}")]
    NotOpen {
        /// The open one.
        open: Option<LeaderEpoch>,
    },
    /// That generation is not held here, or is being dropped.
    #[error("no generation of epoch {epoch} is held here")]
    NotHeld {
        /// The one asked for.
        epoch: LeaderEpoch,
    },
    /// It was cut where it is sealed: nothing follows any more.
    #[error("the generation of epoch {epoch} is cut where it ends")]
    Truncated {
        /// Its epoch.
        epoch: LeaderEpoch,
    },
    /// A batch from another copy does not follow what is held.
    #[error("epoch {} goes on at {}, and the batch is of epoch {} at {}", expected.0, expected.1, found.0, found.1)]
    OutOfPlace {
        /// What would follow.
        expected: (LeaderEpoch, Offset),
        /// What came.
        found: (LeaderEpoch, Offset),
    },
    /// Bytes from another copy are no whole batch.
    #[error("what should be a batch at {at} is none")]
    NotABatch {
        /// Where it would lie.
        at: Offset,
    },
    /// There is no room at the moment; try again a little later.
    #[error("no room: {0}")]
    Full(Full),
    /// The batch is above `batch_bytes_max`, or the batches above what was or can be admitted.
    #[error("{bytes} bytes are above the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The log failed before; the process is about to end.
    #[error("the log has failed")]
    Poisoned,
}

/// What is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Memory for the tail.
    #[error("memory for unwritten data is used up")]
    Memory,
    /// The journal waits for a checkpoint.
    #[error("the journal is waiting for a checkpoint")]
    Journal,
    /// The file system.
    #[error("the disk is full")]
    Disk,
}

/// Why a read has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// Outside of what is held.
    #[error("offset is outside {start}..{end}")]
    OutOfRange {
        /// First offset held.
        start: Offset,
        /// End.
        end: Offset,
    },
    /// Known to be lost, or found damaged now.
    #[error("offsets {} to {} are damaged on this disk", offsets.start, offsets.end)]
    Lost {
        /// Which; a reader may go on at the end.
        offsets: Range<u64>,
    },
    /// The partition has these offsets, as far as is known here, and this node does not hold them.
    #[error("offsets {} to {} are not held here", offsets.start, offsets.end)]
    NotHeld {
        /// Which; others may hold them.
        offsets: Range<u64>,
    },
    /// The disk failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}
