//! One set of connections to a node, from connected to disconnected.
//!
//! Guarantees: when one of the two ends, for whatever reason, both do; when that has been said, nothing comes any more.

use std::sync::Arc;

use floe_world::tasks;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::place::{Lanes, Place, Served, peer_of};
use super::read::Reading;
use super::write::write;
use crate::peers::handshake::Claim;
use crate::peers::{Lane, Lost};

/// Serves a set until it ends; says why, or nothing if a newer one took its place before it began.
pub(super) async fn run(
    shared: &Arc<Shared>,
    place: &Arc<Place>,
    claim: Claim,
    streams: Lanes<TcpStream>,
) -> Option<Lost> {
    let ticket = place.queue_up();
    let _turn = place.turn.lock().await;
    let now = shared.clock.monotonic();
    let served = place.begin(ticket, claim, &shared.settings, now)?;
    let peer = peer_of(&claim);
    shared.metrics.connected.inc();
    tracing::info!(node = %peer.node, boot = %peer.boot, version = claim.version, "connected to node");
    shared.handler.connected(peer);
    let lost = serve(shared, place, claim, streams, served).await;
    place.finish();
    shared.metrics.connected.dec();
    tracing::info!(node = %peer.node, reason = %lost, "connection to node ended");
    shared.handler.disconnected(peer, &lost);
    Some(lost)
}

async fn serve(
    shared: &Arc<Shared>,
    place: &Arc<Place>,
    claim: Claim,
    streams: Lanes<TcpStream>,
    served: Served,
) -> Lost {
    let over = place.over.child_token();
    let (tell, mut told) = mpsc::channel(Lane::ALL.len());
    for (lane, stream) in [(Lane::Control, streams.control), (Lane::Data, streams.data)] {
        let connection = Connection {
            shared: Arc::clone(shared),
            place: Arc::clone(place),
            claim,
            lane,
            queues: Arc::clone(&served.queues),
            heard_ms: Arc::clone(&served.heard_ms),
        };
        let (tell, over) = (tell.clone(), over.clone());
        drop(tasks::spawn(async move {
            let lost = connection.run(stream, over).await;
            // Its receiver waits for both.
            drop(tell.send(lost).await);
        }));
    }
    drop(tell);
    let lost = tokio::select! {
        biased;
        () = place.over.cancelled() => {
            if shared.stop.is_cancelled() {
                Lost::Stopping
            } else {
                Lost::Unlisted
            }
        }
        lost = told.recv() => lost.unwrap_or(Lost::Closed),
        Ok(why) = served.ended => why,
    };
    over.cancel();
    while told.recv().await.is_some() {}
    lost
}

struct Connection {
    shared: Arc<Shared>,
    place: Arc<Place>,
    claim: Claim,
    lane: Lane,
    queues: Arc<Lanes<super::queue::Queue>>,
    heard_ms: Arc<std::sync::atomic::AtomicU64>,
}

impl Connection {
    async fn run(self, stream: TcpStream, over: CancellationToken) -> Lost {
        let (reader, writer) = stream.into_split();
        let shared = &*self.shared;
        let settings = &shared.settings;
        let reading = Reading {
            version: self.claim.version,
            pool: self.place.pools.get(self.lane),
            body_bytes_max: settings.body_bytes_max,
            silence_max: (self.lane == Lane::Control).then_some(settings.silence_max),
            frame_within: settings.frame_within,
            clock: &*shared.clock,
            heard_ms: &self.heard_ms,
            metrics: &shared.metrics,
        };
        let peer = peer_of(&self.claim);
        let queue = self.queues.get(self.lane);
        let (version, stall_max) = (self.claim.version, settings.stall_max);
        tokio::select! {
            lost = reading.run(reader, |message| shared.handler.received(peer, message)) => lost,
            lost = write(writer, queue, version, stall_max, &shared.metrics) => lost,
            () = over.cancelled() => Lost::Stopping,
        }
    }
}
