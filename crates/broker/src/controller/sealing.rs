//! Seals at work: each ends one open generation and says what the catalog should open next.
//!
//! ```text
//! begin(turn) ─► Tell(fence ..) ─► heard(fenced ..) ─► [Tell(copy ..) ─► heard(copied ..)] ─► Open(opening)
//! ```
//!
//! Guarantees: one seal per partition at a time; an answer counts for the seal that asked, and only once; what stays unanswered is
//! asked again. Values in, values out: who tells the members and who proposes is the caller.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use floe_cluster::plan::Turn;
use floe_model::{NodeId, TopicPartition};
use floe_replication::message::{Ask, Fence, Order, Purpose};
use floe_replication::replica::{Command as Said, Event as Told};
use floe_replication::seal::{Command, Event};
use floe_replication::{Member, Opening, Seal, TooFew};

/// How long to wait for the last copies once enough have answered.
const LAST_WAIT: Duration = Duration::from_millis(50);
/// After this long without an answer, a question is taken for lost.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Questions of one seal whose answers still count: those of the last rounds, so that a slow disk is heard.
const ASKS_MAX: usize = 64;

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Tell the member's node.
    Tell(NodeId, TopicPartition, Told),
    /// Propose what [`Turn::transition`] makes of it; the catalog refuses it if it does not hold any more.
    Open(TopicPartition, Opening),
}

/// See the module.
pub(crate) struct Sealing {
    at_work: BTreeMap<TopicPartition, Work>,
    asks: HashMap<Ask, TopicPartition>,
    asked: u64,
}

struct Work {
    seal: Seal,
    turn: Turn,
    /// What it has asked last, answered or not.
    asks: VecDeque<Ask>,
    wait_until: Option<Duration>,
    again_at: Duration,
}

impl Sealing {
    /// `first`: names of its questions rise from there, so that answers to those of before are none of its own.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            at_work: BTreeMap::new(),
            asks: HashMap::new(),
            asked: first,
        }
    }

    /// Begins to end a generation; nothing if one of this partition is being ended already.
    pub(crate) fn begin(
        &mut self,
        turn: Turn,
        now: Duration,
        out: &mut Vec<Do>,
    ) -> Result<(), TooFew> {
        let partition = turn.partition;
        if self.at_work.contains_key(&partition) {
            return Ok(());
        }
        let (seal, commands) = turn.begin()?;
        let work = Work {
            seal,
            turn,
            asks: VecDeque::new(),
            wait_until: None,
            again_at: now + ASK_AGAIN,
        };
        self.at_work.insert(partition, work);
        self.obey(partition, commands, now, out);
        Ok(())
    }

    /// Those at work.
    pub(crate) fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.at_work.values().map(|work| &work.turn)
    }

    /// The one of a partition.
    pub(crate) fn turn(&self, partition: TopicPartition) -> Option<&Turn> {
        self.at_work.get(&partition).map(|work| &work.turn)
    }

    /// Whether none is at work.
    pub(crate) fn is_idle(&self) -> bool {
        self.at_work.is_empty()
    }

    /// A member answered.
    pub(crate) fn heard(&mut self, said: &Said, now: Duration, out: &mut Vec<Do>) {
        let (Said::Fenced { ask, .. } | Said::Copied { ask, .. } | Said::Refuse { ask, .. }) = said
        else {
            return;
        };
        let Some(partition) = self.asks.remove(ask) else {
            return;
        };
        let Some(work) = self.at_work.get_mut(&partition) else {
            return;
        };
        let loser = work.turn.accept_loss;
        let event = match said {
            Said::Fenced { from, end, .. } if loser == Some(*from) => {
                Event::LossAccepted(*from, *end)
            }
            Said::Fenced { from, end, .. } => Event::Fenced(*from, *end),
            Said::Copied { from, end, .. } => Event::Holds(*from, *end),
            // Whoever refuses is no witness and no holder; others are asked as time goes on.
            _ => return,
        };
        let commands = work.seal.step(event);
        self.obey(partition, commands, now, out);
    }

    /// Time has passed: last waits end, and what was not answered is asked again.
    pub(crate) fn tick(&mut self, now: Duration, out: &mut Vec<Do>) {
        let mut due = Vec::new();
        for (partition, work) in &mut self.at_work {
            if work.wait_until.is_some_and(|until| now >= until) {
                work.wait_until = None;
                due.push((*partition, work.seal.step(Event::Waited)));
            }
            if now >= work.again_at {
                work.again_at = now + ASK_AGAIN;
                due.push((*partition, work.seal.step(Event::TimedOut)));
            }
        }
        for (partition, commands) in due {
            self.obey(partition, commands, now, out);
        }
    }

    /// The catalog has a later generation of this partition, or none any more.
    pub(crate) fn is_over(&mut self, partition: TopicPartition) {
        let over = self.at_work.remove(&partition);
        for ask in over.into_iter().flat_map(|work| work.asks) {
            self.asks.remove(&ask);
        }
    }

    fn obey(
        &mut self,
        partition: TopicPartition,
        commands: Vec<Command>,
        now: Duration,
        out: &mut Vec<Do>,
    ) {
        for command in commands {
            let told = match command {
                Command::Fence(to) => self.ask(partition, to, |turn, ask| {
                    Told::FenceAsked(Fence {
                        to,
                        epoch: turn.epoch,
                        start: turn.start,
                        ask,
                    })
                }),
                Command::Copy { from, to, end } => self.ask(partition, to, |turn, ask| {
                    Told::CopyOrdered(Order {
                        to,
                        from,
                        epoch: turn.epoch,
                        start: turn.start.max(turn.log_start),
                        end,
                        purpose: Purpose::Repair,
                        as_of: 0,
                        ask,
                    })
                }),
                Command::Wait => {
                    let work = self.at_work.get_mut(&partition);
                    work.expect("it is at work").wait_until = Some(now + LAST_WAIT);
                    continue;
                }
                Command::Open(opening) => {
                    out.push(Do::Open(partition, opening));
                    continue;
                }
            };
            out.push(told);
        }
    }

    fn ask(
        &mut self,
        partition: TopicPartition,
        to: Member,
        told: impl FnOnce(&Turn, Ask) -> Told,
    ) -> Do {
        self.asked += 1;
        let ask = Ask(self.asked);
        self.asks.insert(ask, partition);
        let work = self.at_work.get_mut(&partition).expect("it is at work");
        work.asks.push_back(ask);
        if work.asks.len() > ASKS_MAX
            && let Some(old) = work.asks.pop_front()
        {
            self.asks.remove(&old);
        }
        Do::Tell(to.node, partition, told(&work.turn, ask))
    }
}

#[cfg(test)]
mod tests;
