//! One generation's records on one replica: how far they go, how much is durable, what the last of them were.
//!
//! Guarantees: start ≤ durable ≤ accepted, committed ≤ accepted; what was taken is never replaced, only cut when the seal is known.
//! Remembers the checksums of the last batches, at most [`RECENT_MAX`]; older ones are asked for again by position.

use std::collections::VecDeque;

use floe_model::Offset;

use crate::message::{Batch, Before, Checksum, Run};
use crate::rule::{Rule, keeps};

/// How many of the last batches are remembered, at 16 bytes each.
const RECENT_MAX: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct Held {
    start: Offset,
    accepted: Offset,
    durable: Offset,
    committed: Offset,
    sealed: Option<Offset>,
    is_damaged: bool,
    /// Index of the catalog that the copy was begun at; 0 for what was held as a member.
    since: u64,
    /// The last of them ends at `accepted`.
    recent: VecDeque<Batch>,
}

/// Where a run lies against what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It follows, from its batch of this number on; what lies before is the same as here.
    Follows(usize),
    /// Something is missing between.
    Gap,
    /// It begins below what is remembered here: it can neither be compared nor taken.
    Forgotten,
    /// There is something else at or before this offset.
    Differs(Offset),
}

enum Boundary {
    Start,
    Known(Checksum),
    Forgotten,
    Inside,
}

impl Held {
    pub(crate) fn new(start: Offset, since: u64) -> Self {
        Self {
            start,
            accepted: start,
            durable: start,
            committed: start,
            sealed: None,
            is_damaged: false,
            since,
            recent: VecDeque::new(),
        }
    }

    /// What a restart found on the disk. Without the last batch's checksum nothing can be compared with it or follow it, as in a
    /// generation that is sealed and whole.
    pub(crate) fn recovered(
        start: Offset,
        end: Offset,
        last: Option<Checksum>,
        since: u64,
    ) -> Self {
        assert!(
            last.is_none() || end > start,
            "an empty generation has no last batch"
        );
        let recent = last.map(|checksum| Batch { end, checksum });
        Self {
            accepted: end,
            durable: end,
            recent: recent.into_iter().collect(),
            ..Self::new(start, since)
        }
    }

    pub(crate) fn start(&self) -> Offset {
        self.start
    }

    pub(crate) fn accepted(&self) -> Offset {
        self.accepted
    }

    pub(crate) fn durable(&self) -> Offset {
        self.durable
    }

    /// Below its end a sealed generation is committed.
    pub(crate) fn committed(&self) -> Offset {
        if self.sealed.is_some() {
            self.accepted
        } else {
            self.committed
        }
    }

    pub(crate) fn sealed(&self) -> Option<Offset> {
        self.sealed
    }

    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// It differs from what another copy says: it is not used any more, and stays as it is.
    pub(crate) fn damaged(&mut self) {
        self.is_damaged = true;
    }

    /// Where `run` lies. Rule AppendAtEnd. What lies below the end is compared: a mismatch is damage, and never overwritten.
    pub(crate) fn place(&self, run: &Run) -> Place {
        if run.base() > self.accepted {
            return if keeps(Rule::AppendAtEnd) {
                Place::Gap
            } else {
                Place::Follows(0)
            };
        }
        match self.boundary(run.base()) {
            Boundary::Start => {}
            Boundary::Known(checksum) if run.previous() == Some(checksum) => {}
            Boundary::Forgotten => return Place::Forgotten,
            Boundary::Known(_) | Boundary::Inside => return Place::Differs(run.base()),
        }
        let mut at = run.base();
        for (number, batch) in run.batches().iter().enumerate() {
            if at == self.accepted {
                return Place::Follows(number);
            }
            match self.boundary(batch.end) {
                Boundary::Known(checksum) if checksum == batch.checksum => at = batch.end,
                Boundary::Forgotten => return Place::Forgotten,
                _ => return Place::Differs(at),
            }
        }
        Place::Follows(run.batches().len())
    }

    fn boundary(&self, offset: Offset) -> Boundary {
        if offset == self.start {
            return Boundary::Start;
        }
        let at = self.recent.partition_point(|batch| batch.end < offset);
        match self.recent.get(at) {
            Some(batch) if batch.end == offset => Boundary::Known(batch.checksum),
            Some(_) if at > 0 => Boundary::Inside,
            None if offset > self.accepted => Boundary::Inside,
            _ => Boundary::Forgotten,
        }
    }

    /// What ends at an offset, as far as that is remembered.
    pub(crate) fn before(&self, offset: Offset) -> Before {
        match self.boundary(offset) {
            Boundary::Start => Before::Nothing,
            Boundary::Known(checksum) => Before::Batch(checksum),
            Boundary::Forgotten | Boundary::Inside => Before::Forgotten,
        }
    }

    /// Takes a batch at the end.
    pub(crate) fn push(&mut self, batch: Batch) {
        assert!(batch.end > self.accepted, "batches follow one another");
        assert!(
            self.sealed.is_none_or(|end| batch.end <= end),
            "a sealed generation does not grow beyond its end"
        );
        self.accepted = batch.end;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(batch);
    }

    /// The log flushed up to `end`; what was cut since does not count. True if that is news.
    pub(crate) fn flushed(&mut self, end: Offset) -> bool {
        let before = self.durable;
        self.durable = self.durable.max(end.min(self.accepted));
        self.durable > before
    }

    /// Rule CommitCarriesEpoch: what is heard of this generation's commit offset holds up to this replica's own end.
    pub(crate) fn heard_commit(&mut self, commit: Offset) {
        let known = if keeps(Rule::CommitCarriesEpoch) {
            commit.min(self.accepted)
        } else {
            commit
        };
        self.committed = self.committed.max(known);
    }

    /// The catalog says where the generation ends. True if there is excess, which is now gone from here.
    pub(crate) fn seal(&mut self, end: Offset) -> bool {
        self.sealed = Some(end);
        let has_excess = self.accepted > end;
        if has_excess {
            self.cut(end);
        }
        has_excess
    }

    /// Drops what lies at or above `end`.
    pub(crate) fn cut(&mut self, end: Offset) {
        while self.recent.back().is_some_and(|batch| batch.end > end) {
            self.recent.pop_back();
        }
        self.accepted = end;
        self.durable = self.durable.min(end);
        self.committed = self.committed.min(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(end: u64) -> Batch {
        Batch {
            end: Offset(end),
            checksum: Checksum(end as u32),
        }
    }

    fn run(base: u64, previous: u32, ends: &[u64]) -> Run {
        let batches = ends.iter().copied().map(batch).collect();
        Run::new(Offset(base), Some(Checksum(previous)), batches).unwrap()
    }

    fn held(ends: &[u64]) -> Held {
        let mut held = Held::new(Offset(100), 0);
        for end in ends {
            held.push(batch(*end));
        }
        held
    }

    #[test]
    fn a_run_follows_overlaps_or_leaves_a_gap() {
        let held = held(&[105, 110, 120]);
        assert_eq!(held.place(&run(120, 120, &[130])), Place::Follows(0));
        assert_eq!(
            held.place(&run(105, 105, &[110, 120, 125])),
            Place::Follows(2)
        );
        assert_eq!(held.place(&run(105, 105, &[110])), Place::Follows(1));
        assert_eq!(held.place(&run(121, 121, &[130])), Place::Gap);
        assert_eq!(held.place(&run(120, 120, &[])), Place::Follows(0));
    }

    #[test]
    fn other_bytes_or_other_borders_below_the_end_differ() {
        let held = held(&[105, 110, 120]);
        assert_eq!(
            held.place(&run(120, 7, &[130])),
            Place::Differs(Offset(120))
        );
        assert_eq!(
            held.place(&run(105, 105, &[111])),
            Place::Differs(Offset(105))
        );
        assert_eq!(
            held.place(&run(107, 107, &[110])),
            Place::Differs(Offset(107))
        );
        assert_eq!(
            held.place(&run(110, 110, &[125])),
            Place::Differs(Offset(110))
        );
    }

    #[test]
    fn what_is_not_remembered_is_not_judged() {
        let held = Held::recovered(Offset(100), Offset(120), Some(Checksum(120)), 0);
        assert_eq!(held.place(&run(110, 110, &[120])), Place::Forgotten);
        assert_eq!(held.place(&run(120, 120, &[130])), Place::Follows(0));
        assert_eq!(
            held.place(&run(120, 9, &[130])),
            Place::Differs(Offset(120))
        );
    }

    #[test]
    fn a_flush_from_before_a_cut_says_nothing_about_what_was_cut() {
        let mut held = held(&[105, 110, 120]);
        held.flushed(Offset(105));
        assert!(held.seal(Offset(110)));
        held.flushed(Offset(120));
        assert_eq!([held.accepted(), held.durable()], [Offset(110); 2]);
        assert_eq!(held.place(&run(110, 110, &[])), Place::Follows(0));
    }
}
