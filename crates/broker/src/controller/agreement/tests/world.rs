//! Nodes with what ships in them, the network between them, and what must hold of all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use floe_cluster::consensus::{Body, Configuration, Message, Role};
use floe_cluster::{Applied, Command, Effect, format};
use floe_log::{Config, Durable, Events, Failure, Log, Setup, Step};
use floe_model::{Boot, NodeId, PartitionIndex, TopicId, TopicPartition};
use floe_replication::Member;
use floe_world::clock::Manual;
use floe_world::disk::Simulated;
use floe_world::random::Seeded;
use floe_world::{Clock as _, Pool, Random as _};
use parking_lot::Mutex;

use super::super::{Agreement, Do, Event};
use super::id;
use crate::Unavailable;
use crate::controller::asks::Ticket;
use crate::controller::stores::Stores;
use crate::controller::stream::{self, CATALOG_GROUP};
use crate::exchange::Heard;
use crate::peers::{self, End, Handler, Line, Lost, Network, Peer, Transport};

const STEP: Duration = Duration::from_millis(5);
const CATALOG: TopicPartition = TopicPartition {
    topic: TopicId::ZERO,
    partition: PartitionIndex(0),
};

#[derive(Default)]
struct Inbox(Mutex<VecDeque<Heard>>);

impl Handler for Inbox {
    fn connected(&self, peer: Peer) {
        self.0.lock().push_back(Heard::Connected(peer));
    }
    fn received(&self, from: Peer, message: peers::Message) {
        self.0.lock().push_back(Heard::Said(from, message));
    }
    fn disconnected(&self, peer: Peer, why: &Lost) {
        let why = why.to_string();
        self.0.lock().push_back(Heard::Disconnected(peer, why));
    }
    fn is_gone(&self, node: NodeId) {
        self.0.lock().push_back(Heard::Gone(node));
    }
}

struct Silent;

impl Events for Silent {
    fn durable(&self, _: &[Durable]) {}
    fn failed(&self, _: Failure) {}
}

/// One life of a process.
struct Life {
    agreement: Agreement,
    stores: Stores,
    log: Log,
    end: Arc<End>,
    inbox: Arc<Inbox>,
    me: Member,
}

pub(super) struct Node {
    disk: Simulated,
    life: Option<Life>,
}

impl Node {
    fn alive(&self) -> &Life {
        self.life.as_ref().expect("it is alive")
    }

    pub(super) fn is_alive(&self) -> bool {
        self.life.is_some()
    }

    /// Groups that its journal has flushed.
    pub(super) fn flushes(&self) -> u64 {
        self.alive().log.groups()
    }

    pub(super) fn index(&self) -> u64 {
        self.alive().agreement.catalog().index
    }

    pub(super) fn term(&self) -> u64 {
        self.alive().agreement.leadership().term
    }

    pub(super) fn member(&self) -> Member {
        self.alive().me
    }
}

/// What came of a proposal: the place of its ids among all.
type Outcome = Result<u64, Unavailable>;

pub(super) struct World {
    seed: u64,
    pub(super) nodes: Vec<Node>,
    network: Arc<Network>,
    clock: Arc<Manual>,
    random: Arc<Seeded>,
    proposed: u32,
    answers: BTreeMap<u32, Outcome>,
    asked: BTreeMap<u32, (usize, Ticket)>,
    /// By proposal: the place of its ids, wherever it was applied.
    seen: BTreeMap<u32, u64>,
    /// By index of the catalog: what it was, on whichever node.
    catalogs: BTreeMap<u64, u64>,
    /// Nodes that must not be relied on to remember.
    pub(super) leaps: u64,
    listed: BTreeSet<NodeId>,
    /// Nodes whose disk does nothing for now.
    pub(super) stuck: BTreeSet<usize>,
}

impl World {
    /// The first node has a cluster of its own; the others have none.
    pub(super) fn new(seed: u64, nodes: usize) -> Self {
        let random = Arc::new(Seeded::new(seed));
        let mut world = Self {
            seed,
            nodes: Vec::new(),
            network: Network::new(seed, peers::Settings::default()),
            clock: Arc::default(),
            random,
            proposed: 0,
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            seen: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            leaps: 0,
            listed: BTreeSet::new(),
            stuck: BTreeSet::new(),
        };
        for place in 0..nodes {
            let disk = Simulated::new(seed * 100 + place as u64);
            world.nodes.push(Node { disk, life: None });
            world.restart(place);
        }
        world
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(super) fn chance(&self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    /// A process begins on what its disk holds.
    pub(super) fn restart(&mut self, place: usize) {
        assert!(self.nodes[place].life.is_none());
        let setup = Setup {
            disk: Arc::new(self.nodes[place].disk.clone()),
            dir: Path::new("/data").to_owned(),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::clone(&self.random) as _,
            tail: Pool::new(8 << 20),
            reads: Pool::new(1 << 20),
            config: Config {
                node: id(place),
                ring_bytes: 8 << 20,
                group_bytes_max: 1 << 20,
                ..Config::default()
            },
        };
        let (log, recovered) = Log::open(setup).unwrap();
        log.attach(Arc::new(Silent));
        let bound = log.bind(CATALOG);
        while !bound.is_resolved() {
            work(&log);
        }
        let me = Member {
            node: id(place),
            incarnation: bound.wait().unwrap(),
        };
        let unrecorded = if place == 0 && self.listed.is_empty() {
            Configuration::alone(me)
        } else {
            Configuration::default()
        };
        self.listed.insert(me.node);
        let stream = recovered
            .streams
            .iter()
            .find(|stream| stream.group == CATALOG_GROUP);
        let unrecorded = match stream {
            // What a node that began alone says of itself until others are recorded.
            Some(_) if place == 0 => Configuration::alone(me),
            _ => unrecorded,
        };
        let stream = stream.cloned().unwrap_or_default();
        let seed = self.random.next_u64();
        let agreement = Agreement::resume(me, unrecorded, &stream, seed).unwrap();
        let inbox = Arc::new(Inbox::default());
        let peer = Peer {
            node: me.node,
            incarnation: me.incarnation,
            boot: Boot(recovered.boot.0),
            cluster: None,
        };
        let end = self.network.join(peer, Arc::clone(&inbox) as _);
        let stores = Stores::new(log.clone());
        self.nodes[place].life = Some(Life {
            agreement,
            stores,
            log,
            end,
            inbox,
            me,
        });
    }

    /// A process ends; with its power, what was not flushed may be gone.
    pub(super) fn crash(&mut self, place: usize, power: bool) {
        let node = &mut self.nodes[place];
        if node.life.take().is_none() {
            return;
        }
        node.disk = if power {
            node.disk.after_power_cut()
        } else {
            node.disk.after_crash()
        };
        self.network.leave(id(place));
        self.asked.retain(|_, (at, _)| *at != place);
    }

    /// The data directory is lost.
    pub(super) fn wipe(&mut self, place: usize) {
        let seed = self.random.next_u64();
        self.nodes[place].disk = Simulated::new(seed);
    }

    /// Cut off from all others, or no more.
    pub(super) fn cut(&mut self, place: usize, is_cut: bool) {
        for other in (0..self.nodes.len()).filter(|other| *other != place) {
            self.line(place, other, is_cut, 0);
            self.line(other, place, is_cut, 0);
        }
    }

    pub(super) fn line(&mut self, from: usize, to: usize, is_cut: bool, lost: u32) {
        let line = Line {
            is_cut,
            lost_per_million: lost,
            delay_us: 100..=3_000,
        };
        self.network.set(id(from), id(to), line);
    }

    pub(super) fn reconnect(&mut self, one: usize, other: usize) {
        self.network.disconnect(id(one), id(other));
        self.network.connect(id(one), id(other));
    }

    /// A command that nobody proposed before; its number.
    pub(super) fn propose(&mut self, place: usize) -> u32 {
        self.proposed += 1;
        let number = self.proposed;
        let ticket = Ticket(u64::from(number));
        self.asked.insert(number, (place, ticket));
        let command = format::encode(&Command::ReserveProducerIds(NodeId(number)));
        self.event(place, Event::Proposed(ticket, command));
        self.drain(place);
        number
    }

    pub(super) fn answer(&self, _place: usize, number: u32) -> Option<Outcome> {
        self.answers.get(&number).copied()
    }

    /// Whether the node has applied it: as far as its catalog says.
    pub(super) fn holds(&self, place: usize, number: u32) -> bool {
        let next = self.nodes[place]
            .alive()
            .agreement
            .catalog()
            .next_producer_id;
        self.seen.get(&number).is_some_and(|first| *first < next)
    }

    /// Says in another's name that an election of that term is on.
    pub(super) fn forge(&mut self, to: usize, by: usize, name: usize, term: u64) {
        let message = Message {
            from: self.nodes[name].member(),
            to: self.nodes[to].member(),
            term,
            body: Body::Alive {
                commit: 0,
                context: bytes::Bytes::new(),
            },
        };
        let bytes = format::encode_message(&message);
        let sent = self.nodes[by]
            .alive()
            .end
            .send(id(to), peers::Message::Consensus(bytes));
        sent.unwrap();
    }

    pub(super) fn leader(&self) -> Option<usize> {
        let all: Vec<_> = (0..self.nodes.len()).collect();
        self.leader_among(&all)
    }

    /// The one of the highest term, if several think so.
    pub(super) fn leader_among(&self, places: &[usize]) -> Option<usize> {
        let leads = |place: &&usize| {
            let life = self.nodes[**place].life.as_ref();
            life.is_some_and(|life| life.agreement.leadership().role == Role::Leader)
        };
        let leading = places.iter().filter(leads);
        leading
            .copied()
            .max_by_key(|place| self.nodes[*place].term())
    }

    /// How many vote, as all that are alive know: a change that only its leader knows of is lost with it.
    pub(super) fn voters(&self) -> usize {
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref());
        let voters = lives.map(|life| life.agreement.voter.configuration().voters.len());
        voters.min().unwrap_or_default()
    }

    pub(super) fn votes(&self, member: Member) -> bool {
        let leader = self.leader();
        leader.is_some_and(|leader| {
            let life = self.nodes[leader].alive();
            life.agreement
                .voter
                .configuration()
                .voters
                .contains(&member)
        })
    }

    /// Time goes on.
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.clock.advance(STEP);
            self.round();
        }
    }

    /// Everything that can happen without time.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            self.round();
        }
    }

    fn round(&mut self) {
        self.network
            .advance(self.now().saturating_sub(self.network.now()));
        for place in 0..self.nodes.len() {
            if self.nodes[place].is_alive() {
                self.event(place, Event::Ticked);
                self.reconcile(place);
                self.drain(place);
            }
        }
    }

    fn reconcile(&mut self, place: usize) {
        let life = self.nodes[place].life.as_mut().expect("it is alive");
        let agreement = &mut life.agreement;
        agreement.reform(&self.listed);
    }

    fn event(&mut self, place: usize, event: Event) {
        let mut out = Vec::new();
        let now = self.now();
        let life = self.nodes[place].life.as_mut().expect("it is alive");
        life.agreement.step(now, event, &mut out).unwrap();
        self.obey(place, out);
    }

    /// What a node does with what it has: as its task does.
    fn drain(&mut self, place: usize) {
        loop {
            let life = self.nodes[place].life.as_mut().expect("it is alive");
            let mut out = Vec::new();
            life.agreement.settle(&mut out).unwrap();
            let mut has_moved = !out.is_empty();
            self.obey(place, out);
            let life = self.nodes[place].life.as_mut().expect("it is alive");
            if !self.stuck.contains(&place) {
                has_moved |= work(&life.log);
            }
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(stored) = life.stores.poll(&mut context) {
                let (number, after) = stored.unwrap();
                for (to, message) in after {
                    self.send(place, to, message);
                }
                if number > 0 {
                    self.event(place, Event::Stored(number));
                }
                has_moved = true;
            }
            let life = self.nodes[place].life.as_mut().expect("it is alive");
            let heard = life.inbox.0.lock().pop_front();
            if let Some(heard) = heard {
                self.event(place, Event::Heard(heard));
                has_moved = true;
            }
            if !has_moved {
                return;
            }
        }
    }

    fn send(&mut self, place: usize, to: NodeId, message: peers::Message) {
        let end = &self.nodes[place].alive().end;
        if end.send(to, message.clone()).is_err() {
            self.event(place, Event::Unsent(to, message));
        }
    }

    fn obey(&mut self, place: usize, out: Vec<Do>) {
        for todo in out {
            let life = self.nodes[place].life.as_mut().expect("it is alive");
            match todo {
                Do::Send(to, message) => self.send(place, to, message),
                Do::Store(store) => life.stores.add(store),
                Do::Shorten(snapshot) => {
                    life.log.compact(CATALOG_GROUP, stream::snapshot(snapshot));
                }
                Do::Led(_) => {}
                Do::Carry(carry) => {
                    self.leaps += u64::from(carry.leapt);
                    let digest = digest(&carry.catalog);
                    let known = *self.catalogs.entry(carry.catalog.index).or_insert(digest);
                    assert_eq!(known, digest, "seed {}: one catalog at an index", self.seed);
                    for effect in &carry.effects {
                        self.saw(effect);
                    }
                    for (ticket, outcome) in carry.answers {
                        self.answered(place, ticket, outcome);
                    }
                }
            }
        }
    }

    fn saw(&mut self, effect: &Effect) {
        if let Effect::ProducerIdsReserved { node, first, .. } = effect {
            let known = *self.seen.entry(node.0).or_insert(*first);
            assert_eq!(known, *first, "seed {}: {node} is applied once", self.seed);
        }
    }

    fn answered(&mut self, place: usize, ticket: Ticket, outcome: Result<Applied, Unavailable>) {
        let number = ticket.0 as u32;
        assert_eq!(self.asked.remove(&number), Some((place, ticket)));
        let outcome = outcome.map(|applied| {
            let [Effect::ProducerIdsReserved { node, first, .. }] = applied.effects[..] else {
                panic!("seed {}: {applied:?}", self.seed);
            };
            assert_eq!(node.0, number, "seed {}", self.seed);
            first
        });
        self.answers.insert(number, outcome);
    }

    /// Runs until it holds.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = self.now() + Duration::from_secs(30);
        while !holds(self) {
            assert!(
                self.now() < end,
                "seed {}: not within 30 s: {what}",
                self.seed
            );
            self.run(STEP);
        }
    }

    /// All are there and nothing is in the way: they come to agree.
    pub(super) fn agree(&mut self) {
        self.until("everything is applied everywhere", |world| {
            let indexes: BTreeSet<_> = world.nodes.iter().map(Node::index).collect();
            world.voters() == world.nodes.len() && indexes.len() == 1 && world.leader().is_some()
        });
        let mut last = 0;
        while !matches!(self.answers.get(&last), Some(Ok(_))) {
            last = self.propose(0);
            self.until("it is answered", |world| world.answers.contains_key(&last));
        }
        self.until("the last one is applied everywhere", |world| {
            (0..world.nodes.len()).all(|place| world.holds(place, last))
        });
        self.run(Duration::from_millis(500));
        let catalogs = self.nodes.iter().map(|node| {
            let catalog = node.alive().agreement.catalog();
            (catalog.index, digest(catalog))
        });
        let catalogs: BTreeSet<_> = catalogs.collect();
        assert_eq!(catalogs.len(), 1, "seed {}: {catalogs:?}", self.seed);
    }

    /// What must hold of all that was proposed: once or not at all, as it was said.
    pub(super) fn check(&self) {
        let mut places = BTreeSet::new();
        for (number, first) in &self.seen {
            assert!(places.insert(*first), "seed {}: {number}", self.seed);
        }
        for (number, outcome) in &self.answers {
            let seen = self.seen.get(number).copied();
            match outcome {
                Ok(first) => assert_eq!(seen, Some(*first), "seed {}: {number}", self.seed),
                Err(Unavailable::NotAgreed) => {
                    assert_eq!(seen, None, "seed {}: {number} was not to hold", self.seed);
                }
                Err(_) => {}
            }
        }
    }

    /// What a run came to, to be compared.
    pub(super) fn summary(&self) -> (u64, usize, usize, u64) {
        let agreed = self.answers.values().filter(|outcome| outcome.is_ok());
        let last = self.catalogs.last_key_value();
        let (index, digest) = last.map_or((0, 0), |(index, digest)| (*index, *digest));
        (index, self.answers.len(), agreed.count(), digest)
    }
}

fn digest(catalog: &floe_cluster::Catalog) -> u64 {
    let bytes = format::encode_snapshot(catalog);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// One round of the log's threads; whether there was anything to do.
fn work(log: &Log) -> bool {
    let steps = [
        log.step_journal(),
        log.step_checkpoint(),
        log.step_segments(),
    ];
    steps.contains(&Step::Worked)
}
