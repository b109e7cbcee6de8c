//! Seals at work: each ends one open generation and says what the catalog should open next.
//!
//! ```text
//! begin ─► Tell(fence ..) ─► heard(fenced ..) ─► [Tell(copy ..) ─► heard(copied ..)] ─► Open(transition)
//! ```
//!
//! Guarantees: one seal per partition at a time; an answer counts for the seal that asked, and only once; what stays unanswered is
//! asked again. Values in, values out: who tells the members and who proposes is the caller.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_cluster::Transition;
use floe_model::{LeaderEpoch, NodeId, Offset, TopicPartition};
use floe_replication::message::{Ask, Fence, Order, Purpose};
use floe_replication::replica::{Command as Said, Event as Told};
use floe_replication::seal::{Command, Event};
use floe_replication::{Leader, Member, Opening, Seal, TooFew};

/// How long to wait for the last copies once enough have answered.
const LAST_WAIT: Duration = Duration::from_millis(50);
/// After this long without an answer, a question is taken for lost.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Questions of one seal whose answers still count: those of the last rounds, so that a slow disk is heard.
const ASKS_MAX: usize = 64;

/// A generation to end.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) partition: TopicPartition,
    /// The open generation ...
    pub(crate) epoch: LeaderEpoch,
    /// ... where it starts ...
    pub(crate) start: Offset,
    /// ... and who holds it.
    pub(crate) members: Vec<Member>,
    /// Who is to hold the next one, with the lives of their processes.
    pub(crate) next: Vec<Leader>,
    /// Who should lead it, if all the same.
    pub(crate) leader: Option<Member>,
    pub(crate) quorum: usize,
    /// No copy can answer for the generation any more: this one decides its end, and what lay above is given up.
    pub(crate) accept_loss: Option<Member>,
}

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Tell the member's node.
    Tell(NodeId, TopicPartition, Told),
    /// Propose; the catalog refuses it if it does not hold any more.
    Open(Transition),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Sealing {
    at_work: HashMap<TopicPartition, Work>,
    asks: HashMap<Ask, TopicPartition>,
    asked: u64,
}

struct Work {
    seal: Seal,
    wanted: Wanted,
    /// What it has asked last, answered or not.
    asks: VecDeque<Ask>,
    wait_until: Option<Duration>,
    again_at: Duration,
}

impl Sealing {
    /// Begins to end a generation; nothing if one of this partition is being ended already.
    pub(crate) fn begin(
        &mut self,
        wanted: Wanted,
        now: Duration,
        out: &mut Vec<Do>,
    ) -> Result<(), TooFew> {
        let partition = wanted.partition;
        if self.at_work.contains_key(&partition) {
            return Ok(());
        }
        let next = wanted.next.iter().map(|leader| leader.member()).collect();
        let (seal, mut commands) = Seal::begin(wanted.members.clone(), next, wanted.quorum)?;
        commands.extend(wanted.accept_loss.map(Command::Fence));
        let work = Work {
            seal,
            wanted,
            asks: VecDeque::new(),
            wait_until: None,
            again_at: now + ASK_AGAIN,
        };
        self.at_work.insert(partition, work);
        self.obey(partition, commands, now, out);
        Ok(())
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
        let loser = work.wanted.accept_loss;
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
                Command::Fence(to) => self.ask(partition, to, |wanted, ask| {
                    Told::FenceAsked(Fence {
                        to,
                        epoch: wanted.epoch,
                        start: wanted.start,
                        ask,
                    })
                }),
                Command::Copy { from, to, end } => self.ask(partition, to, |wanted, ask| {
                    Told::CopyOrdered(Order {
                        to,
                        from,
                        epoch: wanted.epoch,
                        start: wanted.start,
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
                    let work = &self.at_work[&partition];
                    out.push(Do::Open(transition(&work.wanted, &opening)));
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
        told: impl FnOnce(&Wanted, Ask) -> Told,
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
        Do::Tell(to.node, partition, told(&work.wanted, ask))
    }
}

/// The catalog command's part.
fn transition(wanted: &Wanted, opening: &Opening) -> Transition {
    let members: Vec<_> = wanted.next.iter().map(|next| next.member()).collect();
    let successor = opening.successor(&members, wanted.leader);
    let leader = wanted
        .next
        .iter()
        .find(|next| Some(next.member()) == successor)
        .expect("one of the members succeeds");
    Transition {
        partition: wanted.partition,
        epoch: wanted.epoch,
        end: opening.end,
        lossy: opening.lossy,
        holders: opening.holders.clone(),
        times: None,
        leases: opening.leases.clone(),
        leader: *leader,
        members,
    }
}

#[cfg(test)]
mod tests;
