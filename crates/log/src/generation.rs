//! One generation of a partition in memory: its ends, its runs, and how far the record that opens it is.
//!
//! Guarantees: start ≤ synced ≤ written ≤ end and durable ≤ end; what was cut or dropped takes nothing any more.

use std::collections::VecDeque;

use bytes::Bytes;
use floe_model::LeaderEpoch;
use floe_world::memory::View;

use crate::run::Run;

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
    pub(crate) record: Record,
    /// It is to be dropped, or is to lose or has lost what it had above an end: it takes nothing any more.
    pub(crate) is_closed: bool,
    /// It is to be dropped.
    pub(crate) is_leaving: bool,
    pub(crate) version: Version,
    /// Kafka's checksum of the batch that ends at `end`, if it is known without reading.
    pub(crate) last: Option<u32>,
}

/// How far the record is that opens a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Record {
    /// It waits; nothing of the generation goes into the journal before it.
    Asked,
    /// It is in a group.
    Composed,
    /// That group is flushed.
    Durable,
}

/// Tells an epoch's generation from another one that was dropped, and from itself before a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) opening: u32,
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
            record: Record::Asked,
            is_closed: false,
            is_leaving: false,
            version: Version::default(),
            last: None,
        }
    }

    /// Whether the journal may take something of it.
    pub(crate) fn is_composed(&self) -> bool {
        self.record >= Record::Composed
    }

    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.is_closed = true;
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

    /// Bytes and batches that the journal has not yet, and may take.
    pub(crate) fn pending(&self) -> (usize, usize) {
        if !self.is_composed() {
            return (0, 0);
        }
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
        self.last = self.checksum_at(end);
        self.is_closed = true;
        self.version.cuts += 1;
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

    /// Kafka's checksum of the batch that ends at `end`, as far as memory tells.
    pub(crate) fn checksum_at(&self, end: u64) -> Option<u32> {
        if end == self.end && self.last.is_some() {
            return self.last;
        }
        let after = self.runs.partition_point(|run| run.base < end);
        let run = &self.runs[after.checked_sub(1)?];
        run.checksum_at(end)
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
