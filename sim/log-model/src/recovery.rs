//! LOG Recovery: from the disk to a log, and what must be flushed before the node speaks.

use crate::*;

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
        let mut t = *self;
        let mut damage = false;
        let mut m = Mem::default();
        let best = (0..2)
            .filter(|i| self.slot[*i].good)
            .max_by_key(|i| self.slot[*i].seq);
        let Some(best) = best else {
            // Both slots gone: nothing can be trusted. Fresh numbers, new incarnation.
            let top = self
                .ring
                .iter()
                .filter(|x| x.held == Held::Good)
                .map(|x| (x.lsn, x.boot))
                .max()
                .unwrap_or((0, 0));
            m.head = top.0 + 2;
            m.boot = self.ring.iter().map(|x| x.boot).max().unwrap_or(0) + 1;
            m.x = [m.head; 2];
            self.finish_recovery(s, m, true, [0; P], out);
            return;
        };
        let c = self.slot[best];
        m.newest = best as u8;
        m.seq = c.seq;
        m.scrub = c.scrub;
        m.x = [c.x; 2];
        if self.slot[1 - best].good {
            m.x[1 - best] = self.slot[1 - best].x
        }
        let (mut d, mut end, mut fence, inc, mut boot, mut at) =
            (c.d, c.end, c.fence, c.inc, c.boot, c.x);
        let mut log = c.tail;
        let mut pointed = [[0u8; M]; P]; // checksums of pointers' bytes
        for p in 0..s.parts {
            for o in 0..d[p] {
                log[p][o as usize] = 0
            }
        }
        while at < c.x + s.ring as u8 {
            let h = self.at(s, at);
            if !Self::fits(s, &h, at, 0, boot, false) {
                let later = self.later(s, at, boot);
                let bad = h.held == Held::Bad && s.on(BadIsDamage);
                let gap = s.on(GapIsDamage) && later.is_some_and(|l| l.1);
                if !bad && !gap {
                    break;
                }
                damage = true;
                match later {
                    Some((l, _)) => {
                        at = l;
                        continue;
                    }
                    None => break,
                }
            }
            if h.lsn != at {
                t.breaks(s, Invariant::OldNeverParses)
            }
            let rest: Vec<Sector> = (1..h.count).map(|i| self.at(s, at + i)).collect();
            let whole = rest
                .iter()
                .enumerate()
                .all(|(i, x)| Self::fits(s, x, at + 1 + i as u8, 1 + i as u8, h.boot, true));
            if !whole {
                let bad = s.on(BadIsDamage) && rest.iter().any(|x| x.held == Held::Bad);
                let later = self.later(s, at, h.boot);
                let gap = s.on(GapIsDamage) && later.is_some_and(|l| l.1);
                if !bad && !gap {
                    break;
                }
                damage = true;
                match later {
                    Some((l, _)) => {
                        at = l;
                        continue;
                    }
                    None => break,
                }
            }
            boot = h.boot;
            for r in std::iter::once(h.rec).chain(rest.iter().map(|x| x.rec)) {
                let p = r.p as usize;
                match r.kind {
                    Kind::Small | Kind::Pointer => {
                        if r.off < end[p] && s.on(OffsetImpliesCut) {
                            end[p] = r.off;
                            d[p] = d[p].min(r.off);
                            damage = true
                        }
                        if r.off >= end[p] {
                            for o in end[p]..r.off {
                                log[p][o as usize] = HOLE;
                                damage = true
                            }
                            end[p] = r.off + 1
                        }
                        log[p][r.off as usize] = r.val;
                        pointed[p][r.off as usize] = 0;
                        // A pointer is a checkpoint of its partition: all below is in the segment.
                        if r.kind == Kind::Pointer {
                            d[p] = d[p].max(r.off + 1);
                            pointed[p][r.off as usize] = r.val;
                            if !s.on(JudgeAfterReplay) && self.cur[p][r.off as usize] != r.val {
                                damage = true
                            }
                        }
                    }
                    Kind::Truncate => {
                        end[p] = end[p].min(r.off);
                        d[p] = d[p].min(r.off)
                    }
                    Kind::Fence => fence = fence.max(r.val),
                    Kind::Boot | Kind::None => {}
                }
            }
            at += h.count;
        }
        for p in 0..s.parts {
            for o in 0..d[p] as usize {
                let v = self.cur[p][o];
                if c.lost[p] >> o & 1 == 1 && pointed[p][o] == 0 && log[p][o] == 0 {
                    log[p][o] = HOLE;
                    continue;
                }
                if v == 0 || v == BAD || pointed[p][o] != 0 && pointed[p][o] != v {
                    damage = true;
                    log[p][o] = HOLE
                } else {
                    log[p][o] = v
                }
            }
            if !s.on(EndFromJournal) {
                while (end[p] as usize) < s.offsets
                    && ![0, BAD].contains(&self.cur[p][end[p] as usize])
                {
                    log[p][end[p] as usize] = self.cur[p][end[p] as usize];
                    end[p] += 1;
                    d[p] = end[p];
                }
            }
            log[p][end[p] as usize..].fill(0);
        }
        m.log = log;
        m.end = end;
        m.flushed = end;
        m.head = at;
        m.fence = fence;
        m.inc = inc;
        if damage && s.on(BootAboveAll) {
            boot = self
                .ring
                .iter()
                .map(|x| x.boot)
                .max()
                .unwrap_or(0)
                .max(boot)
        }
        m.boot = boot + s.on(BootInStamp) as u8;
        t.finish_recovery(s, m, damage, d, out);
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
            t.ring[x.lsn as usize % s.ring] = x;
            t.flight = Default::default();
            t.mem.safe = t.mem.head;
            t.speak(s);
            out.push((Step::Flushed { lsn: x.lsn }, t));
        } else if self.mem.close > 0 || !self.room(s, 1) {
            out.push(self.checkpoint_start(s));
        } else if let Some(at) = self.next_wipe(s) {
            let mut t = *self;
            t.ring[at] = Sector::default();
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
