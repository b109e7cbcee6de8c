//! The lease under which a leader may answer reads without asking anybody, and the gate behind which its successor waits.
//!
//! ```text
//! leader     ──Renew(sent_at)──► members ──grant──► valid until (q-th latest sent_at) + D, on the leader's clock
//! successor  ──learns that it leads──► gate closed until every earlier lease is proven ended, or D·(1+drift) has passed
//! ```
//!
//! Guarantees: while a lease is valid no later leader has acknowledged anything, as long as clocks drift by less than is said. Time
//! is handed in; it must be a clock that counts through suspension. A lease is to be checked after the read and before
//! the answer. What a leader must have applied before it answers is not decided here.

use std::time::Duration;

use floe_model::LeaderEpoch;

use crate::Member;
use crate::rule::{Rule, keeps};

/// How long leases hold, and how far clocks may drift apart.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// D: how long a grant holds, from when the leader asked for it.
    pub duration: Duration,
    /// By how much a node's clock may run faster than another's, in parts of a million.
    pub drift_ppm: u32,
}

impl Terms {
    /// After this time on any clock, a lease of `duration` on any other has ended.
    pub fn wait(self) -> Duration {
        self.duration + self.duration.mul_f64(f64::from(self.drift_ppm) / 1e6)
    }
}

/// A leader's lease.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    terms: Terms,
    quorum: usize,
    me: Member,
    /// Per other member, when the latest request that it granted was sent.
    grants: Vec<(Member, Option<Duration>)>,
    asked_at: Option<Duration>,
}

impl Lease {
    pub(crate) fn new(terms: Terms, quorum: usize, me: Member, members: &[Member]) -> Self {
        let others = members.iter().filter(|member| **member != me);
        Self {
            terms,
            quorum,
            me,
            grants: others.map(|member| (*member, None)).collect(),
            asked_at: None,
        }
    }

    /// Whom to ask now; nobody until an eighth of the lease has gone by since the last time.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Member> {
        let pause = self.terms.duration / 8;
        if self.asked_at.is_some_and(|at| now < at + pause) {
            return Vec::new();
        }
        self.asked_at = Some(now);
        self.grants.iter().map(|(member, _)| *member).collect()
    }

    pub(crate) fn granted(&mut self, member: Member, sent_at: Duration) {
        if let Some((_, latest)) = self.grants.iter_mut().find(|(known, _)| *known == member) {
            *latest = (*latest).max(Some(sent_at));
        }
    }

    /// Whether q unfenced members grant it now; the leader itself is one of them.
    pub(crate) fn is_valid(&self, now: Duration) -> bool {
        let holds = |sent_at: Duration| now < sent_at + self.terms.duration;
        let granted = self.grants.iter().filter(|(_, at)| at.is_some_and(holds));
        debug_assert!(self.grants.iter().all(|(member, _)| *member != self.me));
        1 + granted.count() >= self.quorum
    }
}

/// What a new leader waits for before it acknowledges anything.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Earlier generations whose leases are not proven ended.
    leases: Vec<LeaderEpoch>,
    opens_at: Duration,
}

impl Gate {
    /// `learned_at`: when this node learned from the catalog that it leads.
    pub(crate) fn new(leases: Vec<LeaderEpoch>, learned_at: Duration, terms: Terms) -> Self {
        Self {
            leases,
            opens_at: learned_at + terms.wait(),
        }
    }

    /// The leader of that generation confirmed a fence above it, or its process is known to be over.
    pub(crate) fn ended(&mut self, epoch: LeaderEpoch) {
        self.leases.retain(|lease| *lease != epoch);
    }

    /// Rule LeaseGatesAcks, and LeaseGatesAllEarlier: every lease of the list.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        self.leases.is_empty() || now >= self.opens_at || !keeps(Rule::LeaseGatesAcks)
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    const TERMS: Terms = Terms {
        duration: Duration::from_millis(500),
        drift_ppm: 100_000,
    };

    fn member(node: u32) -> Member {
        Member {
            node: NodeId(node),
            incarnation: Incarnation(1),
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_lease_counts_from_when_it_was_asked_for() {
        let mut lease = Lease::new(TERMS, 2, member(1), &[1, 2, 3].map(member));
        assert_eq!(lease.due(ms(1000)), [2, 3].map(member));
        assert_eq!(lease.due(ms(1060)), []);
        assert!(!lease.is_valid(ms(1000)));
        lease.granted(member(3), ms(1000));
        lease.granted(member(9), ms(1400));
        assert!(lease.is_valid(ms(1499)));
        assert!(!lease.is_valid(ms(1500)));
        lease.granted(member(2), ms(1400));
        lease.granted(member(2), ms(1200));
        assert!(lease.is_valid(ms(1899)));
    }

    #[test]
    fn a_leader_alone_grants_itself() {
        let lease = Lease::new(TERMS, 1, member(1), &[member(1)]);
        assert!(lease.is_valid(ms(1_000_000)));
    }

    #[test]
    fn a_gate_opens_when_every_earlier_lease_has_ended_or_time_has() {
        let leases = [3, 5].map(LeaderEpoch).to_vec();
        let mut gate = Gate::new(leases, ms(1000), TERMS);
        gate.ended(LeaderEpoch(5));
        assert!(!gate.is_open(ms(1549)));
        assert!(gate.is_open(ms(1550)));
        gate.ended(LeaderEpoch(3));
        assert!(gate.is_open(ms(1000)));
    }
}
