//! A controller of the rig, on one of its nodes: ends generations with [`Sealing`], over the network like everybody.

use floe_cluster::plan::{Cause, Turn};
use floe_model::{NodeId, Offset, TopicPartition};
use floe_replication::Member;
use floe_replication::message::{Ask, Order, Purpose};
use floe_replication::replica::{Command, Event, Opened};

use super::rig::{AT, Entry, Rig};
use crate::controller::sealing::{Do, Sealing};
use crate::exchange::Heard;
use crate::peers::Message;
use crate::replica::Said;

pub(super) struct Controller {
    at: u32,
    turn: Turn,
    sealing: Sealing,
}

impl Controller {
    /// Its node.
    pub(super) fn at(&self) -> u32 {
        self.at
    }
}

/// A generation that is over, and who is proven to hold it.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) opened: Opened,
    pub(super) end: Offset,
    pub(super) holders: Vec<Member>,
}

impl Rig {
    /// Node `at` begins to end the open generation; the next one is of the nodes `next`, with `leader` if it holds all.
    pub(super) fn begin_seal(&mut self, at: u32, next: &[u32], leader: Option<u32>) -> Controller {
        let open = self.open().expect("a generation is open").clone();
        let wished = leader.unwrap_or(next[0]);
        let next = next.iter().map(|id| self.node(*id).who.member());
        let turn = Turn {
            partition: AT,
            cause: Cause::LeaderGone,
            epoch: open.epoch,
            start: open.start,
            log_start: Offset::ZERO,
            members: open.members,
            next: next.collect(),
            wished: self.node(wished).who.member(),
            quorum: open.quorum,
            leases: Vec::new(),
            accept_loss: None,
        };
        let mut sealing = Sealing::new(0);
        let mut out = Vec::new();
        let now = self.now();
        sealing
            .begin(turn.clone(), now, &mut out)
            .expect("enough are next");
        // What was said before is not for this one.
        drop(self.answers(at));
        self.obey(at, &turn, out);
        Controller { at, turn, sealing }
    }

    /// It takes in what came and lets time pass.
    pub(super) fn control(&mut self, controller: &mut Controller) {
        let mut out = Vec::new();
        let now = self.now();
        for said in self.answers(controller.at) {
            controller.sealing.heard(&said, now, &mut out);
        }
        controller.sealing.tick(now, &mut out);
        self.obey(controller.at, &controller.turn, out);
    }

    /// Seals, and lets all nodes that are up learn of it.
    pub(super) async fn seal(&mut self, at: u32, next: &[u32], leader: Option<u32>) {
        let mut controller = self.begin_seal(at, next, leader);
        let entries = self.catalog.len();
        self.until("the generation is sealed", |rig| {
            rig.control(&mut controller);
            rig.catalog.len() > entries
        })
        .await;
        for id in 1..=self.nodes.len() as u32 {
            if self.node(id).life.is_some() {
                self.learn(id);
            }
        }
        self.run(2).await;
    }

    /// What copies and nodes have said to the controller of a node.
    pub(super) fn answers(&mut self, at: u32) -> Vec<Command> {
        let mut answers = Vec::new();
        let life = self.life(at);
        while let Ok(Said { what, .. }) = life.said.try_recv() {
            assert!(!matches!(what, Command::Damaged { .. }), "{what:?}");
            answers.push(what);
        }
        while let Ok(heard) = life.hearing.try_recv() {
            if let Heard::Said(_, message) = heard {
                answers.extend(words(message));
            }
        }
        answers
    }

    fn obey(&mut self, at: u32, turn: &Turn, out: Vec<Do>) {
        for todo in out {
            match todo {
                Do::Tell(to, address, told) => self.told(at, to, address, told),
                Do::Open(_, opening) => {
                    let open = self.open().expect("a generation is open").clone();
                    if turn.epoch != open.epoch {
                        continue;
                    }
                    let leader = opening.successor(&turn.next, Some(turn.wished));
                    let leader = leader.expect("one of the members succeeds");
                    let leader = self.node(leader.node.0).who;
                    self.past.push(Past {
                        opened: open.clone(),
                        end: opening.end,
                        holders: opening.holders,
                    });
                    self.catalog.push(Entry::Sealed(open.epoch, opening.end));
                    self.catalog.push(Entry::Opened(Opened {
                        epoch: open.epoch.next(),
                        start: opening.end,
                        leader,
                        members: turn.next.clone(),
                        leases: Vec::new(),
                        ..open
                    }));
                }
            }
        }
    }

    fn told(&mut self, at: u32, to: NodeId, address: TopicPartition, told: Event) {
        let life = self.life(at);
        if to == NodeId(at) {
            drop(life.replica.step(told));
            return;
        }
        let message = match told {
            Event::FenceAsked(fence) => Message::Fence(vec![(address, fence)]),
            Event::CopyOrdered(order) => Message::CopyOrder {
                partition: address,
                order,
            },
            other => panic!("{other:?}"),
        };
        // Lost, it is asked again.
        let _sent = life.outside.transport.send(to, message);
    }

    /// A node copies a past generation that it lacks from a holder, and says so.
    pub(super) async fn backfill(&mut self, id: u32, past: &Past) {
        let member = self.member(id);
        let as_of = self.catalog.len() as u64;
        let order = Order {
            to: member,
            from: past.holders[0],
            epoch: past.opened.epoch,
            start: past.opened.start,
            end: past.end,
            purpose: Purpose::Backfill,
            as_of,
            ask: Ask(77),
        };
        drop(self.replica(id).step(Event::CopyOrdered(order)));
        self.until("the copy is whole", |rig| {
            let copied = |word: &Command| matches!(word, Command::Copied { ask: Ask(77), .. });
            rig.answers(id).iter().any(copied)
        })
        .await;
    }
}

/// As a controller takes in what another node answers.
fn words(message: Message) -> Vec<Command> {
    match message {
        Message::Fenced(list) => list
            .into_iter()
            .map(|fenced| Command::Fenced {
                from: fenced.from,
                ask: fenced.ask,
                end: fenced.end,
            })
            .collect(),
        Message::Refusal { ask, refusal, .. } => vec![Command::Refuse { ask, refusal }],
        Message::Copied {
            from,
            ask,
            epoch,
            end,
            ..
        } => vec![Command::Copied {
            from,
            ask,
            epoch,
            end,
        }],
        _ => Vec::new(),
    }
}
