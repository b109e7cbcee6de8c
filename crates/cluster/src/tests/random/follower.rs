//! A node as it learns: by every entry's effects, or, when it was away, from the catalog's duties.

use std::collections::BTreeMap;

use super::*;

/// What a node holds: of each generation, where it ended, if it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Follower {
    pub(super) held: BTreeMap<(TopicPartition, LeaderEpoch), Option<Offset>>,
    pub(super) open: BTreeMap<TopicPartition, LeaderEpoch>,
}

impl Follower {
    pub(super) fn obey(&mut self, me: NodeId, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Sealed {
                    partition,
                    epoch,
                    end,
                    ..
                } => {
                    if let Some(held) = self.held.get_mut(&(*partition, *epoch)) {
                        *held = Some(*end);
                    }
                }
                Effect::Opened { partition, opened } => {
                    self.open.insert(*partition, opened.epoch);
                    if opened.members.iter().any(|member| member.node == me) {
                        self.held.entry((*partition, opened.epoch)).or_default();
                    }
                }
                Effect::Forgotten {
                    partition,
                    node,
                    epoch,
                    ..
                } if *node == me => drop(self.held.remove(&(*partition, *epoch))),
                Effect::Deleted { topic, .. } => {
                    self.held.retain(|(at, _), _| at.topic != *topic);
                    self.open.retain(|at, _| at.topic != *topic);
                }
                Effect::LogStartAdvanced { partition, to } => {
                    let is_kept = |end: &Option<Offset>| end.is_none_or(|end| end > *to);
                    self.held
                        .retain(|(at, _), end| at != partition || is_kept(end));
                }
                Effect::Forgotten { .. }
                | Effect::LeaseEnded { .. }
                | Effect::ProducerIdsReserved { .. } => {}
            }
        }
    }

    pub(super) fn holdings(&self) -> Holdings {
        let mut holdings = Holdings::new();
        for (at, epoch) in self.held.keys() {
            holdings.entry(*at).or_default().push(*epoch);
        }
        holdings
    }

    /// Whether a node that was away now has what it would have, had it been there; generations that came and went meanwhile aside.
    pub(super) fn agrees(&self, whole: &Self) -> bool {
        let is_same = |(key, end): (&(TopicPartition, LeaderEpoch), &Option<Offset>)| {
            whole.held.get(key) == Some(end)
        };
        let is_open_here = |(key, end): (&(TopicPartition, LeaderEpoch), &Option<Offset>)| {
            end.is_some() || self.held.contains_key(key)
        };
        self.held.iter().all(is_same) && whole.held.iter().all(is_open_here)
    }
}
