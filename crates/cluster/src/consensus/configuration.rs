//! Who votes and who only listens, and how that may change.
//!
//! Guarantees: voters change one at a time, so that majorities of neighbouring configurations overlap; a node is in a
//! configuration once (rule VoterIdentity: the old life is removed before the new one joins); ids of the library are a function of
//! (node, incarnation) that every node computes alike, and a configuration in which two collide is never made.

use floe_replication::Member;

use super::Refusal;

/// Members of a configuration at most.
pub(crate) const MEMBERS_MAX: usize = 32;

/// The voters and learners of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// A majority of these elects and commits. In order.
    pub voters: Vec<Member>,
    /// These get everything and do not count. In order.
    pub learners: Vec<Member>,
}

/// One step from a configuration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new member begins to listen.
    AddLearner(Member),
    /// A learner becomes a voter. Whoever asks has seen that it is not far behind: from now on it may be needed.
    Promote(Member),
    /// A voter or learner goes, but not the leader.
    Remove(Member),
}

/// A change as the library knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Voter(Member),
    Learner(Member),
    Gone(Member),
}

impl Configuration {
    /// One voter and nobody else.
    pub fn alone(voter: Member) -> Self {
        Self {
            voters: vec![voter],
            learners: Vec::new(),
        }
    }

    /// Nobody: what a node knows that is to be added by others.
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty() && self.learners.is_empty()
    }

    /// Voters, then learners.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.voters.iter().chain(&self.learners).copied()
    }

    /// Whether this member is in it.
    pub fn contains(&self, member: Member) -> bool {
        self.members().any(|held| held == member)
    }

    /// Whether this one is the only voter.
    pub fn is_alone(&self, voter: Member) -> bool {
        self.voters == [voter]
    }

    /// The configuration after a change, or why there is none.
    pub fn after(&self, change: Change) -> Result<Self, Refusal> {
        let mut next = self.clone();
        match change {
            Change::AddLearner(member) => {
                if self.members().any(|held| held.node == member.node) {
                    return Err(Refusal::Change(
                        "the node is in the configuration; remove it first",
                    ));
                }
                next.learners.push(member);
                next.learners.sort_unstable();
            }
            Change::Promote(member) => {
                if !self.learners.contains(&member) {
                    return Err(Refusal::Change("only a learner becomes a voter"));
                }
                next.learners.retain(|held| *held != member);
                next.voters.push(member);
                next.voters.sort_unstable();
            }
            Change::Remove(member) => {
                if !self.contains(member) {
                    return Err(Refusal::Change("the member is not in the configuration"));
                }
                next.learners.retain(|held| *held != member);
                next.voters.retain(|held| *held != member);
            }
        }
        next.check().map_err(Refusal::Change)?;
        Ok(next)
    }

    /// What every configuration that was ever made keeps.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let members: Vec<Member> = self.members().collect();
        if self.voters.is_empty() {
            return Err("a group has a voter");
        }
        if members.len() > MEMBERS_MAX {
            return Err("too many members");
        }
        for (place, member) in members.iter().enumerate() {
            for other in &members[..place] {
                if other.node == member.node {
                    return Err("a node is in the configuration once");
                }
                if id_of(*other) == id_of(*member) {
                    return Err("two members have one id; the new one needs another incarnation");
                }
            }
        }
        Ok(())
    }

    /// The way to another configuration, additions first.
    pub(super) fn moves_to(&self, next: &Self) -> Vec<Move> {
        let voters = next
            .voters
            .iter()
            .filter(|held| !self.voters.contains(held));
        let learners = next
            .learners
            .iter()
            .filter(|held| !self.learners.contains(held));
        let gone = self.members().filter(|held| !next.contains(*held));
        voters
            .map(|member| Move::Voter(*member))
            .chain(learners.map(|member| Move::Learner(*member)))
            .chain(gone.map(Move::Gone))
            .collect()
    }
}

/// The library's id of a member: both parts mixed so that each changes all bits. Never 0, which is nobody there.
pub(super) fn id_of(member: Member) -> u64 {
    let node = mix(u64::from(member.node.0).wrapping_add(0x9e37_79b9_7f4a_7c15));
    mix(node ^ member.incarnation.0).max(1)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection.
pub(super) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    fn member(node: u32, incarnation: u64) -> Member {
        Member {
            node: NodeId(node),
            incarnation: Incarnation(incarnation),
        }
    }

    #[test]
    fn a_node_joins_as_learner_becomes_voter_and_its_next_life_joins_only_when_it_is_gone() {
        let (one, two, again) = (member(1, 5), member(2, 6), member(2, 7));
        let alone = Configuration::alone(one);
        let joined = alone.after(Change::AddLearner(two)).unwrap();
        assert!(joined.is_alone(one));
        assert!(alone.after(Change::Promote(two)).is_err());
        let both = joined.after(Change::Promote(two)).unwrap();
        assert_eq!(both.voters, [one, two]);
        assert!(both.after(Change::AddLearner(again)).is_err());
        let without = both.after(Change::Remove(two)).unwrap();
        assert_eq!(without, alone);
        assert!(without.after(Change::AddLearner(again)).is_ok());
        assert!(without.after(Change::Remove(one)).is_err(), "the last one");
    }

    #[test]
    fn members_with_one_id_are_not_in_one_configuration() {
        // As the mixing is a bijection, a colliding incarnation can be computed.
        let one = member(1, 5);
        let bits = |node: u32| mix(u64::from(node).wrapping_add(0x9e37_79b9_7f4a_7c15));
        let two = member(2, 5 ^ bits(1) ^ bits(2));
        assert_eq!(id_of(one), id_of(two));
        let refused = Configuration::alone(one).after(Change::AddLearner(two));
        assert!(refused.is_err());
    }

    #[test]
    fn the_way_to_another_configuration_adds_before_it_removes() {
        let (one, again, two) = (member(1, 5), member(1, 9), member(2, 6));
        let next = Configuration {
            voters: vec![again],
            learners: vec![two],
        };
        assert_eq!(
            Configuration::alone(one).moves_to(&next),
            [Move::Voter(again), Move::Learner(two), Move::Gone(one)]
        );
        assert_eq!(next.moves_to(&next), []);
    }
}
