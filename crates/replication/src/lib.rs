//! How the copies of one partition agree; pure: events in, commands out.
//!
//! Guarantees: an offset is committed only when a quorum of the generation's members holds it durably
//! ([`Commit`]); a generation ends once, at an end no acknowledged record lies above ([`Seal`]); leadership belongs
//! to one boot of one incarnation of one node ([`Leader::is`]). Knows no disk, network or clock: whoever drives it
//! reports what became durable and carries out what it commands. One copy is the same code with n = 1.

mod chain;
mod commit;
mod seal;

pub use chain::{Chain, EpochEnd, Sealed};
pub use commit::{Commit, Reported};
pub use seal::{Command, Event, Opening, Seal, TooFew};

use floe_model::{Boot, Incarnation, NodeId};

/// One life of one node's copy of a partition: what a generation's replica set is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// The life of its data. Another life of the same node is another member (`WipedIsNoFollower`).
    pub incarnation: Incarnation,
}

/// Who writes a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The node.
    pub node: NodeId,
    /// The life of its data.
    pub incarnation: Incarnation,
    /// The life of its process.
    pub boot: Boot,
}

impl Leader {
    /// The member it is.
    pub fn member(self) -> Member {
        Member {
            node: self.node,
            incarnation: self.incarnation,
        }
    }

    /// Whether that process may write: `LeaderDoesNotResume`. A process with another boot never appends in a generation
    /// it led before; it asks for a seal.
    pub fn is(self, member: Member, boot: Boot) -> bool {
        self.member() == member && self.boot == boot
    }
}

/// How many members must hold a record before it is acknowledged, for a replication factor: 1, 2, 2, 3, 3 for 1 to 5.
/// It belongs to the topic and does not shrink with the replica set.
pub fn quorum(replication_factor: usize) -> usize {
    replication_factor / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_does_not_resume_under_another_boot_or_another_incarnation() {
        let member = Member {
            node: NodeId(1),
            incarnation: Incarnation(7),
        };
        let leader = Leader {
            node: NodeId(1),
            incarnation: Incarnation(7),
            boot: Boot(3),
        };
        assert!(leader.is(member, Boot(3)));
        assert!(!leader.is(member, Boot(4)));
        let wiped = Member {
            incarnation: Incarnation(8),
            ..member
        };
        assert!(!leader.is(wiped, Boot(3)));
    }

    #[test]
    fn any_two_quorums_of_a_full_set_meet_or_the_set_is_one() {
        assert_eq!([1, 2, 3, 4, 5].map(quorum), [1, 2, 2, 3, 3]);
        assert!((1..=5).all(|n| 2 * quorum(n) > n));
    }
}
