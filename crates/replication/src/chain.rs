//! The chain of a partition's generations: which epoch holds for an offset, where an epoch ends.
//!
//! Guarantees: answers come from the chain alone, never from scanning records. Generations without records are left out of
//! the chain (they change no answer).

use floe_model::{LeaderEpoch, Offset};

use crate::Member;
use crate::rule::{Rule, keeps};

/// A generation whose end is fixed for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its number.
    pub epoch: LeaderEpoch,
    /// Its first offset.
    pub start: Offset,
    /// The offset after its last.
    pub end: Offset,
    /// Acknowledged records above `end` may have been lost: no undamaged copy was there to ask.
    pub lossy: bool,
    /// Who was proven to hold it whole when it was sealed.
    pub holders: Vec<Member>,
}

impl Sealed {
    /// Whether `member` may forget its records of this generation: not before `quorum` other holders are counted whose
    /// incarnations are current. Rule ForgetConditional: to be asked when the catalog applies the command, not before.
    pub fn may_forget(
        &self,
        member: Member,
        quorum: usize,
        is_current: impl Fn(&Member) -> bool,
    ) -> bool {
        let others = self.holders.iter().filter(|holder| **holder != member);
        others.filter(|holder| is_current(holder)).count() >= quorum
            || !keeps(Rule::ForgetConditional)
    }
}

/// A partition's generations, oldest first, then the open one.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// Sealed ones that hold records.
    pub sealed: &'a [Sealed],
    /// Number of the open one.
    pub epoch: LeaderEpoch,
    /// Where the open one starts.
    pub start: Offset,
}

/// Where an epoch ends (KIP-101, KIP-279).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch known that is not above the one asked for; that one itself when all known are above it.
    pub epoch: LeaderEpoch,
    /// The offset after its last.
    pub end: Offset,
}

impl Chain<'_> {
    /// The epoch of the record at `offset`, or that it would have.
    pub fn epoch_at(&self, offset: Offset) -> LeaderEpoch {
        if offset >= self.start {
            return self.epoch;
        }
        let after = self.sealed.partition_point(|sealed| sealed.end <= offset);
        self.sealed
            .get(after)
            .map_or(self.epoch, |sealed| sealed.epoch)
    }

    /// Where `asked` ends, when the open generation now ends at `end`; `None` for an epoch above all known.
    pub fn epoch_end(&self, asked: LeaderEpoch, end: Offset) -> Option<EpochEnd> {
        if asked > self.epoch {
            return None;
        }
        if asked == self.epoch {
            return Some(EpochEnd { epoch: asked, end });
        }
        let after = self.sealed.partition_point(|sealed| sealed.epoch <= asked);
        let end = self.sealed.get(after).map_or(self.start, |next| next.start);
        let epoch = after
            .checked_sub(1)
            .map_or(asked, |last| self.sealed[last].epoch);
        Some(EpochEnd { epoch, end })
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    fn sealed(epoch: u32, start: u64, end: u64) -> Sealed {
        Sealed {
            epoch: LeaderEpoch(epoch),
            start: Offset(start),
            end: Offset(end),
            lossy: false,
            holders: Vec::new(),
        }
    }

    #[test]
    fn a_holder_forgets_only_when_enough_other_current_holders_remain() {
        let member = |node| Member {
            node: NodeId(node),
            incarnation: Incarnation(1),
        };
        let mut sealed = sealed(1, 10, 20);
        sealed.holders = [1, 2, 3].map(member).to_vec();
        assert!(sealed.may_forget(member(1), 2, |_| true));
        assert!(sealed.may_forget(member(9), 3, |_| true));
        assert!(!sealed.may_forget(member(1), 3, |_| true));
        assert!(!sealed.may_forget(member(1), 2, |holder| *holder != member(3)));
    }

    #[test]
    fn epochs_are_answered_from_the_chain() {
        // Epoch 0 was deleted by retention, 3 and 5 held no records, 6 is open.
        let sealed = [sealed(1, 10, 20), sealed(2, 20, 30), sealed(4, 30, 35)];
        let chain = Chain {
            sealed: &sealed,
            epoch: LeaderEpoch(6),
            start: Offset(35),
        };
        let end = |asked| {
            chain
                .epoch_end(LeaderEpoch(asked), Offset(40))
                .map(|found| (found.epoch.0, found.end.0))
        };
        assert_eq!(end(0), Some((0, 10)));
        assert_eq!(end(1), Some((1, 20)));
        assert_eq!(end(2), Some((2, 30)));
        assert_eq!(end(3), Some((2, 30)));
        assert_eq!(end(4), Some((4, 35)));
        assert_eq!(end(5), Some((4, 35)));
        assert_eq!(end(6), Some((6, 40)));
        assert_eq!(end(7), None);
        let at = |offset| chain.epoch_at(Offset(offset)).0;
        assert_eq!([10, 19, 20, 34, 35, 99].map(at), [1, 1, 2, 4, 6, 6]);
    }
}
