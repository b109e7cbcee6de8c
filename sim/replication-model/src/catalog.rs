//! Seal and open, by either of two controllers. Whoever stops leaves its fences behind; another one begins anew.

use crate::*;

impl State {
    pub(crate) fn controller_steps(&self, s: &Scope, c: usize, out: &mut Vec<(Step, State)>) {
        let ctl = &self.ctl[c];
        if ctl.phase == 0 {
            if (self.opened as usize) < s.gens {
                let mut t = *self;
                t.ctl[c] = Controller {
                    phase: 1,
                    generation: self.opened - 1,
                    ..Controller::default()
                };
                out.push((Step::Begin { ctl: c }, t));
            }
            return;
        }
        let mut t = *self;
        t.forget_controller(c);
        out.push((Step::Stop { ctl: c }, t));
        for i in 0..s.nodes {
            if ctl.phase == 1 {
                self.fence_step(s, c, i, out);
            } else {
                self.repair_steps(s, c, i, out);
            }
        }
        if ctl.phase == 1 {
            self.decide_steps(s, c, out);
        } else {
            self.seal_steps(s, c, out);
        }
    }

    fn forget_controller(&mut self, c: usize) {
        self.ctl[c] = Controller::default();
        for n in &mut self.nodes {
            n.answer[c] = 0;
            n.whole[c] = 0
        }
    }

    /// A member journals the fence behind all it has accepted, flushes, and answers with its end.
    fn fence_step(&self, s: &Scope, c: usize, i: usize, out: &mut Vec<(Step, State)>) {
        let (generation, n) = (self.ctl[c].generation, &self.nodes[i]);
        let g = generation as usize;
        let is_witness = if s.on(Rule::WipedIsNoWitness) {
            n.is_member_now(g)
        } else {
            n.g[g].is(MEMBER)
        };
        if !is_witness {
            return;
        }
        let mut t = *self;
        let n = &mut t.nodes[i];
        if s.on(Rule::FenceCoversPending) {
            n.flush(true)
        }
        n.fence = n.fence.max(generation + 1);
        n.g[g].flags &= !LEASE;
        if !s.on(Rule::NoTruncateToCommit) && !n.knows_sealed(g) {
            let r = &mut n.g[g];
            r.keep(r.commit);
            r.dur = r.commit;
        }
        n.answer[c] = 1 + n.g[g].dur;
        if t != *self {
            out.push((Step::Fence { ctl: c, node: i }, t))
        }
    }

    /// n-q+1 answers decide; the end is the largest of them.
    fn decide_steps(&self, s: &Scope, c: usize, out: &mut Vec<(Step, State)>) {
        let ctl = &self.ctl[c];
        let g = ctl.generation as usize;
        let n = self.members(g);
        let q = s.quorum(n);
        for set in 1u8..1 << s.nodes {
            let witnesses = || (0..s.nodes).filter(move |i| set >> i & 1 == 1);
            let size = set.count_ones() as usize;
            if size + q < n + 1 || witnesses().any(|i| self.nodes[i].answer[c] == 0) {
                continue;
            }
            let ends = witnesses().map(|i| self.nodes[i].answer[c] - 1);
            let end = if s.on(Rule::LargestEnd) {
                ends.max()
            } else {
                ends.min()
            };
            let end = end.expect("the set is not empty");
            let has_all = |i: usize| self.nodes[i].answer[c] > end;
            let Some(from) = witnesses().find(|&i| has_all(i) && self.nodes[i].g[g].dur >= end)
            else {
                continue;
            };
            let mut tail = [0; R];
            let copied = end as usize;
            tail[..copied].copy_from_slice(&self.nodes[from].g[g].rec[..copied]);
            let need = if s.on(Rule::RepairReachesQuorum) {
                q
            } else {
                q.min(size)
            };
            let mut t = *self;
            t.ctl[c] = Controller {
                phase: 2,
                generation: ctl.generation,
                end,
                need: need as u8,
                tail,
            };
            for (i, m) in t.nodes[..s.nodes].iter_mut().enumerate() {
                let named = if s.on(Rule::WipedIsNoWitness) {
                    m.g[g].is(MEMBER_INC) as u8
                } else {
                    m.inc
                };
                if set >> i & 1 == 1 && m.answer[c] > end {
                    m.whole[c] = 1 + named
                }
                m.answer[c] = 0;
            }
            out.push((
                Step::Decide {
                    ctl: c,
                    answers: set,
                },
                t,
            ));
        }
    }

    /// What lies below the end is copied into e in spite of the fence; the copy carries the fence itself. (Where witnesses
    /// alone can make q holders, newcomers are left out: they would only multiply states.)
    fn repair_steps(&self, s: &Scope, c: usize, i: usize, out: &mut Vec<(Step, State)>) {
        let (ctl, n) = (&self.ctl[c], &self.nodes[i]);
        let g = ctl.generation as usize;
        let members = self.members(g);
        let q = s.quorum(members);
        let is_target = members + 1 < q + q || n.is_member_now(g);
        if n.whole[c] == 0 && is_target && !n.knows_sealed(g) {
            let mut t = *self;
            let n = &mut t.nodes[i];
            n.flush(true);
            n.fence = n.fence.max(ctl.generation + 1);
            let r = &mut n.g[g];
            r.flags &= !LEASE;
            let end = ctl.end as usize;
            r.rec[..end].copy_from_slice(&ctl.tail[..end]);
            r.len = r.len.max(ctl.end);
            r.dur = r.len;
            if !s.on(Rule::FencedStaysSilent) && r.is(MEMBER) {
                r.reported = r.reported.max(r.dur)
            }
            n.whole[c] = 1 + n.inc;
            out.push((Step::Repair { ctl: c, node: i }, t));
        }
        if !s.on(Rule::NoTruncateToProposal) && n.is_member_now(g) && n.g[g].len > ctl.end {
            let mut t = *self;
            let r = &mut t.nodes[i].g[g];
            r.keep(ctl.end);
            r.dur = r.dur.min(ctl.end);
            out.push((Step::TruncateToProposal { ctl: c, node: i }, t));
        }
    }

    /// One conditional command seals e and opens e+1 with any leader and replica set.
    fn seal_steps(&self, s: &Scope, c: usize, out: &mut Vec<(Step, State)>) {
        let ctl = &self.ctl[c];
        let g = ctl.generation as usize;
        let proven = self.nodes.iter().filter(|o| o.whole[c] > 0).count();
        let is_open = g + 1 == self.opened as usize;
        if proven < ctl.need as usize || s.on(Rule::SealConditional) && !is_open || g + 1 >= s.gens
        {
            return;
        }
        let mut base = *self;
        base.gens[g].end = ctl.end;
        for k in 0..ctl.end as usize {
            base.show(self.gens[g].start as usize + k, ctl.tail[k], false)
        }
        base.opened = ctl.generation + 2;
        base.gens[g + 1].start = self.gens[g].start + ctl.end;
        base.gens[g + 1].leader_gone = 0;
        for m in &mut base.nodes {
            m.g[g].flags &= !(HOLDER | HOLDER_INC);
            if m.whole[c] > 0 {
                m.g[g].flags |= HOLDER | ((m.whole[c] - 1) * HOLDER_INC)
            }
            m.g[g + 1].flags &= !(MEMBER | MEMBER_INC | LEADER);
        }
        base.forget_controller(c);
        for set in 1u8..1 << s.nodes {
            let size = set.count_ones() as usize;
            if size < s.sizes.0 || size > s.sizes.1 {
                continue;
            }
            for leader in (0..s.nodes).filter(|i| set >> i & 1 == 1) {
                let mut t = base;
                for (i, m) in t.nodes[..s.nodes].iter_mut().enumerate() {
                    if set >> i & 1 == 1 {
                        m.g[g + 1].flags |= MEMBER | (m.inc * MEMBER_INC)
                    }
                    if i == leader {
                        m.g[g + 1].flags |= LEADER
                    }
                }
                out.push((
                    Step::SealAndOpen {
                        ctl: c,
                        replicas: set,
                        leader,
                    },
                    t,
                ));
            }
        }
    }
}
