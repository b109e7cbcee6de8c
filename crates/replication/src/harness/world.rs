//! Nodes, network, catalog and controllers in one thread; what happens next is chance.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_model::{Boot, Incarnation, LeaderEpoch, NodeId, Offset};

use super::Shape;
use super::catalog::{Catalog, Claim};
use super::chance::Chance;
use super::controller::{Controller, Pending};
use super::disk::{Disk, Record};
use super::truth::{Broken, Truth};
use crate::message::{Append, Ask, Piece, Run};
use crate::replica::{Command, Event, Opened, Replica, Sent, Settings};
use crate::{Leader, Member, Terms};

/// In every fourth run leases outlast several seals.
const fn settings(seed: u64) -> Settings {
    Settings {
        window_bytes: 6,
        send_bytes_max: 3,
        resend_after: Duration::from_millis(40),
        lease: Terms {
            duration: Duration::from_millis(if seed % 4 == 3 { 1000 } else { 150 }),
            drift_ppm: 200_000,
        },
    }
}

/// How many lines of a trace are kept.
const TRACE_MAX: usize = 4000;

/// How many messages may be under way; more are lost.
const MESSAGES_MAX: usize = 30;

pub(super) struct Node {
    pub(super) member: Member,
    pub(super) boot: Boot,
    pub(super) disk: Disk,
    /// None while it is down.
    pub(super) replica: Option<Replica>,
    pub(super) applied: usize,
    /// Its clock: where it began, and its rate in parts of a thousand.
    clock: (Duration, u32),
}

/// Something on its way; replies to controllers are for whoever holds the request.
pub(super) enum Message {
    ToNode(NodeId, NodeId, Event),
    Reply(Command),
}

pub(super) struct World {
    pub(super) shape: Shape,
    pub(super) chance: Chance,
    pub(super) settings: Settings,
    pub(super) now: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) network: VecDeque<Message>,
    /// One-way.
    pub(super) cuts: Vec<(NodeId, NodeId)>,
    /// Hears neither catalog nor controllers.
    pub(super) deaf: Option<usize>,
    pub(super) catalog: Catalog,
    pub(super) controllers: [Option<Controller>; 2],
    pub(super) pending: Vec<Pending>,
    pub(super) asks: HashMap<Ask, (usize, u64)>,
    pub(super) next_number: u64,
    pub(super) claims: Vec<Claim>,
    pub(super) claiming: HashMap<Ask, Claim>,
    pub(super) is_seal_wanted: bool,
    /// No trouble any more.
    pub(super) is_calm: bool,
    /// More trouble than work.
    pub(super) is_rough: bool,
    /// How often a lease was found valid.
    pub(super) leases: u64,
    pub(super) truth: Truth,
    pub(super) events: u64,
    /// The last steps in words, if asked for.
    pub(super) trace: Option<VecDeque<String>>,
    pub(super) next_record: u32,
    commands: Vec<Command>,
}

impl World {
    pub(super) fn new(shape: Shape, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let ids = 0..shape.nodes as u32;
        let leaders: Vec<_> = ids
            .clone()
            .map(|id| Leader {
                node: NodeId(id),
                incarnation: Incarnation(u64::from(id) + 1),
                boot: Boot(1),
            })
            .collect();
        let members = leaders[..shape.members]
            .iter()
            .map(|leader| leader.member());
        let first = Opened {
            epoch: LeaderEpoch(0),
            start: Offset(0),
            leader: leaders[0],
            members: members.collect(),
            quorum: shape.quorum,
            has_table: true,
            leases: Vec::new(),
        };
        let nodes = leaders.iter().map(|leader| Node {
            member: leader.member(),
            boot: leader.boot,
            disk: Disk::default(),
            replica: Some(Replica::new(
                leader.member(),
                leader.boot,
                LeaderEpoch(0),
                &[],
                settings(seed),
            )),
            applied: 0,
            clock: (
                Duration::from_secs(chance.below(100_000) as u64),
                1000 + chance.below(200) as u32,
            ),
        });
        Self {
            shape,
            settings: settings(seed),
            nodes: nodes.collect(),
            chance,
            now: Duration::ZERO,
            network: VecDeque::new(),
            cuts: Vec::new(),
            deaf: None,
            catalog: Catalog::new(&leaders, first, shape.switch),
            controllers: [None, None],
            pending: Vec::new(),
            asks: HashMap::new(),
            next_number: 1000,
            claims: Vec::new(),
            claiming: HashMap::new(),
            is_seal_wanted: false,
            is_calm: false,
            is_rough: seed % 2 == 1,
            leases: 0,
            truth: Truth::default(),
            events: 0,
            trace: None,
            next_record: 0,
            commands: Vec::new(),
        }
    }

    pub(super) fn id(at: usize) -> NodeId {
        NodeId(at as u32)
    }

    pub(super) fn clock(&self, at: usize) -> Duration {
        let (began, rate) = self.nodes[at].clock;
        began + self.now * rate / 1000
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Hands an event to a node's replica and does what it commands.
    pub(super) fn step(&mut self, at: usize, event: Event) -> Result<(), Broken> {
        let now = self.clock(at);
        let run = match &event {
            Event::AppendArrived(append) => Some(append.run.clone()),
            Event::PieceArrived(piece) => Some(piece.run.clone()),
            _ => None,
        };
        let mut out = std::mem::take(&mut self.commands);
        let Some(replica) = &mut self.nodes[at].replica else {
            return Ok(());
        };
        self.events += 1;
        let words = self.trace.is_some().then(|| format!("{event:?}"));
        replica.step(now, event, &mut out);
        if let Some(words) = words {
            self.say(format!("node {at}: {words}"));
            for command in &out {
                self.say(format!("    {command:?}"));
            }
        }
        for command in std::mem::take(&mut out) {
            self.execute(at, command, run.as_ref())?;
        }
        self.commands = out;
        Ok(())
    }

    pub(super) fn say(&mut self, words: String) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_MAX {
                trace.pop_front();
            }
            trace.push_back(words);
        }
    }

    fn execute(&mut self, at: usize, command: Command, run: Option<&Run>) -> Result<(), Broken> {
        let id = Self::id(at);
        let disk = &mut self.nodes[at].disk;
        match command {
            Command::Open {
                epoch,
                start,
                since,
            } => disk.write(Record::Open(epoch, start, since)),
            Command::Append {
                epoch,
                first,
                count,
            } => {
                let run = run.expect("batches come with a message");
                self.store(at, epoch, run, first, count)?;
            }
            Command::Fence { fence, number } => disk.write(Record::Fence(fence, number)),
            Command::Truncate { epoch, end } => disk.write(Record::Truncate(epoch, end)),
            Command::Forget(epoch) => disk.write(Record::Forget(epoch)),
            Command::Send(send) => self.send_append(at, &send)?,
            Command::Answer(answer) => self.post(id, answer.to.node, Event::Answered(answer)),
            Command::Pull(pull) => self.post(id, pull.to.node, Event::PullArrived(pull)),
            Command::Give(pull) => {
                let count = 1 + self.chance.below(3);
                let stored = &self.nodes[at].disk.memory.generations[&pull.epoch];
                let piece = Piece {
                    from: pull.to,
                    to: pull.from,
                    epoch: pull.epoch,
                    run: stored.run(pull.base, pull.end, count),
                };
                self.post(id, pull.from.node, Event::PieceArrived(piece));
            }
            Command::AskLease(renew) => self.post(id, renew.to.node, Event::LeaseAsked(renew)),
            Command::GrantLease(renew) => {
                self.post(id, renew.from.node, Event::LeaseGranted(renew));
            }
            Command::Copied { ask, .. } if self.claiming.contains_key(&ask) => {
                self.claims.push(self.claiming[&ask]);
            }
            reply @ (Command::Fenced { .. } | Command::Copied { .. } | Command::Refuse { .. }) => {
                self.network.push_back(Message::Reply(reply));
            }
            Command::Committed { epoch, offset } => self.committed(at, epoch, offset)?,
            Command::AskForSeal { .. } => self.is_seal_wanted = true,
            Command::Ended { .. } => {}
            Command::Damaged { epoch, at: offset } => {
                return Err(format!("node {id} differs at {offset} of epoch {epoch}"));
            }
        }
        Ok(())
    }

    pub(super) fn post(&mut self, from: NodeId, to: NodeId, event: Event) {
        if self.network.len() < MESSAGES_MAX || self.is_calm {
            self.network.push_back(Message::ToNode(from, to, event));
        }
    }

    fn store(
        &mut self,
        at: usize,
        epoch: LeaderEpoch,
        run: &Run,
        first: usize,
        count: usize,
    ) -> Result<(), Broken> {
        let batches = run.batches();
        for number in first..first + count {
            let base = match number.checked_sub(1) {
                Some(before) => batches[before].end,
                None => run.base(),
            };
            let disk = &mut self.nodes[at].disk;
            let follows = disk.memory.generations[&epoch].end();
            self.truth.stored(epoch, base, batches[number], follows)?;
            disk.write(Record::Append(epoch, base, batches[number]));
        }
        Ok(())
    }

    fn send_append(&mut self, at: usize, send: &crate::replica::Send) -> Result<(), Broken> {
        let stored = &self.nodes[at].disk.memory.generations[&send.epoch];
        let run = stored.run(send.base, Offset(u64::MAX), send.bytes_max);
        let sent = Sent {
            to: send.to,
            session: send.session,
            end: run.end(),
            bytes: run.batches().len(),
        };
        let append = Append {
            from: send.from,
            to: send.to,
            epoch: send.epoch,
            start: send.start,
            session: send.session,
            commit: send.commit,
            run,
        };
        self.post(Self::id(at), send.to.node, Event::AppendArrived(append));
        self.step(at, Event::Sent(sent))
    }

    /// The leader answers its producers.
    fn committed(&mut self, at: usize, epoch: LeaderEpoch, offset: Offset) -> Result<(), Broken> {
        if let Some(sealed) = self.catalog.sealed(epoch)
            && offset > sealed.end
        {
            return Err(format!(
                "{offset} acknowledged in epoch {epoch}, which ends at {}",
                sealed.end
            ));
        }
        let stored = &self.nodes[at].disk.memory.generations[&epoch];
        for (base, batch) in stored.batches.iter().rev() {
            if batch.end > offset {
                continue;
            }
            if self.truth.acked.contains_key(base) {
                break;
            }
            self.truth.acked(epoch, *base, *batch)?;
        }
        self.check_leases()
    }
}
