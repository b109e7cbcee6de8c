//! The voter's log as the library reads it: in memory, since the catalog's log is short; the caller keeps the durable one.
//!
//! Guarantees: entries are dense and follow `before`; those just below the newest snapshot are kept for followers that lag a
//! little, so that these do not need all of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use raft::eraftpb::{self, ConfState, HardState};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::configuration::id_of;
use super::convert::snapshot_into;
use super::{Position, Snapshot};

/// Entries kept below a snapshot, and their bytes.
const KEPT_MAX: usize = 256;
const KEPT_BYTES_MAX: usize = 256 << 10;

/// See the module.
pub(super) struct Store {
    initial: (HardState, ConfState),
    snapshot: Option<Snapshot>,
    before: Position,
    entries: VecDeque<eraftpb::Entry>,
    wants_snapshot: AtomicBool,
}

impl Store {
    pub(super) fn new(
        initial: (HardState, ConfState),
        snapshot: Option<Snapshot>,
        before: Position,
        entries: VecDeque<eraftpb::Entry>,
    ) -> Self {
        Self {
            initial,
            snapshot,
            before,
            entries,
            wants_snapshot: AtomicBool::new(false),
        }
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Whether a peer was left waiting for a newer snapshot since this was asked last.
    pub(super) fn take_wish(&self) -> bool {
        self.wants_snapshot.swap(false, Ordering::Relaxed)
    }

    fn last(&self) -> u64 {
        self.before.index + self.entries.len() as u64
    }

    pub(super) fn append(&mut self, entries: &[eraftpb::Entry]) {
        let Some(first) = entries.first() else {
            return;
        };
        assert!(
            first.index > self.before.index && first.index <= self.last() + 1,
            "entries follow what is held"
        );
        self.entries
            .truncate((first.index - self.before.index - 1) as usize);
        self.entries.extend(entries.iter().cloned());
    }

    /// In place of everything.
    pub(super) fn install(&mut self, snapshot: Snapshot) {
        self.entries.clear();
        self.before = snapshot.at;
        self.snapshot = Some(snapshot);
    }

    /// In place of the entries up to it, but for the last few.
    pub(super) fn compact(&mut self, snapshot: Snapshot) {
        let covered = (snapshot.at.index - self.before.index) as usize;
        let mut bytes = 0;
        let kept = self.entries.range(..covered).rev().take(KEPT_MAX);
        let kept = kept
            .take_while(|entry| {
                bytes += entry.data.len();
                bytes <= KEPT_BYTES_MAX
            })
            .count();
        for entry in self.entries.drain(..covered - kept) {
            self.before = Position {
                index: entry.index,
                term: entry.term,
            };
        }
        self.snapshot = Some(snapshot);
    }

    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.before.index {
            return Some(self.before.term);
        }
        let place = index.checked_sub(self.before.index + 1)?;
        Some(self.entries.get(place as usize)?.term)
    }
}

impl Storage for Store {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let (hard, configuration) = self.initial.clone();
        Ok(RaftState::new(hard, configuration))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<eraftpb::Entry>> {
        if low <= self.before.index {
            return Err(StorageError::Compacted.into());
        }
        let place = |index: u64| (index - self.before.index - 1) as usize;
        let range = self.entries.range(place(low)..place(high));
        let mut entries: Vec<_> = range.cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let missing = if index < self.before.index {
            StorageError::Compacted
        } else {
            StorageError::Unavailable
        };
        self.term_at(index).ok_or_else(|| missing.into())
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.before.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// One that names the peer: a peer takes no other, lest it wait outside the configuration.
    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<eraftpb::Snapshot> {
        let fits = |snapshot: &&Snapshot| {
            let mut members = snapshot.configuration.members();
            snapshot.at.index >= request_index && members.any(|member| id_of(member) == to)
        };
        if let Some(snapshot) = self.snapshot.as_ref().filter(fits) {
            return Ok(snapshot_into(snapshot));
        }
        self.wants_snapshot.store(true, Ordering::Relaxed);
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}
