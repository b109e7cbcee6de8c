//! What the Kafka door counts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::api::APIS;

/// Handles; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Bytes of requests read.
    pub bytes_in: Counter,
    /// Bytes of answers written.
    pub bytes_out: Counter,
    /// Connections closed since the caller was silent or slow.
    pub closed_overdue: Counter,
    /// Complaints about callers that the log was spared.
    pub complaints_kept_back: Counter,
    closed_refused: Family<Refused, Counter>,
    seconds: Family<Labels, Histogram>,
    /// The same handles by place in the table of APIs: no look-up on the way.
    by_api: std::sync::Arc<[Histogram]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    api: &'static str,
}

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

fn histogram() -> Histogram {
    Histogram::new([
        0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
        30.0,
    ])
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = Family::<Labels, Histogram>::new_with_constructor(histogram);
        let by_api = APIS
            .iter()
            .map(|api| seconds.get_or_create(&Labels { api: api.name }).clone())
            .collect();
        Self {
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            closed_overdue: Counter::default(),
            complaints_kept_back: Counter::default(),
            closed_refused: Family::default(),
            seconds,
            by_api,
        }
    }
}

impl Metrics {
    /// Registers the handles.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "request_seconds",
            "Time from a request's last byte to its answer, by API; its count is the number of requests",
            self.seconds.clone(),
        );
        registry.register("bytes_in", "Bytes of requests read", self.bytes_in.clone());
        registry.register(
            "bytes_out",
            "Bytes of answers written",
            self.bytes_out.clone(),
        );
        registry.register(
            "connections_overdue",
            "Connections closed since the caller was silent, idle or slow beyond the limits",
            self.closed_overdue.clone(),
        );
        registry.register(
            "connections_unanswerable",
            "Connections closed since what came was not a request spoken here, by reason",
            self.closed_refused.clone(),
        );
        registry.register(
            "complaints_kept_back",
            "Complaints about callers that were kept out of the log, since the same or many others were said shortly before",
            self.complaints_kept_back.clone(),
        );
    }

    /// A connection is closed since what came could not be answered.
    pub(super) fn refused(&self, reason: &'static str) {
        self.closed_refused.get_or_create(&Refused { reason }).inc();
    }

    pub(super) fn answered(&self, api: usize, took: Duration) {
        if let Some(histogram) = self.by_api.get(api) {
            histogram.observe(took.as_secs_f64());
        }
    }
}
