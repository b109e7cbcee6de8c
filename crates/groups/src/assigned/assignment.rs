//! Which consumer reads which partition: balanced to within one, and what can stay stays.

use std::collections::{BTreeMap, BTreeSet};

use floe_model::TopicPartition;

use crate::ConsumerId;

/// Deals `partitions` to `members`. Each gets the average, rounded down or up; who has most keeps most. Of what
/// must move, partitions in `held` (a consumer is at work on them) come last, since they cannot move yet.
pub(super) fn assign<'a>(
    partitions: &BTreeSet<TopicPartition>,
    members: impl Iterator<Item = &'a ConsumerId>,
    current: &BTreeMap<TopicPartition, ConsumerId>,
    held: &BTreeSet<TopicPartition>,
) -> BTreeMap<TopicPartition, ConsumerId> {
    let mut owned: BTreeMap<&ConsumerId, Vec<TopicPartition>> =
        members.map(|member| (member, Vec::new())).collect();
    if owned.is_empty() {
        return BTreeMap::new();
    }
    let mut free = Vec::new();
    for partition in partitions {
        match current
            .get(partition)
            .and_then(|owner| owned.get_mut(owner))
        {
            Some(kept) => kept.push(*partition),
            None => free.push(*partition),
        }
    }
    let (share, rest) = (
        partitions.len() / owned.len(),
        partitions.len() % owned.len(),
    );
    let mut by_count: Vec<_> = owned.into_iter().collect();
    by_count.sort_by_key(|(member, kept)| (std::cmp::Reverse(kept.len()), *member));
    let mut room = BTreeSet::new();
    let mut assigned = BTreeMap::new();
    for (place, (member, mut kept)) in by_count.into_iter().enumerate() {
        let quota = share + usize::from(place < rest);
        kept.sort_by_key(|partition| (!held.contains(partition), *partition));
        free.extend(kept.drain(quota.min(kept.len())..));
        if kept.len() < quota {
            room.insert((kept.len(), member, quota));
        }
        assigned.extend(
            kept.into_iter()
                .map(|partition| (partition, member.clone())),
        );
    }
    free.sort();
    for partition in free {
        // The emptiest first, so that the partitions of a topic spread.
        let (count, member, quota) = room.pop_first().expect("quotas add up to all partitions");
        assigned.insert(partition, member.clone());
        if count + 1 < quota {
            room.insert((count + 1, member, quota));
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use floe_model::{PartitionIndex, TopicId};

    use super::*;

    fn partitions(topics: u8, each: u32) -> BTreeSet<TopicPartition> {
        (0..topics)
            .flat_map(|topic| {
                (0..each).map(move |partition| TopicPartition {
                    topic: TopicId([topic; 16]),
                    partition: PartitionIndex(partition),
                })
            })
            .collect()
    }

    fn members(count: usize) -> Vec<ConsumerId> {
        (0..count)
            .map(|n| ConsumerId::from(format!("c{n:03}")))
            .collect()
    }

    fn counts(assigned: &BTreeMap<TopicPartition, ConsumerId>) -> BTreeMap<&ConsumerId, usize> {
        let mut counts = BTreeMap::new();
        for owner in assigned.values() {
            *counts.entry(owner).or_default() += 1;
        }
        counts
    }

    #[test]
    fn one_consumer_gets_all_and_none_gets_nothing() {
        let all = partitions(2, 4);
        let none = BTreeMap::new();
        let held = BTreeSet::new();
        assert!(assign(&all, [].iter(), &none, &held).is_empty());
        let one = members(1);
        assert_eq!(assign(&all, one.iter(), &none, &held).len(), 8);
    }

    #[test]
    fn partitions_of_a_topic_spread_over_consumers() {
        let all = partitions(2, 2);
        let two = members(2);
        let assigned = assign(&all, two.iter(), &BTreeMap::new(), &BTreeSet::new());
        let owners: Vec<_> = assigned.values().map(ConsumerId::as_str).collect();
        assert_eq!(owners, ["c000", "c001", "c000", "c001"]);
    }

    #[test]
    fn any_change_leaves_it_balanced_and_moves_no_more_than_it_must() {
        let mut seed = 0x5eed_u64;
        let mut below = move |n: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % n as u64) as usize
        };
        for _ in 0..300 {
            let mut assigned = BTreeMap::new();
            for _ in 0..8 {
                let all = partitions(below(3) as u8 + 1, below(9) as u32 + 1);
                let everybody = members(12);
                let present: BTreeSet<_> = (0..=below(9))
                    .map(|_| everybody[below(12)].clone())
                    .collect();
                let next = assign(&all, present.iter(), &assigned, &BTreeSet::new());
                assert_eq!(next.len(), all.len());
                let counts = counts(&next);
                let (share, rest) = (all.len() / present.len(), all.len() % present.len());
                let mut could_stay = 0;
                let mut kept: Vec<usize> = present
                    .iter()
                    .map(|member| {
                        let mine = |(tp, owner): &(&TopicPartition, &ConsumerId)| {
                            all.contains(tp) && *owner == member
                        };
                        assigned.iter().filter(mine).count()
                    })
                    .collect();
                kept.sort_by_key(|count| std::cmp::Reverse(*count));
                for (place, count) in kept.into_iter().enumerate() {
                    could_stay += count.min(share + usize::from(place < rest));
                }
                for member in &present {
                    let count = counts.get(member).copied().unwrap_or(0);
                    assert!(count == share || count == share + 1);
                }
                let stayed = next
                    .iter()
                    .filter(|(tp, o)| assigned.get(tp) == Some(o))
                    .count();
                assert_eq!(stayed, could_stay);
                assigned = next;
            }
        }
    }

    #[test]
    fn what_is_held_is_given_up_last() {
        let all = partitions(1, 4);
        let two = members(2);
        let current = assign(&all, two[..1].iter(), &BTreeMap::new(), &BTreeSet::new());
        let held: BTreeSet<_> = all.iter().skip(2).copied().collect();
        let next = assign(&all, two.iter(), &current, &held);
        for partition in held {
            assert_eq!(next[&partition], two[0]);
        }
    }
}
