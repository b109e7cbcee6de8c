//! An executable model of one partition: append, fence, seal, repair, open, lease, copy, forget.
//!
//! A state, atomic steps, invariants; `search` walks every reachable state of a small scope. What is abstracted, and why
//! that loses nothing:
//!
//! * Network. A message once sent may arrive at any time, any number of times, in any order, or never. So what was ever
//!   sent is kept as a set, and a receiver reads from it whenever it likes: `Gen::sent` (appends), `Gen::told` (commit
//!   offset), `Replica::reported` (the largest end a replica ever reported), `Node::claims` (claims to hold a generation).
//! * Crash. A node that is down takes no step, and how long it is down does not matter; so a crash is the loss of what was
//!   not flushed and of what was in memory. Any node may crash at any step, without limit.
//! * Catalog. Its commands are atomic and conditional. A node knows a prefix of them (`Node::known`), learns one at a
//!   time, and falls back to the oldest prefix when it crashes.
//! * Controllers. Up to two, each believing in itself, each able to stop after any step.
//! * Wipe. The disk is lost and the node comes back at once under a new incarnation. Allowed while every generation has
//!   at most q-1 lost copies: that is what P1 promises to survive.
//! * Records are numbers 1, 2, 3.. in the order in which leaders accept them: every append is distinct.
//!
//! What the shipped code (`floe-replication`) does beyond it: sessions, windows and gaps are a way to send the set
//! `sent` in order; a follower that knows of a later generation refuses the earlier one at once; a fenced leader counts
//! its own end no more. All of these take steps away and add none. It reads the seal as the commit of what lies below
//! it: an old leader that learns the seal answers the producers of records below the end, unless an earlier lease may
//! still hold.
//!
//! Deliberately not modelled: real time (a lease is held or not; its end is an event), log start and compaction, the
//! catalog's own consensus, producer sequences, growth, bytes on disk (`log-model`). "Whole" means the whole generation;
//! holding only what lies above a known commit offset would be another proof.

mod catalog; //    seal and open, by either of two controllers; claims
mod invariants;
mod node; //       append, flush, commit, lease; crash and loss
mod rules;
mod scope;
pub mod scopes;
pub mod search;

pub use rules::{ALL_RULES, Invariant, Rule};
pub use scope::Scope;

pub const N: usize = 4; // most nodes
pub const G: usize = 3; // most generations
pub const R: usize = 3; // most records

// Bits of `Replica::flags`. All about one node lies in `Node`, so that nodes can be sorted: names do not matter.
const MEMBER: u8 = 1; //      catalog: of the replica set
const MEMBER_INC: u8 = 2; //  catalog: under this incarnation
const LEADER: u8 = 4; //      catalog: its leader
const HOLDER: u8 = 8; //      catalog: proven to hold the sealed generation whole
const HOLDER_INC: u8 = 16; // catalog: under this incarnation
const LED: u8 = 32; //        history: has led this generation
const LEADS: u8 = 64; //      in memory: leads it
const LEASE: u8 = 128; //     in memory: may answer linearizable reads

/// One node's share of one generation. Offsets count from the generation's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Replica {
    rec: [u8; R],
    len: u8,      // accepted, perhaps only in memory
    dur: u8,      // on stable storage
    commit: u8,   // in memory: the commit offset as far as known here
    reported: u8, // network: the largest durable end ever reported to the generation's leader
    flags: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Node {
    g: [Replica; G],
    fence: u8,       // appends of generations below are refused
    known: u8, // in memory: how many generations it knows of; all but the last of them are sealed
    inc: u8,   // incarnation: 1 after a wipe
    chosen: u8, // only without ForgetConditional: generations it has decided to forget (bits)
    claims: [u8; 2], // network: claims to hold, per incarnation (bits)
    answer: [u8; 2], // controllers: 1 + the end this node answered, 0 for none
    whole: [u8; 2], // controllers: 1 + the incarnation under which it proved to hold all, 0 for none
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Gen {
    start: u8,
    end: u8,         // once sealed
    leader_gone: u8, // the process that the catalog named as leader has ended
    told: u8,        // network: the largest commit offset ever told, and so acknowledged
    sent: [u8; R],   // network: per offset, the records ever sent for it (bits)
}

/// A controller at work: 0 idle, 1 collects answers to its fence, 2 has decided and repairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Controller {
    phase: u8,
    generation: u8,
    end: u8,
    need: u8, // how many nodes must hold all before the seal
    tail: [u8; R],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct State {
    nodes: [Node; N],
    gens: [Gen; G],
    ctl: [Controller; 2],
    opened: u8, // catalog: how many generations there are; the last is open
    next: u8,   // last record number used
    wiped: u8,
    acked: [u8; R], // history: record acknowledged, per offset
    seen: [u8; R],  // history: record readable, per offset
    unstable: u8,   // history: an offset was acknowledged or readable with two records
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Append {
        leader: usize,
        generation: usize,
    },
    Accept {
        node: usize,
        generation: usize,
        at: usize,
        rec: u8,
    },
    Flush {
        node: usize,
    },
    Commit {
        leader: usize,
        generation: usize,
        to: u8,
    },
    LearnCommit {
        node: usize,
        generation: usize,
    },
    LearnCatalog {
        node: usize,
    },
    Crash {
        node: usize,
    },
    Wipe {
        node: usize,
    },
    LoseSuffix {
        node: usize,
        generation: usize,
        keep: u8,
    },
    Lease {
        leader: usize,
        generation: usize,
    },
    LeaseEnds {
        leader: usize,
        generation: usize,
    },
    Begin {
        ctl: usize,
    },
    Stop {
        ctl: usize,
    },
    Fence {
        ctl: usize,
        node: usize,
    },
    Decide {
        ctl: usize,
        answers: u8,
    },
    Repair {
        ctl: usize,
        node: usize,
    },
    TruncateToProposal {
        ctl: usize,
        node: usize,
    },
    SealAndOpen {
        ctl: usize,
        replicas: u8,
        leader: usize,
    },
    CopyOld {
        node: usize,
        from: usize,
        generation: usize,
    },
    Claim {
        node: usize,
        generation: usize,
    },
    RecordHolder {
        node: usize,
        generation: usize,
        incarnation: u8,
    },
    ChooseToForget {
        node: usize,
        generation: usize,
    },
    Forget {
        node: usize,
        generation: usize,
    },
}

impl Replica {
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Takes `rec` as all there is.
    fn keep(&mut self, len: u8) {
        self.len = len;
        self.rec[len as usize..].fill(0);
    }
}

impl Node {
    /// One flush of the journal: all that was accepted is durable, and reported unless `silent` about fenced generations.
    fn flush(&mut self, silent: bool) {
        for (g, c) in self.g.iter_mut().enumerate() {
            c.dur = c.len;
            if c.is(MEMBER) && (!silent || self.fence as usize <= g) {
                c.reported = c.reported.max(c.dur)
            }
        }
    }

    fn is_member_now(&self, g: usize) -> bool {
        self.g[g].is(MEMBER) && self.g[g].is(MEMBER_INC) == (self.inc == 1)
    }

    fn is_holder_now(&self, g: usize) -> bool {
        self.g[g].is(HOLDER) && self.g[g].is(HOLDER_INC) == (self.inc == 1)
    }

    fn knows_sealed(&self, g: usize) -> bool {
        self.known as usize > g + 1
    }
}

impl State {
    /// One open generation, empty; node 0 leads it and everybody knows.
    pub fn first(s: &Scope) -> State {
        let mut st = State {
            opened: 1,
            ..State::default()
        };
        for (i, n) in st.nodes[..s.nodes].iter_mut().enumerate() {
            n.known = 1;
            if i < s.sizes.1 {
                n.g[0].flags = MEMBER
            }
            if i == 0 {
                n.g[0].flags |= LEADER | LED | LEADS
            }
        }
        st
    }

    /// Every step that may come next.
    pub fn steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        out.clear();
        for i in 0..s.nodes {
            self.node_steps(s, i, out);
        }
        for c in 0..s.controllers {
            self.controller_steps(s, c, out);
        }
    }

    /// The same state with nodes and controllers in a fixed order: states that differ by names only are one.
    pub fn canonical(&self, s: &Scope) -> State {
        let mut a = *self;
        if s.controllers == 2 && a.ctl[0] > a.ctl[1] {
            a = a.swap_controllers()
        }
        a.nodes[..s.nodes].sort_unstable();
        if s.controllers == 2 && a.ctl[0] == a.ctl[1] && a.ctl[0].phase != 0 {
            let mut b = a.swap_controllers();
            b.nodes[..s.nodes].sort_unstable();
            if b.nodes < a.nodes {
                a = b
            }
        }
        a
    }

    fn swap_controllers(&self) -> State {
        let mut a = *self;
        a.ctl.swap(0, 1);
        for n in &mut a.nodes {
            n.answer.swap(0, 1);
            n.whole.swap(0, 1)
        }
        a
    }

    fn is_sealed(&self, g: usize) -> bool {
        g + 1 < self.opened as usize
    }

    fn members(&self, g: usize) -> usize {
        self.nodes.iter().filter(|n| n.g[g].is(MEMBER)).count()
    }

    /// History: `rec` was readable at `off`, and perhaps acknowledged.
    fn show(&mut self, off: usize, rec: u8, acked: bool) {
        let mut put = |place: &mut u8| {
            if *place == 0 {
                *place = rec
            } else if *place != rec {
                self.unstable = 1
            }
        };
        put(&mut self.seen[off]);
        if acked {
            put(&mut self.acked[off])
        }
    }
}
