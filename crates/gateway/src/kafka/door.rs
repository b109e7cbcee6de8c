//! The door itself: what all its connections share, and which file answers which request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use floe_broker::Broker;
use floe_world::{Complaints, Pool};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::api::Key;
use super::connection::{self, Outcome, Slot, Wait};
use super::metrics::Metrics;
use super::request::{Close, Request};
use super::{
    api_versions, create_topics, delete_groups, delete_topics, describe_cluster, describe_configs,
    describe_groups, fetch, find_coordinator, heartbeat, init_producer_id, join_group, leave_group,
    list_groups, list_offsets, metadata, offset_commit, offset_delete, offset_fetch,
    offset_for_leader_epoch, produce, sync_group,
};
use crate::listen::{Accepted, Gate, Serve};

/// What can be set about the door.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `advertised.listeners`: host and port told to clients; `None` tells each the address it called, which works for it.
    pub advertised: Option<(String, u16)>,
    /// `socket.request.max.bytes`: largest frame.
    pub frame_bytes_max: usize,
    /// `fetch.max.bytes`: most bytes of records in one answer, whatever a client asks; a larger batch comes alone.
    pub fetch_bytes_max: usize,
    /// `max.in.flight.requests.per.connection`: requests of one connection that are read before the first is answered.
    pub in_flight_max: usize,
    /// `socket.send.buffer.bytes`: what the kernel keeps of answers that a client does not take.
    pub send_buffer_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            advertised: None,
            frame_bytes_max: floe_model::limits::FRAME_BYTES_MAX,
            fetch_bytes_max: 8 * 1024 * 1024,
            in_flight_max: 64,
            send_buffer_bytes: 256 * 1024,
        }
    }
}

/// The Kafka door. Cheap to clone.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

struct Inner {
    broker: Broker,
    gate: Gate,
    settings: Settings,
    frame_bytes_max: usize,
    memory: Pool,
    metrics: Metrics,
    complaints: Complaints,
    decoding: Semaphore,
    /// Bytes of answers of all connections that are not written yet.
    waiting_out: AtomicUsize,
}

/// Frames above this wait for one of [`LARGE_MAX`] places before they are decoded: a decoded message takes up to 33
/// times its bytes.
pub(super) const LARGE_BYTES: usize = 16 * 1024;
pub(super) const LARGE_MAX: usize = 4;
/// The same complaint about a caller's address is logged once in this time.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);
/// Part of the node's buffers that answers may hold; above it callers who do not take theirs are closed sooner.
pub(super) const ANSWERS_SHARE: usize = 8;

impl Door {
    /// `memory` is the share of the node's budget that requests are read into.
    pub fn new(
        broker: Broker,
        gate: Gate,
        settings: Settings,
        memory: Pool,
        metrics: Metrics,
    ) -> Self {
        let frame_bytes_max = connection::frame_bytes_max(settings.frame_bytes_max, &memory);
        if frame_bytes_max < settings.frame_bytes_max {
            tracing::info!(
                setting = settings.frame_bytes_max,
                limit = frame_bytes_max,
                "memory allows smaller Kafka requests than socket.request.max.bytes; raise memory.limit.bytes for larger ones"
            );
        }
        Self(Arc::new(Inner {
            broker,
            gate,
            frame_bytes_max,
            settings,
            memory,
            metrics,
            complaints: Complaints::new(COMPLAIN_EVERY),
            decoding: Semaphore::new(LARGE_MAX),
            waiting_out: AtomicUsize::new(0),
        }))
    }

    pub(super) fn broker(&self) -> &Broker {
        &self.0.broker
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn memory(&self) -> &Pool {
        &self.0.memory
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Whether to log a complaint about a caller now; if so, how many were kept back before.
    pub(super) fn is_due(&self, peer: SocketAddr, what: &'static str) -> Option<u64> {
        let now = self.0.gate.clock.monotonic();
        let due = self.0.complaints.is_due(&peer.ip().to_string(), what, now);
        if due.is_none() {
            self.0.metrics.complaints_kept_back.inc();
        }
        due
    }

    pub(super) fn waiting_out(&self) -> &AtomicUsize {
        &self.0.waiting_out
    }

    /// Whether answers that wait to be written hold more than their share of the node's buffers.
    pub(super) fn is_scarce_for_answers(&self) -> bool {
        let limit = self.0.broker.world().memory.limit() / ANSWERS_SHARE;
        self.0.waiting_out.load(Ordering::Relaxed) > limit
    }

    pub(super) fn frame_bytes_max(&self) -> usize {
        self.0.frame_bytes_max
    }

    /// This node's id as Kafka writes it.
    pub(super) fn node(&self) -> i32 {
        self.0.broker.node().0 as i32
    }

    /// Where this node is reached, as told to a caller that called `local`.
    pub(super) fn address(&self, local: SocketAddr) -> (String, i32) {
        if let Some((host, port)) = &self.0.settings.advertised {
            return (host.clone(), i32::from(*port));
        }
        (
            local.ip().to_canonical().to_string(),
            i32::from(local.port()),
        )
    }

    /// Room to decode a request; small ones have it.
    pub(super) async fn room_to_decode(&self, request: &Request) -> Option<SemaphorePermit<'_>> {
        if request.body.len() <= LARGE_BYTES {
            return None;
        }
        // The semaphore is never closed.
        self.0.decoding.acquire().await.ok()
    }

    /// Begins a request: appends at once, everything else when its turn to answer comes.
    pub(super) async fn begin(
        &self,
        request: Request,
        patience: &mut produce::Patience,
    ) -> Result<Option<Slot>, Close> {
        let api = request.api;
        let since = self.0.gate.clock.monotonic();
        let wait = match api.key {
            Key::Fetch => Wait::Producers,
            Key::JoinGroup | Key::SyncGroup => Wait::Members,
            _ => Wait::Nobody,
        };
        let work = if api.key == Key::Produce {
            let Some(waiting) = produce::begin(self, &request, patience).await? else {
                self.metrics().answered(api.place(), Duration::ZERO);
                return Ok(None);
            };
            Box::pin(waiting.answer(self.clone(), request)) as _
        } else {
            let door = self.clone();
            Box::pin(async move { door.handle(request).await }) as _
        };
        Ok(Some(Slot {
            work,
            wait,
            api: api.place(),
            since,
        }))
    }

    async fn handle(&self, request: Request) -> Outcome {
        // These wait for others, and give their room back once decoded.
        let answer = match request.api.key {
            Key::Fetch => fetch::handle(self, &request).await?,
            Key::JoinGroup => join_group::handle(self, &request).await?,
            Key::SyncGroup => sync_group::handle(self, &request).await?,
            _ => {
                let _room = self.room_to_decode(&request).await;
                self.handle_prompt(&request).await?
            }
        };
        Ok(Some(answer))
    }

    async fn handle_prompt(&self, request: &Request) -> Result<super::answer::Answer, Close> {
        match request.api.key {
            Key::ListOffsets => list_offsets::handle(self, request).await,
            Key::Metadata => metadata::handle(self, request).await,
            Key::OffsetCommit => offset_commit::handle(self, request).await,
            Key::OffsetFetch => offset_fetch::handle(self, request).await,
            Key::FindCoordinator => find_coordinator::handle(self, request),
            Key::Heartbeat => heartbeat::handle(self, request),
            Key::LeaveGroup => leave_group::handle(self, request),
            Key::DescribeGroups => describe_groups::handle(self, request),
            Key::ListGroups => list_groups::handle(self, request),
            Key::ApiVersions => api_versions::handle(request),
            Key::CreateTopics => create_topics::handle(self, request).await,
            Key::DeleteTopics => delete_topics::handle(self, request).await,
            Key::InitProducerId => init_producer_id::handle(self, request).await,
            Key::OffsetForLeaderEpoch => offset_for_leader_epoch::handle(self, request),
            Key::DescribeConfigs => describe_configs::handle(self, request),
            Key::DeleteGroups => delete_groups::handle(self, request).await,
            Key::OffsetDelete => offset_delete::handle(self, request).await,
            Key::DescribeCluster => describe_cluster::handle(self, request),
            Key::Produce | Key::Fetch | Key::JoinGroup | Key::SyncGroup => {
                unreachable!("answered by their own paths")
            }
        }
    }
}

impl Serve for Door {
    async fn serve(&self, accepted: Accepted) {
        connection::serve(self, &accepted).await;
    }

    fn full(&self) -> &'static [u8] {
        // The protocol has no word for it; the closed connection says it.
        b""
    }
}
