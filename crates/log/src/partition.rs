//! One partition: its generations, their runs in memory, and what waits to be journaled.
//!
//! Two locks: [`PartitionLog::state`], held for moments, and [`PartitionLog::files`], held by whoever writes the
//! partition's segments. Order: files before state, never the other way; no thread holds the state of two partitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use floe_model::{Incarnation, LeaderEpoch, Offset, TopicPartition};
use floe_world::memory::View;
use parking_lot::Mutex;

use crate::files::{Files, Table};
use crate::format::record::Pointer;
use crate::receipt::Promise;
use crate::run::Run;
use crate::{Failure, Generation};

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
    pub(crate) generations: Vec<GenerationState>,
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

/// A change that takes effect when its record is flushed.
#[derive(Debug)]
pub(crate) enum Control {
    Generation {
        epoch: LeaderEpoch,
        start: u64,
        descriptor: Bytes,
        promise: Promise,
    },
    Fence {
        epoch: LeaderEpoch,
        promise: Promise<Offset>,
    },
    Truncate {
        epoch: LeaderEpoch,
        end: u64,
        promise: Promise,
    },
    Forget {
        promise: Promise,
    },
}

/// One generation. Below `runs` its offsets are in segments.
#[derive(Debug)]
pub(crate) struct GenerationState {
    pub(crate) epoch: LeaderEpoch,
    pub(crate) start: u64,
    /// End of what is accepted.
    pub(crate) end: u64,
    /// End of what is on stable storage.
    pub(crate) durable: u64,
    /// End of what is written to segments ...
    pub(crate) written: u64,
    /// ... and flushed there.
    pub(crate) synced: u64,
    pub(crate) descriptor: Bytes,
    pub(crate) runs: VecDeque<Run>,
    pub(crate) file: Option<FilePlace>,
    pub(crate) lost: Vec<(u64, u64)>,
    /// How often it was truncated.
    pub(crate) cuts: u32,
}

/// Where the next run of a generation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) base: u64,
    pub(crate) next_block: u32,
}

/// Bytes of a run by reference: a part of a group.
pub(crate) type Part = (View, std::ops::Range<usize>);

impl GenerationState {
    pub(crate) fn new(epoch: LeaderEpoch, start: u64, descriptor: Bytes) -> Self {
        Self {
            epoch,
            start,
            end: start,
            durable: start,
            written: start,
            synced: start,
            descriptor,
            runs: VecDeque::new(),
            file: None,
            lost: Vec::new(),
            cuts: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The run that appends go to, if it has room for so many bytes.
    pub(crate) fn open_run(&mut self, bytes: usize) -> Option<&mut Run> {
        self.runs.back_mut().filter(|run| run.has_room(bytes))
    }

    /// Closes the last run to further batches; drops it if it has none.
    pub(crate) fn seal_run(&mut self) {
        if let Some(run) = self.runs.back_mut() {
            run.is_open = false;
            if run.is_empty() {
                self.runs.pop_back();
            }
        }
    }

    /// Bytes and batches that the journal has not yet.
    pub(crate) fn pending(&self) -> (usize, usize) {
        let newest_first = self.runs.iter().rev().map(Run::pending);
        newest_first
            .take_while(|(bytes, _)| *bytes > 0)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// What [`Self::pending`] counted, oldest first, counted as journaled from now on.
    pub(crate) fn take_pending(&mut self, into: &mut Vec<Part>) {
        let first = self
            .runs
            .iter()
            .rev()
            .take_while(|run| run.pending().0 > 0)
            .count();
        let from = self.runs.len() - first;
        for run in self.runs.range_mut(from..) {
            into.push((run.view.clone(), run.take_pending()));
        }
    }

    /// Drops everything at or above `end`.
    pub(crate) fn cut(&mut self, end: u64) {
        let end = end.max(self.start);
        if end >= self.end {
            return;
        }
        self.cuts += 1;
        self.seal_run();
        while self.runs.back().is_some_and(|run| run.base >= end) {
            self.runs.pop_back();
        }
        if let Some(run) = self.runs.back_mut() {
            run.cut(end);
        }
        self.end = end;
        self.durable = self.durable.min(end);
        self.written = self.written.min(end);
        self.synced = self.synced.min(end);
        self.lost.retain(|(from, _)| *from < end);
    }

    /// Bytes in memory that no segment has.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.runs
            .iter()
            .filter(|run| !run.is_written())
            .map(Run::bytes)
            .sum()
    }
}

impl State {
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            fence: LeaderEpoch(0),
            fencing: LeaderEpoch(0),
            is_bound: false,
            is_forgotten: false,
            generations: Vec::new(),
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

    /// Opens a generation; the one before takes no more appends, and goes if nothing was ever in it (a reader of an
    /// empty epoch is answered by its neighbours, as in Kafka).
    pub(crate) fn open_generation(&mut self, generation: GenerationState) {
        if let Some(last) = self.generations.last_mut() {
            last.seal_run();
            if last.is_empty() && last.lost.is_empty() {
                self.generations.pop();
            }
        }
        self.generations.push(generation);
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

    /// Shows the ends of the open generation to whoever asks without the lock.
    pub(crate) fn publish(&self, state: &State) {
        if let Some(open) = state.generations.last() {
            self.end.store(open.end, Ordering::Release);
            self.durable_end.store(open.durable, Ordering::Release);
        }
    }

    /// Which partition this is.
    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    /// First offset not yet accepted.
    pub fn end(&self) -> Offset {
        Offset(self.end.load(Ordering::Acquire))
    }

    /// First offset not yet on stable storage.
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

    /// Generations in order of epoch; an empty one that was followed by another is left out.
    pub fn generations(&self) -> Vec<Generation> {
        let state = self.state.lock();
        let each = state.generations.iter().map(|held| Generation {
            epoch: held.epoch,
            start: Offset(held.start),
            end: Offset(held.end),
            descriptor: held.descriptor.clone(),
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

impl Control {
    /// The generation that it opens.
    pub(crate) fn opens(&self) -> Option<LeaderEpoch> {
        match self {
            Self::Generation { epoch, .. } => Some(*epoch),
            _ => None,
        }
    }

    /// Ends it without effect.
    pub(crate) fn fail(self, failure: &Failure) {
        match self {
            Self::Generation { promise, .. }
            | Self::Truncate { promise, .. }
            | Self::Forget { promise } => promise.resolve(Err(failure.clone())),
            Self::Fence { promise, .. } => promise.resolve(Err(failure.clone())),
        }
    }
}

impl std::fmt::Debug for PartitionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartitionLog({})", self.partition)
    }
}
