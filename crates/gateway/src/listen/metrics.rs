//! What the listeners count.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Handles; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Connections open now.
    pub open: Gauge<i64, AtomicI64>,
    /// Connections refused since there was no room.
    pub refused: Counter,
    /// Connections closed since there was no room for another.
    pub gave_way: Counter,
    /// Connections closed since the caller took too long.
    pub overdue: Counter,
}

impl Metrics {
    /// Registers the handles.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "connections_open",
            "Connections open now",
            self.open.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections refused since the limit of open connections was reached",
            self.refused.clone(),
        );
        registry.register(
            "connections_gave_way",
            "Connections that had asked nothing for the longest, closed since there was no room for another",
            self.gave_way.clone(),
        );
        registry.register(
            "connections_overdue",
            "Connections closed since the caller was silent, idle or slow beyond the limits",
            self.overdue.clone(),
        );
    }
}
