//! Two nodes over loopback: the suite of every way between nodes, and what only sockets do.

mod bad;
mod load;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use floe_model::NodeId;
use floe_wire::peer::Versions;
use floe_world::{Pool, clock, random};
use tokio::net::{TcpListener, TcpStream};

use crate::peers::conformance::{ONE, Recorder, Rig, TWO, conforms};
use crate::peers::handshake::tests::me;
use crate::peers::{Address, Handler, List, Lost, Me, Metrics, Settings, Transport};

use super::{Roster, Setup, Tcp};

/// A node that listens.
struct Node {
    tcp: Arc<Tcp>,
    seen: Arc<Recorder>,
    metrics: Metrics,
}

struct Pair {
    nodes: [Node; 2],
}

/// Bound by the system; nobody answers yet.
async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

fn list(nodes: &[(u32, SocketAddr)]) -> List {
    let address = |at: SocketAddr| Address {
        host: at.ip().to_string(),
        port: at.port(),
    };
    let nodes = nodes.iter().map(|(id, at)| (NodeId(*id), address(*at)));
    nodes.collect()
}

fn setup(me: Me, list: List, settings: Settings, handler: Arc<dyn Handler>) -> Setup {
    Setup {
        me,
        roster: Roster {
            list,
            ..Roster::default()
        },
        settings,
        handler,
        clock: Arc::new(clock::System),
        random: Arc::new(random::System),
        memory: Pool::new(64 << 20),
        metrics: Metrics::default(),
    }
}

fn start(me: Me, listener: TcpListener, list: List, settings: Settings) -> Node {
    let seen = Arc::new(Recorder::default());
    let setup = setup(me, list, settings, seen.clone());
    Node {
        metrics: setup.metrics.clone(),
        tcp: Arc::new(Tcp::start(listener, setup)),
        seen,
    }
}

/// Waits until that holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), wait).await;
    assert!(waited.is_ok(), "not within a minute: {what}");
}

impl Rig for Pair {
    async fn new(settings: Settings) -> Self {
        let (one, at_one) = bind().await;
        let (two, at_two) = bind().await;
        let list = list(&[(1, at_one), (2, at_two)]);
        let node = |id, listener| start(me(id), listener, list.clone(), settings.clone());
        Self {
            nodes: [node(1, one), node(2, two)],
        }
    }

    fn end(&self, node: u32) -> Arc<dyn Transport> {
        self.nodes[node as usize - 1].tcp.clone()
    }

    fn seen(&self, node: u32) -> &Arc<Recorder> {
        &self.nodes[node as usize - 1].seen
    }

    async fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        until(what, holds).await;
    }

    async fn interrupt(&self) {
        let place = self.nodes[1].tcp.0.place(ONE).unwrap();
        place.end(Lost::Replaced);
    }
}

conforms!(Pair);

#[tokio::test]
async fn a_node_that_starts_again_is_connected_again_under_its_new_boot() {
    let pair = Pair::new(Settings::default()).await;
    crate::peers::conformance::connected(&pair).await;
    let [one, two] = &pair.nodes;
    let address = two.tcp.0.address(TWO).unwrap();
    two.tcp.stop().await;
    until("it is gone", || {
        !one.seen.is_connected(TWO) && one.seen.gone().contains(&TWO)
    })
    .await;
    let listener = TcpListener::bind((address.host.as_str(), address.port)).await;
    let mut again = me(2);
    again.boot.0 += 1;
    let list = two.tcp.0.roster.lock().list.clone();
    let two = start(again, listener.unwrap(), list, Settings::default());
    until("connected again", || {
        one.seen.is_connected(TWO) && two.seen.is_connected(ONE)
    })
    .await;
    let boot = one.tcp.peer(TWO).unwrap().boot;
    assert_eq!(boot.0, me(2).boot.0 + 1);
}

#[tokio::test]
async fn the_end_of_the_node_that_dials_is_known_at_once_where_it_dialled() {
    let pair = Pair::new(Settings::default()).await;
    crate::peers::conformance::connected(&pair).await;
    let [one, two] = &pair.nodes;
    one.tcp.stop().await;
    until("it is gone", || two.seen.gone() == [ONE]).await;
}

#[tokio::test]
async fn nodes_that_are_taken_off_the_list_are_disconnected_and_new_ones_dialled() {
    let pair = Pair::new(Settings::default()).await;
    crate::peers::conformance::connected(&pair).await;
    let [one, two] = &pair.nodes;
    let whole = one.tcp.0.roster.lock().list.clone();
    let alone = whole.iter().filter(|(node, _)| *node == ONE);
    let alone = alone.map(|(node, address)| (node, address.clone()));
    one.tcp.set_list(&alone.collect());
    until("both saw it end", || {
        !one.seen.is_connected(TWO) && !two.seen.is_connected(ONE)
    })
    .await;
    assert!(one.seen.lost()[0].contains("not in `peers` any more"));
    let mistakes = one.tcp.reload("1=a:1\n2").unwrap_err();
    assert_eq!(mistakes[0].line, 2);
    assert!(one.tcp.0.address(TWO).is_none(), "the list before stays");
    let difference = one.tcp.reload(&whole.to_string()).unwrap();
    assert_eq!((difference.added, difference.moved), (vec![TWO], vec![]));
    crate::peers::conformance::connected(&pair).await;
}

#[tokio::test]
async fn a_connection_without_heartbeats_ends_after_the_silence_allowed() {
    let settings = Settings {
        silence_max: Duration::from_millis(30),
        ..Settings::default()
    };
    let pair = Pair::new(settings).await;
    let [one, two] = &pair.nodes;
    until("it ended", || {
        let lost = [one.seen.lost(), two.seen.lost()].concat();
        lost.contains(&"nothing heard for 30 ms".to_owned())
    })
    .await;
}

/// Both connections of a set, dialled by hand.
async fn dial(
    me: &Me,
    to: u32,
    at: SocketAddr,
) -> Result<super::place::Lanes<TcpStream>, crate::peers::Refusal> {
    use crate::peers::Lane;
    let mut streams = Vec::new();
    for lane in Lane::ALL {
        let mut stream = TcpStream::connect(at).await?;
        let errand = crate::peers::handshake::Errand {
            to: NodeId(to),
            lane,
            set: 77,
            nonce: super::shake::nonce(&random::System),
        };
        super::shake::dial(&mut stream, me, None, errand).await?;
        streams.push(stream);
    }
    let data = streams.pop().unwrap();
    let control = streams.pop().unwrap();
    Ok(super::place::Lanes { control, data })
}

/// What a node of another release speaks.
fn newer() -> Versions {
    Versions { min: 200, max: 201 }
}
