//! The handle: what a node asks of its log.

use std::sync::Arc;

use bytes::Bytes;
use floe_model::{Incarnation, LeaderEpoch, Offset, Timestamp, TopicPartition};

use crate::{
    AppendError, CatalogEntry, Events, Failure, Generation, OpenError, Outcome, ReadError, Receipt,
    Recovered, SegmentInfo, Setup, Snapshot, TimeLookup, Vote,
};

/// The log of one node on one disk. Cheap to clone.
#[derive(Clone)]
pub struct Log(Arc<()>);

/// One partition's part of the log.
pub struct PartitionLog {
    partition: TopicPartition,
}

impl Log {
    /// Opens or formats the directory and recovers; starts nothing. Blocks.
    pub fn open(setup: Setup) -> Result<(Self, Recovered), OpenError> {
        drop(setup);
        unreachable!("not built yet")
    }

    /// Says where events go, without threads: the caller steps (`step_*`).
    pub fn attach(&self, _events: Arc<dyn Events>) {
        let _ = &self.0;
    }

    /// Attaches and starts the threads.
    pub fn start(&self, _events: Arc<dyn Events>) -> Result<(), Failure> {
        unreachable!("not built yet")
    }

    /// Makes a partition known: a local number and a new incarnation. Nothing for one that is known.
    pub fn bind(&self, _partition: TopicPartition) -> Receipt<Incarnation> {
        unreachable!("not built yet")
    }

    /// A partition that is bound and not forgotten.
    pub fn partition(&self, _partition: TopicPartition) -> Option<Arc<PartitionLog>> {
        unreachable!("not built yet")
    }

    /// Opens a generation above all before; appends go there once the receipt is kept.
    pub fn open_generation(
        &self,
        _partition: &Arc<PartitionLog>,
        _epoch: LeaderEpoch,
        _start: Offset,
        _descriptor: Bytes,
    ) -> Receipt {
        unreachable!("not built yet")
    }

    /// Refuses appends below `epoch` from now on, behind all accepted before (rule FenceCoversPending); answers with the
    /// accepted end of that moment.
    pub fn fence(&self, _partition: &Arc<PartitionLog>, _epoch: LeaderEpoch) -> Receipt<Offset> {
        unreachable!("not built yet")
    }

    /// Drops what a sealed generation has at or above `end`.
    pub fn truncate(
        &self,
        _partition: &Arc<PartitionLog>,
        _epoch: LeaderEpoch,
        _end: Offset,
    ) -> Receipt {
        unreachable!("not built yet")
    }

    /// Drops a partition with its files; its fence stays.
    pub fn forget(&self, _partition: TopicPartition) -> Receipt {
        unreachable!("not built yet")
    }

    /// Appends one validated batch at the end of the open generation: copies it once, stamps base offset and epoch in the
    /// copy, does no I/O. Gives the new end; durable when [`Events::durable`] reaches it.
    pub fn append(
        &self,
        _partition: &Arc<PartitionLog>,
        _epoch: LeaderEpoch,
        _batch: &[u8],
        _max_timestamp: Timestamp,
        _records: u32,
    ) -> Result<Offset, AppendError> {
        unreachable!("not built yet")
    }

    /// Whole batches from the one that contains `from`, below `up_to`, at most `max_bytes` but for the first batch if
    /// `at_least_one`.
    pub fn read(
        &self,
        _partition: &Arc<PartitionLog>,
        _from: Offset,
        _up_to: Offset,
        _max_bytes: usize,
        _at_least_one: bool,
    ) -> Result<Outcome, ReadError> {
        unreachable!("not built yet")
    }

    /// The first record below `up_to` whose timestamp is `at` or later.
    #[allow(clippy::unused_async, reason = "reads from disk")]
    pub async fn offset_for_time(
        &self,
        _partition: &Arc<PartitionLog>,
        _at: Timestamp,
        _up_to: Offset,
    ) -> Result<Option<TimeLookup>, ReadError> {
        unreachable!("not built yet")
    }

    /// The record below `up_to` with the largest timestamp, the first of equals (KIP-734).
    #[allow(clippy::unused_async, reason = "reads from disk")]
    pub async fn max_timestamp(
        &self,
        _partition: &Arc<PartitionLog>,
        _up_to: Offset,
    ) -> Result<Option<TimeLookup>, ReadError> {
        unreachable!("not built yet")
    }

    /// Appends entries to a catalog stream; an entry at a known index replaces it and all above.
    pub fn catalog_append(&self, _group: u32, _entries: Vec<CatalogEntry>) -> Receipt {
        unreachable!("not built yet")
    }

    /// Records a term and vote.
    pub fn vote(&self, _group: u32, _vote: Vote) -> Receipt {
        unreachable!("not built yet")
    }

    /// Replaces the entries up to the snapshot's index by it. In the next checkpoint; until then the entries stay on
    /// disk, which says the same.
    pub fn compact(&self, _group: u32, _snapshot: Snapshot) {
        unreachable!("not built yet")
    }

    /// Removes whole segment files that end at or below `offset`.
    pub fn delete_below(&self, _partition: &Arc<PartitionLog>, _offset: Offset) {
        unreachable!("not built yet")
    }

    /// The segment files, oldest first, and the open tail as if it were one.
    pub fn segments(&self, _partition: &Arc<PartitionLog>) -> Vec<SegmentInfo> {
        unreachable!("not built yet")
    }

    /// Keeps the owner's snapshot of producer state at `at`; the newest is given back after a restart.
    pub fn keep_producers(&self, _partition: &Arc<PartitionLog>, _at: Offset, _snapshot: Bytes) {
        unreachable!("not built yet")
    }

    /// The newest kept snapshot of producer state at or below the end.
    #[allow(clippy::unused_async, reason = "reads from disk")]
    pub async fn producers(&self, _partition: &Arc<PartitionLog>) -> Option<(Offset, Bytes)> {
        unreachable!("not built yet")
    }

    /// A last checkpoint; ends and joins the threads. Blocks.
    pub fn close(&self) -> Result<(), Failure> {
        unreachable!("not built yet")
    }
}

impl PartitionLog {
    /// Which partition this is.
    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    /// First offset not yet accepted.
    pub fn end(&self) -> Offset {
        unreachable!("not built yet")
    }

    /// First offset not yet on stable storage.
    pub fn durable_end(&self) -> Offset {
        unreachable!("not built yet")
    }

    /// The fence.
    pub fn fence(&self) -> LeaderEpoch {
        unreachable!("not built yet")
    }

    /// The life of its data.
    pub fn incarnation(&self) -> Incarnation {
        unreachable!("not built yet")
    }

    /// Generations in order of epoch.
    pub fn generations(&self) -> Vec<Generation> {
        unreachable!("not built yet")
    }

    /// `segment.bytes` and `segment.ms` of its topic, where they differ from the log's.
    pub fn set_roll(&self, _segment_bytes: Option<u64>, _segment_age_ms: Option<u64>) {
        unreachable!("not built yet")
    }
}
