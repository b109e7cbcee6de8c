//! Topics: list, create, describe, delete.

use axum::Json;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use floe_broker::{Isolation, NewTopic, OffsetSpec, Topic};
use floe_model::TopicName;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{self, Bounds, DOCUMENT_BYTES_MAX};
use super::object::Object;
use super::path::TopicPath;
use super::problem::Problem;
use super::query::Query;
use super::{Answered, Api, State};

/// Every topic, Floe's own left out.
pub(crate) async fn list(api: State, RawQuery(query): RawQuery) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let catalog = api.broker.catalog();
    let topics: Vec<Value> = catalog
        .topics
        .values()
        .filter(|t| !t.name.is_internal())
        .map(|t| json!({ "name": t.name.as_str(), "id": t.id.to_string(), "partitions": t.partitions.len() }))
        .collect();
    Ok(Json(json!({ "topics": topics })).into_response())
}

/// What a topic is made with; what is left out is the node's default.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Wish {
    partitions: Option<i32>,
    replication_factor: Option<i16>,
    settings: Map<String, Value>,
    validate_only: bool,
}

/// Creates a topic.
pub(crate) async fn create(
    api: State,
    TopicPath(name): TopicPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let bounds = Bounds::new(DOCUMENT_BYTES_MAX, &api.gate.limits, api.bodies.clone());
    let body = body::read_any(&headers, body, &bounds).await?;
    let wish: Wish = if body.is_empty() {
        Wish::default()
    } else {
        let object = serde_json::from_slice(&body).map(|Object(wish)| wish);
        object.map_err(|e| {
            Problem::bad(
                "invalid-json",
                format!("the body is not a topic: {e}; give an object with partitions, replicationFactor, settings or validateOnly"),
            )
        })?
    };
    let setting = |(name, value): (String, Value)| match value {
        Value::String(text) => (name, text),
        other => (name, other.to_string()),
    };
    let new = NewTopic {
        name: name.as_str().to_owned(),
        partitions: wish.partitions,
        replication_factor: wish.replication_factor,
        settings: wish.settings.into_iter().map(setting).collect(),
        validate_only: wish.validate_only,
    };
    let topic = api.broker.create_topic(new).await?;
    let status = if wish.validate_only {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let location = format!("/v1/topic/{name}");
    Ok((
        status,
        [(header::LOCATION, location)],
        Json(described(&api, &topic).await),
    )
        .into_response())
}

/// A topic with its partitions and the settings in force.
pub(crate) async fn describe(
    api: State,
    TopicPath(name): TopicPath,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let catalog = api.broker.catalog();
    let topic = catalog.topics.get(&name).ok_or_else(|| unknown(&name))?;
    Ok(Json(described(&api, topic).await).into_response())
}

/// Deletes a topic with its records and positions.
pub(crate) async fn delete(
    api: State,
    TopicPath(name): TopicPath,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    api.broker.delete_topic(name.as_str()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// There is no topic of this name.
pub(crate) fn unknown(name: &TopicName) -> Problem {
    Problem::absent(
        "unknown-topic",
        format!("topic '{name}' does not exist; create it with PUT /v1/topic/{name}, or see GET /v1/topic"),
    )
    .with("topic", name.as_str())
}

async fn described(api: &Api, topic: &Topic) -> Value {
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for partition in &topic.partitions {
        let replicas: Vec<u32> = partition.replicas.iter().map(|r| r.node.0).collect();
        partitions.push(json!({
            "partition": partition.index.0,
            "leader": partition.leader.node.0,
            "leaderEpoch": partition.epoch.0,
            "replicas": replicas,
            "logStart": bound(api, topic, partition, OffsetSpec::Earliest).await,
            "commitOffset": bound(api, topic, partition, OffsetSpec::Latest).await,
        }));
    }
    let settings: Map<String, Value> = api
        .broker
        .describe_settings(topic)
        .into_iter()
        .map(|s| (s.name.to_owned(), Value::String(s.value)))
        .collect();
    json!({
        "name": topic.name.as_str(),
        "id": topic.id.to_string(),
        "partitions": partitions,
        "settings": settings,
    })
}

/// A bound of a partition; null when this node cannot say now.
async fn bound(
    api: &Api,
    topic: &Topic,
    partition: &floe_broker::Partition,
    spec: OffsetSpec,
) -> Option<u64> {
    let address = topic.address(partition.index);
    let found = api
        .broker
        .list_offset(address, spec, Isolation::ReadUncommitted, None)
        .await;
    found.ok().flatten().map(|f| f.offset.0)
}
