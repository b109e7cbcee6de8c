//! What one node does: append, accept, flush, commit, lease, learn; crash and loss; copy, claim and forget.

use crate::*;

impl State {
    pub(crate) fn node_steps(&self, s: &Scope, i: usize, out: &mut Vec<(Step, State)>) {
        let n = &self.nodes[i];
        for g in 0..self.opened as usize {
            self.append_step(s, i, g, out);
            self.accept_steps(s, i, g, out);
            self.commit_steps(s, i, g, out);
            self.learn_commit_step(s, i, g, out);
            self.lease_steps(s, i, g, out);
        }
        if n.g.iter().any(|c| c.dur < c.len) {
            let mut t = *self;
            t.nodes[i].flush(s.on(Rule::FencedStaysSilent) && s.on(Rule::FenceCoversPending));
            out.push((Step::Flush { node: i }, t));
        }
        self.learn_catalog_step(i, out);
        self.trouble(s, i, out);
        if s.backfill {
            for g in 0..self.opened as usize - 1 {
                self.copy_and_claim_steps(s, i, g, out);
                self.forget_step(s, i, g, out);
            }
        }
    }

    /// The leader takes a record: next offset, own memory, to all followers at once.
    fn append_step(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (n, c) = (&self.nodes[i], &self.nodes[i].g[g]);
        let at = c.len as usize;
        let has_room = (self.next as usize) < s.records && self.gens[g].start as usize + at < R;
        if !c.is(LEADS) || n.fence as usize > g || !has_room {
            return;
        }
        let mut t = *self;
        t.next += 1;
        t.nodes[i].g[g].rec[at] = t.next;
        t.nodes[i].g[g].len += 1;
        t.gens[g].sent[at] |= 1 << t.next;
        out.push((
            Step::Append {
                leader: i,
                generation: g,
            },
            t,
        ));
    }

    /// A follower accepts, in memory, for an epoch not below its fence. It need not know the generation from the catalog.
    fn accept_steps(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (n, c) = (&self.nodes[i], &self.nodes[i].g[g]);
        let is_named = if s.on(Rule::WipedIsNoFollower) {
            n.is_member_now(g)
        } else {
            c.is(MEMBER)
        };
        if !is_named || c.is(LEADS) || n.fence as usize > g || n.knows_sealed(g) {
            return;
        }
        for at in c.len as usize..R {
            for rec in 1..=self.next {
                if self.gens[g].sent[at] & (1 << rec) == 0 {
                    continue;
                }
                let mut t = *self;
                t.nodes[i].g[g].rec[at] = rec;
                t.nodes[i].g[g].len = at as u8 + 1;
                out.push((
                    Step::Accept {
                        node: i,
                        generation: g,
                        at,
                        rec,
                    },
                    t,
                ));
            }
            if s.on(Rule::AppendAtEnd) {
                break;
            }
        }
    }

    /// The commit offset is the q-th largest reported end, or less: not every report has reached the leader.
    fn commit_steps(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (c, generation) = (&self.nodes[i].g[g], &self.gens[g]);
        if !c.is(LEADS) {
            return;
        }
        let members = self.nodes.iter().filter(|n| n.g[g].is(MEMBER));
        let mut ends: Vec<u8> = members.map(|n| n.g[g].reported).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let q = s.quorum(ends.len());
        let top = ends.get(q - 1).map_or(0, |end| (*end).min(c.len));
        let is_leased = |h: usize| {
            let mut nodes = self.nodes.iter();
            nodes.any(|o| o.g[h].is(LEASE) && o.fence as usize <= h)
        };
        let counts = |h: usize| h + 1 == g || s.on(Rule::LeaseGatesAllEarlier);
        if s.on(Rule::LeaseGatesAcks) && (0..g).any(|h| counts(h) && is_leased(h)) {
            return;
        }
        for to in c.commit + 1..=top {
            let mut t = *self;
            for o in c.commit..to {
                t.show((generation.start + o) as usize, c.rec[o as usize], true)
            }
            t.nodes[i].g[g].commit = to;
            t.gens[g].told = generation.told.max(to);
            out.push((
                Step::Commit {
                    leader: i,
                    generation: g,
                    to,
                },
                t,
            ));
        }
    }

    /// A follower hears the commit offset of its own epoch, and believes it up to its own end.
    fn learn_commit_step(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (n, c, generation) = (&self.nodes[i], &self.nodes[i].g[g], &self.gens[g]);
        if !c.is(MEMBER) || c.is(LEADS) || n.knows_sealed(g) {
            return;
        }
        let mut to = generation.told.min(c.len);
        if !s.on(Rule::CommitCarriesEpoch) && self.is_sealed(g) {
            let later = &self.gens[g + 1];
            let absolute = later.start + later.told;
            to = to.max(absolute.saturating_sub(generation.start).min(c.len));
        }
        if to > c.commit {
            let mut t = *self;
            t.nodes[i].g[g].commit = to;
            out.push((
                Step::LearnCommit {
                    node: i,
                    generation: g,
                },
                t,
            ));
        }
    }

    /// A lease needs the grants of q unfenced members; time ends it.
    fn lease_steps(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (n, c) = (&self.nodes[i], &self.nodes[i].g[g]);
        if !s.leases || !c.is(LEADS) || n.fence as usize > g {
            return;
        }
        let grants = self
            .nodes
            .iter()
            .filter(|o| o.is_member_now(g) && o.fence as usize <= g);
        let mut t = *self;
        t.nodes[i].g[g].flags ^= LEASE;
        if c.is(LEASE) {
            out.push((
                Step::LeaseEnds {
                    leader: i,
                    generation: g,
                },
                t,
            ))
        } else if grants.count() >= s.q {
            out.push((
                Step::Lease {
                    leader: i,
                    generation: g,
                },
                t,
            ))
        }
    }

    /// The next catalog command is applied here: the generation before is sealed, its excess dropped; one is open.
    fn learn_catalog_step(&self, i: usize, out: &mut Vec<(Step, State)>) {
        if self.nodes[i].known >= self.opened {
            return;
        }
        let mut t = *self;
        let n = &mut t.nodes[i];
        let g = n.known as usize;
        n.known += 1;
        if g > 0 {
            let c = &mut n.g[g - 1];
            c.keep(c.len.min(self.gens[g - 1].end));
            c.dur = c.dur.min(c.len);
            c.commit = 0;
            c.flags &= !(LEADS | LEASE);
        }
        if n.g[g].is(LEADER) && self.gens[g].leader_gone == 0 {
            n.g[g].flags |= LEADS | LED
        }
        out.push((Step::LearnCatalog { node: i }, t));
    }

    /// Crash; the disk lost; or, milder, one generation's durable suffix lost while the fence survives.
    fn trouble(&self, s: &Scope, i: usize, out: &mut Vec<(Step, State)>) {
        let mut crashed = *self;
        crashed.crash(s, i);
        if crashed != *self {
            out.push((Step::Crash { node: i }, crashed));
        }
        if self.wiped >= s.wipes || self.nodes[i].inc != 0 {
            return;
        }
        crashed.wiped += 1;
        let mut t = crashed;
        let n = &mut t.nodes[i];
        for c in &mut n.g {
            *c = Replica {
                reported: c.reported,
                flags: c.flags,
                ..Replica::default()
            }
        }
        (n.fence, n.inc, n.chosen) = (0, 1, 0);
        if t.is_survivable(s) {
            out.push((Step::Wipe { node: i }, t))
        }
        for g in 0..self.opened as usize {
            for keep in 0..self.nodes[i].g[g].dur {
                let mut t = crashed;
                t.nodes[i].g[g].keep(keep);
                t.nodes[i].g[g].dur = keep;
                t.nodes[i].inc = s.on(Rule::DamageIsNoticed) as u8;
                if t.is_survivable(s) {
                    out.push((
                        Step::LoseSuffix {
                            node: i,
                            generation: g,
                            keep,
                        },
                        t,
                    ))
                }
            }
        }
    }

    /// P1 speaks of the loss of at most q-1 copies of each generation.
    fn is_survivable(&self, s: &Scope) -> bool {
        let is_lost = |n: &Node, g: usize| {
            if self.is_sealed(g) {
                n.g[g].is(HOLDER) && !n.is_holder_now(g)
            } else {
                n.g[g].is(MEMBER) && !n.is_member_now(g)
            }
        };
        (0..self.opened as usize).all(|g| self.nodes.iter().filter(|n| is_lost(n, g)).count() < s.q)
    }

    fn crash(&mut self, s: &Scope, i: usize) {
        let resumes = !s.on(Rule::LeaderDoesNotResume);
        for g in 0..self.opened as usize {
            let c = &mut self.nodes[i].g[g];
            c.keep(c.dur);
            c.commit = 0;
            c.flags &= !(LEADS | LEASE);
            if c.is(LEADER) && !resumes {
                self.gens[g].leader_gone = 1
            }
        }
        let n = &mut self.nodes[i];
        n.known = if resumes && n.g[0].is(LEADER) {
            0
        } else {
            n.known.min(1)
        };
        n.chosen = 0;
        if !s.on(Rule::FenceDurable) {
            n.fence = 0
        }
    }

    /// A member that lacks sealed data copies it whole and flushes; then it claims to hold it. The claim travels.
    fn copy_and_claim_steps(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let (n, end) = (&self.nodes[i], self.gens[g].end);
        let is_asked = n.g[self.opened as usize - 1].is(MEMBER) || n.g[g].is(MEMBER);
        if n.knows_sealed(g) && !n.is_holder_now(g) && is_asked {
            if n.g[g].dur >= end {
                let mut t = *self;
                t.nodes[i].claims[n.inc as usize] |= 1 << g;
                if t != *self {
                    out.push((
                        Step::Claim {
                            node: i,
                            generation: g,
                        },
                        t,
                    ));
                }
            } else {
                let is_source = |o: &usize| {
                    *o != i && self.nodes[*o].is_holder_now(g) && self.nodes[*o].g[g].dur >= end
                };
                for from in (0..s.nodes).filter(is_source) {
                    let mut t = *self;
                    let c = &mut t.nodes[i].g[g];
                    c.rec = self.nodes[from].g[g].rec;
                    c.keep(end);
                    c.dur = end;
                    out.push((
                        Step::CopyOld {
                            node: i,
                            from,
                            generation: g,
                        },
                        t,
                    ));
                }
            }
        }
        for inc in 0..2 {
            self.record_step(s, i, g, inc, out);
        }
    }

    /// The catalog applies a claim. Holders that were wiped are struck off once q others are recorded.
    fn record_step(&self, s: &Scope, i: usize, g: usize, inc: u8, out: &mut Vec<(Step, State)>) {
        let n = &self.nodes[i];
        if n.claims[inc as usize] & (1 << g) == 0 {
            return;
        }
        let named = if s.on(Rule::ClaimNamesIncarnation) {
            inc
        } else {
            n.inc
        };
        let mut t = *self;
        t.nodes[i].claims[inc as usize] &= !(1 << g);
        // A late claim of a life that is over changes nothing for the life that is recorded.
        if named == n.inc || !n.is_holder_now(g) {
            let c = &mut t.nodes[i].g[g];
            c.flags = (c.flags | HOLDER) & !HOLDER_INC | (named * HOLDER_INC);
        }
        if t.nodes.iter().filter(|o| o.is_holder_now(g)).count() >= s.q {
            for o in t.nodes.iter_mut().filter(|o| !o.is_holder_now(g)) {
                o.g[g].flags &= !(HOLDER | HOLDER_INC)
            }
        }
        out.push((
            Step::RecordHolder {
                node: i,
                generation: g,
                incarnation: inc,
            },
            t,
        ));
    }

    /// Who is no member any more may forget, by a catalog command that counts q others.
    fn forget_step(&self, s: &Scope, i: usize, g: usize, out: &mut Vec<(Step, State)>) {
        let n = &self.nodes[i];
        let has_something = n.g[g].len > 0 || n.is_holder_now(g);
        if !n.knows_sealed(g) || n.g[self.opened as usize - 1].is(MEMBER) || !has_something {
            return;
        }
        let others = (0..s.nodes).filter(|o| *o != i && self.nodes[*o].is_holder_now(g));
        let is_chosen = n.chosen & (1 << g) != 0;
        if s.on(Rule::ForgetWithProof) && others.count() < s.q && !is_chosen {
            return;
        }
        let mut t = *self;
        let m = &mut t.nodes[i];
        if !s.on(Rule::ForgetConditional) && !is_chosen {
            m.chosen |= 1 << g;
            out.push((
                Step::ChooseToForget {
                    node: i,
                    generation: g,
                },
                t,
            ));
            return;
        }
        m.g[g] = Replica {
            reported: m.g[g].reported,
            flags: m.g[g].flags & !(HOLDER | HOLDER_INC),
            ..Replica::default()
        };
        m.chosen &= !(1 << g);
        if s.on(Rule::ForgetVoidsClaim) {
            for claims in &mut m.claims {
                *claims &= !(1 << g)
            }
        }
        if !s.on(Rule::ForgetKeepsFence) {
            m.fence = 0
        }
        out.push((
            Step::Forget {
                node: i,
                generation: g,
            },
            t,
        ));
    }
}
