//! What the HTTP door counts.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::Api;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    resource: String,
    method: String,
    status: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resource {
    resource: String,
}

/// Handles; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<Answered, Counter>,
    seconds: Family<Resource, Histogram>,
    /// Bytes of produce bodies taken in.
    pub(crate) produce_bytes: Counter,
    /// Records appended.
    pub(crate) produce_records: Counter,
    /// Records per batch.
    pub(crate) batch_records: Histogram,
    /// Records given out.
    pub(crate) read_records: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_5, 2.0, 18))
            }),
            produce_bytes: Counter::default(),
            produce_records: Counter::default(),
            batch_records: Histogram::new(exponential_buckets(1.0, 2.0, 14)),
            read_records: Counter::default(),
        }
    }
}

impl Metrics {
    /// Registers the handles.
    pub fn register(&self, registry: &mut Registry) {
        let of = registry.sub_registry_with_prefix("http");
        of.register("requests", "Requests answered", self.requests.clone());
        of.register(
            "request_seconds",
            "From the end of a request's head to the beginning of its answer, long polls included",
            self.seconds.clone(),
        );
        of.register(
            "produce_body_bytes",
            "Bytes of produce bodies, decompressed",
            self.produce_bytes.clone(),
        );
        of.register(
            "produce_records",
            "Records appended for producers",
            self.produce_records.clone(),
        );
        of.register(
            "produce_batch_records",
            "Records in one appended batch",
            self.batch_records.clone(),
        );
        of.register(
            "read_records",
            "Records given to readers and consumers",
            self.read_records.clone(),
        );
    }
}

/// Counts one request under its resource's pattern, never under its path: names of topics are not labels.
pub(crate) async fn count(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let resource = matched.map_or("none", |m| m.as_str()).to_owned();
    let method = match request.method().as_str() {
        known @ ("GET" | "PUT" | "POST" | "DELETE" | "HEAD" | "OPTIONS" | "PATCH") => known,
        _ => "other",
    }
    .to_owned();
    let clock = &api.broker.world().clock;
    let began = clock.monotonic();
    let response = next.run(request).await;
    let took = clock.monotonic().saturating_sub(began);
    let seconds = api.metrics.seconds.get_or_create(&Resource {
        resource: resource.clone(),
    });
    seconds.observe(took.as_secs_f64());
    let labels = Answered {
        resource,
        method,
        status: u32::from(response.status().as_u16()),
    };
    api.metrics.requests.get_or_create(&labels).inc();
    response
}
