//! One other node: who is connected as it, and who may be.
//!
//! Guarantees: one set of connections at a time; a newer one ends the older, and is served when that has ended. A lower boot
//! of data that was seen with a higher one is never let in; another process with the node's id not while the one that is
//! connected was heard of lately.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use floe_model::{Boot, Incarnation, NodeId};
use floe_world::Pool;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{self, oneshot};
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use crate::peers::handshake::Claim;
use crate::peers::{Lane, Lost, Peer, Refusal, Settings};

/// See the module.
pub(super) struct Place {
    pub(super) node: NodeId,
    pub(super) pools: Lanes<Pool>,
    /// Cancelled when the node is not listed any more, or this one stops.
    pub(super) over: CancellationToken,
    state: Mutex<State>,
    /// Held from connected to disconnected.
    pub(super) turn: sync::Mutex<()>,
}

/// One of each connection.
pub(super) struct Lanes<T> {
    pub(super) control: T,
    pub(super) data: T,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    half: Option<Half>,
    /// The newest boot seen, of the data last seen.
    newest: Option<(Incarnation, Boot)>,
    /// Of the sets that wait for their turn the last one is served.
    ticket: u64,
}

struct Live {
    claim: Claim,
    queues: Arc<Lanes<Queue>>,
    heard_ms: Arc<AtomicU64>,
    end: Option<oneshot::Sender<Lost>>,
}

/// A control connection that waits for its data connection.
struct Half {
    set: u64,
    hand: oneshot::Sender<TcpStream>,
}

/// What a set of connections that is being served needs.
pub(super) struct Served {
    pub(super) queues: Arc<Lanes<Queue>>,
    pub(super) heard_ms: Arc<AtomicU64>,
    pub(super) ended: oneshot::Receiver<Lost>,
}

impl<T> Lanes<T> {
    pub(super) fn get(&self, lane: Lane) -> &T {
        match lane {
            Lane::Control => &self.control,
            Lane::Data => &self.data,
        }
    }
}

impl Place {
    pub(super) fn new(
        node: NodeId,
        memory: &Pool,
        settings: &Settings,
        over: CancellationToken,
    ) -> Self {
        Self {
            node,
            pools: Lanes {
                control: memory.share(settings.control_receive_bytes),
                data: memory.share(settings.data_receive_bytes),
            },
            over,
            state: Mutex::default(),
            turn: sync::Mutex::default(),
        }
    }

    /// Whether this process may be connected as the node, now.
    pub(super) fn admit(
        &self,
        claim: &Claim,
        now: Duration,
        within: Duration,
    ) -> Result<(), Refusal> {
        let state = self.state.lock();
        if let Some((incarnation, boot)) = state.newest
            && claim.incarnation == incarnation
            && claim.boot < boot
        {
            return Err(Refusal::OlderBoot {
                node: claim.node,
                boot: claim.boot,
            });
        }
        let Some(live) = &state.live else {
            return Ok(());
        };
        let is_same_data = live.claim.incarnation == claim.incarnation;
        let is_restarted = is_same_data && claim.boot > live.claim.boot;
        let is_again =
            is_same_data && claim.boot == live.claim.boot && claim.process == live.claim.process;
        let heard = Duration::from_millis(live.heard_ms.load(Relaxed));
        if is_restarted || is_again || now > heard + within {
            return Ok(());
        }
        Err(Refusal::DuplicateNode(claim.node))
    }

    /// A control connection waits for the data connection of its set; one that waits already gives up.
    pub(super) fn expect(&self, set: u64) -> oneshot::Receiver<TcpStream> {
        let (hand, data) = oneshot::channel();
        self.state.lock().half = Some(Half { set, hand });
        data
    }

    /// Whether a control connection waits for this set's data connection.
    pub(super) fn is_expected(&self, set: u64) -> bool {
        let state = self.state.lock();
        state.half.as_ref().is_some_and(|half| half.set == set)
    }

    /// The data connection is here.
    pub(super) fn hand(&self, set: u64, data: TcpStream) {
        let half = self.state.lock().half.take_if(|half| half.set == set);
        if let Some(half) = half {
            // Nobody waits any more: then it is closed.
            drop(half.hand.send(data));
        }
    }

    /// A new set is complete: ends the one that is served. Gives its ticket.
    pub(super) fn queue_up(&self) -> u64 {
        self.end(Lost::Replaced);
        let mut state = self.state.lock();
        state.ticket += 1;
        state.ticket
    }

    /// It is its turn; nothing if a newer set waits.
    pub(super) fn begin(
        &self,
        ticket: u64,
        claim: Claim,
        settings: &Settings,
        now: Duration,
    ) -> Option<Served> {
        let mut state = self.state.lock();
        if state.ticket != ticket {
            return None;
        }
        let queues = Arc::new(Lanes {
            control: Queue::new(settings.queue_bytes_of(Lane::Control)),
            data: Queue::new(settings.queue_bytes_of(Lane::Data)),
        });
        let heard_ms = Arc::new(AtomicU64::new(now.as_millis() as u64));
        let (end, ended) = oneshot::channel();
        state.newest = Some((claim.incarnation, claim.boot));
        state.live = Some(Live {
            claim,
            queues: Arc::clone(&queues),
            heard_ms: Arc::clone(&heard_ms),
            end: Some(end),
        });
        Some(Served {
            queues,
            heard_ms,
            ended,
        })
    }

    /// The set that was served is over.
    pub(super) fn finish(&self) {
        self.state.lock().live = None;
    }

    /// Ends the set that is served, if there is one.
    pub(super) fn end(&self, why: Lost) {
        let live = &mut self.state.lock().live;
        if let Some(end) = live.as_mut().and_then(|live| live.end.take()) {
            // It may have ended by itself.
            drop(end.send(why));
        }
    }

    pub(super) fn queues(&self) -> Option<Arc<Lanes<Queue>>> {
        let state = self.state.lock();
        state.live.as_ref().map(|live| Arc::clone(&live.queues))
    }

    pub(super) fn peer(&self) -> Option<Peer> {
        let state = self.state.lock();
        state.live.as_ref().map(|live| peer_of(&live.claim))
    }
}

/// Who a handler is told is there.
pub(super) fn peer_of(claim: &Claim) -> Peer {
    Peer {
        node: claim.node,
        incarnation: claim.incarnation,
        boot: claim.boot,
        cluster: claim.cluster,
    }
}
