//! The suite of every way between nodes, and what only this one does.

use floe_model::{Boot, Incarnation};

use super::*;
use crate::peers::conformance::{ONE, Recorder, Rig, TWO, conforms, heartbeat};

fn peer(node: u32) -> Peer {
    Peer {
        node: NodeId(node),
        incarnation: Incarnation(u64::from(node)),
        boot: Boot(1),
        cluster: None,
    }
}

struct Pair {
    network: Arc<Network>,
    ends: [Arc<End>; 2],
    seen: [Arc<Recorder>; 2],
}

fn pair(seed: u64) -> Pair {
    of(seed, Settings::default())
}

fn of(seed: u64, settings: Settings) -> Pair {
    let network = Network::new(seed, settings);
    let seen = [(); 2].map(|()| Arc::new(Recorder::default()));
    let end = |at: usize| network.join(peer(at as u32 + 1), seen[at].clone());
    let ends = [end(0), end(1)];
    network.advance(Duration::from_millis(1));
    Pair {
        network,
        ends,
        seen,
    }
}

impl Rig for Pair {
    async fn new(settings: Settings) -> Self {
        of(1, settings)
    }

    fn end(&self, node: u32) -> Arc<dyn Transport> {
        self.ends[node as usize - 1].clone()
    }

    fn seen(&self, node: u32) -> &Arc<Recorder> {
        &self.seen[node as usize - 1]
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = self.network.now() + Duration::from_mins(1);
        while !holds() {
            assert!(self.network.now() < end, "not within a minute: {what}");
            self.network.advance(Duration::from_millis(1));
        }
    }

    async fn interrupt(&self) {
        self.network.disconnect(ONE, TWO);
        self.network.connect(ONE, TWO);
    }
}

conforms!(Pair);

impl Pair {
    fn send(&self, from: usize, number: u64) {
        let to = NodeId(2 - from as u32);
        self.ends[from].send(to, heartbeat(number)).unwrap();
    }
}

#[test]
fn a_line_that_is_cut_in_one_direction_lets_the_other_through() {
    let pair = pair(1);
    let cut = Line {
        is_cut: true,
        ..Line::default()
    };
    pair.network.set(NodeId(1), NodeId(2), cut);
    pair.send(0, 1);
    pair.send(1, 2);
    pair.network.advance(Duration::from_secs(1));
    assert_eq!(pair.seen[1].numbers(), []);
    assert_eq!(pair.seen[0].numbers(), [2]);
    pair.network.set(NodeId(1), NodeId(2), Line::default());
    pair.send(0, 3);
    pair.network.advance(Duration::from_secs(1));
    assert_eq!(pair.seen[1].numbers(), [3], "what was cut is gone");
}

#[test]
fn one_seed_loses_the_same_messages_and_another_seed_others() {
    let run = |seed| {
        let pair = pair(seed);
        let line = Line {
            is_cut: false,
            lost_per_million: 200_000,
            delay_us: 50..=5_000,
        };
        pair.network.set(NodeId(1), NodeId(2), line);
        for number in 0..200 {
            pair.send(0, number);
            pair.network.advance(Duration::from_micros(100));
        }
        pair.network.advance(Duration::from_secs(1));
        pair.seen[1].numbers()
    };
    let first = run(7);
    assert!((120..200).contains(&first.len()), "{}", first.len());
    assert!(first.is_sorted(), "in order, whatever each took");
    assert_eq!(run(7), first);
    assert_ne!(run(8), first);
}

#[test]
fn what_was_under_way_when_a_connection_ended_never_arrives_on_the_next_one() {
    let pair = pair(1);
    pair.send(0, 1);
    pair.network.disconnect(NodeId(1), NodeId(2));
    pair.network.connect(NodeId(1), NodeId(2));
    pair.send(0, 2);
    pair.network.advance(Duration::from_secs(1));
    assert_eq!(pair.seen[1].numbers(), [2]);
}

#[test]
fn a_node_that_left_is_gone_for_the_others_and_sends_nothing_any_more() {
    let pair = pair(1);
    pair.network.leave(NodeId(2));
    pair.network.advance(Duration::from_secs(1));
    assert_eq!(pair.seen[0].gone(), [NodeId(2)]);
    let refused = Unsent::Disconnected(NodeId(1));
    assert_eq!(pair.ends[1].send(NodeId(1), heartbeat(1)), Err(refused));
    let again = Peer {
        boot: Boot(2),
        ..peer(2)
    };
    pair.network.join(again, pair.seen[1].clone());
    assert_eq!(
        pair.ends[1].send(NodeId(1), heartbeat(1)),
        Err(refused),
        "an earlier boot"
    );
    assert_eq!(pair.ends[0].peer(NodeId(2)), Some(again));
}

#[test]
fn a_node_that_comes_back_at_once_hears_nothing_of_the_connections_of_its_earlier_process() {
    let pair = pair(1);
    pair.send(0, 1);
    pair.network.leave(TWO);
    let seen = Arc::new(Recorder::default());
    pair.network.join(peer(2), seen.clone());
    pair.network.advance(Duration::from_secs(1));
    assert!(seen.is_connected(ONE) && pair.seen[0].is_connected(TWO));
    assert_eq!((seen.lost().len(), seen.count()), (0, 0));
    assert_eq!(pair.seen[0].lost().len(), 1);
}
