//! The way between nodes in memory, under the control of a test or the simulator: loss, delay, cuts in one direction.
//!
//! Guarantees: decided by the seed and the calls alone, so that one seed gives one run; messages go through their frames as on
//! a wire; those of one lane arrive in the order they were sent. Nothing happens between two calls of [`Network::step`] but
//! what handlers send, and that arrives at a later step. Has no threads and no clock: time is what [`Network::step`] says.
//!
//! A message that is lost or cut is gone and its connection stands, which is harsher than TCP: there it would have to end first.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use floe_model::NodeId;
use floe_wire::peer::Kind;
use floe_wire::peer::frame::{HEAD_BYTES_MAX, PREAMBLE_BYTES};
use floe_world::Random as _;
use floe_world::random::Seeded;
use parking_lot::Mutex;

use super::message::{self, draw};
use super::{Handler, Lane, Lost, Message, Peer, Settings, Transport, Unsent};

/// How messages go from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Nothing arrives.
    pub is_cut: bool,
    /// How many of a million messages are lost.
    pub lost_per_million: u32,
    /// How long one takes, in microseconds.
    pub delay_us: RangeInclusive<u64>,
}

impl Default for Line {
    /// Nothing is lost, all take 100 µs.
    fn default() -> Self {
        Self {
            is_cut: false,
            lost_per_million: 0,
            delay_us: 100..=100,
        }
    }
}

/// Nodes and the lines between them.
pub struct Network {
    settings: Settings,
    random: Seeded,
    state: Mutex<State>,
}

/// One node's end of it.
pub struct End {
    network: Arc<Network>,
    me: Peer,
}

#[derive(Default)]
struct State {
    now: Duration,
    number: u64,
    nodes: BTreeMap<NodeId, Node>,
    lines: BTreeMap<(NodeId, NodeId), Line>,
    /// By time of arrival, then by order of sending.
    events: BTreeMap<(Duration, u64), Event>,
    ways: BTreeMap<(NodeId, NodeId, Lane), Way>,
    /// Connections that stand, the lower node first, and their number.
    connections: BTreeMap<(NodeId, NodeId), u64>,
}

#[derive(Clone)]
struct Node {
    peer: Peer,
    handler: Arc<dyn Handler>,
}

/// What is on its way in one direction.
#[derive(Default)]
struct Way {
    bytes: usize,
    /// The last arrival: none is earlier.
    last: Duration,
}

enum Event {
    Connected { to: NodeId, peer: Peer },
    Gone { to: NodeId, node: NodeId },
    Disconnected { to: NodeId, peer: Peer, why: Lost },
    Arrived(Arrival),
}

struct Arrival {
    from: Peer,
    to: NodeId,
    connection: u64,
    lane: Lane,
    bytes: usize,
    is_lost: bool,
    kind: Kind,
    head: Vec<u8>,
    body: Bytes,
}

impl Network {
    /// Nobody is in it yet. Of the settings only the sizes count.
    pub fn new(seed: u64, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            random: Seeded::new(seed),
            state: Mutex::default(),
        })
    }

    /// A node comes up; it is connected with all that are here. One with its id must have left.
    pub fn join(self: &Arc<Self>, me: Peer, handler: Arc<dyn Handler>) -> Arc<End> {
        let mut state = self.state.lock();
        let node = Node { peer: me, handler };
        let before = state.nodes.insert(me.node, node);
        assert!(before.is_none(), "node {} is here twice", me.node);
        let others: Vec<NodeId> = state.nodes.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != me.node) {
            state.connect(me.node, other);
        }
        drop(state);
        Arc::new(End {
            network: Arc::clone(self),
            me,
        })
    }

    /// A node's process is over; the others learn it as a closed connection, and that nobody listens.
    pub fn leave(&self, node: NodeId) {
        let mut state = self.state.lock();
        let others: Vec<NodeId> = state.nodes.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != node) {
            if state.disconnect(node, other) {
                state.say(Event::Gone { to: other, node });
            }
        }
        state.nodes.remove(&node);
        // It learns nothing of this: nor does the process that may come after it.
        state.events.retain(|_, event| match event {
            Event::Arrived(_) => true,
            Event::Connected { to, .. }
            | Event::Gone { to, .. }
            | Event::Disconnected { to, .. } => *to != node,
        });
    }

    /// How messages go from now on, in one direction.
    pub fn set(&self, from: NodeId, to: NodeId, line: Line) {
        self.state.lock().lines.insert((from, to), line);
    }

    /// A connection ends; all on its way is lost.
    pub fn disconnect(&self, one: NodeId, other: NodeId) {
        self.state.lock().disconnect(one, other);
    }

    /// A connection that ended begins again, if both are here.
    pub fn connect(&self, one: NodeId, other: NodeId) {
        self.state.lock().connect(one, other);
    }

    /// Time of the network.
    pub fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// When the next thing happens, if anything is under way.
    pub fn next_at(&self) -> Option<Duration> {
        let state = self.state.lock();
        state.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Time goes on to the next thing that happens, not beyond `until`, and it happens. Whether there was one.
    pub fn step(&self, until: Duration) -> bool {
        let mut state = self.state.lock();
        let next = state.events.first_entry();
        let Some(next) = next.filter(|entry| entry.key().0 <= until) else {
            state.now = state.now.max(until);
            return false;
        };
        let ((at, _), event) = next.remove_entry();
        state.now = state.now.max(at);
        // Order: handlers send, so they are called without the lock.
        match event {
            Event::Connected { to, peer } => {
                let node = state.nodes.get(&to).cloned();
                drop(state);
                node.inspect(|node| node.handler.connected(peer));
            }
            Event::Gone { to, node: gone } => {
                let node = state.nodes.get(&to).cloned();
                drop(state);
                node.inspect(|node| node.handler.is_gone(gone));
            }
            Event::Disconnected { to, peer, why } => {
                let node = state.nodes.get(&to).cloned();
                drop(state);
                node.inspect(|node| node.handler.disconnected(peer, &why));
            }
            Event::Arrived(arrival) => {
                let node = state.arrived(&arrival);
                drop(state);
                if let Some(node) = node {
                    let message = message::read(arrival.kind, &arrival.head, arrival.body)
                        .expect("what was drawn can be read");
                    node.handler.received(arrival.from, message);
                }
            }
        }
        true
    }

    /// All that happens within that time.
    pub fn advance(&self, by: Duration) {
        let until = self.now() + by;
        while self.step(until) {}
    }
}

impl State {
    fn schedule(&mut self, at: Duration, event: Event) {
        self.number += 1;
        self.events.insert((at, self.number), event);
    }

    fn say(&mut self, event: Event) {
        self.schedule(self.now, event);
    }

    fn connect(&mut self, one: NodeId, other: NodeId) {
        let pair = (one.min(other), one.max(other));
        let here = |node| self.nodes.get(&node).map(|node: &Node| node.peer);
        let (Some(low), Some(high)) = (here(pair.0), here(pair.1)) else {
            return;
        };
        if self.connections.contains_key(&pair) {
            return;
        }
        self.number += 1;
        self.connections.insert(pair, self.number);
        let (to_low, to_high) = (pair.0, pair.1);
        self.say(Event::Connected {
            to: to_low,
            peer: high,
        });
        self.say(Event::Connected {
            to: to_high,
            peer: low,
        });
    }

    /// Whether there was a connection.
    fn disconnect(&mut self, one: NodeId, other: NodeId) -> bool {
        let pair = (one.min(other), one.max(other));
        if self.connections.remove(&pair).is_none() {
            return false;
        }
        for (to, from) in [pair, (pair.1, pair.0)] {
            let peer = self.nodes[&from].peer;
            let why = Lost::Closed;
            self.say(Event::Disconnected { to, peer, why });
        }
        true
    }

    /// Who receives it, if it arrives.
    fn arrived(&mut self, arrival: &Arrival) -> Option<Node> {
        let (from, to) = (arrival.from.node, arrival.to);
        let way = self.ways.entry((from, to, arrival.lane)).or_default();
        way.bytes -= arrival.bytes;
        let stands = self.connections.get(&(from.min(to), from.max(to)));
        let is_cut = self.lines.get(&(from, to)).is_some_and(|line| line.is_cut);
        if arrival.is_lost || is_cut || stands != Some(&arrival.connection) {
            return None;
        }
        self.nodes.get(&to).cloned()
    }
}

impl Transport for End {
    fn send(&self, to: NodeId, message: Message) -> Result<(), Unsent> {
        let network = &*self.network;
        let (from, lane) = (self.me.node, message.lane());
        let frame = draw(message);
        let mut state = network.state.lock();
        let connection = state.connections.get(&(from.min(to), from.max(to)));
        let is_me = state
            .nodes
            .get(&from)
            .is_some_and(|node| node.peer == self.me);
        let connection = *connection
            .filter(|_| is_me)
            .ok_or(Unsent::Disconnected(to))?;
        let body_max = network.settings.body_bytes_max_of(lane);
        for (bytes, limit) in [
            (frame.head.len(), HEAD_BYTES_MAX),
            (frame.body_bytes, body_max),
        ] {
            if bytes > limit {
                return Err(Unsent::Large { bytes, limit });
            }
        }
        let line = state.lines.get(&(from, to)).cloned().unwrap_or_default();
        let now = state.now;
        let bytes = PREAMBLE_BYTES + frame.head.len() + frame.body_bytes;
        let limit = network.settings.queue_bytes_of(lane);
        let way = state.ways.entry((from, to, lane)).or_default();
        if way.bytes > 0 && way.bytes + bytes > limit {
            let waiting = way.bytes;
            return Err(Unsent::Full {
                to,
                lane,
                waiting,
                limit,
            });
        }
        way.bytes += bytes;
        let chance = network.random.next_u64();
        let span = line.delay_us.end().saturating_sub(*line.delay_us.start()) + 1;
        let delay = line.delay_us.start() + (chance >> 32) % span;
        way.last = way.last.max(now + Duration::from_micros(delay));
        let at = way.last;
        let mut body = BytesMut::with_capacity(frame.body_bytes);
        for part in &frame.body {
            body.extend_from_slice(part);
        }
        let arrival = Arrival {
            from: self.me,
            to,
            connection,
            lane,
            bytes,
            is_lost: chance % 1_000_000 < u64::from(line.lost_per_million),
            kind: frame.kind,
            head: frame.head,
            body: body.freeze(),
        };
        state.schedule(at, Event::Arrived(arrival));
        Ok(())
    }

    fn peer(&self, node: NodeId) -> Option<Peer> {
        let state = self.network.state.lock();
        let from = self.me.node;
        let stands = state
            .connections
            .contains_key(&(from.min(node), from.max(node)));
        let is_me = state
            .nodes
            .get(&from)
            .is_some_and(|here| here.peer == self.me);
        let other = state.nodes.get(&node).filter(|_| stands && is_me)?;
        Some(other.peer)
    }
}

#[cfg(test)]
mod tests;
