//! One partition: its generations, their runs in memory, and what waits to be journaled.
//!
//! Two locks: [`PartitionLog::state`], held for moments, and [`PartitionLog::files`], held by whoever writes the
//! partition's segments. Order: files before state, never the other way; no thread holds the state of two partitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use floe_model::{Incarnation, LeaderEpoch, Offset, TopicPartition};
use parking_lot::Mutex;

use crate::Generation;
use crate::control::Control;
use crate::files::{Files, Table};
use crate::format::record::Pointer;
use crate::generation::{GenerationState, Record, Version};

/// One partition's part of the log.
pub struct PartitionLog {
    pub(crate) partition: TopicPartition,
    /// Its number in the journal.
    pub(crate) local: u32,
    pub(crate) state: Mutex<State>,
    pub(crate) files: Mutex<Files>,
    pub(crate) table: Mutex<Table>,
    end: AtomicU64,
    durable_end: AtomicU64,
    /// 0: as the log's configuration says.
    pub(crate) segment_bytes: AtomicU64,
    pub(crate) segment_age_ms: AtomicU64,
}

/// See [`PartitionLog`].
pub(crate) struct State {
    pub(crate) incarnation: Incarnation,
    /// In effect: journaled and flushed.
    pub(crate) fence: LeaderEpoch,
    /// Asked for: nothing below is accepted.
    pub(crate) fencing: LeaderEpoch,
    pub(crate) is_bound: bool,
    pub(crate) is_forgotten: bool,
    /// To be forgotten.
    pub(crate) is_leaving: bool,
    /// In order of epoch, and so of start.
    pub(crate) generations: Vec<GenerationState>,
    /// How many generations were ever taken in.
    pub(crate) openings: u32,
    /// How often something was dropped whose files may still be there.
    pub(crate) left_over: u32,
    /// In order; each waits until everything accepted before it is in the journal.
    pub(crate) controls: VecDeque<Control>,
    /// Whether the journal has been told to look here.
    pub(crate) is_queued: bool,
    /// Whether a segment thread has been told to look here.
    pub(crate) has_job: bool,
    pub(crate) large: Large,
    pub(crate) producers: Option<(u64, Bytes)>,
    /// Size of the next run.
    pub(crate) run_bytes: usize,
    /// Where the last read from disk ended, to know a reader that goes on.
    pub(crate) cold_next: u64,
    /// Offsets below this were asked to be deleted.
    pub(crate) delete_below: u64,
}

/// The way of a large append, rule PointerAfterBytes.
#[derive(Debug, Default)]
pub(crate) enum Large {
    /// Small appends go into the journal.
    #[default]
    Idle,
    /// A segment thread is to write and flush what is there; nothing of the partition is journaled until then.
    Wanted,
    /// It is doing so.
    Writing,
    /// It has: these go into the next group.
    Ready(Vec<Pointer>),
}

impl State {
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            fence: LeaderEpoch(0),
            fencing: LeaderEpoch(0),
            is_bound: false,
            is_forgotten: false,
            is_leaving: false,
            generations: Vec::new(),
            openings: 0,
            left_over: 0,
            controls: VecDeque::new(),
            is_queued: false,
            has_job: false,
            large: Large::Idle,
            producers: None,
            run_bytes: floe_world::memory::ALIGNMENT,
            cold_next: u64::MAX,
            delete_below: 0,
        }
    }

    pub(crate) fn generation(&mut self, epoch: LeaderEpoch) -> Option<&mut GenerationState> {
        let at = self
            .generations
            .binary_search_by_key(&epoch, |held| held.epoch);
        self.generations.get_mut(at.ok()?)
    }

    /// Bytes and batches that the journal has not yet, all generations.
    pub(crate) fn pending(&self) -> (usize, usize) {
        let each = self.generations.iter().map(GenerationState::pending);
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Takes a generation in at its place.
    pub(crate) fn insert(&mut self, mut generation: GenerationState) {
        self.openings += 1;
        generation.version.opening = self.openings;
        let at = self
            .generations
            .partition_point(|held| held.epoch < generation.epoch);
        self.generations.insert(at, generation);
    }

    /// Takes a generation out.
    pub(crate) fn take(&mut self, epoch: LeaderEpoch) -> Option<GenerationState> {
        let mut held = self.generations.iter();
        let at = held.position(|held| held.epoch == epoch)?;
        Some(self.generations.remove(at))
    }

    /// The generation of an epoch, if it still is the one that was opened so.
    pub(crate) fn same(
        &mut self,
        epoch: LeaderEpoch,
        version: Version,
    ) -> Option<&mut GenerationState> {
        let is_same = |held: &&mut GenerationState| held.version.opening == version.opening;
        self.generation(epoch).filter(is_same)
    }

    /// Where the size of the next run is decided: twice as large after one that was full, smaller after one that was
    /// closed nearly empty.
    pub(crate) fn size_next_run(&mut self, used: usize, capacity: usize, max: usize) {
        self.run_bytes = if used > capacity / 2 {
            (capacity * 2).min(max)
        } else {
            floe_world::memory::class(used.max(1)).min(max)
        };
    }
}

impl PartitionLog {
    pub(crate) fn new(partition: TopicPartition, local: u32, state: State) -> Arc<Self> {
        let log = Self {
            partition,
            local,
            state: Mutex::new(state),
            files: Mutex::new(Files::default()),
            table: Mutex::new(Table::default()),
            end: AtomicU64::new(0),
            durable_end: AtomicU64::new(0),
            segment_bytes: AtomicU64::new(0),
            segment_age_ms: AtomicU64::new(0),
        };
        log.publish(&log.state.lock());
        Arc::new(log)
    }

    /// Shows the ends of the newest generation to whoever asks without the lock.
    pub(crate) fn publish(&self, state: &State) {
        let end = state.generations.last().map_or(0, |newest| newest.end);
        self.end.store(end, Ordering::Release);
        let mut opened = state.generations.iter().rev();
        let newest = opened.find(|one| one.record == Record::Durable);
        let durable = newest.map_or(0, |newest| newest.durable);
        self.durable_end.store(durable, Ordering::Release);
    }

    /// Which partition this is.
    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    /// First offset not yet accepted by the newest generation.
    pub fn end(&self) -> Offset {
        Offset(self.end.load(Ordering::Acquire))
    }

    /// First offset of the newest generation on stable storage that is not there itself yet.
    pub fn durable_end(&self) -> Offset {
        Offset(self.durable_end.load(Ordering::Acquire))
    }

    /// The fence in effect.
    pub fn fence(&self) -> LeaderEpoch {
        self.state.lock().fence
    }

    /// The life of its data.
    pub fn incarnation(&self) -> Incarnation {
        self.state.lock().incarnation
    }

    /// Generations in order of epoch, as accepted; the newest takes appends of its leader.
    pub fn generations(&self) -> Vec<Generation> {
        let state = self.state.lock();
        let each = state.generations.iter().map(|held| Generation {
            epoch: held.epoch,
            start: Offset(held.start),
            end: Offset(held.end),
            descriptor: held.descriptor.clone(),
            last: held.last,
        });
        each.collect()
    }

    /// `segment.bytes` and `segment.ms` of its topic, where they differ from the log's.
    pub fn set_roll(&self, segment_bytes: Option<u64>, segment_age_ms: Option<u64>) {
        self.segment_bytes
            .store(segment_bytes.unwrap_or(0), Ordering::Relaxed);
        self.segment_age_ms
            .store(segment_age_ms.unwrap_or(0), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for PartitionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartitionLog({})", self.partition)
    }
}
