//! How the copies of one partition agree; pure: events in, commands out.
//!
//! A partition's log is a chain of *generations*. One generation is written under one epoch by one leader, a boot of a member,
//! and held by a fixed set of members, lives of nodes. It is *open* until it is *sealed* at an end that never changes; the next
//! one begins there. Whatever may fail changes who writes by that one way, and no other.
//!
//! ```text
//!                       ┌───────── Replica, one a node ─────────┐
//!  producer ─► append ─►│ Leading: Links, Commit, Gate, Lease   │──Send──► Replica: place, take, flush ──Answer──► Leading
//!                       │ Held: one a generation                │                         q durable: Committed
//!                       │ fence, Copying                        │◄─Fence── Seal, at a controller ──Open──► catalog
//!                       └───────────────────────────────────────┘──Fenced─►   asks, waits, repairs
//! ```
//!
//! | machine | takes | gives |
//! |---|---|---|
//! | [`Replica`] | [`replica::Event`]: what the catalog said, what the log flushed, what peers sent, time | [`replica::Command`]: to the log, to peers, to the node |
//! | [`Seal`] | [`seal::Event`]: fences answered, copies made, time over | [`seal::Command`]: fence, copy, open |
//! | [`Commit`] | durable ends | the commit offset |
//! | [`Chain`], [`Sealed`], [`backfill`] | nothing: they answer | epochs and ends, who may forget, what to copy next |
//!
//! A record's way: the leader appends it to its log ([`replica::Event::Appended`]) and has each follower sent what it lacks, one
//! window at a time, in a *session*; a follower takes what follows its own end, once; both report ends that are flushed; the
//! q-th largest is the commit offset, and only then is the producer answered. A generation's way out: every member is fenced behind
//! what it has accepted; n-q+1 answers fix the end, the largest of them; what q live members lack of it is copied; one
//! conditional command of the catalog seals it and opens the next; a replica that holds more cuts it then, and not before.
//!
//! Guarantees: an acknowledged record is durable on q members and below every later seal (P1); offsets are dense, never reused or
//! changed (P2); one boot writes in an epoch, and a deposed one acknowledges nothing above the seal (P3). They rest on fences and
//! ends of generations, never on a clock or a fresh view of the catalog; only a lease rests on clocks, within a stated drift.
//! Knows no disk, network or clock: whoever drives it carries out commands and hands in time. Records are known by their
//! end and checksum; bytes stay with the driver. One copy is the same code with n = 1.
//!
//! Each rule has a name ([`rule`]); the line that keeps it says so, and what can be an assertion is one. Below acks=all an offset
//! that was answered may be given again after a seal; readers never see past the commit offset in any mode. What `durability=replicated`
//! would need (LossyModeIsSeen) is not here.

pub mod backfill;
mod chain;
mod commit;
mod held;
mod leading;
mod lease;
pub mod message;
pub mod replica;
mod rule;
pub mod seal;

#[cfg(test)]
mod harness;

pub use chain::{Chain, EpochEnd, Sealed};
pub use commit::{Commit, Reported};
pub use lease::Terms;
pub use replica::Replica;
pub use seal::{Opening, Seal, TooFew};

use floe_model::{Boot, Incarnation, NodeId};

use rule::{Rule, keeps};

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
        self.member() == member && (self.boot == boot || !keeps(Rule::LeaderDoesNotResume))
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
