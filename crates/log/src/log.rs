//! The handle: what a node asks of its log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use floe_model::{Incarnation, LeaderEpoch, Offset, Timestamp, TopicPartition};

use crate::admission;
use crate::append;
use crate::control;
use crate::engine::{Engine, Install};
use crate::format::record::RECORD_HEADER;
use crate::format::sector::PAYLOAD;
use crate::journal::{Command, Step};
use crate::partition::{PartitionLog, State};
use crate::receipt::promise;
use crate::removal::Removal;
use crate::{
    Admission, AppendError, CatalogEntry, Events, Failure, Metrics, OpenError, Origin, Outcome,
    ReadError, Receipt, Recovered, SegmentInfo, Setup, Snapshot, TimeLookup, Vote,
};
use crate::{checkpoint, fill, read, recovery, removal, retention, segment, threads};

/// The log of one node on one disk. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    pub(crate) engine: Arc<Engine>,
}

impl Log {
    /// Opens or formats the directory and recovers; starts nothing. Blocks.
    pub fn open(setup: Setup) -> Result<(Self, Recovered), OpenError> {
        let (engine, recovered) = recovery::open(setup)?;
        Ok((Self { engine }, recovered))
    }

    /// Says where events go, once, without starting threads: the caller steps (`step_*`).
    pub fn attach(&self, events: Arc<dyn Events>) {
        if self.engine.events.set(events).is_err() {
            tracing::warn!("the log has its owner already; another one is ignored");
        }
    }

    /// Attaches and starts the threads.
    pub fn start(&self, events: Arc<dyn Events>) -> Result<(), Failure> {
        self.attach(events);
        threads::start(&self.engine)
    }

    /// The cluster of a node that had none. Blocks; durable when it returns.
    pub fn adopt(&self, cluster: [u8; 16], is_founder: bool) -> Result<(), Failure> {
        let identity = crate::format::identity::Identity {
            cluster,
            is_founder,
            ..self.engine.identity
        };
        recovery::format::adopt(&*self.engine.disk, &self.engine.dir, identity)
    }

    /// Makes a partition known: a local number and a new incarnation. For one that is known, its incarnation.
    pub fn bind(&self, partition: TopicPartition) -> Receipt<Incarnation> {
        self.bind_as(partition, self.new_incarnation())
    }

    /// The same under an incarnation that others know already; one that is known keeps its own.
    pub fn bind_as(&self, partition: TopicPartition, life: Incarnation) -> Receipt<Incarnation> {
        let (promise, receipt) = promise();
        let mut partitions = self.engine.partitions.write();
        let known = partitions.get(&partition).cloned();
        let held = known.unwrap_or_else(|| {
            let local = self.engine.next_local.fetch_add(1, Ordering::Relaxed);
            let state = State::new(life);
            let held = PartitionLog::new(partition, local, state);
            partitions.insert(partition, Arc::clone(&held));
            held
        });
        drop(partitions);
        let mut state = held.state.lock();
        if state.is_bound {
            promise.resolve(Ok(state.incarnation));
            return receipt;
        }
        if state.is_forgotten {
            state.incarnation = life;
        }
        drop(state);
        let partition = held;
        self.command(Command::Bind { partition, promise });
        receipt
    }

    fn new_incarnation(&self) -> Incarnation {
        Incarnation(self.engine.random.next_u64().max(1))
    }

    fn command(&self, command: Command) {
        if self.engine.is_closing() {
            command.fail(&Failure::closed());
        } else {
            self.engine.inbox.push_command(command);
        }
    }

    /// A partition that is bound and not forgotten.
    pub fn partition(&self, partition: TopicPartition) -> Option<Arc<PartitionLog>> {
        let held = self.engine.partitions.read().get(&partition).cloned()?;
        let is_bound = held.state.lock().is_bound;
        is_bound.then_some(held)
    }

    /// Opens a generation that is not held, starting at `start`; it takes appends at once, journaled behind its record. The newest
    /// one takes those of its leader, and from then on older ones take copies only. One below the newest is opened for copies. One
    /// that was dropped may be opened again once that is answered. `descriptor` is the owner's, kept with it.
    ///
    /// Whatever else is held stays as it is, an empty generation too: whether somebody may still copy into it the caller knows, and
    /// [drops](Log::forget_generation) it once it is sealed empty.
    pub fn open_generation(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
        start: Offset,
        descriptor: Bytes,
    ) -> Receipt {
        control::open(&self.engine, partition, epoch, start, descriptor)
    }

    /// Refuses appends of leaders below `epoch` from now on, behind all accepted before (rule FenceCoversPending); answers with
    /// the accepted end of the newest generation below it of this moment.
    pub fn fence(&self, partition: &Arc<PartitionLog>, epoch: LeaderEpoch) -> Receipt<Offset> {
        control::fence(&self.engine, partition, epoch)
    }

    /// Drops what a sealed generation, the newest or not, has at or above `end`, which lies between two batches. If that was
    /// anything, it takes nothing any more in this life.
    pub fn truncate(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
        end: Offset,
    ) -> Receipt {
        control::truncate(&self.engine, partition, epoch, end)
    }

    /// Drops one generation; the fence stays. It takes nothing from now on; no durable end of it is reported behind the receipt.
    /// Its files are removed behind the receipt, also after a crash.
    pub fn forget_generation(&self, partition: &Arc<PartitionLog>, epoch: LeaderEpoch) -> Receipt {
        control::forget_generation(&self.engine, partition, epoch)
    }

    /// Drops a partition; its fence stays. Its files are removed behind the receipt, also after a crash.
    pub fn forget(&self, partition: TopicPartition) -> Receipt {
        let Some(held) = self.partition(partition) else {
            let (promise, receipt) = promise();
            promise.resolve(Ok(()));
            return receipt;
        };
        control::forget(&self.engine, &held)
    }

    /// Appends one validated batch at the end of the open generation: copies it once, stamps base offset and epoch in the
    /// copy, does no I/O. Gives the new end; durable when [`Events::durable`] reaches it.
    pub fn append(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
        batch: &[u8],
    ) -> Result<Offset, AppendError> {
        append::append(&self.engine, partition, epoch, batch)
    }

    /// Waits for room for `batches` batches of `bytes` in all, which [`Log::append_as_is`] then takes without fail: memory of the
    /// tail, taken, and a journal that is not short. Dropping the future gives the place up. A full disk is an error at once, and
    /// so is more than one run can hold; one batch always fits.
    pub async fn admit(
        &self,
        partition: &Arc<PartitionLog>,
        bytes: usize,
        batches: usize,
    ) -> Result<Admission, AppendError> {
        admission::admit(&self.engine, partition, bytes, batches).await
    }

    /// Appends batches of another copy as they are, each element one or more whole ones, at the end of a generation that is
    /// held: base offset and epoch in their bytes are those that follow there, or nothing of them is stored. Of whom they are
    /// says `origin`. Copies them once, does no I/O. Gives the new end.
    pub fn append_as_is(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
        origin: Origin,
        batches: &[Bytes],
        admission: Admission,
    ) -> Result<Offset, AppendError> {
        append::append_as_is(&self.engine, partition, epoch, origin, batches, admission)
    }

    /// Whether appends are refused, and earlier ones wait, until there is room on the disk.
    pub fn is_disk_full(&self) -> bool {
        self.engine.is_disk_full.load(Ordering::Relaxed)
    }

    /// Resolves when an append that was refused as [`AppendError::Full`] for want of memory has a chance again.
    pub async fn room(&self) {
        drop(self.engine.tail.get(floe_world::memory::ALIGNMENT).await);
    }

    /// Whole batches from the one that contains `from`, all below `up_to`, at most `max_bytes` but for the first if
    /// `at_least_one`, as a consumer sees them: of the newest generation that starts at or below `from`, up to where the next one
    /// starts. Does not cross into another generation; go on at [`crate::Slices::next`]. Offsets that this node does not hold
    /// are [`ReadError::NotHeld`], never passed over.
    pub fn read(
        &self,
        partition: &Arc<PartitionLog>,
        from: Offset,
        up_to: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Outcome, ReadError> {
        let wanted = read::Wanted {
            epoch: None,
            from: from.0,
            up_to: up_to.0,
            max_bytes,
            at_least_one,
        };
        read::read(&self.engine, partition, wanted)
    }

    /// As [`Log::read`], of one generation as it lies here, for other copies of it: what is not durable yet too, and what it has
    /// above the start of the next one.
    pub fn read_generation(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
        from: Offset,
        up_to: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Outcome, ReadError> {
        let wanted = read::Wanted {
            epoch: Some(epoch),
            from: from.0,
            up_to: up_to.0,
            max_bytes,
            at_least_one,
        };
        read::read(&self.engine, partition, wanted)
    }

    /// Kafka's checksum of the last batch of a generation, `None` if it holds none. Known as a rule; read where it is not: of what
    /// an older release has written, and after a cut.
    pub async fn last_checksum(
        &self,
        partition: &Arc<PartitionLog>,
        epoch: LeaderEpoch,
    ) -> Result<Option<u32>, ReadError> {
        read::last_checksum(&self.engine, partition, epoch).await
    }

    /// The first record below `up_to` whose timestamp is `at` or later.
    pub async fn offset_for_time(
        &self,
        partition: &Arc<PartitionLog>,
        at: Timestamp,
        up_to: Offset,
    ) -> Result<Option<TimeLookup>, ReadError> {
        read::time::first_at_or_after(&self.engine, partition, at, up_to.0).await
    }

    /// The record below `up_to` with the largest timestamp, the first of equals (KIP-734).
    pub async fn max_timestamp(
        &self,
        partition: &Arc<PartitionLog>,
        up_to: Offset,
    ) -> Result<Option<TimeLookup>, ReadError> {
        read::time::greatest(&self.engine, partition, up_to.0).await
    }

    /// Appends entries to a catalog stream; an entry at a known index replaces it and all above. All of them go into one
    /// group; above `group_bytes_max` they are refused.
    pub fn catalog_append(&self, group: u32, entries: Vec<CatalogEntry>) -> Receipt {
        let (promise, receipt) = promise();
        let bytes: usize = entries
            .iter()
            .map(|entry| entry.data.len() + RECORD_HEADER + 20)
            .sum();
        let sectors = self.engine.config.group_bytes_max / floe_world::disk::BLOCK;
        if bytes > sectors.saturating_sub(1) * PAYLOAD {
            promise.resolve(Err(Failure::refused("append", "catalog entries", "size")));
            return receipt;
        }
        self.command(Command::Catalog {
            group,
            entries,
            promise,
        });
        receipt
    }

    /// Records a term and vote.
    pub fn vote(&self, group: u32, vote: Vote) -> Receipt {
        let (promise, receipt) = promise();
        self.command(Command::Vote {
            group,
            vote,
            promise,
        });
        receipt
    }

    /// Replaces the entries up to the snapshot's index by it. In the next checkpoint; until then the entries stay on
    /// disk, which says the same.
    pub fn compact(&self, group: u32, snapshot: Snapshot) {
        self.engine.streams.lock().compact(group, snapshot);
    }

    /// Puts a snapshot in place of all entries of a stream, those above its index too; the vote stays.
    ///
    /// Durable: when the receipt is kept, by a checkpoint in both slots, so that no replay begins before it (a snapshot may be
    /// larger than a group). Order: no append to the stream is under way, and none is made before the receipt is kept.
    pub fn install(&self, group: u32, snapshot: Snapshot) -> Receipt {
        let (promise, receipt) = promise();
        let failure = self.engine.failure().cloned();
        if failure.is_some() || self.engine.is_closing() {
            promise.resolve(Err(failure.unwrap_or_else(Failure::closed)));
            return receipt;
        }
        let install = Install {
            group,
            snapshot,
            promise,
        };
        self.engine.installs.lock().push(install);
        self.engine.checkpoint_wanted.set();
        receipt
    }

    /// Removes whole segment files that end at or below `offset`, in the background.
    ///
    /// Order: the caller has made it durable that nothing below is promised any more. A power cut may undo a deletion or
    /// leave it half done; whoever checks the disk goes by that fact alone.
    pub fn delete_below(&self, partition: &Arc<PartitionLog>, offset: Offset) {
        let mut state = partition.state.lock();
        if state.is_bound && offset.0 > state.delete_below {
            state.delete_below = offset.0;
            let below = Removal::Below(Arc::clone(partition));
            self.engine.removals.push(below);
        }
    }

    /// Most bytes that one read from disk gives.
    pub fn cold_read_bytes_max(&self) -> usize {
        self.engine.config.run_bytes_max
    }

    /// The segment files, oldest first, and what is in no file yet as if it were one. Blocks: reads the directory when
    /// first called for a partition.
    pub fn segments(&self, partition: &Arc<PartitionLog>) -> Vec<SegmentInfo> {
        retention::segments(&self.engine, partition).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "segments cannot be listed");
            Vec::new()
        })
    }

    /// Keeps the owner's snapshot of producer state at `at`; the newest is given back after a restart.
    pub fn keep_producers(&self, partition: &Arc<PartitionLog>, at: Offset, snapshot: Bytes) {
        retention::keep_producers(&self.engine, partition, at.0, snapshot);
    }

    /// The newest kept snapshot of producer state at or below the end.
    pub async fn producers(&self, partition: &Arc<PartitionLog>) -> Option<(Offset, Bytes)> {
        let partition = Arc::clone(partition);
        let read = read::cold::on_reader(&self.engine, move |engine| {
            Ok(retention::producers(engine, &partition))
        });
        read.await.ok().flatten()
    }

    /// Asks for a checkpoint before the ring does: so that what was kept with [`Log::keep_producers`] is found after a crash.
    pub fn checkpoint_soon(&self) {
        self.engine.checkpoint_wanted.set();
    }

    /// What the log counts, to be registered.
    pub fn metrics(&self) -> &Metrics {
        &self.engine.metrics
    }

    /// Age of the oldest write of the journal that is not flushed yet, if one is under way: a disk that hangs.
    pub fn flush_age(&self) -> Option<Duration> {
        let begun = self
            .engine
            .flushing_since
            .load(Ordering::Acquire)
            .checked_sub(1)?;
        let now = self.engine.clock.monotonic();
        Some(now.saturating_sub(Duration::from_micros(begun)))
    }

    /// Groups written since the start: the number of journal flushes.
    pub fn groups(&self) -> u64 {
        self.engine.metrics.groups()
    }

    /// Ends and joins the threads; a last checkpoint, so that nothing needs replaying. Blocks.
    pub fn close(&self) -> Result<(), Failure> {
        threads::stop(&self.engine);
        if let Some(failure) = self.engine.failure() {
            return Err(failure.clone());
        }
        while self.step_journal() == Step::Worked
            || self.step_segments() == Step::Worked
            || self.step_removals() == Step::Worked
        {}
        let written = checkpoint::step(&self.engine, false);
        written.map_err(|failure| self.engine.poison(failure))?;
        read::index::store_all(&self.engine);
        // Nothing is written any more: another process may have the directory.
        drop(self.engine.lock.lock().take());
        Ok(())
    }

    /// One group of the journal, on the caller's thread.
    pub fn step_journal(&self) -> Step {
        self.engine.journal.lock().step(&self.engine)
    }

    /// One job of a segment thread, on the caller's thread.
    pub fn step_segments(&self) -> Step {
        segment::step(&self.engine)
    }

    /// One removed file, or a piece of its room, on the caller's thread.
    pub fn step_removals(&self) -> Step {
        removal::step(&self.engine)
    }

    /// One read from disk, on the caller's thread.
    pub fn step_reads(&self) -> Step {
        read::cold::step(&self.engine)
    }

    /// A checkpoint, on the caller's thread, if anything is new.
    pub fn step_checkpoint(&self) -> Step {
        match checkpoint::step(&self.engine, false) {
            Ok(true) => Step::Worked,
            Ok(false) => Step::Idle,
            Err(failure) => {
                self.engine.poison(failure);
                Step::Idle
            }
        }
    }

    /// One stretch of the ring filled with zeros, on the caller's thread.
    pub fn step_fill(&self) -> Step {
        fill::step(&self.engine)
    }
}

impl Failure {
    pub(crate) fn refused(action: &'static str, what: &str, why: &'static str) -> Self {
        Self {
            action,
            path: std::path::PathBuf::from(what),
            source: Arc::new(std::io::Error::new(std::io::ErrorKind::InvalidInput, why)),
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log({})", self.engine.dir.display())
    }
}
