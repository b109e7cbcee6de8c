//! What this node does for the cluster: it watches the other nodes and, while it leads the catalog, ends generations that cannot go on.
//!
//! ```text
//! heartbeats, answers, wishes, time ─► Lead ─► Beat, Tell (fences, copies), Propose (seal and open, in batches)
//!                                       │
//!                          Watch ─ facts ─► plan::make ─ turns ─► Sealing
//! ```
//! Guarantees: pure. A turn that nobody can write without is begun at once; those that only make things better wait for their budget
//! and for the others, and are not chosen twice for one partition in a minute. A turn whose members' lives ended on the way is dropped
//! and made anew. Everything it says may be said by two leaders of the catalog at once: the catalog's conditions decide.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use floe_cluster::plan::{self, Budget, Cause, Facts};
use floe_cluster::{Catalog, Command, TRANSITIONS_PER_ENTRY_MAX, Transition};
use floe_model::{Boot, LeaderEpoch, NodeId, TopicPartition};
use floe_replication::replica::{self, Command as Said, Event as Told, Why};

use super::sealing::{Do, Sealing};
use super::watch::{Times, Watch};
use crate::exchange::Heard;
use crate::peers::{Heartbeat, Message, Peer};

/// How often turns are looked for that need not be.
const CHOOSE_EVERY: Duration = Duration::from_secs(1);
/// Turns of that kind at a time.
const BUDGET: Budget = Budget {
    followers: 8,
    moves: 4,
};
/// A partition whose leader was moved by choice stays for so long.
const CHOSEN_FOR: Duration = Duration::from_mins(1);
/// Wishes that are remembered; who still wishes says so again.
const WISHES_MAX: usize = 1 << 16;

/// What to do.
pub(crate) enum Todo {
    /// Tell a member's node.
    Tell(NodeId, TopicPartition, Told),
    /// Send.
    Beat(NodeId, Heartbeat),
    /// Propose; [`Lead::decided`] is to hear of these partitions when its outcome is known.
    Propose(Command, Vec<TopicPartition>),
}

/// See the module.
pub(crate) struct Lead {
    me: (NodeId, Boot),
    watch: Watch,
    /// Whether there are other nodes to wait for before any is judged.
    is_alone: bool,
    sealing: Sealing,
    wishes: BTreeMap<TopicPartition, (LeaderEpoch, Why)>,
    leads: bool,
    /// The catalog that was looked at last.
    index: u64,
    is_due: bool,
    choose_at: Duration,
    chosen: BTreeMap<TopicPartition, Duration>,
    transitions: Vec<Transition>,
    asked: Vec<Do>,
    stuck: usize,
}

impl Lead {
    /// `first`: names of its questions rise from there, from another place in each process.
    pub(crate) fn new(
        me: (NodeId, Boot),
        is_alone: bool,
        times: Times,
        first: u64,
        now: Duration,
    ) -> Self {
        Self {
            me,
            watch: Watch::new(me.0, me.1, times, now),
            is_alone,
            sealing: Sealing::new(first),
            wishes: BTreeMap::new(),
            leads: false,
            index: 0,
            is_due: false,
            choose_at: now,
            chosen: BTreeMap::new(),
            transitions: Vec::new(),
            asked: Vec::new(),
            stuck: 0,
        }
    }

    /// Whether time has to pass for something.
    pub(crate) fn is_idle(&self) -> bool {
        self.sealing.is_idle()
    }

    /// From the other nodes.
    pub(crate) fn heard(&mut self, heard: &Heard, now: Duration) {
        match heard {
            Heard::Connected(peer) => self.watch.connected(*peer, now),
            Heard::Disconnected(peer, why) => {
                tracing::debug!(node = peer.node.0, why, "a node is not connected any more");
                self.watch.disconnected(peer.node);
            }
            Heard::Gone(node) => self.watch.gone(*node),
            Heard::Said(peer, message) => self.message(*peer, message, now),
        }
    }

    fn message(&mut self, peer: Peer, message: &Message, now: Duration) {
        let sealing = &mut self.sealing;
        let out = &mut self.asked;
        match message {
            Message::Heartbeat(heartbeat) => self.watch.heard(peer.node, heartbeat, now),
            Message::Fenced(list) => {
                for fenced in list.iter().filter(|fenced| fenced.from.node == peer.node) {
                    let said = Said::Fenced {
                        from: fenced.from,
                        ask: fenced.ask,
                        end: fenced.end,
                    };
                    sealing.heard(&said, now, out);
                }
            }
            Message::Copied {
                from,
                ask,
                epoch,
                end,
                ..
            } if from.node == peer.node => {
                let (from, ask, epoch, end) = (*from, *ask, *epoch, *end);
                let said = Said::Copied {
                    from,
                    ask,
                    epoch,
                    end,
                };
                sealing.heard(&said, now, out);
            }
            Message::Refusal { ask, refusal, .. } => {
                let (ask, refusal) = (*ask, *refusal);
                sealing.heard(&Said::Refuse { ask, refusal }, now, out);
            }
            _ => {}
        }
    }

    /// A copy of this node answers, or wishes that its generation ends.
    pub(crate) fn said(&mut self, at: TopicPartition, what: &replica::Command, now: Duration) {
        if let Said::AskForSeal { epoch, why } = what {
            let before = self.wishes.insert(at, (*epoch, *why));
            self.is_due |= before != Some((*epoch, *why));
            if self.wishes.len() > WISHES_MAX {
                self.wishes.pop_first();
            }
            return;
        }
        self.sealing.heard(what, now, &mut self.asked);
    }

    /// What was proposed for these partitions is agreed, refused or lost: they are looked at anew.
    pub(crate) fn decided(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            self.sealing.is_over(*partition);
        }
        self.is_due = true;
    }

    /// Everything there is to do now. `leads`: this node leads the catalog and knows all that was agreed before. `flush_age`: of this
    /// node's oldest unfinished write.
    pub(crate) fn step(
        &mut self,
        now: Duration,
        catalog: &Catalog,
        leads: bool,
        flush_age: Option<Duration>,
        out: &mut Vec<Todo>,
    ) {
        let mut changed = Vec::new();
        let beats = self.watch.tick(now, flush_age, &mut changed);
        out.extend(beats.into_iter().map(|(to, beat)| Todo::Beat(to, beat)));
        for (node, why) in changed {
            self.is_due = true;
            if let Some(why) = why {
                tracing::warn!(node = node.0, %why, "a node is suspected");
            } else {
                tracing::info!(node = node.0, "a node is there again");
            }
        }
        if leads != self.leads {
            self.leads = leads;
            self.is_due = leads;
            self.choose_at = now + CHOOSE_EVERY;
            self.stop();
        }
        let is_registered = |(node, boot)| catalog.nodes.get(&node).is_some_and(|n| n.boot == boot);
        let has_looked = self.is_alone || self.watch.has_looked(now);
        if leads && has_looked && is_registered(self.me) {
            self.sealing.tick(now, &mut self.asked);
            self.look(now, catalog);
            self.obey(catalog, out);
        }
    }

    /// What was begun another leader ends.
    fn stop(&mut self) {
        let turns: Vec<_> = self.sealing.turns().map(|turn| turn.partition).collect();
        for partition in turns {
            self.sealing.is_over(partition);
        }
        self.asked.clear();
        self.chosen.clear();
    }

    fn look(&mut self, now: Duration, catalog: &Catalog) {
        let may_choose = now >= self.choose_at;
        if !(self.is_due || may_choose || catalog.index != self.index) {
            return;
        }
        (self.is_due, self.index) = (false, catalog.index);
        let over = self.sealing.turns().filter(|turn| !turn.holds(catalog));
        for partition in over.map(|turn| turn.partition).collect::<Vec<_>>() {
            self.sealing.is_over(partition);
        }
        self.wishes.retain(|at, (epoch, _)| {
            let known = catalog.partition(*at);
            known.is_some_and(|partition| partition.epoch <= *epoch)
        });
        let facts = Facts {
            alive: self.watch.alive(),
            behind: BTreeSet::new(),
            asked: self.wishes.clone(),
            under_way: self.sealing.turns().map(|turn| turn.partition).collect(),
        };
        let budget = if may_choose {
            self.choose_at = now + CHOOSE_EVERY;
            self.chosen.retain(|_, at| now < *at + CHOSEN_FOR);
            BUDGET
        } else {
            Budget {
                followers: 0,
                moves: 0,
            }
        };
        let plan = plan::make(catalog, &facts, budget);
        if plan.stuck.len() != self.stuck {
            self.stuck = plan.stuck.len();
            let first = plan.stuck.first();
            let first = first.map(|stuck| (stuck.cause, stuck.to_string()));
            tracing::warn!(
                partitions = self.stuck,
                ?first,
                "partitions that wait for nodes"
            );
        }
        for turn in plan.turns {
            let partition = turn.partition;
            if turn.cause == Cause::NotPreferred && self.chosen.insert(partition, now).is_some() {
                continue;
            }
            tracing::debug!(%partition, epoch = turn.epoch.0, cause = ?turn.cause, "a generation is being ended");
            self.sealing
                .begin(turn, now, &mut self.asked)
                .expect("a plan has q members or more (rule NeverBelowQ)");
        }
    }

    fn obey(&mut self, catalog: &Catalog, out: &mut Vec<Todo>) {
        for todo in std::mem::take(&mut self.asked) {
            match todo {
                Do::Tell(to, at, told) => out.push(Todo::Tell(to, at, told)),
                Do::Open(at, opening) => {
                    let turn = self.sealing.turn(at).expect("it is at work");
                    if let Some(transition) = turn.transition(catalog, &opening, None) {
                        self.transitions.push(transition);
                    } else {
                        self.sealing.is_over(at);
                        self.is_due = true;
                    }
                }
            }
        }
        if self.transitions.is_empty() {
            return;
        }
        self.say_causes();
        let transitions = std::mem::take(&mut self.transitions);
        for chunk in transitions.chunks(TRANSITIONS_PER_ENTRY_MAX) {
            let partitions = chunk.iter().map(|transition| transition.partition);
            let partitions = partitions.collect();
            let command = Command::SealAndOpen(chunk.to_vec());
            out.push(Todo::Propose(command, partitions));
        }
    }

    /// Every change of an epoch is said, with its cause.
    fn say_causes(&self) {
        let mut causes: BTreeMap<Cause, usize> = BTreeMap::new();
        for transition in &self.transitions {
            let turn = self.sealing.turn(transition.partition);
            let cause = turn.expect("it is at work").cause;
            *causes.entry(cause).or_default() += 1;
            tracing::debug!(
                partition = %transition.partition, epoch = transition.epoch.next().0, end = transition.end.0,
                leader = transition.leader.node.0, ?cause, "the next generation is to be opened"
            );
            if transition.lossy {
                tracing::error!(
                    partition = %transition.partition, end = transition.end.0,
                    "the only copy was damaged: acknowledged records may be lost"
                );
            }
        }
        for (cause, partitions) in causes {
            tracing::info!(partitions, ?cause, "leader epochs rise");
        }
    }
}

#[cfg(test)]
mod tests;
