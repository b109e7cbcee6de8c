//! An executable model of one node's log on one disk: journal, segments, checkpoint, recovery.
//!
//! A state, atomic steps, invariants; `search` walks every reachable state of a small scope. What is abstracted:
//!
//! * Sector. The device's atomic unit: after a power cut it holds its old or its new content, never a mixture
//!   (`Scope::garbage` drops that, to show what hangs on it). A write of several sectors persists any subset of them.
//! * Journal. A ring of sectors; a group is 1 or 2 sectors with one record each. A sector is stamped with its absolute
//!   number (lsn; the lap is lsn / ring), the boot that wrote it, its index in the group; the header sector also with
//!   the group's length and the first lsn not known flushed when it was composed.
//! * Segment. One record a block; block = offset; `FILE` blocks a file. `cur` is what a read returns, `dur` what a power
//!   cut cannot take; a power cut keeps any subset of the difference. A file exists durably once its directory is synced.
//! * Checkpoint. A slot holds a snapshot as of lsn x: per partition the end synced in segments, the records above it
//!   ("tail") inline, fence, incarnation. A slot being written becomes old, new or invalid.
//! * Records are numbers 1, 2, 3.. in the order of appends: every append is distinct, so what was cut can be known again.
//! * A process crash may cut a write short (any subset of the journal sectors in flight) but loses nothing of `cur`. What
//!   it leaves of journal and slot writes in flight is *soft*: a read gives it, a power cut may take it, until it is flushed.
//! * A bit flip makes a sector, block or slot fail its checksum. It never makes another valid one.
//!
//! The shipped log (`floe-log`) differs from the drawing this model was made for in one layout: a run is header, batches,
//! table of head checksums, padding (the table after the batches, so that batches are gathered in place before their
//! number is known). The header's checksum covers header and table as before. A run here is one record in one block,
//! whole or bad, so nothing in the model depends on it.
//!
//! Deliberately not modelled: groups above two sectors, several records in a sector, runs of several batches, memory,
//! retention, index files, an incarnation per partition (there is one a node), votes and catalog entries (they are
//! fences here), several generations (truncate and append share one file, which is harsher). `floe-sim` drives the
//! shipped code through those.

mod disk; //    power cut, process crash, bit flip, failed flush
mod engine; //  append, flush, copy, sync, checkpoint, truncate, fence
mod recovery;
mod rules;
pub mod scopes;
pub mod search;

use Rule::*;
pub use rules::{ALL_RULES, Invariant, Rule};

pub const P: usize = 2; //    most partitions
pub const M: usize = 4; //    most offsets
pub const J: usize = 6; //    most journal sectors
pub const FILE: usize = 2; // blocks in a segment file
pub const BAD: u8 = 15; //    a block that fails its checksum
pub const HOLE: u8 = 14; //   recovered log: an offset known to be lost, and said so

#[derive(Clone, Debug)]
pub struct Scope {
    pub parts: usize,
    pub ring: usize,
    pub records: u8,
    pub offsets: usize,
    pub large: bool,
    pub pairs: bool,  // groups of two sectors
    pub depth: usize, // journal writes in flight
    pub cuts: u8,     // power cuts
    pub crashes: u8,  // process crashes
    pub flips: u8,    // bit flips
    pub lost: u8, // sectors that a device acknowledged and does not hold (outside the assumptions; GapIsDamage)
    pub fails: u8, // failed segment flushes
    pub truncs: u8,
    pub fences: u8,
    pub checkpoints: u8,
    pub garbage: bool, // a journal sector in flight may become unreadable
    pub early: bool,   // small appends may be copied to the segment before their group is flushed
    pub shorn: bool,   // a segment block in flight may become unreadable
    pub without: Option<Rule>,
    pub only: Option<Invariant>,
}
impl Scope {
    pub fn new(parts: usize, ring: usize, records: u8) -> Scope {
        Scope {
            parts,
            ring,
            records,
            offsets: M,
            large: false,
            pairs: false,
            depth: 1,
            cuts: 1,
            crashes: 0,
            flips: 0,
            lost: 0,
            fails: 0,
            truncs: 0,
            fences: 0,
            checkpoints: 0,
            garbage: false,
            early: false,
            shorn: false,
            without: None,
            only: None,
        }
    }
    pub fn large(self) -> Scope {
        Scope {
            large: true,
            ..self
        }
    }
    pub fn pairs(self) -> Scope {
        Scope {
            pairs: true,
            ..self
        }
    }
    pub fn two_in_flight(self) -> Scope {
        Scope { depth: 2, ..self }
    }
    pub fn cuts(self, cuts: u8) -> Scope {
        Scope { cuts, ..self }
    }
    pub fn crashes(self, crashes: u8) -> Scope {
        Scope { crashes, ..self }
    }
    pub fn flips(self, flips: u8) -> Scope {
        Scope { flips, ..self }
    }
    pub fn lost(self, lost: u8) -> Scope {
        Scope { lost, ..self }
    }
    pub fn fails(self, fails: u8) -> Scope {
        Scope { fails, ..self }
    }
    pub fn truncs(self, truncs: u8) -> Scope {
        Scope { truncs, ..self }
    }
    pub fn fences(self, fences: u8) -> Scope {
        Scope { fences, ..self }
    }
    pub fn checkpoints(self, checkpoints: u8) -> Scope {
        Scope {
            checkpoints,
            ..self
        }
    }
    pub fn garbage(self) -> Scope {
        Scope {
            garbage: true,
            ..self
        }
    }
    pub fn early(self) -> Scope {
        Scope {
            early: true,
            ..self
        }
    }
    pub fn shorn(self) -> Scope {
        Scope {
            shorn: true,
            ..self
        }
    }
    pub fn without(self, r: Rule) -> Scope {
        Scope {
            without: Some(r),
            ..self
        }
    }
    pub fn only(self, i: Invariant) -> Scope {
        Scope {
            only: Some(i),
            ..self
        }
    }
    pub fn on(&self, r: Rule) -> bool {
        self.without != Some(r)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Kind {
    #[default]
    None,
    Small,
    Pointer,
    Fence,
    Truncate,
    Boot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Rec {
    kind: Kind,
    p: u8,
    off: u8,
    val: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Held {
    #[default]
    Nothing,
    Good,
    Bad,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Sector {
    held: Held,
    lsn: u8,
    boot: u8,
    idx: u8,
    count: u8,
    known: u8,
    rec: Rec,
}

/// A group that has been handed to the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Flight {
    n: u8,
    lsn: u8,
    boot: u8,
    known: u8,
    done: bool,
    rec: [Rec; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Slot {
    good: bool,
    scrub: bool,
    seq: u8,
    x: u8,
    boot: u8,
    fence: u8,
    inc: u8,
    d: [u8; P],
    end: [u8; P],
    lost: [u8; P],
    tail: [[u8; M]; P],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Phase {
    #[default]
    Down,
    Recovering,
    Up,
}

/// Sectors and slots that can be read and are not durable (bits), and what a power cut may put back in their place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Soft {
    sectors: u8,
    slots: u8,
    under: [Sector; J],
    under_slot: [Slot; 2],
}

/// What the process knows. Lost at every crash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Mem {
    log: [[u8; M]; P],
    end: [u8; P],     // accepted
    flushed: [u8; P], // acknowledged
    copied: [u8; P],  // written to the segment
    synced: [u8; P],  // and flushed there
    large: [u8; P], // a large append: 0 none, 1 its bytes are written, 2 flushed, 3 its pointer is in flight
    waits: u8, // without PointerNotBeside: pointer is flushed, bytes are not yet (bit per partition)
    head: u8,  // lsn of the next group
    safe: u8,  // lsn below which all is flushed
    boot: u8,
    inc: u8,
    fence: u8,
    x: [u8; 2], // lsn of each slot's checkpoint
    newest: u8, // slot
    seq: u8,
    close: u8,   // checkpoints that recovery owes
    scrub: bool, // damage was met: bad sectors anywhere in the ring are wiped before the boot group
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct State {
    // disk
    ring: [Sector; J],
    slot: [Slot; 2],
    soft: Soft,
    cur: [[u8; M]; P],
    dur: [[u8; M]; P],
    file: [u8; P],  // second segment file: 0 absent, 1 created, 2 directory synced
    again: [u8; P], // blocks being rewritten in place (bits)
    // writes handed to the device
    flight: [Flight; 2],
    slot_flight: Option<(u8, Slot)>,
    // process
    phase: Phase,
    mem: Mem,
    // history
    next: u8, // last record number used
    acked: [[u8; M]; P],
    dead: u16,    // records cut or truncated (bits)
    answered: u8, // fence
    flips: u8,
    costly: bool, // a flip or loss that may have hit the only copy
    hit: u16, // records that a flip may have taken (bits): those of the same group, block; all, if no slot is left
    said: u8, // times the node came up saying "damage"
    inc_up: u8, // incarnation when it last came up
    expect: Option<([[u8; M]; P], [u8; P], u8)>, // what the last recovery found, if it did not finish
    cuts: u8,
    crashes: u8,
    lost: u8,
    fails: u8,
    truncs: u8,
    fences: u8,
    checkpoints: u8,
    broken: Option<Invariant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Write { recs: [(Kind, u8, u8); 2] }, // (kind, partition or fence, record number or end)
    WriteLarge { p: usize, val: u8 },
    Flushed { lsn: u8 },
    Copy { p: usize, off: u8 },
    Sync { p: usize },
    SyncFails { p: usize },
    TruncateInMemory { p: usize, to: u8 },
    CheckpointStart { slot: u8, x: u8 },
    CheckpointFlushed { slot: u8 },
    PowerCut,
    Crash,
    FlipJournal { at: usize },
    FlipBlock { p: usize, off: usize },
    FlipSlot { slot: usize },
    LoseSector { at: usize },
    Recover { end_lsn: u8, damage: bool },
    Wipe { at: usize },
    BootGroup { lsn: u8, boot: u8 },
}

impl State {
    /// A formatted, empty node: both slots valid, a boot group flushed.
    pub fn first(s: &Scope) -> State {
        let mut st = State {
            phase: Phase::Up,
            ..State::default()
        };
        st.slot = [
            Slot {
                good: true,
                seq: 1,
                ..Slot::default()
            },
            Slot {
                good: true,
                seq: 2,
                ..Slot::default()
            },
        ];
        st.ring[0] = Sector {
            held: Held::Good,
            lsn: 0,
            boot: 1,
            idx: 0,
            count: 1,
            known: 0,
            rec: Rec {
                kind: Kind::Boot,
                ..Rec::default()
            },
        };
        st.mem = Mem {
            head: 1,
            safe: 1,
            boot: 1,
            newest: 1,
            seq: 2,
            ..Mem::default()
        };
        if !s.on(TwoSlots) {
            st.slot[1].good = false;
            st.slot[0].seq = 2;
            st.mem.newest = 0
        }
        st
    }
    /// A sector that is durable from now on.
    fn set_sector(&mut self, at: usize, x: Sector) {
        self.ring[at] = x;
        self.soft.sectors &= !(1 << at);
        self.soft.under[at] = Sector::default();
    }
    fn set_slot(&mut self, i: usize, slot: Slot) {
        self.slot[i] = slot;
        self.soft.slots &= !(1 << i);
        self.soft.under_slot[i] = Slot::default();
    }
    /// A sector that can be read and is not durable.
    fn set_sector_soft(&mut self, at: usize, x: Sector) {
        if self.soft.sectors >> at & 1 == 0 {
            self.soft.under[at] = self.ring[at];
            self.soft.sectors |= 1 << at
        }
        self.ring[at] = x;
    }
    fn set_slot_soft(&mut self, i: usize, slot: Slot) {
        if self.soft.slots >> i & 1 == 0 {
            self.soft.under_slot[i] = self.slot[i];
            self.soft.slots |= 1 << i
        }
        self.slot[i] = slot;
    }
    pub fn broken(&self) -> Option<Invariant> {
        self.broken
    }
    pub fn steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        out.clear();
        if self.broken.is_some() {
            return;
        }
        match self.phase {
            Phase::Up => self.engine_steps(s, out),
            Phase::Down => {
                let mut t = *self;
                if s.on(ReliedIsDurable) {
                    t.soft = Soft::default()
                }
                t.recover(s, out)
            }
            Phase::Recovering => self.recovery_steps(s, out),
        }
        if out.is_empty() && self.phase != Phase::Up {
            let mut t = *self;
            t.breaks(s, Invariant::RecoveryEnds);
            out.push((Step::Crash, t));
        }
        self.device_steps(s, out);
    }
    fn breaks(&mut self, s: &Scope, i: Invariant) {
        if self.broken.is_none() && s.only.is_none_or(|o| o == i) {
            self.broken = Some(i)
        }
    }
    fn kill_tail(&mut self, p: usize, to: u8) {
        for o in to..self.mem.end[p] {
            self.dead |= 1 << self.mem.log[p][o as usize];
            self.mem.log[p][o as usize] = 0
        }
        let m = &mut self.mem;
        m.end[p] = to;
        m.flushed[p] = m.flushed[p].min(to);
        m.copied[p] = m.copied[p].min(to);
        m.synced[p] = m.synced[p].min(to);
    }
}
