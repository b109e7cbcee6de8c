//! What comes from the other nodes, to those it is for: words about a partition to its copy here, all else to the controller.
//!
//! ```text
//! Transport ─► Exchange ─┬─ append, answer, fence, copy order, pull, piece, lease ─► Replica
//!                        └─ heartbeat, consensus, calls, answers to a controller, who comes and goes ─► Heard
//! ```
//!
//! Guarantees: nothing here waits. A word about a partition that is not here, or by another node than it says, is dropped and
//! counted; whoever said it says it again if it matters. What a controller does not come to hear is dropped when too much
//! waits, but for who comes and goes, for which there is room of its own.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use floe_model::{NodeId, TopicPartition};
use floe_replication::Member;
use floe_replication::replica::Event;
use tokio::sync::mpsc;

use crate::metrics::Metrics;
use crate::node::Replicas;
use crate::peers::{Handler, Lost, Message, Peer};
use crate::replica::{Arrival, Replica};

/// What may wait for the controller.
const WAITING_MAX: usize = 1 << 14;
/// Room of that for who comes and goes.
const CONNECTIONS_MAX: usize = 1 << 10;

/// What is for the controller.
#[derive(Debug)]
#[allow(dead_code, reason = "for nodes that have others")]
pub(crate) enum Heard {
    /// Messages can be sent to it.
    Connected(Peer),
    /// None comes any more, for that reason.
    Disconnected(Peer, String),
    /// Nothing listens at its address.
    Gone(NodeId),
    /// It says that.
    Said(Peer, Message),
}

/// See the module.
pub(crate) struct Exchange {
    /// Copies know the way to other nodes, which knows this.
    replicas: Weak<ArcSwap<Replicas>>,
    heard: mpsc::Sender<Heard>,
    metrics: Arc<Metrics>,
}

impl Exchange {
    /// ... and where comes out what is for the controller.
    pub(crate) fn new(
        replicas: &Arc<ArcSwap<Replicas>>,
        metrics: Arc<Metrics>,
    ) -> (Arc<Self>, mpsc::Receiver<Heard>) {
        let (heard, hearing) = mpsc::channel(WAITING_MAX);
        let exchange = Self {
            replicas: Arc::downgrade(replicas),
            heard,
            metrics,
        };
        (Arc::new(exchange), hearing)
    }

    fn drop_for(&self, why: &'static str) {
        self.metrics.dropped(why);
    }

    /// The copy that a word of that member is for, if it is that node's to say.
    fn find(&self, from: Peer, says: Member, partition: TopicPartition) -> Option<Arc<Replica>> {
        if says.node != from.node {
            self.drop_for("other_node");
            return None;
        }
        self.at(partition)
    }

    fn at(&self, partition: TopicPartition) -> Option<Arc<Replica>> {
        let replicas = self.replicas.upgrade();
        let found = replicas.and_then(|replicas| replicas.load().get(&partition).cloned());
        if found.is_none() {
            self.drop_for("unknown_partition");
        }
        found
    }

    fn changed(&self, node: NodeId, is_connected: bool) {
        let Some(replicas) = self.replicas.upgrade() else {
            return;
        };
        for replica in replicas.load().values() {
            replica.connection_changed(node, is_connected);
        }
    }

    fn tell(&self, heard: Heard) {
        if matches!(heard, Heard::Said(..)) && self.heard.capacity() <= CONNECTIONS_MAX {
            self.drop_for("controller_busy");
        } else if self.heard.try_send(heard).is_err() {
            self.drop_for("controller_gone");
        }
    }

    /// What is about a partition; gives back what is not.
    fn about_partition(&self, from: Peer, message: Message) -> Option<Message> {
        match message {
            Message::Append {
                partition,
                append,
                batches,
            } => {
                if let Some(replica) = self.find(from, append.from, partition) {
                    replica.arrived(Arrival::Append(append), batches);
                }
            }
            Message::Piece {
                partition,
                piece,
                batches,
            } => {
                if let Some(replica) = self.find(from, piece.from, partition) {
                    replica.arrived(Arrival::Piece(piece), batches);
                }
            }
            Message::Answer { partition, answer } => {
                let replica = self.find(from, answer.from, partition);
                step(replica, from, Event::Answered(answer));
            }
            Message::Pull { partition, pull } => {
                let replica = self.find(from, pull.from, partition);
                step(replica, from, Event::PullArrived(pull));
            }
            Message::Fence(list) => {
                for (partition, fence) in list {
                    step(self.at(partition), from, Event::FenceAsked(fence));
                }
            }
            Message::CopyOrder { partition, order } => {
                step(self.at(partition), from, Event::CopyOrdered(order));
            }
            Message::LeaseAsk(list) => {
                for (partition, renew) in list {
                    let replica = self.find(from, renew.from, partition);
                    step(replica, from, Event::LeaseAsked(renew));
                }
            }
            Message::LeaseGrant(list) => {
                for (partition, renew) in list {
                    let replica = self.find(from, renew.to, partition);
                    step(replica, from, Event::LeaseGranted(renew));
                }
            }
            other => return Some(other),
        }
        None
    }
}

/// What a generation that begins with it has to keep is journaled before anything in it: nobody needs to wait.
fn step(replica: Option<Arc<Replica>>, from: Peer, event: Event) {
    if let Some(replica) = replica {
        drop(replica.heard(from.node, event));
    }
}

impl Handler for Exchange {
    fn connected(&self, peer: Peer) {
        self.changed(peer.node, true);
        self.tell(Heard::Connected(peer));
    }

    fn received(&self, from: Peer, message: Message) {
        if let Some(other) = self.about_partition(from, message) {
            self.tell(Heard::Said(from, other));
        }
    }

    fn disconnected(&self, peer: Peer, why: &Lost) {
        self.changed(peer.node, false);
        self.tell(Heard::Disconnected(peer, why.to_string()));
    }

    fn is_gone(&self, node: NodeId) {
        self.tell(Heard::Gone(node));
    }
}
