//! The leader's side of one open generation: who has how much, what is committed, what to send next.
//!
//! Guarantees: the commit offset counts ends of this generation's members, reported in this epoch and their current session, and
//! the leader's own after its own flush; nothing is shown as committed while an earlier lease may hold; once fenced the leader
//! adds nothing and no longer counts itself.

mod link;

use std::time::Duration;

use floe_model::{LeaderEpoch, Offset};

use crate::lease::{Gate, Lease};
use crate::message::{Answer, Outcome, Refusal, Renew};
use crate::replica::{Command, Opened, Send, Sent, Settings, Why, Wish};
use crate::rule::{Rule, keeps};
use crate::{Commit, Member, Reported};
use link::Link;

#[derive(Clone, Debug)]
pub(crate) struct Leading {
    epoch: LeaderEpoch,
    start: Offset,
    me: Member,
    /// Accepted here.
    end: Offset,
    commit: Commit,
    /// The commit offset as anyone may know it: behind the gate.
    shown: Offset,
    gate: Gate,
    lease: Option<Lease>,
    links: Vec<Link>,
    is_fenced: bool,
    wish: Option<Wish>,
    settings: Settings,
}

impl Leading {
    pub(crate) fn new(
        opened: &Opened,
        me: Member,
        end: Offset,
        settings: Settings,
        now: Duration,
    ) -> Self {
        let members = opened.members.iter().copied();
        let followers = members.clone().filter(|member| *member != me);
        let terms = settings.lease;
        Self {
            epoch: opened.epoch,
            start: opened.start,
            me,
            end,
            commit: Commit::new(opened.start, members, opened.quorum),
            shown: opened.start,
            gate: Gate::new(opened.leases.clone(), now, terms),
            lease: opened
                .has_table
                .then(|| Lease::new(terms, opened.quorum, me, &opened.members)),
            links: followers
                .map(|member| Link::new(member, opened.start, now))
                .collect(),
            is_fenced: false,
            wish: None,
            settings,
        }
    }

    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    pub(crate) fn committed(&self) -> Offset {
        self.shown
    }

    pub(crate) fn takes_appends(&self) -> bool {
        !self.is_fenced
    }

    pub(crate) fn has_lease(&self, now: Duration) -> bool {
        let is_valid = |lease: &Lease| lease.is_valid(now);
        !self.is_fenced && self.lease.as_ref().is_some_and(is_valid)
    }

    /// From now on it adds nothing, and its own end counts no more (rule FencedStaysSilent). Whoever fenced it may have stopped,
    /// and a fence stays: if no seal comes, it asks for one.
    pub(crate) fn fenced(&mut self, fence: LeaderEpoch, now: Duration) {
        self.is_fenced = true;
        self.wish
            .get_or_insert(Wish::later(self.epoch, Why::Fenced(fence), now));
    }

    pub(crate) fn appended(&mut self, end: Offset, now: Duration, out: &mut Vec<Command>) {
        self.end = end;
        if !keeps(Rule::LeaderCountsItsFlush) {
            self.count(self.me, end, now, out);
        }
        self.send_all(out);
    }

    /// Rule LeaderCountsItsFlush: the leader is one member of the quorum, and q others may be ahead of it.
    pub(crate) fn flushed(&mut self, end: Offset, now: Duration, out: &mut Vec<Command>) {
        if !self.is_fenced || !keeps(Rule::FencedStaysSilent) {
            self.count(self.me, end, now, out);
        }
    }

    pub(crate) fn sent(&mut self, sent: Sent, now: Duration, out: &mut Vec<Command>) {
        let end = self.end;
        let Some(link) = self.link(sent.to) else {
            return;
        };
        if link.session != sent.session {
            return;
        }
        assert!(sent.end <= end, "only what the leader has is sent");
        let is_more = sent.end > link.next;
        link.sent(sent.end, sent.bytes, now);
        if is_more {
            self.send_all(out);
        }
    }

    pub(crate) fn connected(
        &mut self,
        to: Member,
        is_connected: bool,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        let Some(link) = self.link(to) else {
            return;
        };
        link.is_connected = is_connected;
        let durable = link.durable;
        link.restart(durable, now);
        self.send_all(out);
    }

    pub(crate) fn answered(&mut self, answer: &Answer, now: Duration, out: &mut Vec<Command>) {
        let end = self.end;
        let Some(link) = self.link(answer.from) else {
            return;
        };
        if let Outcome::Refused(refusal) = answer.outcome {
            link.leave_out();
            self.refused(answer.from, refusal, now, out);
            return;
        }
        if !link.is_current(answer) {
            return;
        }
        match answer.outcome {
            // More than was ever sent: not this generation's bytes.
            Outcome::Durable(held) | Outcome::Expected(held)
                if held > end || held < link.durable =>
            {
                link.leave_out();
                self.commit.exclude(answer.from);
                self.ask_for_seal(Why::Damaged(answer.from), now, out);
            }
            Outcome::Durable(held) => {
                link.reported(held, now);
                self.count(answer.from, held, now, out);
            }
            Outcome::Expected(held) => link.restart(held, now),
            Outcome::Refused(_) => unreachable!("handled above"),
        }
        self.send_all(out);
    }

    fn refused(&mut self, from: Member, refusal: Refusal, now: Duration, out: &mut Vec<Command>) {
        match refusal {
            // Rule: a leader refused with a higher fence reports it; whoever controls finishes by sealing.
            Refusal::Fenced(fence) => self.ask_for_seal(Why::Fenced(fence), now, out),
            Refusal::Stranger => {
                self.commit.exclude(from);
                self.ask_for_seal(Why::Lost(from), now, out);
            }
            Refusal::Damaged => {
                self.commit.exclude(from);
                self.ask_for_seal(Why::Damaged(from), now, out);
            }
        }
    }

    fn count(&mut self, member: Member, end: Offset, now: Duration, out: &mut Vec<Command>) {
        match self.commit.durable(member, end) {
            Reported::Advanced(_) => self.show(now, out),
            Reported::Damaged => self.ask_for_seal(Why::Damaged(member), now, out),
            Reported::Unchanged | Reported::Stranger => {}
        }
    }

    /// Rule LeaseGatesAcks: what is committed is shown to nobody, followers included, before the gate is open.
    fn show(&mut self, now: Duration, out: &mut Vec<Command>) {
        let committed = self.commit.committed();
        if committed > self.shown && self.gate.is_open(now) {
            assert!(committed <= self.end, "members hold what the leader sent");
            self.shown = committed;
            out.push(Command::Committed {
                epoch: self.epoch,
                offset: committed,
            });
        }
    }

    fn ask_for_seal(&mut self, why: Why, now: Duration, out: &mut Vec<Command>) {
        if self.wish.is_none() {
            self.wish = Some(Wish::say(self.epoch, why, now, out));
        }
    }

    pub(crate) fn granted(&mut self, grant: &Renew) {
        if let Some(lease) = &mut self.lease {
            lease.granted(grant.to, grant.sent_at);
        }
    }

    pub(crate) fn lease_ended(
        &mut self,
        epoch: LeaderEpoch,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        self.gate.ended(epoch);
        self.show(now, out);
    }

    /// The catalog says that the generation ends at `end`. Unless it says that something may be lost, q copies of what lies below
    /// are proven, so it is committed (a late acknowledgement below the end is harmless), if no earlier lease may hold.
    pub(crate) fn sealed(
        &mut self,
        end: Offset,
        lossy: bool,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        // Invariant: no acknowledgement covers an offset at or above the sealed end.
        assert!(lossy || self.shown <= end, "acknowledged above a seal");
        if !lossy && end > self.shown && self.gate.is_open(now) {
            self.shown = end;
            out.push(Command::Committed {
                epoch: self.epoch,
                offset: end,
            });
        }
        out.push(Command::Ended { epoch: self.epoch });
    }

    pub(crate) fn ticked(&mut self, now: Duration, out: &mut Vec<Command>) {
        self.show(now, out);
        if let Some(wish) = &mut self.wish {
            wish.again(now, self.settings.resend_after, out);
        }
        for link in &mut self.links {
            if link.is_stalled(now, self.settings.resend_after) {
                let durable = link.durable;
                link.restart(durable, now);
            }
        }
        self.send_all(out);
        for at in 0..self.links.len() {
            // Rule: the commit offset follows within one tick, as an empty append, when nothing else carries it.
            if self.links[at].is_ready() && self.links[at].told < self.shown {
                self.send(at, 0, out);
            }
        }
        let (me, epoch) = (self.me, self.epoch);
        let is_asking = |lease: &mut Lease| lease.due(now);
        let due = self.lease.as_mut().map(is_asking).unwrap_or_default();
        if !self.is_fenced {
            out.extend(due.into_iter().map(|to| {
                Command::AskLease(Renew {
                    from: me,
                    to,
                    epoch,
                    sent_at: now,
                })
            }));
        }
    }

    /// See [`crate::Replica::waits`].
    pub(crate) fn waits(&self) -> bool {
        let is_asking = self.lease.is_some() && !self.links.is_empty();
        is_asking
            || self.wish.is_some()
            || self.commit.committed() > self.shown
            || self
                .links
                .iter()
                .any(|link| link.waits(self.end, self.shown))
    }

    pub(crate) fn followers(&self) -> impl Iterator<Item = Member> {
        self.links.iter().map(|link| link.member)
    }

    fn send_all(&mut self, out: &mut Vec<Command>) {
        for at in 0..self.links.len() {
            let link = &self.links[at];
            if link.is_ready()
                && link.next < self.end
                && link.has_window(self.settings.window_bytes)
            {
                self.send(at, self.settings.send_bytes_max, out);
            }
        }
    }

    fn send(&mut self, at: usize, bytes_max: usize, out: &mut Vec<Command>) {
        let link = &mut self.links[at];
        link.is_sending = true;
        link.told = self.shown;
        out.push(Command::Send(Send {
            from: self.me,
            to: link.member,
            epoch: self.epoch,
            start: self.start,
            session: link.session,
            base: link.next,
            bytes_max,
            commit: self.shown,
        }));
    }

    fn link(&mut self, member: Member) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.member == member)
    }
}
