//! `GET /metrics`: what the node counts, as Prometheus reads it (OpenMetrics 1.0 text).
//!
//! Guarantees: asking changes nothing; nothing gathers while nobody asks. What is registered is the node's business.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::http::problem::{self, Problem};
use crate::listen::{Connection, Gate, Http};

/// Serves `registry` on `listener` until the gate's stop.
pub async fn run(gate: Gate, listener: TcpListener, registry: Arc<Registry>) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/status", get(|| async { "ready\n" }))
        .fallback(no_resource)
        .with_state(registry);
    let http = Http::new(gate.clone(), router, |_: &Connection| ());
    gate.run(listener, http).await;
}

async fn no_resource(uri: Uri) -> Problem {
    let path = problem::shown(uri.path());
    Problem::absent(
        "unknown-resource",
        format!("no resource at '{path}'; the metrics are at /metrics"),
    )
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_world::clock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// What a door with nothing but its connections to count answers to a GET.
    async fn answer(path: &str) -> String {
        let (_stopper, stop) = crate::listen::Stopper::new();
        let counted = crate::listen::Metrics::default();
        let mut registry = Registry::with_prefix("floe");
        counted.register(&mut registry);
        let limits = crate::listen::Limits::default();
        let gate = Gate::new(limits, stop, Arc::new(clock::System), counted);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut caller = tokio::net::TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        floe_world::tasks::spawn(run(gate, listener, Arc::new(registry)));
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        caller.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        caller.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn what_is_counted_is_told_to_prometheus() {
        let text = answer("/metrics").await;
        assert!(text.contains("floe_connections_open 1"), "{text}");
        assert!(text.contains("# EOF"), "{text}");
    }
    #[tokio::test]
    async fn whoever_looks_elsewhere_is_told_where_the_metrics_are() {
        let text = answer("/").await;
        assert!(text.starts_with("HTTP/1.1 404 "), "{text}");
        assert!(text.contains("/metrics"), "{text}");
    }
}
