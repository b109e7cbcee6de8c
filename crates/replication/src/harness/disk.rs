//! A node's log as the replica sees it: a journal in memory that becomes durable prefix by prefix.

use std::collections::{BTreeMap, VecDeque};

use floe_model::{LeaderEpoch, Offset};

use crate::message::{Batch, Run};
use crate::replica::{Event, Recovered};

/// One generation: where it starts, which copy it is, its batches with where each begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub(super) start: Offset,
    pub(super) since: u64,
    pub(super) batches: Vec<(Offset, Batch)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pub(super) generations: BTreeMap<LeaderEpoch, Stored>,
    pub(super) fence: LeaderEpoch,
}

#[derive(Clone, Debug)]
pub(super) enum Record {
    Open(LeaderEpoch, Offset, u64),
    Append(LeaderEpoch, Offset, Batch),
    Fence(LeaderEpoch, u64),
    Truncate(LeaderEpoch, Offset),
    Forget(LeaderEpoch),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// What a crash leaves.
    pub(super) durable: Image,
    /// What reads see.
    pub(super) memory: Image,
    pending: VecDeque<Record>,
}

impl Stored {
    pub(super) fn end(&self) -> Offset {
        self.batches.last().map_or(self.start, |(_, last)| last.end)
    }

    /// The first `count` batches from `base` on and below `end`, as a run.
    pub(super) fn run(&self, base: Offset, end: Offset, count: usize) -> Run {
        let first = self.batches.partition_point(|(at, _)| *at < base);
        let previous = first.checked_sub(1).map(|at| self.batches[at].1.checksum);
        let batches = self.batches[first..].iter().map(|(_, batch)| *batch);
        let below = batches.take_while(|batch| batch.end <= end);
        Run::new(base, previous, below.take(count).collect()).expect("batches are dense")
    }
}

impl Image {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Open(epoch, start, since) => {
                let stored = self.generations.entry(*epoch).or_default();
                (stored.start, stored.since) = (*start, *since);
            }
            Record::Append(epoch, base, batch) => {
                let stored = self.generations.get_mut(epoch).expect("opened before");
                stored.batches.push((*base, *batch));
            }
            Record::Fence(fence, _) => self.fence = self.fence.max(*fence),
            Record::Truncate(epoch, end) => {
                if let Some(stored) = self.generations.get_mut(epoch) {
                    stored.batches.retain(|(_, batch)| batch.end <= *end);
                }
            }
            Record::Forget(epoch) => {
                self.generations.remove(epoch);
            }
        }
    }
}

impl Disk {
    pub(super) fn write(&mut self, record: Record) {
        self.memory.apply(&record);
        self.pending.push_back(record);
    }

    pub(super) fn is_dirty(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The oldest `count` records become durable; what the log says of it.
    pub(super) fn flush(&mut self, count: usize) -> Vec<Event> {
        let count = count.min(self.pending.len());
        let mut events = Vec::new();
        let mut ends: BTreeMap<LeaderEpoch, Offset> = BTreeMap::new();
        for record in self.pending.drain(..count) {
            self.durable.apply(&record);
            match record {
                Record::Append(epoch, _, batch) => drop(ends.insert(epoch, batch.end)),
                Record::Fence(_, number) => events.push(Event::FenceFlushed(number)),
                Record::Forget(epoch) => {
                    // What was flushed of it before is no more.
                    if let Some(end) = ends.remove(&epoch) {
                        events.push(Event::Flushed { epoch, end });
                    }
                    events.push(Event::ForgetFlushed(epoch));
                }
                _ => {}
            }
        }
        let flushed = ends.into_iter();
        let mut all: Vec<_> = flushed
            .map(|(epoch, end)| Event::Flushed { epoch, end })
            .collect();
        all.append(&mut events);
        all
    }

    /// The process ends: of what was under way some prefix is on the disk all the same.
    pub(super) fn crash(&mut self, kept: usize) {
        self.flush(kept);
        self.pending.clear();
        self.memory = self.durable.clone();
    }

    /// A durable suffix of one generation is gone.
    pub(super) fn lose(&mut self, epoch: LeaderEpoch, keep: usize) {
        if let Some(stored) = self.durable.generations.get_mut(&epoch) {
            stored.batches.truncate(keep);
        }
        self.memory = self.durable.clone();
    }

    pub(super) fn recovered(&self) -> Vec<Recovered> {
        let generations = self.durable.generations.iter();
        generations
            .map(|(epoch, stored)| Recovered {
                epoch: *epoch,
                start: stored.start,
                end: stored.end(),
                last: stored.batches.last().map(|(_, batch)| batch.checksum),
                since: stored.since,
            })
            .collect()
    }
}
