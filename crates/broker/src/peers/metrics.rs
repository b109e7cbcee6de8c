//! What the connections between nodes count.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Why, by its short name.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Why {
    why: &'static str,
}

/// Handles; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Nodes connected now.
    pub connected: Gauge,
    /// Bytes of frames written.
    pub bytes_out: Counter,
    /// Bytes of frames read.
    pub bytes_in: Counter,
    /// Frames written.
    pub frames_out: Counter,
    /// Writes to sockets.
    pub writes: Counter,
    /// Frames read.
    pub frames_in: Counter,
    /// Messages refused since too much was on its way.
    pub full: Counter,
    refused: Family<Why, Counter>,
}

impl Metrics {
    /// Registers the handles.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "peers_connected",
            "Other nodes connected now",
            self.connected.clone(),
        );
        registry.register_with_unit(
            "peers_sent",
            "Bytes of frames sent to other nodes",
            Unit::Bytes,
            self.bytes_out.clone(),
        );
        registry.register_with_unit(
            "peers_received",
            "Bytes of frames received from other nodes",
            Unit::Bytes,
            self.bytes_in.clone(),
        );
        registry.register(
            "peers_frames_sent",
            "Frames sent to other nodes",
            self.frames_out.clone(),
        );
        registry.register(
            "peers_writes",
            "Writes that sent them: fewer than frames where several left together",
            self.writes.clone(),
        );
        registry.register(
            "peers_frames_received",
            "Frames received from other nodes",
            self.frames_in.clone(),
        );
        registry.register(
            "peers_full",
            "Messages not sent since too much was on its way to their node",
            self.full.clone(),
        );
        registry.register(
            "peers_refused",
            "Connections between nodes that did not come about, by reason",
            self.refused.clone(),
        );
    }

    pub(super) fn refused(&self, why: &'static str) {
        self.refused.get_or_create(&Why { why }).inc();
    }

    /// How many connections did not come about for that reason.
    pub fn refused_for(&self, why: &'static str) -> u64 {
        self.refused.get_or_create(&Why { why }).get()
    }
}
