//! What all parts of one log share: the world, the queues between callers and steps, the poison.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use floe_model::{LeaderEpoch, TopicPartition};
use floe_world::{Buffer, Clock, Disk, Pool, Random};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::format::identity::Identity;
use crate::journal::{Command, Journal};
use crate::partition::PartitionLog;
use crate::read::cold::ColdJob;
use crate::receipt::Promise;
use crate::removal::Removal;
use crate::ring::Ring;
use crate::slots::Slots;
use crate::streams::Streams;
use crate::{Config, Events, Failure, Snapshot};

/// See the module.
pub(crate) struct Engine {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) tail: Pool,
    pub(crate) reads: Pool,
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    pub(crate) boot: u32,
    pub(crate) ring: Ring,
    pub(crate) partitions: RwLock<HashMap<TopicPartition, Arc<PartitionLog>>>,
    pub(crate) next_local: AtomicU32,
    pub(crate) inbox: Inbox,
    /// Held for a step of the journal, and for the snapshot of a checkpoint between two steps.
    pub(crate) journal: Mutex<Journal>,
    pub(crate) streams: Mutex<Streams>,
    /// Snapshots that the next checkpoint puts in place.
    pub(crate) installs: Mutex<Vec<Install>>,
    pub(crate) jobs: Queue<Job>,
    pub(crate) removals: Queue<Removal>,
    pub(crate) cold: Queue<ColdJob>,
    pub(crate) chunks: Mutex<crate::read::chunks::Chunks>,
    pub(crate) metrics: crate::metrics::Metrics,
    /// Held for a checkpoint.
    pub(crate) slots: Mutex<Slots>,
    pub(crate) checkpoint_wanted: Signal,
    /// Monotonic microseconds, and one, since which the journal writes a group; 0 while it does not.
    pub(crate) flushing_since: AtomicU64,
    /// First lsn of a stretch that is being filled with zeros; the journal stays below it.
    pub(crate) fill_claim: AtomicU64,
    pub(crate) fill: Mutex<crate::fill::Fill>,
    pub(crate) evictable: Mutex<VecDeque<Evictable>>,
    /// Rung when memory or the journal may have room.
    pub(crate) room: crate::admission::Bell,
    /// Memory of the tail that runs hold; the rest of what is used is held by readers.
    pub(crate) held: crate::run::Held,
    pub(crate) handles: Mutex<crate::files::Handles>,
    pub(crate) is_disk_full: AtomicBool,
    /// Something was kept that the journal does not have and no checkpoint yet.
    pub(crate) has_kept: AtomicBool,
    /// Monotonic milliseconds of the last append that was journaled.
    pub(crate) last_append: AtomicU64,
    pub(crate) events: OnceLock<Arc<dyn Events>>,
    pub(crate) poison: OnceLock<Failure>,
    pub(crate) is_closing: AtomicBool,
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// The directory is ours while this is held: until the log is closed.
    pub(crate) lock: Mutex<Option<Box<dyn Send + Sync>>>,
}

/// A snapshot that goes in place of a catalog stream's entries.
pub(crate) struct Install {
    pub(crate) group: u32,
    pub(crate) snapshot: Snapshot,
    pub(crate) promise: Promise,
}

/// A written run: partition, epoch, base.
pub(crate) type Evictable = (Arc<PartitionLog>, LeaderEpoch, u64);

/// Work of a segment thread.
pub(crate) enum Job {
    /// Write what is closed or wanted of a partition.
    Write(Arc<PartitionLog>),
    /// Store a producer snapshot.
    Producers(Arc<PartitionLog>),
}

/// What callers leave for the journal. Bounded: a partition is in it at most once, commands by their callers.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) mail: Mutex<Mail>,
    pub(crate) arrived: Condvar,
}

/// See [`Inbox`].
#[derive(Default)]
pub(crate) struct Mail {
    pub(crate) partitions: Vec<Arc<PartitionLog>>,
    pub(crate) commands: Vec<Command>,
    pub(crate) is_awaited: bool,
}

impl Inbox {
    pub(crate) fn push_partition(&self, partition: Arc<PartitionLog>) {
        let mut mail = self.mail.lock();
        mail.partitions.push(partition);
        self.wake(mail);
    }

    pub(crate) fn push_command(&self, command: Command) {
        let mut mail = self.mail.lock();
        mail.commands.push(command);
        self.wake(mail);
    }

    fn wake(&self, mut mail: parking_lot::MutexGuard<'_, Mail>) {
        let is_awaited = std::mem::take(&mut mail.is_awaited);
        drop(mail);
        if is_awaited {
            self.arrived.notify_one();
        }
    }
}

/// A queue of jobs for a few threads; its length is bounded by what refers to it (one job a partition, one a read).
pub(crate) struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    arrived: Condvar,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            items: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&self, item: T) {
        self.items.lock().push_back(item);
        self.arrived.notify_one();
    }

    /// Puts an item before the others, for the thread that has just taken one.
    pub(crate) fn push_front(&self, item: T) {
        self.items.lock().push_front(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.items.lock().pop_front()
    }

    /// Waits for an item or a while, unless the log is closing.
    pub(crate) fn wait(&self, at_most: Duration, is_closing: &AtomicBool) {
        let mut items = self.items.lock();
        if items.is_empty() && !is_closing.load(Ordering::Acquire) {
            self.arrived.wait_for(&mut items, at_most);
        }
    }

    pub(crate) fn wake_all(&self) {
        let _items = self.items.lock();
        self.arrived.notify_all();
    }

    pub(crate) fn drain(&self) -> VecDeque<T> {
        std::mem::take(&mut self.items.lock())
    }
}

/// A flag that a thread waits for.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: Mutex<bool>,
    set: Condvar,
}

impl Signal {
    pub(crate) fn set(&self) {
        let mut is_set = self.is_set.lock();
        if !*is_set {
            *is_set = true;
            self.set.notify_all();
        }
    }

    /// Takes the flag, waiting for it a while.
    pub(crate) fn take(&self, at_most: Duration) -> bool {
        let mut is_set = self.is_set.lock();
        if !*is_set && !at_most.is_zero() {
            self.set.wait_for(&mut is_set, at_most);
        }
        std::mem::take(&mut is_set)
    }
}

impl Engine {
    /// Whether a write or flush has failed (rule FailedFlushStops).
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.poison.get()
    }

    /// Ends the log's right to answer, tells the owner once, and gives the failure back.
    pub(crate) fn poison(&self, failure: Failure) -> Failure {
        if self.poison.set(failure.clone()).is_ok() {
            tracing::error!(%failure, "the log has failed; nothing is acknowledged any more");
            if let Some(events) = self.events.get() {
                events.failed(failure.clone());
            }
            self.room.ring();
        }
        failure
    }

    /// Queues a partition for the journal unless it is queued. The caller holds its state.
    pub(crate) fn queue(&self, partition: &Arc<PartitionLog>, is_queued: &mut bool) {
        if !std::mem::replace(is_queued, true) {
            self.inbox.push_partition(Arc::clone(partition));
        }
    }

    /// Queues a partition for a segment thread unless it is queued. The caller holds its state.
    pub(crate) fn queue_write(&self, partition: &Arc<PartitionLog>, has_job: &mut bool) {
        if !std::mem::replace(has_job, true) {
            self.jobs.push(Job::Write(Arc::clone(partition)));
        }
    }

    /// Every partition, in the order of their local numbers: what goes through all of them does so the same way each time.
    pub(crate) fn all_partitions(&self) -> Vec<Arc<PartitionLog>> {
        let mut all: Vec<_> = self.partitions.read().values().cloned().collect();
        all.sort_unstable_by_key(|partition| partition.local);
        all
    }

    pub(crate) fn partition_dir(&self, partition: TopicPartition) -> PathBuf {
        self.dir
            .join(partition.topic.to_string())
            .join(partition.partition.to_string())
    }

    /// A piece for the tail; takes memory from written runs, the oldest first, when there is none left.
    ///
    /// The caller holds no partition's state.
    pub(crate) fn tail_buffer(&self, wanted: usize, needed: usize) -> Option<Buffer> {
        let mut attempts = self.evictable.lock().len();
        loop {
            if let Some(buffer) = self.tail.try_get(wanted) {
                return Some(buffer);
            }
            let next = (attempts > 0)
                .then(|| self.evictable.lock().pop_front())
                .flatten();
            let Some(next) = next else {
                // Under pressure a smaller run is better than none.
                return self.tail.try_get(needed);
            };
            attempts -= 1;
            if !Self::evict(&next) {
                self.evictable.lock().push_back(next);
            }
        }
    }

    /// Lets the oldest run leave memory that can; `false` if none can.
    pub(crate) fn evict_oldest(&self) -> bool {
        let attempts = self.evictable.lock().len();
        for _ in 0..attempts {
            let Some(next) = self.evictable.lock().pop_front() else {
                return false;
            };
            if Self::evict(&next) {
                return true;
            }
            self.evictable.lock().push_back(next);
        }
        false
    }

    /// Whether readers hold so much of the tail by reference that they are given copies from their own share instead: a
    /// client that does not take its answers must not keep others from appending.
    pub(crate) fn is_tail_pinned(&self) -> bool {
        let pinned = self.tail.used().saturating_sub(self.held.bytes());
        pinned > self.tail.limit() / 4
    }

    /// Lets a written run leave memory; `false` if the journal does not have all of it yet.
    fn evict((partition, epoch, base): &Evictable) -> bool {
        let mut state = partition.state.lock();
        let Some(generation) = state.generation(*epoch) else {
            return true;
        };
        let mut runs = generation.runs.iter();
        if !runs.any(|run| run.base == *base && run.is_written()) {
            return true;
        }
        // Runs leave from the front, so that what stays is without a gap.
        let front = generation.runs.front();
        if !front.is_some_and(|run| run.base == *base && run.pending().0 == 0) {
            return false;
        }
        let gone = generation.runs.pop_front();
        drop(state);
        drop(gone);
        true
    }

    /// Reports a failed disk operation.
    pub(crate) fn failed(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Failure {
        let path = path.to_owned();
        move |source| Failure {
            action,
            path,
            source: Arc::new(source),
        }
    }

    /// Whether anything may still be asked.
    pub(crate) fn is_usable(&self) -> Result<(), Failure> {
        match self.failure() {
            Some(failure) => Err(failure.clone()),
            None if self.is_closing() => Err(Failure::closed()),
            None => Ok(()),
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }
}
