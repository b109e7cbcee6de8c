//! What the device and the world do: power cut, process crash, bit flip, a write that it lost.

use crate::*;

impl State {
    pub(crate) fn device_steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        if self.phase != Phase::Down && self.cuts < s.cuts {
            for mut t in self.stop(s, true) {
                t.cuts += 1;
                out.push((Step::PowerCut, t))
            }
        }
        if self.phase != Phase::Down && self.crashes < s.crashes {
            for mut t in self.stop(s, false) {
                t.crashes += 1;
                out.push((Step::Crash, t))
            }
        }
        if self.flips < s.flips {
            self.flips(s, out);
        }
        // A flushed sector that the device does not hold: it shows what was there a lap ago, here: nothing.
        if self.lost < s.lost && self.phase == Phase::Up {
            for at in 0..s.ring {
                let x = self.ring[at];
                if x.held == Held::Good && x.lsn < self.mem.safe && x.lsn + 1 < self.mem.safe {
                    let mut t = *self;
                    t.hit |= self.group_of(s, at);
                    t.set_sector(at, Sector::default());
                    t.lost += 1;
                    t.flips += 1;
                    t.expect = None;
                    t.costly = true;
                    out.push((Step::LoseSector { at }, t));
                }
            }
        }
    }

    fn flips(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        for at in 0..s.ring {
            if self.ring[at].held == Held::Good {
                let mut t = *self;
                t.hit |= self.group_of(s, at);
                let bad = Sector {
                    held: Held::Bad,
                    ..Sector::default()
                };
                t.set_sector(at, bad);
                t.flips += 1;
                t.expect = None;
                t.costly = true;
                out.push((Step::FlipJournal { at }, t));
            }
        }
        for p in 0..s.parts {
            for off in 0..s.offsets {
                if self.dur[p][off] != 0
                    && self.dur[p][off] != BAD
                    && self.dur[p][off] == self.cur[p][off]
                {
                    let mut t = *self;
                    t.hit |= 1 << self.dur[p][off];
                    t.dur[p][off] = BAD;
                    t.cur[p][off] = BAD;
                    t.flips += 1;
                    t.expect = None;
                    t.costly = true;
                    out.push((Step::FlipBlock { p, off }, t));
                }
            }
        }
        for slot in 0..2 {
            if self.slot[slot].good && s.on(TwoSlots) {
                let mut t = *self;
                let bad = Slot {
                    good: false,
                    ..t.slot[slot]
                };
                t.set_slot(slot, bad);
                t.flips += 1;
                t.expect = None;
                // The only copy: the other slot is being written, or is bad.
                if !self.slot[1 - slot].good || self.slot_flight.is_some() {
                    t.hit = !0
                }
                t.costly |= !self.slot[1 - slot].good || self.slot_flight.is_some();
                out.push((Step::FlipSlot { slot }, t));
            }
        }
    }

    fn group_of(&self, s: &Scope, at: usize) -> u16 {
        let x = self.ring[at];
        self.ring[..s.ring]
            .iter()
            .filter(|y| y.held == Held::Good && y.boot == x.boot && y.lsn - y.idx == x.lsn - x.idx)
            .fold(0, |m, y| m | 1 << y.rec.val)
    }

    /// Every disk that may be left when the process ends now.
    pub(crate) fn stop(&self, s: &Scope, power: bool) -> Vec<State> {
        let mut all = vec![*self];
        let fork = |all: &mut Vec<State>, f: &dyn Fn(&mut State)| {
            let mut more = all.clone();
            more.iter_mut().for_each(f);
            all.extend(more);
        };
        if power {
            // What was only readable: gone, or it had reached the device after all.
            for at in 0..s.ring {
                if self.soft.sectors >> at & 1 == 1 {
                    fork(&mut all, &|t| t.ring[at] = t.soft.under[at]);
                }
            }
            for i in 0..2 {
                if self.soft.slots >> i & 1 == 1 {
                    fork(&mut all, &|t| t.slot[i] = t.soft.under_slot[i]);
                }
            }
            for t in &mut all {
                t.soft = Soft::default()
            }
        }
        for g in self.flight {
            if g.done {
                continue;
            }
            for i in 0..g.n {
                let at = (g.lsn + i) as usize % s.ring;
                let x = g.sector(i);
                if power && s.garbage {
                    let mut bad = all.clone();
                    bad.iter_mut().for_each(|t| {
                        t.ring[at] = Sector {
                            held: Held::Bad,
                            ..Sector::default()
                        }
                    });
                    fork(&mut all, &|t| t.ring[at] = x);
                    all.extend(bad);
                } else if power {
                    fork(&mut all, &|t| t.ring[at] = x);
                } else {
                    fork(&mut all, &|t| t.set_sector_soft(at, x));
                }
            }
        }
        if let Some((i, slot)) = self.slot_flight {
            let i = i as usize;
            let set = |t: &mut State, slot: Slot| {
                if power {
                    t.slot[i] = slot
                } else {
                    t.set_slot_soft(i, slot)
                }
            };
            let mut torn = all.clone();
            torn.iter_mut().for_each(|t| {
                let bad = Slot {
                    good: false,
                    ..t.slot[i]
                };
                set(t, bad)
            });
            fork(&mut all, &|t| set(t, slot));
            all.extend(torn);
        }
        if power {
            for p in 0..s.parts {
                for o in 0..s.offsets {
                    if self.cur[p][o] != self.dur[p][o] {
                        let v = self.cur[p][o];
                        let mut bad = if s.shorn { all.clone() } else { vec![] };
                        bad.iter_mut().for_each(|t| t.dur[p][o] = BAD);
                        fork(&mut all, &|t| t.dur[p][o] = v);
                        all.extend(bad);
                    } else if s.shorn && self.again[p] >> o & 1 == 1 {
                        fork(&mut all, &|t| t.dur[p][o] = BAD);
                    }
                }
                if self.file[p] == 1 {
                    fork(&mut all, &|t| {
                        t.file[p] = 0;
                        for o in FILE..M {
                            t.dur[p][o] = 0
                        }
                    });
                    for t in &mut all {
                        if t.file[p] == 1 {
                            t.file[p] = 2
                        }
                    }
                }
            }
        }
        for t in &mut all {
            if power {
                t.cur = t.dur;
                t.again = [0; P]
            }
            t.flight = Default::default();
            t.slot_flight = None;
            t.mem = Mem::default();
            t.phase = Phase::Down;
        }
        all
    }
}

impl Flight {
    pub(crate) fn sector(&self, i: u8) -> Sector {
        let h = i == 0;
        Sector {
            held: Held::Good,
            lsn: self.lsn + i,
            boot: self.boot,
            idx: i,
            count: if h { self.n } else { 0 },
            known: if h { self.known } else { 0 },
            rec: self.rec[i as usize],
        }
    }
}
