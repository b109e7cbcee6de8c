//! What the broker counts.

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

/// Handles of the broker's metrics; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    produced_bytes: Counter,
    produced_batches: Counter,
    refused_batches: Counter,
    forgotten_producers: Counter,
    fetched_bytes: Counter,
    partitions: Gauge,
    dropped: Family<Why, Counter>,
}

impl Metrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "produced",
            "Bytes of record batches appended, as stored",
            Unit::Bytes,
            self.produced_bytes.clone(),
        );
        registry.register(
            "produced_batches",
            "Record batches appended",
            self.produced_batches.clone(),
        );
        registry.register(
            "refused_batches",
            "Record batches refused",
            self.refused_batches.clone(),
        );
        registry.register(
            "forgotten_producers",
            "Idempotent producers forgotten to make room for others",
            self.forgotten_producers.clone(),
        );
        registry.register_with_unit(
            "fetched",
            "Bytes of record batches given to readers, as stored",
            Unit::Bytes,
            self.fetched_bytes.clone(),
        );
        registry.register("partitions", "Partitions led here", self.partitions.clone());
        registry.register(
            "dropped_messages",
            "Messages of other nodes that nothing was done with, by reason; what matters is said again",
            self.dropped.clone(),
        );
    }

    pub(crate) fn produced(&self, bytes: usize) {
        self.produced_bytes.inc_by(bytes as u64);
        self.produced_batches.inc();
    }

    pub(crate) fn refused(&self) {
        self.refused_batches.inc();
    }

    pub(crate) fn forgot_producers(&self, count: usize) {
        self.forgotten_producers.inc_by(count as u64);
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.fetched_bytes.inc_by(bytes as u64);
    }

    #[cfg_attr(
        not(test),
        allow(
            dead_code,
            reason = "for nodes that have others; one alone hears nobody"
        )
    )]
    pub(crate) fn dropped(&self, why: &'static str) {
        self.dropped.get_or_create(&Why { why }).inc();
    }

    /// How many messages nothing was done with for that reason.
    pub fn dropped_for(&self, why: &'static str) -> u64 {
        self.dropped.get_or_create(&Why { why }).get()
    }

    pub(crate) fn partitions(&self, count: usize) {
        self.partitions.set(count as i64);
    }
}
