//! What must be true in every reachable state.

use crate::{Invariant::*, *};

impl State {
    /// The first broken invariant, if any.
    pub fn broken(&self, s: &Scope) -> Option<Invariant> {
        let checks = [
            (AckedIsKept, self.are_kept(&self.acked)),
            (SeenIsKept, self.are_kept(&self.seen)),
            (
                ReadsAreStable,
                self.unstable == 0 && self.reads_are_stable(s),
            ),
            (OneLeader, self.every_generation(|g| self.has_one_leader(g))),
            (
                NoAckBeyondSeal,
                self.every_generation(|g| self.acks_stay_below_seal(g)),
            ),
            (
                ReplicasAgree,
                self.every_generation(|g| self.replicas_agree(s, g)),
            ),
            (LinearizableRead, self.leases_know_all()),
            (HoldersHold, self.every_generation(|g| self.holders_hold(g))),
        ];
        let is_wanted = |i: &Invariant| s.only.is_none() || s.only == Some(*i);
        let mut broken = checks.iter().filter(|(_, holds)| !holds);
        broken.find(|(i, _)| is_wanted(i)).map(|(i, _)| *i)
    }

    fn every_generation(&self, holds: impl Fn(usize) -> bool) -> bool {
        (0..self.opened as usize).all(holds)
    }

    /// How much of what `len` records of `g` a replica has counts: all, or what lies below the seal.
    fn below_seal(&self, g: usize, len: u8) -> usize {
        if self.is_sealed(g) {
            len.min(self.gens[g].end) as usize
        } else {
            len as usize
        }
    }

    /// Each of these records is durable on some node, in a generation that reaches its offset.
    fn are_kept(&self, records: &[u8; R]) -> bool {
        let is_kept = |off: usize, rec: u8| {
            (0..self.opened as usize).any(|g| {
                let start = self.gens[g].start as usize;
                off >= start
                    && self.nodes.iter().any(|n| {
                        let c = &n.g[g];
                        self.below_seal(g, c.dur) > off - start && c.rec[off - start] == rec
                    })
            })
        };
        (0..R).all(|off| records[off] == 0 || is_kept(off, records[off]))
    }

    fn has_one_leader(&self, g: usize) -> bool {
        self.nodes.iter().filter(|n| n.g[g].is(LED)).count() <= 1
    }

    fn acks_stay_below_seal(&self, g: usize) -> bool {
        !self.is_sealed(g) || self.gens[g].told <= self.gens[g].end
    }

    fn replicas_agree(&self, s: &Scope, g: usize) -> bool {
        let nodes = &self.nodes[..s.nodes];
        nodes.iter().enumerate().all(|(i, a)| {
            nodes[..i].iter().all(|b| {
                let common = self.below_seal(g, a.g[g].len.min(b.g[g].len));
                a.g[g].rec[..common] == b.g[g].rec[..common]
            })
        })
    }

    fn reads_are_stable(&self, s: &Scope) -> bool {
        self.every_generation(|g| {
            self.nodes[..s.nodes].iter().all(|n| {
                let (c, start) = (&n.g[g], self.gens[g].start as usize);
                let readable = if n.knows_sealed(g) {
                    c.len.min(self.gens[g].end)
                } else {
                    c.commit
                };
                (0..readable as usize).all(|k| c.rec[k] == self.seen[start + k])
            })
        })
    }

    fn leases_know_all(&self) -> bool {
        let acked = self.acked.iter().filter(|rec| **rec != 0).count();
        self.every_generation(|g| {
            self.nodes.iter().all(|n| {
                let c = &n.g[g];
                let may_read = c.is(LEASE) && n.fence as usize <= g;
                !may_read || (self.gens[g].start + c.commit) as usize >= acked
            })
        })
    }

    fn holders_hold(&self, g: usize) -> bool {
        let mut nodes = self.nodes.iter();
        !self.is_sealed(g) || nodes.all(|n| !n.is_holder_now(g) || n.g[g].dur >= self.gens[g].end)
    }
}
