//! Which old generation a member should copy next.
//!
//! Guarantees: only sealed ones that the member is not proven to hold and somebody else is; those with the fewest proven holders
//! first, then the newest; nothing that is empty or that retention has deleted. Bandwidth, and what retention would delete while it is
//! being copied, are for the caller to weigh.

use floe_model::Offset;

use crate::{Member, Sealed};

/// The next one to copy, and from whom; `is_excluded` names those that are under way or not worth it.
pub fn next(
    sealed: &[Sealed],
    me: Member,
    log_start: Offset,
    is_excluded: impl Fn(&Sealed) -> bool,
) -> Option<&Sealed> {
    let is_missing = |generation: &&Sealed| {
        let is_kept = generation.end > log_start.max(generation.start);
        let is_elsewhere = !generation.holders.is_empty() && !generation.holders.contains(&me);
        is_kept && is_elsewhere && !is_excluded(generation)
    };
    let missing = sealed.iter().rev().filter(is_missing);
    missing.min_by_key(|generation| generation.holders.len())
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, LeaderEpoch, NodeId};

    use super::*;

    fn member(node: u32) -> Member {
        Member {
            node: NodeId(node),
            incarnation: Incarnation(1),
        }
    }

    fn sealed(epoch: u32, holders: &[u32]) -> Sealed {
        Sealed {
            epoch: LeaderEpoch(epoch),
            start: Offset(u64::from(epoch) * 10),
            end: Offset(u64::from(epoch) * 10 + 10),
            lossy: false,
            holders: holders.iter().copied().map(member).collect(),
        }
    }

    #[test]
    fn the_least_held_comes_first_then_the_newest() {
        let chain = [
            sealed(1, &[1]),
            sealed(2, &[1, 2]),
            sealed(3, &[1]),
            sealed(4, &[1, 2]),
            sealed(5, &[1, 3]),
            sealed(6, &[]),
            Sealed {
                end: Offset(70),
                ..sealed(7, &[1])
            },
        ];
        let next = |log_start, done: &[u32]| {
            let is_done = |generation: &Sealed| done.contains(&generation.epoch.0);
            let found = super::next(&chain, member(3), Offset(log_start), is_done);
            found.map(|generation| generation.epoch.0)
        };
        assert_eq!(next(0, &[]), Some(3));
        assert_eq!(next(0, &[3]), Some(1));
        assert_eq!(next(0, &[1, 3]), Some(4));
        assert_eq!(next(0, &[1, 3, 4]), Some(2));
        assert_eq!(next(0, &[1, 2, 3, 4]), None);
        assert_eq!(next(20, &[3]), Some(4));
    }
}
