//! Who should vote on the catalog: the next change of the configuration, one at a time.
//!
//! Guarantees: a life that is over goes before the new one comes (rule VoterIdentity); whoever comes listens until it has everything,
//! so that it is not needed before it can help; with nothing to change there is no change.

use std::collections::BTreeMap;

use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

use crate::consensus::{Change, Configuration, Progress};

/// Voters at most; further nodes listen. A majority of more answers more slowly and survives hardly more.
pub const VOTERS_MAX: usize = 5;
/// Entries that a new voter may lack: it takes that many in one message.
const LAG_MAX: u64 = 64;

/// The group as its leader sees it.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The leader.
    pub me: Member,
    /// Who votes and who listens.
    pub configuration: &'a Configuration,
    /// How far the others are.
    pub progress: &'a [Progress],
    /// The last entry that is agreed.
    pub index: u64,
}

/// The next change towards a group of those nodes, each under its present life.
pub fn voters(group: Group<'_>, wanted: &BTreeMap<NodeId, Incarnation>) -> Option<Change> {
    let Group {
        me,
        configuration,
        progress,
        index,
    } = group;
    let is_life = |member: &Member| wanted.get(&member.node) == Some(&member.incarnation);
    let others = || configuration.members().filter(|member| *member != me);
    let over = others().find(|member| wanted.contains_key(&member.node) && !is_life(member));
    if let Some(over) = over {
        return Some(Change::Remove(over));
    }
    let is_ready = |known: &&Progress| {
        let listens = configuration.learners.contains(&known.member);
        listens && is_life(&known.member) && known.is_active && known.stored + LAG_MAX >= index
    };
    if configuration.voters.len() < VOTERS_MAX
        && let Some(ready) = progress.iter().find(is_ready)
    {
        return Some(Change::Promote(ready.member));
    }
    let missing = wanted.iter().map(|(node, incarnation)| Member {
        node: *node,
        incarnation: *incarnation,
    });
    let is_held = |missing: &Member| {
        configuration
            .members()
            .any(|held| held.node == missing.node)
    };
    if let Some(missing) = missing.into_iter().find(|missing| !is_held(missing)) {
        return Some(Change::AddLearner(missing));
    }
    let surplus = others().find(|member| !is_life(member));
    surplus.map(Change::Remove)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u32, incarnation: u64) -> Member {
        Member {
            node: NodeId(node),
            incarnation: Incarnation(incarnation),
        }
    }

    fn wanted(members: &[(u32, u64)]) -> BTreeMap<NodeId, Incarnation> {
        let pairs = members.iter().map(|(n, i)| (NodeId(*n), Incarnation(*i)));
        pairs.collect()
    }

    /// Every step until nothing is to be done; learners have everything at once.
    fn steps(
        configuration: &mut Configuration,
        wanted: &BTreeMap<NodeId, Incarnation>,
    ) -> Vec<Change> {
        let mut steps = Vec::new();
        loop {
            let progress: Vec<_> = configuration
                .members()
                .map(|member| Progress {
                    member,
                    stored: 900,
                    is_active: true,
                })
                .collect();
            let group = Group {
                me: member(1, 10),
                configuration,
                progress: &progress,
                index: 900,
            };
            let Some(change) = voters(group, wanted) else {
                return steps;
            };
            *configuration = configuration.after(change).unwrap();
            steps.push(change);
        }
    }

    #[test]
    fn voters_follow_the_lives_of_their_nodes_one_step_at_a_time() {
        let mut group = Configuration::alone(member(1, 10));
        let all = steps(&mut group, &wanted(&[(1, 10), (2, 20), (3, 30)]));
        assert_eq!(
            all[..2],
            [
                Change::AddLearner(member(2, 20)),
                Change::Promote(member(2, 20))
            ]
        );
        assert_eq!(group.voters, [member(1, 10), member(2, 20), member(3, 30)]);
        let replaced = steps(&mut group, &wanted(&[(1, 10), (2, 21), (3, 30)]));
        assert_eq!(replaced[0], Change::Remove(member(2, 20)));
        assert_eq!(replaced.len(), 3);
        let moved = steps(&mut group, &wanted(&[(1, 10), (3, 30), (4, 40)]));
        assert_eq!(*moved.last().unwrap(), Change::Remove(member(2, 21)));
        assert_eq!(steps(&mut group, &wanted(&[(1, 10), (3, 30), (4, 40)])), []);
    }

    #[test]
    fn more_than_five_nodes_listen_from_the_sixth_on() {
        let mut group = Configuration::alone(member(1, 10));
        let nodes: Vec<_> = (1..=7).map(|node| (node, u64::from(node) * 10)).collect();
        steps(&mut group, &wanted(&nodes));
        assert_eq!((group.voters.len(), group.learners.len()), (5, 2));
    }

    #[test]
    fn one_that_lags_or_is_silent_goes_on_listening() {
        let mut group = Configuration::alone(member(1, 10));
        group = group.after(Change::AddLearner(member(2, 20))).unwrap();
        for (stored, is_active, is_ready) in
            [(835, true, false), (900, false, false), (836, true, true)]
        {
            let progress = [Progress {
                member: member(2, 20),
                stored,
                is_active,
            }];
            let seen = Group {
                me: member(1, 10),
                configuration: &group,
                progress: &progress,
                index: 900,
            };
            let change = voters(seen, &wanted(&[(1, 10), (2, 20)]));
            assert_eq!(change.is_some(), is_ready, "{stored} {is_active}");
        }
    }
}
