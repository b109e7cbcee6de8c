//! `POST /v1/topic/{topic}/messages`: records in, an answer once they are durable.
//!
//! ```text
//! body          -> records     fill.rs by media type: lines.rs, records.rs, frames.rs; anything else is one record
//! records       -> batches     batches.rs; one small record waits with its like in gather.rs while a flush runs
//! batches       -> offsets     the broker
//! ```
//! Guarantees: nothing is appended from a body that is refused; records of one body keep their order within a partition;
//! a record of its own is not delayed for company; who waits longer than [`Limits`](crate::listen::Limits) allows is told that
//! the outcome is unknown.

mod batches;
mod decode;
mod fill;
mod frames;
mod gather;
mod lines;
mod records;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use floe_broker::{Catalog, Topic};
use floe_model::{PartitionIndex, Timestamp, TopicId, TopicName, partition_for_key};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::body::{self, Bounds};
use super::path::TopicPath;
use super::problem::Problem;
use super::query::{Known, Query};
use super::{Answered, Api, State, media, node, topics};
use batches::{Batches, Run};
pub use decode::decode;
use fill::{Common, To};
pub(crate) use gather::Gatherer;

const KNOWN: &[Known] = &[
    ("partitionKey", &["partition_key"]),
    ("partition", &[]),
    ("timestamp", &[]),
];
/// Times beyond this are microseconds by mistake (in milliseconds it is the year 5138).
const TIMESTAMP_MAX: i64 = 100_000_000_000_000;
/// Largest value that waits for company; larger ones fill a batch by themselves.
const GATHERED_BYTES_MAX: usize = 16 * 1024;

/// One record as it came in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
    pub(crate) headers: Vec<(Bytes, Option<Bytes>)>,
    pub(crate) timestamp: Timestamp,
}

/// Where keyless records go, in turns.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<TopicId, u32>>);

impl Turns {
    fn next(&self, topic: &Topic, catalog: &Catalog) -> PartitionIndex {
        let mut turns = self.0.lock();
        if turns.len() > 2 * catalog.topics.len() + 64 {
            turns.retain(|id, _| catalog.names.contains_key(id));
        }
        let turn = turns.entry(topic.id).or_insert(0);
        let partition = *turn % topic.partitions.len() as u32;
        *turn = turn.wrapping_add(1);
        PartitionIndex(partition)
    }
}

/// See the file's head.
pub(crate) async fn produce(
    api: State,
    TopicPath(name): TopicPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    let common = common(&api, &Query::parse(query.as_deref(), KNOWN)?)?;
    let limit = api.settings.produce_body_bytes_max;
    let bounds = Bounds::new(limit, &api.gate.limits, api.bodies.clone())
        .set_by("http.produce.body.max.bytes");
    let body = body::read(&headers, body, &bounds).await?;
    api.metrics.produce_bytes.inc_by(body.len() as u64);
    let deadline = sleep(api.gate.limits.durable).deadline();
    let topic = topic(&api, &name, deadline).await?;
    if let Some(partition) = common.partition.filter(|p| topic.partition(*p).is_none()) {
        return Err(unknown_partition(
            &topic.name,
            topic.partitions.len(),
            partition,
        ));
    }
    let limit = api.broker.topic_settings(&topic).max_message_bytes as usize;
    let home = common.partition.unwrap_or_else(|| match &common.key {
        Some(key) => partition_for_key(key, topic.partitions.len() as u32),
        None => api.turns.next(&topic, &api.broker.catalog()),
    });
    let mut batches = Batches::new(limit);
    let to = To {
        topic: &topic.name,
        partitions: topic.partitions.len() as u32,
        home,
    };
    if !fill::fill(&mut batches, &media::of_body(&headers), &body, &common, &to)? {
        let record = Record {
            key: common.key,
            value: Some(body),
            headers: Vec::new(),
            timestamp: common.timestamp,
        };
        let place = Place {
            topic: &topic,
            partition: home,
            limit,
        };
        return single(&api, &place, record, deadline, &headers).await;
    }
    drop(body);
    if batches.is_empty() {
        return Err(Problem::bad(
            "no-records",
            "the body holds no record, only blank lines or an empty list; send at least one",
        ));
    }
    let runs = batches.append(&api, &topic, deadline).await?;
    Ok(answer(&name, &runs, &headers))
}

fn common(api: &Api, query: &Query) -> Result<Common, Problem> {
    let timestamp = query.parsed("timestamp", "milliseconds since 1970, from 0")?;
    Ok(Common {
        key: query.bytes("partitionKey")?,
        partition: query
            .parsed("partition", "a partition number, from 0")?
            .map(PartitionIndex),
        timestamp: match timestamp {
            None => api.broker.world().clock.now(),
            Some(ms) => checked_timestamp(ms)
                .map_err(|expected| Problem::parameter("timestamp", &ms.to_string(), expected))?,
        },
    })
}

/// The time of a record, or what would be one.
fn checked_timestamp(ms: i64) -> Result<Timestamp, &'static str> {
    match ms {
        0..TIMESTAMP_MAX => Ok(Timestamp(ms)),
        TIMESTAMP_MAX.. => Err("milliseconds since 1970; this looks like microseconds"),
        _ => Err("milliseconds since 1970, from 0"),
    }
}

/// The topic has no partition of this number.
pub(crate) fn unknown_partition(
    topic: &TopicName,
    count: usize,
    partition: PartitionIndex,
) -> Problem {
    Problem::absent(
        "unknown-partition",
        format!(
            "topic '{topic}' has {count} partitions, 0 to {}; there is no partition {partition}",
            count.saturating_sub(1)
        ),
    )
    .with("topic", topic.as_str())
    .with("partitions", count)
}

/// The topic, made on first use where that is on.
async fn topic(api: &Api, name: &TopicName, deadline: Instant) -> Result<Arc<Topic>, Problem> {
    if let Some(topic) = api.broker.catalog().topics.get(name) {
        return Ok(Arc::clone(topic));
    }
    let created = timeout_at(deadline, api.broker.topic_or_create(name.as_str()));
    let topic = created.await.map_err(|_| {
        let what = format!("topic '{name}' is not made yet: the disk is slow or stuck; try again");
        Problem::later(what, 5)
    })??;
    topic.ok_or_else(|| topics::unknown(name))
}

/// Where a record of its own goes.
struct Place<'a> {
    topic: &'a Topic,
    partition: PartitionIndex,
    /// The topic's `max.message.bytes`.
    limit: usize,
}

async fn single(
    api: &State,
    place: &Place<'_>,
    record: Record,
    deadline: Instant,
    headers: &HeaderMap,
) -> Answered {
    let Place {
        topic,
        partition,
        limit,
    } = *place;
    let run = if record
        .value
        .as_ref()
        .is_some_and(|v| v.len() <= GATHERED_BYTES_MAX)
    {
        let address = topic.address(partition);
        let appended = api.gatherer.append(api, address, limit, record);
        let offset = timeout_at(deadline, appended)
            .await
            .unwrap_or_else(|_| Err(api.broker.undecided()))?;
        Run {
            partition,
            offset,
            count: 1,
        }
    } else {
        let mut batches = Batches::new(limit);
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        batches.add(partition, record.timestamp, key, value, &[])?;
        drop(record);
        let runs = batches.append(api, topic, deadline).await?;
        runs[0]
    };
    Ok(answer(&topic.name, &[run], headers))
}

/// `OK`, or JSON where asked for; the headers say where the first record lies in any case.
fn answer(topic: &TopicName, runs: &[Run], headers: &HeaderMap) -> Response {
    let first = runs[0];
    let mut response = if media::wanted(headers, &[media::JSON]).is_some() {
        Json(json!({
            "topic": topic.as_str(),
            "partition": first.partition.0,
            "offset": first.offset.0,
            "count": runs.iter().map(|r| r.count).sum::<u64>(),
            "offsets": written(runs),
        }))
        .into_response()
    } else {
        node::text("OK")
    };
    let out = response.headers_mut();
    out.insert("floe-partition", HeaderValue::from(first.partition.0));
    out.insert("floe-offset", HeaderValue::from(first.offset.0));
    response
}

/// Where consecutive records of the body lie, in the body's order.
fn written(runs: &[Run]) -> Vec<Value> {
    let one = |run: &Run| json!({ "partition": run.partition.0, "offset": run.offset.0, "count": run.count });
    runs.iter().map(one).collect()
}
