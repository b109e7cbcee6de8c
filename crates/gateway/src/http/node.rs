//! The node itself: `GET /v1/brokers` and `GET /status`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use super::query::Query;
use super::{Answered, State, media};
use crate::listen::{Connection, Phase};

/// Where the nodes are, as this caller reaches them: by the advertised host, else by the name it used for us, which works
/// for it.
pub(crate) async fn brokers(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    uri: Uri,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    // HTTP/2 has the authority in place of the header.
    let header = headers.get(header::HOST).and_then(|h| h.to_str().ok());
    let host = uri.authority().map(Authority::as_str).or(header);
    let called = || host.map_or_else(|| address(connection.local), |h| without_port(h).to_owned());
    let name = api.settings.advertised.clone().unwrap_or_else(called);
    let catalog = api.broker.catalog();
    let known = catalog.nodes.values().filter(|n| n.id != api.broker.node());
    let others = known.filter_map(|n| n.endpoints.iter().find(|e| e.door == "http"));
    let names: Vec<String> = std::iter::once(name)
        .chain(others.map(|e| e.host.clone()))
        .collect();
    Ok(Json(json!({
        "length": names.len(),
        "names": names,
        "producerPort": api.settings.produce_port,
        "consumerPort": api.settings.consume_port,
    }))
    .into_response())
}

/// Whether the node serves: 200, or 503 while it stops.
pub(crate) async fn status(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let is_ready = api.gate.stop.phase() == Phase::Serving;
    let code = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let mut response = if media::wanted(&headers, &[media::JSON]).is_some() {
        let catalog = api.broker.catalog();
        let topics = catalog.topics.values().filter(|t| !t.name.is_internal());
        let (topics, partitions) =
            topics.fold((0, 0), |(t, p), topic| (t + 1, p + topic.partitions.len()));
        let memory = &api.broker.world().memory;
        Json(json!({
            "status": if is_ready { "ready" } else { "stopping" },
            "node": api.broker.node().0,
            "cluster": catalog.cluster.to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "topics": topics,
            "partitions": partitions,
            "connections": api.gate.metrics.open.get(),
            "bufferBytes": memory.used(),
            "bufferBytesLimit": memory.limit(),
        }))
        .into_response()
    } else {
        let port = connection.local.port();
        let word = if is_ready { "is ready" } else { "is stopping" };
        text(format!(
            "Floe node {} {word}, listening on {port}\n",
            api.broker.node()
        ))
    };
    *response.status_mut() = code;
    if !is_ready {
        response.headers_mut().insert(header::RETRY_AFTER, 1.into());
    }
    Ok(response)
}

/// A plain text answer.
pub(crate) fn text(body: impl Into<axum::body::Body>) -> Response {
    (
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        body.into(),
    )
        .into_response()
}

/// An address as it stands in a URL.
fn address(local: SocketAddr) -> String {
    match local.ip().to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The host of a `Host` header; brackets of IPv6 stay.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_a_caller_used_is_told_without_its_port() {
        assert_eq!(without_port("localhost:9250"), "localhost");
        assert_eq!(without_port("floe.example"), "floe.example");
        assert_eq!(without_port("[::1]:9250"), "[::1]");
        assert_eq!(without_port("10.0.0.1:1"), "10.0.0.1");
    }

    #[test]
    fn an_address_is_told_as_it_stands_in_a_url() {
        let told = |text: &str| address(text.parse().unwrap());
        assert_eq!(told("127.0.0.1:9250"), "127.0.0.1");
        assert_eq!(told("[::ffff:127.0.0.1]:9250"), "127.0.0.1");
        assert_eq!(told("[::1]:9250"), "[::1]");
    }
}
