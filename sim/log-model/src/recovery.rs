//! LOG Recovery: from the disk to a log, and what must be flushed before the node speaks.

use crate::*;

/// What replay has found so far.
struct Replay {
    log: [[u8; M]; P],
    end: [u8; P],
    d: [u8; P],
    pointed: [[u8; M]; P], // checksums of pointers' bytes
    fence: u8,
    boot: u8,
    at: u8,
    damage: bool,
}

impl Replay {
    fn new(s: &Scope, c: &Slot) -> Replay {
        let mut log = c.tail;
        for (log, d) in log.iter_mut().zip(c.d).take(s.parts) {
            log[..d as usize].fill(0)
        }
        Replay {
            log,
            end: c.end,
            d: c.d,
            pointed: [[0; M]; P],
            fence: c.fence,
            boot: c.boot,
            at: c.x,
            damage: false,
        }
    }
}

impl State {
    fn at(&self, s: &Scope, lsn: u8) -> Sector {
        self.ring[lsn as usize % s.ring]
    }

    /// Is `x` the sector that belongs at `lsn`, written by `boot` or later (exactly, inside a group)?
    fn fits(s: &Scope, x: &Sector, lsn: u8, idx: u8, boot: u8, exact: bool) -> bool {
        let place = if s.on(LapInStamp) {
            x.lsn == lsn
        } else {
            x.lsn % s.ring as u8 == lsn % s.ring as u8
        };
        let life = !s.on(BootInStamp)
            || if exact {
                x.boot == boot
            } else {
                x.boot >= boot
            };
        x.held == Held::Good && place && x.idx == idx && life
    }

    /// The first header within the largest group (per write in flight) after `lsn`, not of a dead boot, and whether it knew the sector at `lsn` flushed.
    fn later(&self, s: &Scope, lsn: u8, boot: u8) -> Option<(u8, bool)> {
        (lsn + 1..=(lsn + 2 * s.depth as u8).min(lsn + s.ring as u8 - 1)).find_map(|l| {
            let x = self.at(s, l);
            (Self::fits(s, &x, l, 0, boot, false) && x.lsn == l).then_some((l, x.known > lsn))
        })
    }

    pub(crate) fn recover(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        let best = (0..2)
            .filter(|i| self.slot[*i].good)
            .max_by_key(|i| self.slot[*i].seq);
        let Some(best) = best else {
            self.recover_without_slot(s, out);
            return;
        };
        let c = self.slot[best];
        let mut m = Mem {
            newest: best as u8,
            seq: c.seq,
            scrub: c.scrub,
            x: [c.x; 2],
            ..Mem::default()
        };
        if self.slot[1 - best].good {
            m.x[1 - best] = self.slot[1 - best].x
        }
        let mut r = Replay::new(s, &c);
        let mut t = *self;
        while r.at < c.x + s.ring as u8 {
            if !self.replay_group(s, &mut t, &mut r) {
                break;
            }
        }
        for p in 0..s.parts {
            self.judge(s, &c, p, &mut r);
        }
        m.log = r.log;
        m.end = r.end;
        m.flushed = r.end;
        m.head = r.at;
        m.fence = r.fence;
        m.inc = c.inc;
        let mut boot = r.boot;
        if r.damage && s.on(BootAboveAll) {
            boot = self.highest_boot().max(boot)
        }
        m.boot = boot + s.on(BootInStamp) as u8;
        t.finish_recovery(s, m, r.damage, r.d, out);
    }

    /// Both slots gone: nothing can be trusted. Fresh numbers, new incarnation.
    fn recover_without_slot(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        let good = self.ring.iter().filter(|x| x.held == Held::Good);
        let top = good.map(|x| (x.lsn, x.boot)).max().unwrap_or((0, 0));
        let head = top.0 + 2;
        let m = Mem {
            head,
            boot: self.highest_boot() + 1,
            x: [head; 2],
            ..Mem::default()
        };
        self.finish_recovery(s, m, true, [0; P], out);
    }

    fn highest_boot(&self) -> u8 {
        self.ring.iter().map(|x| x.boot).max().unwrap_or(0)
    }

    /// The group at `r.at`, or what its absence means; `false` at the end of the journal.
    fn replay_group(&self, s: &Scope, t: &mut State, r: &mut Replay) -> bool {
        let h = self.at(s, r.at);
        if !Self::fits(s, &h, r.at, 0, r.boot, false) {
            return self.skip_missing(s, r, r.boot, h.held == Held::Bad);
        }
        if h.lsn != r.at {
            t.breaks(s, Invariant::OldNeverParses)
        }
        let rest: Vec<Sector> = (1..h.count).map(|i| self.at(s, r.at + i)).collect();
        let whole = rest.iter().enumerate().all(|(i, x)| {
            let i = i as u8;
            Self::fits(s, x, r.at + 1 + i, 1 + i, h.boot, true)
        });
        if !whole {
            let bad = rest.iter().any(|x| x.held == Held::Bad);
            return self.skip_missing(s, r, h.boot, bad);
        }
        r.boot = h.boot;
        for record in std::iter::once(h.rec).chain(rest.iter().map(|x| x.rec)) {
            self.apply(s, record, r);
        }
        r.at += h.count;
        true
    }

    /// Damage goes on at a later header, if there is one; a torn group is the end.
    fn skip_missing(&self, s: &Scope, r: &mut Replay, boot: u8, is_bad: bool) -> bool {
        let later = self.later(s, r.at, boot);
        let bad = is_bad && s.on(BadIsDamage);
        let gap = s.on(GapIsDamage) && later.is_some_and(|l| l.1);
        if !bad && !gap {
            return false;
        }
        r.damage = true;
        if let Some((l, _)) = later {
            r.at = l;
        }
        later.is_some()
    }

    fn apply(&self, s: &Scope, record: Rec, r: &mut Replay) {
        let p = record.p as usize;
        let off = record.off;
        match record.kind {
            Kind::Small | Kind::Pointer => {
                if off < r.end[p] && s.on(OffsetImpliesCut) {
                    r.end[p] = off;
                    r.d[p] = r.d[p].min(off);
                    r.damage = true
                }
                if off >= r.end[p] {
                    for o in r.end[p]..off {
                        r.log[p][o as usize] = HOLE;
                        r.damage = true
                    }
                    r.end[p] = off + 1
                }
                r.log[p][off as usize] = record.val;
                r.pointed[p][off as usize] = 0;
                // A pointer is a checkpoint of its partition: all below is in the segment.
                if record.kind == Kind::Pointer {
                    r.d[p] = r.d[p].max(off + 1);
                    r.pointed[p][off as usize] = record.val;
                    if !s.on(JudgeAfterReplay) && self.cur[p][off as usize] != record.val {
                        r.damage = true
                    }
                }
            }
            Kind::Truncate => {
                r.end[p] = r.end[p].min(off);
                r.d[p] = r.d[p].min(off)
            }
            Kind::Fence => r.fence = r.fence.max(record.val),
            Kind::Boot | Kind::None => {}
        }
    }

    /// What the segment holds below the synced end, judged after the whole replay.
    fn judge(&self, s: &Scope, c: &Slot, p: usize, r: &mut Replay) {
        for o in 0..r.d[p] as usize {
            let v = self.cur[p][o];
            let pointed = r.pointed[p][o];
            if c.lost[p] >> o & 1 == 1 && pointed == 0 && r.log[p][o] == 0 {
                r.log[p][o] = HOLE;
                continue;
            }
            if v == 0 || v == BAD || pointed != 0 && pointed != v {
                r.damage = true;
                r.log[p][o] = HOLE
            } else {
                r.log[p][o] = v
            }
        }
        if !s.on(EndFromJournal) {
            while (r.end[p] as usize) < s.offsets
                && ![0, BAD].contains(&self.cur[p][r.end[p] as usize])
            {
                r.log[p][r.end[p] as usize] = self.cur[p][r.end[p] as usize];
                r.end[p] += 1;
                r.d[p] = r.end[p];
            }
        }
        r.log[p][r.end[p] as usize..].fill(0);
    }

    fn finish_recovery(
        &self,
        s: &Scope,
        mut m: Mem,
        damage: bool,
        d: [u8; P],
        out: &mut Vec<(Step, State)>,
    ) {
        let mut t = *self;
        m.safe = m.head;
        m.copied = d;
        m.synced = d;
        if damage {
            m.inc = m.inc.max(t.inc_up) + 1; // in the product: a random number
            // A hole cannot be written to a segment by the model's copy step: it is served as an error for ever.
            if s.on(DamageClosesWithCheckpoint) {
                m.close = 1 + (s.on(TwoSlots) && s.on(BothSlotsAfterDamage)) as u8
            }
            m.scrub = true;
        }
        if s.on(TwoSlots) && s.on(CheckOtherSlot) && (!t.slot[0].good || !t.slot[1].good) {
            m.close = m.close.max(1)
        }
        let found = (m.log, m.end, m.fence);
        if t.expect.is_some_and(|e| e != found) {
            t.breaks(s, Invariant::RecoveryIsIdempotent)
        }
        t.expect = Some(found);
        t.mem = m;
        t.phase = Phase::Recovering;
        let step = Step::Recover {
            end_lsn: m.head,
            damage,
        };
        if t.mem.inc > t.inc_up && t.said >= t.flips {
            t.breaks(s, Invariant::PowerCutIsNotDamage)
        }
        if !s.on(BootGroupFirst) && t.mem.close == 0 {
            t.speak(s)
        }
        out.push((step, t));
    }

    /// Order: checkpoint, if damage was found or a slot is bad or there is no room; then the boot group; then speak.
    pub(crate) fn recovery_steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        if let Some((i, _)) = self.slot_flight {
            let mut t = *self;
            t.checkpoint_flushed();
            t.mem.close = t.mem.close.saturating_sub(1);
            if s.on(TwoSlots) && s.on(CheckOtherSlot) && t.slot.iter().any(|x| !x.good) {
                t.mem.close = t.mem.close.max(1)
            }
            if !s.on(BootGroupFirst) && t.mem.close == 0 {
                t.speak(s)
            }
            out.push((Step::CheckpointFlushed { slot: i }, t));
        } else if self.flight[0].n > 0 {
            let mut t = *self;
            let x = t.flight[0].sector(0);
            t.set_sector(x.lsn as usize % s.ring, x);
            t.flight = Default::default();
            t.mem.safe = t.mem.head;
            t.speak(s);
            out.push((Step::Flushed { lsn: x.lsn }, t));
        } else if self.mem.close > 0 || !self.room(s, 1) {
            out.push(self.checkpoint_start(s));
        } else if let Some(at) = self.next_wipe(s) {
            let mut t = *self;
            t.set_sector(at, Sector::default());
            out.push((Step::Wipe { at }, t));
        } else {
            let mut t = *self;
            t.flight[0] = Flight {
                n: 1,
                lsn: t.mem.head,
                boot: t.mem.boot,
                known: t.mem.head,
                done: false,
                rec: [
                    Rec {
                        kind: Kind::Boot,
                        ..Rec::default()
                    },
                    Rec::default(),
                ],
            };
            t.mem.head += 1;
            out.push((
                Step::BootGroup {
                    lsn: t.mem.head - 1,
                    boot: t.mem.boot,
                },
                t,
            ));
        }
    }

    /// Order: after the checkpoint that says "damage", never before: a wiped sector looks like one never written.
    fn next_wipe(&self, s: &Scope) -> Option<usize> {
        if !s.on(WipeBadAhead) {
            return None;
        }
        let m = &self.mem;
        let free = (m.x[0].min(m.x[1]) + s.ring as u8).saturating_sub(m.head);
        let ahead = if m.scrub {
            s.ring as u8
        } else {
            free.min(2 * s.depth as u8)
        };
        (m.head..m.head + ahead)
            .map(|l| l as usize % s.ring)
            .find(|at| self.ring[*at].held == Held::Bad)
    }

    /// The node may answer from here on: the moment at which the invariants are judged.
    fn speak(&mut self, s: &Scope) {
        self.phase = Phase::Up;
        self.expect = None;
        let m = self.mem;
        let new = m.inc > self.inc_up;
        if new {
            self.said += 1
        }
        if m.inc < self.inc_up {
            self.breaks(s, Invariant::AckedIsKept)
        } // an old incarnation's good name on a damaged log
        if new && !self.costly {
            self.breaks(
                s,
                if self.flips == 0 {
                    Invariant::PowerCutIsNotDamage
                } else {
                    Invariant::SlotFlipIsFree
                },
            )
        }
        let mut live = 0u16;
        for p in 0..s.parts {
            for o in 0..M {
                let v = m.log[p][o];
                if v != 0 && v < HOLE {
                    live |= 1 << v;
                    // (After damage the lost thing may be the truncation itself; the new incarnation says so.)
                    if self.dead >> v & 1 == 1 && !(new && self.costly) {
                        self.breaks(s, Invariant::CutStaysCut)
                    }
                }
                let a = self.acked[p][o];
                if a != 0 && a != v {
                    if !new || self.hit >> a & 1 == 0 {
                        self.breaks(s, Invariant::AckedIsKept)
                    }
                    self.acked[p][o] = 0;
                }
                // What recovery kept is kept for good.
                if v != 0 && v < HOLE {
                    self.acked[p][o] = v
                }
            }
        }
        self.dead &= !live;
        for v in 1..=self.next {
            if live >> v & 1 == 0 {
                self.dead |= 1 << v
            }
        }
        if m.fence < self.answered && !new {
            self.breaks(s, Invariant::FenceIsKept)
        }
        self.answered = m.fence;
        self.inc_up = m.inc;
    }
}
