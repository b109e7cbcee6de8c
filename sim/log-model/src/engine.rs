//! The node while it is up.

use crate::*;

impl State {
    fn small(&self, p: usize, more: u8) -> Rec {
        Rec {
            kind: Kind::Small,
            p: p as u8,
            off: self.mem.end[p] + more,
            val: 0,
        }
    }

    pub(crate) fn engine_steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        if self.flights() < s.depth {
            self.append_steps(s, out);
        }
        for p in 0..s.parts {
            self.large_step(s, p, out);
        }
        for (i, g) in self.flight.iter().enumerate() {
            if g.n > 0 && !g.done {
                self.flushed(s, i, out)
            }
        }
        for p in 0..s.parts {
            self.copy_step(s, p, out);
            self.sync_step(s, p, out);
        }
        self.checkpoint_steps(s, out);
    }

    fn flights(&self) -> usize {
        self.flight.iter().filter(|g| g.n > 0).count()
    }

    fn is_being_cut(&self, p: usize) -> bool {
        let mut records = self.flight.iter().flat_map(|g| g.rec.iter());
        records.any(|r| r.kind == Kind::Truncate && r.p as usize == p)
    }

    fn is_busy(&self, p: usize) -> bool {
        self.mem.large[p] != 0 || self.is_being_cut(p)
    }

    /// Whether `n` more records may be appended.
    fn takes(&self, s: &Scope, p: usize, n: u8) -> bool {
        (self.mem.end[p] + n) as usize <= s.offsets
    }

    /// LOG Append: groups that may be written now.
    fn append_steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        let mut groups: Vec<Vec<Rec>> = vec![];
        for p in 0..s.parts {
            self.small_groups(s, p, &mut groups);
            self.pointer_groups(s, p, &mut groups);
            if self.truncs < s.truncs && !self.is_busy(p) && self.flights() == 0 {
                self.truncations(s, p, &mut groups, out);
            }
        }
        if self.fences < s.fences {
            groups.push(vec![Rec {
                kind: Kind::Fence,
                p: 0,
                off: 0,
                val: self.fences + 1,
            }])
        }
        for g in groups {
            self.write_group(s, &g, out)
        }
    }

    fn small_groups(&self, s: &Scope, p: usize, groups: &mut Vec<Vec<Rec>>) {
        if self.is_busy(p) || self.next >= s.records || !self.takes(s, p, 1) {
            return;
        }
        groups.push(vec![self.small(p, 0)]);
        if !s.pairs || self.next + 1 >= s.records {
            return;
        }
        if self.takes(s, p, 2) {
            groups.push(vec![self.small(p, 0), self.small(p, 1)])
        }
        if s.parts > 1 && p == 0 && !self.is_busy(1) && self.takes(s, 1, 1) {
            groups.push(vec![self.small(0, 0), self.small(1, 0)])
        }
    }

    fn pointer_groups(&self, s: &Scope, p: usize, groups: &mut Vec<Vec<Rec>>) {
        let m = &self.mem;
        let early = !(s.on(PointerAfterBytes) && s.on(PointerNotBeside));
        if m.large[p] != 2 && !(m.large[p] == 1 && early) {
            return;
        }
        let ptr = Rec {
            kind: Kind::Pointer,
            p: p as u8,
            off: m.end[p] - 1,
            val: m.log[p][m.end[p] as usize - 1],
        };
        groups.push(vec![ptr]);
        let q = 1 - p;
        if s.pairs
            && q < s.parts
            && !self.is_busy(q)
            && self.next < s.records
            && self.takes(s, q, 1)
        {
            groups.push(vec![ptr, self.small(q, 0)])
        }
    }

    fn truncations(
        &self,
        s: &Scope,
        p: usize,
        groups: &mut Vec<Vec<Rec>>,
        out: &mut Vec<(Step, State)>,
    ) {
        for to in 0..self.mem.end[p] {
            if s.on(TruncateJournalled) {
                groups.push(vec![Rec {
                    kind: Kind::Truncate,
                    p: p as u8,
                    off: to,
                    val: 0,
                }])
            } else {
                let mut t = *self;
                t.truncs += 1;
                t.kill_tail(p, to);
                for o in to as usize..M {
                    t.acked[p][o] = 0
                }
                out.push((Step::TruncateInMemory { p, to }, t));
            }
        }
    }

    /// A large append: what is below it goes to the segment with it.
    fn large_step(&self, s: &Scope, p: usize, out: &mut Vec<(Step, State)>) {
        let m = &self.mem;
        if s.large
            && m.large[p] == 0
            && self.next < s.records
            && (m.end[p] as usize) < s.offsets
            && m.copied[p] == m.end[p]
            && m.flushed[p] == m.end[p]
            && !self.is_being_cut(p)
        {
            let mut base = *self;
            base.next += 1;
            let o = m.end[p];
            base.mem.log[p][o as usize] = base.next;
            base.mem.end[p] += 1;
            base.mem.large[p] = 1;
            for t in base.put(p, o, base.next) {
                out.push((Step::WriteLarge { p, val: base.next }, t))
            }
        }
    }

    /// LOG Copy. (`early`: even before the journal's flush returned. Harmless, because ends come from the journal.)
    fn copy_step(&self, s: &Scope, p: usize, out: &mut Vec<(Step, State)>) {
        let m = &self.mem;
        let limit = if s.early {
            m.end[p] - (m.large[p] != 0) as u8
        } else {
            m.flushed[p]
        };
        if m.copied[p] < limit {
            let o = m.copied[p];
            let mut base = *self;
            base.mem.copied[p] += 1;
            if !s.on(NoRewriteInPlace) && o > 0 {
                base.again[p] |= 1 << (o - 1)
            }
            for t in base.put(p, o, m.log[p][o as usize]) {
                out.push((Step::Copy { p, off: o }, t))
            }
        }
    }

    /// LOG Sync: one flush of the file (and of its directory, if new).
    fn sync_step(&self, s: &Scope, p: usize, out: &mut Vec<(Step, State)>) {
        let m = &self.mem;
        let dirty = (0..M).any(|o| self.cur[p][o] != self.dur[p][o])
            || m.synced[p] < m.copied[p]
            || self.file[p] == 1
            || m.large[p] == 1
            || self.again[p] != 0
            || m.waits >> p & 1 == 1;
        if !dirty {
            return;
        }
        let mut t = *self;
        let own = m.large[p] == 1 && !s.on(PointerCoversAll);
        for o in 0..M {
            if !own || o as u8 == m.end[p] - 1 {
                t.dur[p][o] = t.cur[p][o]
            }
        }
        t.again[p] = 0;
        if t.file[p] == 1 && s.on(DirectoryBeforePointer) {
            t.file[p] = 2
        }
        if !own {
            t.mem.synced[p] = m.copied[p]
        }
        if m.large[p] == 1 {
            t.mem.large[p] = 2
        }
        if m.waits >> p & 1 == 1 {
            t.mem.waits &= !(1 << p);
            t.answer_large(p)
        }
        out.push((Step::Sync { p }, t));
        if self.fails < s.fails {
            self.failed_sync(s, p, out);
        }
    }

    /// Some blocks reach the disk, the others are dropped; the next flush would say that all is well.
    fn failed_sync(&self, s: &Scope, p: usize, out: &mut Vec<(Step, State)>) {
        let mut all = vec![*self];
        for o in 0..M {
            if self.cur[p][o] != self.dur[p][o] {
                let mut more = all.clone();
                all.iter_mut().for_each(|t| t.dur[p][o] = t.cur[p][o]);
                more.iter_mut().for_each(|t| t.cur[p][o] = t.dur[p][o]);
                all.extend(more);
            }
        }
        for mut t in all {
            t.fails += 1;
            if s.on(FailedFlushStops) {
                for u in t.stop(s, false) {
                    out.push((Step::SyncFails { p }, u))
                }
            } else {
                out.push((Step::SyncFails { p }, t))
            }
        }
    }

    fn checkpoint_steps(&self, s: &Scope, out: &mut Vec<(Step, State)>) {
        let m = &self.mem;
        if self.checkpoints < s.checkpoints
            && self.slot_flight.is_none()
            && m.safe > m.x[m.newest as usize]
        {
            let mut t = *self;
            t.checkpoints += 1;
            out.push(t.checkpoint_start(s));
        }
        if let Some((i, _)) = self.slot_flight {
            let mut t = *self;
            t.checkpoint_flushed();
            out.push((Step::CheckpointFlushed { slot: i }, t));
        }
    }

    /// Order: a block not yet flushed that is overwritten may or may not have reached the disk before.
    fn put(&self, p: usize, o: u8, val: u8) -> Vec<State> {
        let mut t = *self;
        let o = o as usize;
        let old = (t.cur[p][o], t.dur[p][o]);
        t.cur[p][o] = val;
        if o >= FILE && t.file[p] == 0 {
            t.file[p] = 1
        }
        let mut all = vec![t];
        if old.0 != old.1 && old.0 != val {
            t.dur[p][o] = old.0;
            all.push(t)
        }
        all
    }

    pub(crate) fn room(&self, s: &Scope, n: u8) -> bool {
        let x = self.mem.x;
        let mut low = if s.on(RecycleBelowOlderSlot) && s.on(TwoSlots) {
            x[0].min(x[1])
        } else {
            x[self.mem.newest as usize]
        };
        if let (false, Some((_, c))) = (s.on(RecycleAfterCheckpoint), self.slot_flight) {
            low = low.max(c.x)
        }
        self.mem.head + n <= low + s.ring as u8
    }

    fn write_group(&self, s: &Scope, recs: &[Rec], out: &mut Vec<(Step, State)>) {
        if !self.room(s, recs.len() as u8) {
            return;
        }
        let mut t = *self;
        let mut g = Flight {
            n: recs.len() as u8,
            lsn: t.mem.head,
            boot: t.mem.boot,
            known: if s.on(KnownFlushed) {
                t.mem.safe
            } else {
                t.mem.head
            },
            done: false,
            rec: Default::default(),
        };
        for (i, r) in recs.iter().enumerate() {
            g.rec[i] = *r;
            let p = r.p as usize;
            match r.kind {
                Kind::Small => {
                    t.next += 1;
                    g.rec[i].val = t.next;
                    t.mem.log[p][r.off as usize] = t.next;
                    t.mem.end[p] += 1;
                    if !s.on(AckAfterFlush) {
                        t.acked[p][r.off as usize] = t.next;
                        t.mem.flushed[p] = r.off + 1
                    }
                }
                Kind::Pointer => {
                    t.mem.large[p] = if t.mem.large[p] == 1 && s.on(PointerAfterBytes) {
                        t.mem.waits |= 1 << p;
                        3
                    } else {
                        3
                    }
                }
                // From now on nobody counts on what is above.
                Kind::Truncate => {
                    t.truncs += 1;
                    for o in r.off as usize..M {
                        t.acked[p][o] = 0
                    }
                }
                Kind::Fence => t.fences += 1,
                _ => {}
            }
        }
        let show = |r: &Rec| {
            (
                r.kind,
                if r.kind == Kind::Fence { r.val } else { r.p },
                if r.kind == Kind::Truncate {
                    r.off
                } else {
                    r.val
                },
            )
        };
        let i = (t.flight[0].n > 0) as usize;
        t.flight[i] = g;
        t.mem.head += g.n;
        out.push((
            Step::Write {
                recs: [show(&g.rec[0]), show(&g.rec[1])],
            },
            t,
        ));
    }

    /// A journal flush returns: the sectors are durable; what is answered now, and what waits for an earlier group.
    fn flushed(&self, s: &Scope, i: usize, out: &mut Vec<(Step, State)>) {
        let mut t = *self;
        let lsn = t.flight[i].lsn;
        for k in 0..t.flight[i].n {
            let x = t.flight[i].sector(k);
            t.set_sector(x.lsn as usize % s.ring, x)
        }
        t.flight[i].done = true;
        if !s.on(AckInOrder) {
            let g = t.flight[i];
            t.answer(&g)
        }
        while t.flight[0].done {
            let g = t.flight[0];
            t.flight = [t.flight[1], Flight::default()];
            t.mem.safe = g.lsn + g.n;
            if s.on(AckInOrder) {
                t.answer(&g)
            }
        }
        out.push((Step::Flushed { lsn }, t));
    }

    fn answer(&mut self, g: &Flight) {
        for r in &g.rec[..g.n as usize] {
            let p = r.p as usize;
            match r.kind {
                Kind::Small => {
                    self.acked[p][r.off as usize] = r.val;
                    self.mem.flushed[p] = self.mem.flushed[p].max(r.off + 1)
                }
                Kind::Pointer if self.mem.waits >> p & 1 == 0 => self.answer_large(p),
                Kind::Truncate => self.kill_tail(p, r.off),
                Kind::Fence => {
                    self.mem.fence = r.val;
                    self.answered = r.val
                }
                _ => {}
            }
        }
    }
    fn answer_large(&mut self, p: usize) {
        if self.mem.large[p] != 3 {
            return;
        }
        let e = self.mem.end[p];
        self.acked[p][e as usize - 1] = self.mem.log[p][e as usize - 1];
        self.mem.flushed[p] = e;
        self.mem.copied[p] = e;
        self.mem.synced[p] = e;
        self.mem.large[p] = 0;
    }

    /// LOG Checkpoint: a snapshot of what is flushed, as of `safe`.
    pub(crate) fn checkpoint_start(mut self, s: &Scope) -> (Step, State) {
        let m = &mut self.mem;
        let older = 1 - m.newest;
        // Rule CheckOtherSlot: never leave only a bad slot behind.
        let into = if !s.on(TwoSlots) {
            0
        } else if s.on(CheckOtherSlot) && !self.slot[m.newest as usize].good {
            m.newest
        } else {
            older
        };
        let mut c = Slot {
            good: true,
            seq: m.seq + 1,
            x: m.safe,
            boot: m.boot,
            inc: m.inc,
            scrub: m.scrub,
            fence: if s.on(FenceInCheckpoint) { m.fence } else { 0 },
            ..Slot::default()
        };
        for p in 0..s.parts {
            c.d[p] = if s.on(SyncBeforeCheckpoint) {
                m.synced[p]
            } else {
                m.copied[p]
            }
            .min(m.flushed[p]);
            c.end[p] = if s.on(TailInCheckpoint) {
                m.flushed[p]
            } else {
                c.d[p]
            };
            for o in 0..c.end[p] {
                if m.log[p][o as usize] == HOLE && s.on(LossIsRecorded) {
                    c.lost[p] |= 1 << o
                }
            }
            for o in c.d[p]..c.end[p] {
                c.tail[p][o as usize] = m.log[p][o as usize]
            }
        }
        self.slot_flight = Some((into, c));
        (Step::CheckpointStart { slot: into, x: c.x }, self)
    }
    pub(crate) fn checkpoint_flushed(&mut self) {
        let (i, c) = self.slot_flight.take().expect("a slot in flight");
        self.set_slot(i as usize, c);
        self.mem.x[i as usize] = c.x;
        self.mem.newest = i;
        self.mem.seq = c.seq;
    }
}
