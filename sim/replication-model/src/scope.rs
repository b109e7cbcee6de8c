//! What is explored: how many of everything, which trouble, and which rule is missing.

use crate::{Invariant, Rule};

#[derive(Clone, Debug)]
pub struct Scope {
    pub nodes: usize,
    /// Smallest and largest replica set that a controller may open with.
    pub sizes: (usize, usize),
    pub q: usize,
    pub gens: usize,
    pub records: usize,
    /// Disks lost, or suffixes of a generation lost.
    pub wipes: u8,
    pub controllers: usize,
    pub leases: bool,
    /// Copying, claiming and forgetting of sealed generations.
    pub backfill: bool,
    pub without: Option<Rule>,
    /// Look for a violation of this one only.
    pub only: Option<Invariant>,
}

impl Scope {
    /// `n` replicas out of `nodes`, a quorum of `q`; two controllers, no trouble but crashes and lost messages.
    pub fn new(nodes: usize, n: usize, q: usize, gens: usize, records: usize) -> Scope {
        Scope {
            nodes,
            sizes: (n, n),
            q,
            gens,
            records,
            wipes: 0,
            controllers: 2,
            leases: false,
            backfill: false,
            without: None,
            only: None,
        }
    }

    pub fn wipes(self, wipes: u8) -> Scope {
        Scope { wipes, ..self }
    }

    pub fn one_controller(self) -> Scope {
        Scope {
            controllers: 1,
            ..self
        }
    }

    pub fn smallest_set(self, smallest: usize) -> Scope {
        Scope {
            sizes: (smallest, self.sizes.1),
            ..self
        }
    }

    pub fn leases(self) -> Scope {
        Scope {
            leases: true,
            ..self
        }
    }

    pub fn backfill(self) -> Scope {
        Scope {
            backfill: true,
            ..self
        }
    }

    pub fn without(self, rule: Rule) -> Scope {
        Scope {
            without: Some(rule),
            ..self
        }
    }

    pub fn only(self, invariant: Invariant) -> Scope {
        Scope {
            only: Some(invariant),
            ..self
        }
    }

    pub(crate) fn on(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// How many of `n` replicas must hold a record.
    pub(crate) fn quorum(&self, n: usize) -> usize {
        if self.on(Rule::QuorumFixed) {
            self.q
        } else {
            self.q.min(n)
        }
    }
}
