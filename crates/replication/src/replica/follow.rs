//! A replica as follower: takes what its leader sends at its own end, and answers with what is durable.
//!
//! Guarantees: takes nothing of a generation below its fence or known to be over, nothing meant for another life of this node, and
//! nothing that does not follow what it has; says an end only for the open generation, unfenced, in the leader's current
//! session. It need not know the generation from the catalog: the leader does.

use floe_model::LeaderEpoch;

use super::{Command, Replica};
use crate::Member;
use crate::held::Place;
use crate::message::{Answer, Append, Outcome, Refusal, Renew, Session, Stamp};
use crate::rule::{Rule, keeps};

/// The leader that is followed, by its appends in this life of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Following {
    epoch: LeaderEpoch,
    leader: Member,
    /// As whom the leader speaks to this replica.
    addressed: Member,
    session: Session,
    /// A gap was answered in this session.
    has_answered_gap: bool,
}

impl Replica {
    pub(super) fn append_arrived(&mut self, append: &Append, out: &mut Vec<Command>) {
        if let Some(refusal) = self.refuses(append) {
            // Rule FencedStaysSilent: a refusal carries the fence, and no end that could be counted.
            self.answer(append, Outcome::Refused(refusal), out);
            return;
        }
        let epoch = append.epoch;
        let following = self.following_of(append);
        if append.session < following.session {
            return;
        }
        if append.session > following.session {
            following.session = append.session;
            following.has_answered_gap = false;
        }
        let has_answered_gap = following.has_answered_gap;
        let held = self.open(epoch, append.start, 0, out);
        match held.place(&append.run) {
            Place::Differs(at) => {
                held.damaged();
                out.push(Command::Damaged { epoch, at });
                self.answer(append, Outcome::Refused(Refusal::Damaged), out);
            }
            Place::Gap | Place::Forgotten => {
                // Answered once: everything after it in this session lies beyond the same gap.
                let expected = held.accepted();
                if !has_answered_gap {
                    self.following_of(append).has_answered_gap = true;
                    self.answer(append, Outcome::Expected(expected), out);
                }
            }
            Place::Follows(first) => self.take(append, first, out),
        }
    }

    fn take(&mut self, append: &Append, first: usize, out: &mut Vec<Command>) {
        let epoch = append.epoch;
        let held = self.open(epoch, append.start, 0, out);
        let batches = &append.run.batches()[first..];
        for batch in batches {
            held.push(*batch);
        }
        held.heard_commit(append.commit);
        let (accepted, durable) = (held.accepted(), held.durable());
        if !batches.is_empty() {
            let count = batches.len();
            out.push(Command::Append {
                epoch,
                first,
                count,
            });
        }
        if !keeps(Rule::AnswerIsDurable) {
            self.answer(append, Outcome::Durable(accepted), out);
        } else if batches.is_empty() {
            // Nothing to wait for: the leader learns how far this replica is.
            self.answer(append, Outcome::Durable(durable), out);
        }
    }

    fn refuses(&self, append: &Append) -> Option<Refusal> {
        // Rule WipedIsNoFollower: what is meant for another life of this node is not for this one.
        if append.to != self.me {
            return Some(Refusal::Stranger);
        }
        let floor = self.floor();
        if append.epoch < floor {
            return Some(Refusal::Fenced(floor));
        }
        let held = self.held.get(&append.epoch)?;
        if held.is_damaged() || held.start() != append.start {
            return Some(Refusal::Damaged);
        }
        held.sealed().map(|_| Refusal::Fenced(append.epoch.next()))
    }

    fn following_of(&mut self, append: &Append) -> &mut Following {
        let begin = Following {
            epoch: append.epoch,
            leader: append.from,
            addressed: append.to,
            session: Session::default(),
            has_answered_gap: false,
        };
        let following = self.following.get_or_insert(begin);
        if following.epoch != append.epoch {
            *following = begin;
        }
        following
    }

    /// After a flush: tells the leader of the open generation how far this replica is. Rule FencedStaysSilent: not once
    /// fenced, whatever is flushed then, and not of a generation that is over.
    pub(super) fn report(&mut self, epoch: LeaderEpoch, out: &mut Vec<Command>) {
        let Some(following) = self.following.filter(|following| following.epoch == epoch) else {
            return;
        };
        let is_over = self.fence > epoch || self.known > epoch;
        if is_over && keeps(Rule::FencedStaysSilent) {
            return;
        }
        let end = self.held[&epoch].durable();
        self.say(&following, Outcome::Durable(end), out);
    }

    fn answer(&mut self, append: &Append, outcome: Outcome, out: &mut Vec<Command>) {
        let to = Following {
            epoch: append.epoch,
            leader: append.from,
            addressed: append.to,
            session: append.session,
            has_answered_gap: false,
        };
        self.say(&to, outcome, out);
    }

    fn say(&mut self, to: &Following, outcome: Outcome, out: &mut Vec<Command>) {
        let number = self.next_number();
        out.push(Command::Answer(Answer {
            from: to.addressed,
            to: to.leader,
            epoch: to.epoch,
            session: to.session,
            stamp: Stamp {
                boot: self.boot,
                number,
            },
            outcome,
        }));
    }

    /// A grant is given by an unfenced member under the life that the generation names, at once: it promises nothing about
    /// records.
    pub(super) fn lease_asked(&self, renew: Renew, out: &mut Vec<Command>) {
        if renew.to == self.me && renew.epoch >= self.floor() {
            out.push(Command::GrantLease(renew));
        }
    }
}
