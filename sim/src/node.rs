//! One life of the shipped log on the simulated disk: opened, asked, stepped, heard.
//!
//! There are no threads here: each step of journal, segments, checkpoint and readers is a choice of the seed.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use floe_log::verify::LogStarts;
use floe_log::{
    AppendError, CatalogEntry, Config, Durable, Events, Failure, Log, OpenError, Outcome,
    PartitionLog, ReadError, Receipt, Recovered, Setup, Slices,
};
use floe_model::{Incarnation, LeaderEpoch, Offset, TopicPartition};
use floe_world::Pool;
use floe_world::clock::Manual;
use floe_world::disk::Simulated;
use floe_world::random::Seeded;
use parking_lot::Mutex;

use crate::log_starts;
use crate::truth::{Batch, Generation, Truth, offset};

/// Where the log lies on the simulated disk.
pub(crate) const DIR: &str = "/data";

/// What outlives a life: settings, time, and the disk of the moment.
pub(crate) struct World {
    pub(crate) disk: Simulated,
    pub(crate) clock: Arc<Manual>,
    pub(crate) config: Config,
    pub(crate) random: Arc<Seeded>,
}

/// What the log has said.
#[derive(Default)]
struct Heard {
    durable: Mutex<Vec<Durable>>,
    failed: Mutex<Option<Failure>>,
}

impl Events for Heard {
    fn durable(&self, ends: &[Durable]) {
        self.durable.lock().extend_from_slice(ends);
    }

    fn failed(&self, failure: Failure) {
        self.failed.lock().get_or_insert(failure);
    }
}

/// One life.
pub(crate) struct Node {
    pub(crate) log: Log,
    heard: Arc<Heard>,
    pending: Vec<Pending>,
}

/// What was asked and not answered yet.
enum Pending {
    Bind(TopicPartition, Receipt<Incarnation>),
    Open(TopicPartition, LeaderEpoch, Receipt),
    Fence(TopicPartition, LeaderEpoch, u64, Receipt<Offset>),
    Truncate(TopicPartition, LeaderEpoch, u64, Receipt),
    Forget(TopicPartition, Receipt),
    LogStart(TopicPartition, u64, usize, Receipt),
    Catalog(u32, usize, Receipt),
    Vote(u32, usize, Receipt),
}

impl std::fmt::Display for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(name, _) => write!(f, "bind {name}"),
            Self::Open(name, epoch, _) => write!(f, "open {name} {epoch}"),
            Self::Fence(name, epoch, _, _) => write!(f, "fence {name} {epoch}"),
            Self::Truncate(name, epoch, end, _) => write!(f, "truncate {name} {epoch} to {end}"),
            Self::Forget(name, _) => write!(f, "forget {name}"),
            Self::LogStart(name, to, _, _) => write!(f, "log start {name} {to}"),
            Self::Catalog(group, upto, _) => write!(f, "catalog {group} {upto}"),
            Self::Vote(group, upto, _) => write!(f, "vote {group} {upto}"),
        }
    }
}

impl Pending {
    fn is_resolved(&self) -> bool {
        match self {
            Self::Bind(_, receipt) => receipt.is_resolved(),
            Self::Fence(_, _, _, receipt) => receipt.is_resolved(),
            Self::Open(_, _, receipt)
            | Self::Truncate(_, _, _, receipt)
            | Self::Forget(_, receipt)
            | Self::LogStart(_, _, _, receipt)
            | Self::Catalog(_, _, receipt)
            | Self::Vote(_, _, receipt) => receipt.is_resolved(),
        }
    }

    fn partition(&self) -> Option<TopicPartition> {
        match self {
            Self::Bind(partition, _)
            | Self::Open(partition, _, _)
            | Self::Fence(partition, _, _, _)
            | Self::Truncate(partition, _, _, _)
            | Self::LogStart(partition, _, _, _)
            | Self::Forget(partition, _) => Some(*partition),
            Self::Catalog(..) | Self::Vote(..) => None,
        }
    }
}

/// The parts of the log that are stepped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Journal,
    Segment,
    Checkpoint,
    Reader,
    Fill,
    Removal,
}

impl World {
    /// Opens the log as the next process would.
    pub(crate) fn open(&self) -> Result<(Node, Recovered), OpenError> {
        let setup = Setup {
            disk: Arc::new(self.disk.clone()),
            dir: Path::new(DIR).to_owned(),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::clone(&self.random) as _,
            tail: Pool::new(64 << 20),
            reads: Pool::new(64 << 20),
            config: self.config.clone(),
        };
        let (log, recovered) = Log::open(setup)?;
        let heard = Arc::new(Heard::default());
        log.attach(Arc::clone(&heard) as _);
        let pending = Vec::new();
        Ok((
            Node {
                log,
                heard,
                pending,
            },
            recovered,
        ))
    }
}

impl Node {
    pub(crate) fn step(&self, part: Part) -> bool {
        let step = match part {
            Part::Journal => self.log.step_journal(),
            Part::Segment => self.log.step_segments(),
            Part::Checkpoint => self.log.step_checkpoint(),
            Part::Reader => self.log.step_reads(),
            Part::Fill => self.log.step_fill(),
            Part::Removal => self.log.step_removals(),
        };
        step == floe_log::Step::Worked
    }

    /// Steps until nothing is left to do, or nothing moves.
    pub(crate) fn settle_down(&mut self, truth: &mut Truth) -> Result<(), String> {
        for _ in 0..10_000 {
            let parts = [
                Part::Journal,
                Part::Segment,
                Part::Checkpoint,
                Part::Reader,
                Part::Removal,
            ];
            let worked = parts.map(|part| self.step(part));
            self.hear(truth)?;
            if worked == [false; 5] {
                return Ok(());
            }
        }
        Err("the log works for ever without being asked".to_owned())
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.heard.failed.lock().clone()
    }

    /// Whether a change of this partition waits for its flush.
    pub(crate) fn is_busy(&self, partition: TopicPartition) -> bool {
        self.pending
            .iter()
            .any(|pending| pending.partition() == Some(partition))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn handle(&self, partition: TopicPartition) -> Result<Arc<PartitionLog>, String> {
        let found = self.log.partition(partition);
        found.ok_or_else(|| format!("partition {partition} is bound and not there"))
    }

    pub(crate) fn bind(&mut self, truth: &mut Truth, partition: TopicPartition) {
        let known = truth.partitions.entry(partition).or_default();
        // Forgotten, it begins a new life.
        known.incarnation = known.incarnation.filter(|_| known.is_usable);
        let starts = truth.streams.get(&log_starts::GROUP);
        let starts = starts.map_or_else(LogStarts::new, |starts| log_starts::fold(&starts.entries));
        if starts.contains_key(&partition) {
            let entry = truth.next_log_start(partition, 0);
            self.catalog(truth, log_starts::GROUP, vec![entry]);
        }
        truth.note(format!("bind {partition}"));
        let receipt = self.log.bind(partition);
        self.pending.push(Pending::Bind(partition, receipt));
    }

    pub(crate) fn open_generation(
        &mut self,
        truth: &mut Truth,
        partition: TopicPartition,
        epoch: LeaderEpoch,
        descriptor: Bytes,
    ) -> Result<(), String> {
        let handle = self.handle(partition)?;
        let known = truth.partitions.entry(partition).or_default();
        let start = known.end();
        known.generations.push(Generation {
            epoch,
            start,
            descriptor: descriptor.clone(),
            is_kept: false,
            batches: Vec::new(),
            durable: start,
            cuts: Vec::new(),
        });
        known.fence_asked = known.fence_asked.max(epoch);
        truth.note(format!("open {partition} {epoch} at {start}"));
        let receipt = self
            .log
            .open_generation(&handle, epoch, offset(start), descriptor);
        self.pending.push(Pending::Open(partition, epoch, receipt));
        Ok(())
    }

    pub(crate) fn fence(
        &mut self,
        truth: &mut Truth,
        partition: TopicPartition,
        epoch: LeaderEpoch,
    ) -> Result<(), String> {
        let handle = self.handle(partition)?;
        let known = truth.partitions.entry(partition).or_default();
        known.fence_asked = known.fence_asked.max(epoch);
        let end = known.end();
        truth.note(format!("fence {partition} {epoch} at {end}"));
        let receipt = self.log.fence(&handle, epoch);
        self.pending
            .push(Pending::Fence(partition, epoch, end, receipt));
        Ok(())
    }

    pub(crate) fn truncate(
        &mut self,
        truth: &mut Truth,
        partition: TopicPartition,
        epoch: LeaderEpoch,
        end: u64,
    ) -> Result<(), String> {
        let handle = self.handle(partition)?;
        let known = truth.partitions.entry(partition).or_default();
        if let Some(generation) = known.generation(epoch) {
            generation.ask_cut(end);
        }
        truth.note(format!("truncate {partition} {epoch} to {end}"));
        let receipt = self.log.truncate(&handle, epoch, offset(end));
        self.pending
            .push(Pending::Truncate(partition, epoch, end, receipt));
        Ok(())
    }

    pub(crate) fn forget(&mut self, truth: &mut Truth, partition: TopicPartition) {
        let known = truth.partitions.entry(partition).or_default();
        known.is_forgetting = true;
        if let Some(last) = known.generations.last() {
            // Nothing of what was is accepted any more.
            known.fence_asked = known.fence_asked.max(last.epoch.next());
        }
        truth.note(format!("forget {partition}"));
        let receipt = self.log.forget(partition);
        self.pending.push(Pending::Forget(partition, receipt));
    }

    /// Makes a log start durable; behind the answer the log deletes below it.
    pub(crate) fn advance_log_start(
        &mut self,
        truth: &mut Truth,
        partition: TopicPartition,
        to: u64,
    ) {
        truth.note(format!("log start {partition} {to}"));
        let entry = truth.next_log_start(partition, to);
        let (upto, receipt) = self.store(truth, log_starts::GROUP, vec![entry]);
        self.pending
            .push(Pending::LogStart(partition, to, upto, receipt));
    }

    pub(crate) fn catalog(&mut self, truth: &mut Truth, group: u32, entries: Vec<CatalogEntry>) {
        let (upto, receipt) = self.store(truth, group, entries);
        self.pending.push(Pending::Catalog(group, upto, receipt));
    }

    /// Appends to a catalog stream; with the receipt, how many entries it covers.
    fn store(&self, truth: &mut Truth, group: u32, entries: Vec<CatalogEntry>) -> (usize, Receipt) {
        let stream = truth.streams.entry(group).or_default();
        stream.entries.extend(entries.iter().cloned());
        (
            stream.entries.len(),
            self.log.catalog_append(group, entries),
        )
    }

    pub(crate) fn vote(&mut self, truth: &mut Truth, group: u32, vote: floe_log::Vote) {
        let stream = truth.streams.entry(group).or_default();
        stream.votes.push(vote);
        let upto = stream.votes.len();
        let receipt = self.log.vote(group, vote);
        self.pending.push(Pending::Vote(group, upto, receipt));
    }

    /// Appends; `false` if refused for want of room.
    pub(crate) fn append(
        &self,
        truth: &mut Truth,
        partition: TopicPartition,
        batch: Vec<u8>,
        records: u32,
    ) -> Result<bool, String> {
        let handle = self.handle(partition)?;
        let known = truth.partitions.entry(partition).or_default();
        let Some(generation) = known.generations.last_mut() else {
            return Ok(false);
        };
        let (epoch, base) = (generation.epoch, generation.end());
        match self.log.append(&handle, epoch, &batch) {
            Ok(end) if end.0 == base + u64::from(records) => {
                let bytes = crate::batches::stamped(batch, offset(base), epoch);
                let end = end.0;
                let len = bytes.len();
                generation.batches.push(Batch { base, end, bytes });
                truth.note(format!(
                    "append {partition} {epoch} {base}..{end}, {len} bytes"
                ));
                Ok(true)
            }
            Ok(end) => Err(format!(
                "append of {records} at {base} of {partition} ends at {end}"
            )),
            Err(AppendError::Full(_)) => Ok(false),
            Err(AppendError::Poisoned) if self.failure().is_some() => Ok(false),
            Err(error) => Err(format!(
                "append at {base} of {partition}, epoch {epoch}: {error}"
            )),
        }
    }

    /// Takes in what the log has said since.
    pub(crate) fn hear(&mut self, truth: &mut Truth) -> Result<(), String> {
        for said in self.heard.durable.lock().drain(..) {
            let known = truth.partitions.entry(said.partition).or_default();
            let Some(generation) = known.generation(said.epoch) else {
                return Err(format!(
                    "durable end of a generation nobody opened: {said:?}"
                ));
            };
            let end = said.end.0;
            if end > generation.end()
                || !(end == generation.start || generation.batches.iter().any(|b| b.end == end))
            {
                return Err(format!(
                    "durable end above or inside what was appended: {said:?}"
                ));
            }
            generation.durable = generation.durable.max(end);
            truth.note(format!("durable {} {} {end}", said.partition, said.epoch));
        }
        let (resolved, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(Pending::is_resolved);
        self.pending = pending;
        let resolved: Vec<Pending> = resolved;
        for answer in resolved {
            self.answer(truth, answer)?;
        }
        Ok(())
    }

    fn answer(&self, truth: &mut Truth, answer: Pending) -> Result<(), String> {
        let refused = |failure: Failure| match self.failure() {
            Some(_) => Ok(()),
            None => Err(format!("refused without a failure: {failure}")),
        };
        truth.note(format!("answered {answer}"));
        match answer {
            Pending::Bind(partition, receipt) => match receipt.wait() {
                Ok(incarnation) => truth.bound(partition, incarnation),
                Err(failure) => refused(failure),
            },
            Pending::Open(partition, epoch, receipt) => match receipt.wait() {
                Ok(()) => truth.opened(partition, epoch),
                Err(failure) => refused(failure),
            },
            Pending::Fence(partition, epoch, end, receipt) => match receipt.wait() {
                Ok(found) if found.0 != end => {
                    Err(format!("fence of {partition} at {end} answers {found}"))
                }
                Ok(_) => {
                    truth.fenced(partition, epoch);
                    Ok(())
                }
                Err(failure) => refused(failure),
            },
            Pending::Truncate(partition, epoch, end, receipt) => match receipt.wait() {
                Ok(()) => truth.truncated(partition, epoch, end),
                Err(failure) => refused(failure),
            },
            Pending::Forget(partition, receipt) => match receipt.wait() {
                Ok(()) => {
                    truth.forgotten(partition);
                    Ok(())
                }
                Err(failure) => refused(failure),
            },
            Pending::LogStart(partition, to, upto, receipt) => match receipt.wait() {
                Ok(()) => {
                    truth.entered(log_starts::GROUP, upto);
                    truth.starts_at(partition, to);
                    self.log.delete_below(&self.handle(partition)?, offset(to));
                    Ok(())
                }
                Err(failure) => refused(failure),
            },
            Pending::Catalog(group, upto, receipt) => match receipt.wait() {
                Ok(()) => {
                    truth.entered(group, upto);
                    Ok(())
                }
                Err(failure) => refused(failure),
            },
            Pending::Vote(group, upto, receipt) => match receipt.wait() {
                Ok(()) => {
                    let stream = truth.streams.entry(group).or_default();
                    stream.votes_kept = stream.votes_kept.max(upto);
                    Ok(())
                }
                Err(failure) => refused(failure),
            },
        }
    }

    /// Reads whole batches from the one that holds `from`, stepping the readers as needed.
    pub(crate) fn read(
        &self,
        handle: &Arc<PartitionLog>,
        from: u64,
        up_to: u64,
        max_bytes: usize,
    ) -> Result<Slices, ReadError> {
        match self
            .log
            .read(handle, offset(from), offset(up_to), max_bytes, true)?
        {
            Outcome::Memory(slices) => Ok(slices),
            Outcome::Cold(read) => self.drive(read),
        }
    }

    /// Runs a future of the log to its end by stepping the readers.
    pub(crate) fn drive<T>(
        &self,
        future: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let mut future = pin!(future);
        let mut idle = 0;
        loop {
            if let Poll::Ready(done) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return done;
            }
            idle = if self.step(Part::Reader) { 0 } else { idle + 1 };
            assert!(idle < 3, "a cold read waits and no reader has work");
        }
    }
}
