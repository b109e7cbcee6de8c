//! The values that cross the log's surface. No behaviour.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use floe_model::{Boot, Incarnation, LeaderEpoch, NodeId, Offset, Timestamp, TopicPartition};

use crate::{Failure, ReadError};

/// What the log tells its owner, from its own threads. Must not block.
pub trait Events: Send + Sync + 'static {
    /// One sweep after each flush: the new durable ends. Called in the order of the journal.
    fn durable(&self, ends: &[Durable]);
    /// The log is poisoned: nothing is acknowledged any more, the process is to end (rule FailedFlushStops).
    fn failed(&self, failure: Failure);
}

/// Everything of `epoch` below `end` is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// The partition.
    pub partition: TopicPartition,
    /// Its generation.
    pub epoch: LeaderEpoch,
    /// First offset not yet on stable storage.
    pub end: Offset,
}

/// What recovery found on the disk.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// This life of the process.
    pub boot: Boot,
    /// Whether anything is missing.
    pub verdict: Verdict,
    /// The cluster this data belongs to; zeros if to none yet.
    pub cluster: [u8; 16],
    /// This node began it, alone.
    pub is_founder: bool,
    /// The node this data belongs to.
    pub node: NodeId,
    /// Whether the directory was empty and has been formatted by this open.
    pub is_new: bool,
    /// Every partition bound here, forgotten ones (fence only, no generations) too.
    pub partitions: Vec<RecoveredPartition>,
    /// Catalog streams by group number.
    pub streams: Vec<Stream>,
}

/// How the last life ended, as far as the disk can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was in flight.
    Clean,
    /// A group in flight was cut: nothing acknowledged is missing.
    Torn,
    /// Bytes that were on stable storage are gone or bad: every partition has a new incarnation.
    Damage {
        /// What was found, for the operator.
        findings: Vec<String>,
    },
}

/// One partition as recovered.
#[derive(Clone, Debug)]
pub struct RecoveredPartition {
    /// Which.
    pub partition: TopicPartition,
    /// The life of its data here; another one than before after damage.
    pub incarnation: Incarnation,
    /// No append below this epoch is accepted.
    pub fence: LeaderEpoch,
    /// In order of epoch; the last one takes appends of its leader.
    pub generations: Vec<Generation>,
    /// What is known to be lost.
    pub lost: Vec<LostRange>,
}

/// One span of a partition written under one leader epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its leader epoch.
    pub epoch: LeaderEpoch,
    /// First offset.
    pub start: Offset,
    /// End of what this node holds of it.
    pub end: Offset,
    /// The owner's bytes (leader, members), stored with the data.
    pub descriptor: Bytes,
    /// Kafka's checksum of the last batch; none if it holds nothing, or where only a read can tell: [`Log::last_checksum`].
    ///
    /// [`Log::last_checksum`]: crate::Log::last_checksum
    pub last: Option<u32>,
}

/// Offsets that were acknowledged here and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// The generation.
    pub epoch: LeaderEpoch,
    /// First lost offset, and the one after the last.
    pub offsets: Range<u64>,
}

/// A catalog log: snapshot, then entries without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Group number.
    pub group: u32,
    /// Latest vote.
    pub vote: Vote,
    /// What the entries build on.
    pub snapshot: Option<Snapshot>,
    /// Entries after the snapshot.
    pub entries: Vec<CatalogEntry>,
}

impl Stream {
    /// Index of the last entry; 0 without any.
    pub fn last(&self) -> u64 {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.index);
        self.entries.last().map_or(snapshot, |entry| entry.index)
    }

    /// Whether a snapshot only stands for what is in here, too: it was made of these entries, not put in their place.
    pub(crate) fn leads_to(&self, snapshot: &Snapshot) -> bool {
        let held = self.snapshot.as_ref();
        held.is_some_and(|held| held.index >= snapshot.index)
            || self
                .entries
                .iter()
                .any(|entry| (entry.index, entry.term) == (snapshot.index, snapshot.term))
    }
}

/// Term and vote of a consensus group (`(node, incarnation)` is a voter's id; zeros: nobody).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// Term.
    pub term: u64,
    /// Voted for this node ...
    pub node: u64,
    /// ... in this incarnation.
    pub incarnation: u64,
}

/// One entry of a catalog log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Place, rising by one; an entry at a known place replaces it and all above.
    pub index: u64,
    /// Term it was proposed in.
    pub term: u64,
    /// The command.
    pub data: Bytes,
}

/// A catalog state that replaces all entries up to its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Last entry in it.
    pub index: u64,
    /// That entry's term.
    pub term: u64,
    /// The state.
    pub data: Bytes,
}

/// Whole batches in order.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    /// Each is one or more whole batches, contiguous; by reference where they lie in memory. Batches may start
    /// below the offset asked for.
    pub batches: Vec<Bytes>,
    /// Where to go on reading.
    pub next: Offset,
}

impl Slices {
    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// A read: answered at once from memory, or under way on a reader thread.
#[derive(Debug)]
pub enum Outcome {
    /// Served from memory.
    Memory(Slices),
    /// Read from disk; await it.
    Cold(ColdRead),
}

/// A read from disk under way. Dropping it abandons the read.
pub struct ColdRead(pub(crate) Pin<Box<dyn Future<Output = Result<Slices, ReadError>> + Send>>);

impl std::fmt::Debug for ColdRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ColdRead")
    }
}

impl Future for ColdRead {
    type Output = Result<Slices, ReadError>;

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

/// A record found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLookup {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Its leader epoch.
    pub epoch: LeaderEpoch,
}

/// One segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Leader epoch of its generation.
    pub epoch: LeaderEpoch,
    /// First offset in it.
    pub base: Offset,
    /// End of it.
    pub end: Offset,
    /// Bytes it takes.
    pub bytes: u64,
    /// Largest record timestamp in it; none when not known yet.
    pub max_timestamp: Option<Timestamp>,
    /// Whether appends still go to it.
    pub is_open: bool,
}
