//! Other nodes over TCP.
//!
//! ```text
//! lower id ──dials──► control ─┐
//!          ──dials──► data    ─┴─ one set: it begins when both are proven, and ends when one of them does
//! ```
//! Guarantees: those of [`Transport`]; every read and write has a deadline; every buffer a bound ([`Settings`]). All tasks have
//! ended when [`Tcp::stop`] returns.

mod accept;
mod dial;
mod place;
mod queue;
mod read;
mod set;
mod shake;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use floe_cluster::ClusterId;
use floe_model::{Incarnation, NodeId};
use floe_wire::peer::frame::HEAD_BYTES_MAX;
use floe_world::{Clock, Complaints, Pool, Random, tasks};
use parking_lot::{Mutex, RwLock};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handshake::Claim;
use super::message::draw;
use super::{
    Address, Difference, Handler, List, Lost, Me, Message, Metrics, Mistake, Peer, Refusal,
    Settings, Transport, Unsent,
};
use place::Place;

/// Who may be connected.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// The cluster; none if this node is in none yet, or does not know.
    pub cluster: Option<ClusterId>,
    /// The nodes, this one included.
    pub list: List,
    /// Lives of nodes' data that were given up.
    pub retired: BTreeSet<(NodeId, Incarnation)>,
}

/// What the connections are started with.
pub struct Setup {
    /// Who this process is.
    pub me: Me,
    /// Who may be connected.
    pub roster: Roster,
    /// Times and sizes.
    pub settings: Settings,
    /// What is done with what comes.
    pub handler: Arc<dyn Handler>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// Memory for what comes.
    pub memory: Pool,
    /// What is counted.
    pub metrics: Metrics,
}

/// See the module.
pub struct Tcp(Arc<Shared>);

struct Shared {
    me: Me,
    settings: Settings,
    handler: Arc<dyn Handler>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    memory: Pool,
    metrics: Metrics,
    complaints: Complaints,
    roster: Mutex<Roster>,
    places: RwLock<BTreeMap<NodeId, Arc<Place>>>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tcp {
    /// Listens, and dials the nodes of the list that have a higher id.
    pub fn start(listener: TcpListener, setup: Setup) -> Self {
        let shared = Shared {
            complaints: Complaints::new(setup.settings.complain_every),
            me: setup.me,
            settings: setup.settings,
            handler: setup.handler,
            clock: setup.clock,
            random: setup.random,
            memory: setup.memory,
            metrics: setup.metrics,
            roster: Mutex::new(Roster {
                list: List::default(),
                ..setup.roster
            }),
            places: RwLock::default(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let tcp = Self(Arc::new(shared));
        tcp.set_list(&setup.roster.list);
        tcp.0.spawn(accept::keep(Arc::clone(&tcp.0), listener));
        tcp
    }

    /// Another text of the list, as a watched `peers.file` has it. While it has a mistake the list before stays in force.
    pub fn reload(&self, text: &str) -> Result<Difference, Vec<Mistake>> {
        Ok(self.set_list(&List::parse(text, self.0.me.node)?))
    }

    /// Another list is in force: nodes that are gone or moved are disconnected, new ones dialled.
    pub fn set_list(&self, list: &List) -> Difference {
        let shared = &self.0;
        let before = std::mem::replace(&mut shared.roster.lock().list, list.clone());
        let difference = before.difference(list);
        for node in difference.removed.iter().chain(&difference.moved) {
            let place = shared.places.write().remove(node);
            if let Some(place) = place {
                place.over.cancel();
            }
        }
        for node in difference.added.iter().chain(&difference.moved) {
            let address = list.get(*node).filter(|_| *node != shared.me.node);
            if let Some(address) = address {
                shared.begin(*node, address.clone());
            }
        }
        difference
    }

    /// The cluster is known now.
    pub fn set_cluster(&self, cluster: ClusterId) {
        self.0.roster.lock().cluster = Some(cluster);
    }

    /// A life of a node's data is given up: it is not let in any more, and disconnected.
    pub fn retire(&self, node: NodeId, incarnation: Incarnation) {
        self.0.roster.lock().retired.insert((node, incarnation));
        if let Some(place) = self.0.place(node)
            && place
                .peer()
                .is_some_and(|peer| peer.incarnation == incarnation)
        {
            place.end(Lost::Retired);
        }
    }

    /// Ends all connections and waits for their tasks.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
    }
}

impl Transport for Tcp {
    fn send(&self, to: NodeId, message: Message) -> Result<(), Unsent> {
        let queues = self.0.place(to).and_then(|place| place.queues());
        let queues = queues.ok_or(Unsent::Disconnected(to))?;
        let lane = message.lane();
        let frame = draw(message);
        let body_max = self.0.settings.body_bytes_max_of(lane);
        for (bytes, limit) in [
            (frame.head.len(), HEAD_BYTES_MAX),
            (frame.body_bytes, body_max),
        ] {
            if bytes > limit {
                return Err(Unsent::Large { bytes, limit });
            }
        }
        let queue = queues.get(lane);
        queue.push(frame).map_err(|waiting| {
            self.0.metrics.full.inc();
            Unsent::Full {
                to,
                lane,
                waiting,
                limit: queue.limit(),
            }
        })
    }

    fn peer(&self, node: NodeId) -> Option<Peer> {
        self.0.place(node)?.peer()
    }
}

impl Shared {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(tasks::spawn(self.tracker.track_future(task)));
    }

    fn begin(self: &Arc<Self>, node: NodeId, address: Address) {
        let over = self.stop.child_token();
        let place = Arc::new(Place::new(node, &self.memory, &self.settings, over));
        self.places.write().insert(node, Arc::clone(&place));
        if self.me.node < node {
            self.spawn(dial::keep(Arc::clone(self), place, address));
        }
    }

    fn place(&self, node: NodeId) -> Option<Arc<Place>> {
        self.places.read().get(&node).cloned()
    }

    fn cluster(&self) -> Option<ClusterId> {
        self.roster.lock().cluster
    }

    fn address(&self, node: NodeId) -> Option<Address> {
        self.roster.lock().list.get(node).cloned()
    }

    fn admit(&self, place: &Place, claim: &Claim) -> Result<(), Refusal> {
        let (node, incarnation) = (claim.node, claim.incarnation);
        if self.roster.lock().retired.contains(&(node, incarnation)) {
            return Err(Refusal::OlderIncarnation { node, incarnation });
        }
        place.admit(claim, self.clock.monotonic(), self.settings.alive_within)
    }

    /// Says why a connection did not come about, once in a while.
    fn complain(&self, about: &str, refusal: &Refusal) {
        let what = refusal.name();
        self.metrics.refused(what);
        let Some(kept_back) = self.complaints.is_due(about, what, self.clock.monotonic()) else {
            return;
        };
        match refusal {
            // A port that is looked at, a node that is not up yet.
            Refusal::Closed | Refusal::Io(_) => {
                tracing::info!(about, kept_back, "no connection between nodes: {refusal}");
            }
            _ => tracing::warn!(about, kept_back, "no connection between nodes: {refusal}"),
        }
    }
}
