//! Commands that were asked for here and are not answered yet: each goes to the catalog's leader once, and is answered once.
//!
//! ```text
//! Waiting ──leader known──► Asked(node) ──its place──► Placed ──the entry there is applied here──► answered
//!    ▲          └─ this node leads ───────────────────────▲
//!    └── a tick later ◄── not proposed: not sent, or refused by one that does not lead
//! ```
//! Guarantees: a command that may have been proposed is never proposed again: it holds once or not at all. `NotAgreed` is said only
//! when it does not hold and never will; `Undecided` when that is not known. Nobody waits beyond his time, unless this node is alone.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use floe_cluster::Applied;
use floe_cluster::consensus::Position;
use floe_cluster::format::Answered;
use floe_model::NodeId;

use crate::Unavailable;

/// How long a command may take to be agreed.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);
/// Outcomes kept for an answer that comes after its entry; longer lists are no matter of one leader's answer.
const RECENT_MAX: usize = 4_096;

/// The name of who asked, here; rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// What came of it.
pub(crate) type Outcome = (Ticket, Result<Applied, Unavailable>);

struct Ask {
    command: Bytes,
    until: Duration,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// ... until time has passed.
    Paused,
    Asked(NodeId),
    Placed(Position),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Asks {
    open: BTreeMap<Ticket, Ask>,
    /// By index and term.
    placed: BTreeMap<(u64, u64), Ticket>,
    recent: VecDeque<(Position, Applied)>,
    /// How many are [`State::Asked`].
    asked: usize,
}

/// What to do with one that waits.
pub(crate) enum Try {
    /// It stands there.
    Placed(Position),
    /// It was sent to that node.
    Asked(NodeId),
    /// Not now.
    Later,
}

impl Asks {
    /// One more.
    pub(crate) fn add(&mut self, ticket: Ticket, command: Bytes, now: Duration) {
        let ask = Ask {
            command,
            until: now + WITHIN,
            state: State::Waiting,
        };
        self.open.insert(ticket, ask);
    }

    /// How many are not answered.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Tries to place all that wait, in order, until one has to wait on.
    pub(crate) fn place(&mut self, mut attempt: impl FnMut(Ticket, &Bytes) -> Try) {
        for (ticket, ask) in &mut self.open {
            if ask.state != State::Waiting {
                continue;
            }
            match attempt(*ticket, &ask.command) {
                Try::Placed(at) => {
                    ask.state = State::Placed(at);
                    self.placed.insert((at.index, at.term), *ticket);
                }
                Try::Asked(node) => {
                    ask.state = State::Asked(node);
                    self.asked += 1;
                }
                Try::Later => return,
            }
        }
    }

    /// The leader that was asked has answered. Answers of others, or a second time, say nothing.
    pub(crate) fn answered(
        &mut self,
        from: NodeId,
        ticket: Ticket,
        answered: Answered,
        applied: u64,
        out: &mut Vec<Outcome>,
    ) {
        if !self.is_asked(ticket, |node| node == from) {
            return;
        }
        match answered {
            Answered::Placed(at) if at.index <= applied => {
                let known = self
                    .recent
                    .iter()
                    .find(|(known, _)| known.index == at.index);
                let outcome = match known {
                    Some((known, applied)) if *known == at => Ok(applied.clone()),
                    Some(_) => Err(Unavailable::NotAgreed),
                    // Learned by snapshot, or no command stands there any more.
                    None => Err(Unavailable::Undecided),
                };
                self.end(ticket, outcome, out);
            }
            Answered::Placed(at) => {
                self.asked -= 1;
                let ask = self.open.get_mut(&ticket).expect("it is asked");
                ask.state = State::Placed(at);
                self.placed.insert((at.index, at.term), ticket);
            }
            Answered::NotLeader { .. } | Answered::Busy => self.again(ticket),
            Answered::Unfit => self.end(ticket, Err(Unavailable::NotAgreed), out),
        }
        self.forget_recent();
    }

    /// What was sent to the leader did not leave.
    pub(crate) fn unsent(&mut self, ticket: Ticket) {
        if self.is_asked(ticket, |_| true) {
            self.again(ticket);
        }
    }

    /// No answer comes from that node any more: it may have proposed what it was asked.
    pub(crate) fn disconnected(&mut self, node: NodeId, out: &mut Vec<Outcome>) {
        let is_lost = |ask: &Ask| ask.state == State::Asked(node);
        let lost = self.open.iter().filter(|(_, ask)| is_lost(ask));
        for ticket in lost.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            self.end(ticket, Err(Unavailable::Undecided), out);
        }
    }

    /// An entry is applied here: a command, and what came of it, or another one.
    pub(crate) fn applied(
        &mut self,
        at: Position,
        applied: Option<&Applied>,
        out: &mut Vec<Outcome>,
    ) {
        while let Some(entry) = self
            .placed
            .range((at.index, 0)..=(at.index, u64::MAX))
            .next()
        {
            let ((_, term), ticket) = (*entry.0, *entry.1);
            let outcome = match applied {
                Some(applied) if term == at.term => Ok(applied.clone()),
                _ => Err(Unavailable::NotAgreed),
            };
            self.end(ticket, outcome, out);
        }
        if self.asked > 0 {
            self.recent
                .push_back((at, applied.cloned().unwrap_or_default()));
            if self.recent.len() > RECENT_MAX {
                self.recent.pop_front();
            }
        }
    }

    /// The catalog was learned up to there, without its entries.
    pub(crate) fn leapt(&mut self, to: u64, out: &mut Vec<Outcome>) {
        self.recent.clear();
        while let Some((_, ticket)) = self.placed.range(..=(to, u64::MAX)).next() {
            self.end(*ticket, Err(Unavailable::Undecided), out);
        }
    }

    /// Time has passed.
    pub(crate) fn expire(&mut self, now: Duration, out: &mut Vec<Outcome>) {
        for ask in self.open.values_mut() {
            if ask.state == State::Paused {
                ask.state = State::Waiting;
            }
        }
        let late = self.open.iter().filter(|(_, ask)| ask.until <= now);
        let late: Vec<_> = late.map(|(ticket, ask)| (*ticket, ask.state)).collect();
        for (ticket, state) in late {
            let why = match state {
                State::Waiting | State::Paused => Unavailable::NotAgreed,
                State::Asked(_) | State::Placed(_) => Unavailable::Undecided,
            };
            self.end(ticket, Err(why), out);
        }
        self.forget_recent();
    }

    fn is_asked(&self, ticket: Ticket, is_right: impl Fn(NodeId) -> bool) -> bool {
        let state = self.open.get(&ticket).map(|ask| ask.state);
        matches!(state, Some(State::Asked(node)) if is_right(node))
    }

    fn again(&mut self, ticket: Ticket) {
        self.asked -= 1;
        self.open.get_mut(&ticket).expect("it is asked").state = State::Paused;
    }

    fn end(
        &mut self,
        ticket: Ticket,
        outcome: Result<Applied, Unavailable>,
        out: &mut Vec<Outcome>,
    ) {
        let ask = self.open.remove(&ticket).expect("it is not answered");
        match ask.state {
            State::Asked(_) => self.asked -= 1,
            State::Placed(at) => drop(self.placed.remove(&(at.index, at.term))),
            State::Waiting | State::Paused => {}
        }
        out.push((ticket, outcome));
    }

    fn forget_recent(&mut self) {
        if self.asked == 0 {
            self.recent.clear();
        }
    }
}
