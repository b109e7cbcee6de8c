//! `GET /v1/topic/{topic}/partitions/{partition}/records`: a partition from an offset or a time, with long poll.
//!
//! Guarantees: the first record has exactly the offset asked for, also in the middle of a batch; the answer names where
//! to read on; what is out of range, damaged or undecodable is said with its range and never skipped.

mod records;
mod render;

use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use floe_broker::{Fetch, FetchPart, FetchedPart, Isolation, OffsetSpec};
use floe_model::{Offset, PartitionIndex, Timestamp, TopicName, TopicPartition};

use super::answer::Pages;
use super::path::PartitionPath;
use super::problem::Problem;
use super::produce::unknown_partition;
use super::query::{Known, Query};
use super::{ANSWER_BYTES_MAX, Answered, Api, State, WAIT_MAX, media, topics};
use crate::listen::Phase;
pub(crate) use records::{Found, Scratches, Unreadable, walk};
pub(crate) use render::record as render_record;

const KNOWN: &[Known] = &[
    ("offset", &[]),
    ("timestamp", &[]),
    ("max", &[]),
    ("wait", &[]),
];
/// Records of one answer, if the caller does not say.
const RECORDS_DEFAULT: u64 = 500;
const RECORDS_MAX: u64 = 100_000;

/// How the records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Lines,
}

/// See the file's head.
pub(crate) async fn read(
    api: State,
    PartitionPath(name, index): PartitionPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let query = Query::parse(query.as_deref(), KNOWN)?;
    let max = most(&query)?;
    let wait = query.duration("wait", WAIT_MAX)?.unwrap_or_default();
    let form = match media::wanted(&headers, &[media::JSON, media::NDJSON]) {
        Some(media::NDJSON) => Form::Lines,
        _ => Form::Json,
    };
    let partition = partition(&api, &name, index)?;
    let from = start(&api, &query, partition).await?;
    let room = Pages::room(&api.answers, ANSWER_BYTES_MAX);
    let fetch = api.broker.fetch(Fetch {
        parts: vec![FetchPart {
            partition,
            offset: from,
            max_bytes: room,
            current_epoch: None,
        }],
        min_bytes: 1,
        max_bytes: room,
        max_wait: wait,
        isolation: Isolation::ReadUncommitted,
    });
    let fetched = tokio::select! {
        fetched = fetch => fetched,
        () = api.gate.stop.reached(Phase::Draining), if !wait.is_zero() => {
            return Err(Problem::later("the node is stopping", 1));
        }
    };
    let Some(part) = fetched.into_iter().next() else {
        return Err(Problem::later("the node is stopping", 1));
    };
    if let Some(error) = part.error {
        return Err(error.into());
    }
    answer(&api, (&name, index), from, part, max, room, form).await
}

fn most(query: &Query) -> Result<u64, Problem> {
    let expected = "how many records at most, 1 to 100000";
    let max = query.parsed("max", expected)?.unwrap_or(RECORDS_DEFAULT);
    if (1..=RECORDS_MAX).contains(&max) {
        return Ok(max);
    }
    Err(Problem::parameter("max", &max.to_string(), expected))
}

fn partition(
    api: &Api,
    name: &TopicName,
    index: PartitionIndex,
) -> Result<TopicPartition, Problem> {
    let catalog = api.broker.catalog();
    let topic = catalog
        .topics
        .get(name)
        .ok_or_else(|| topics::unknown(name))?;
    match topic.partition(index) {
        Some(_) => Ok(topic.address(index)),
        None => Err(unknown_partition(name, topic.partitions.len(), index)),
    }
}

/// Where to begin: the first record kept, unless the query says otherwise. A time after the last record is the end.
async fn start(api: &Api, query: &Query, partition: TopicPartition) -> Result<Offset, Problem> {
    let offset = query.text("offset")?;
    let time: Option<i64> = query.parsed("timestamp", "milliseconds since 1970")?;
    let spec = match (offset.as_deref(), time) {
        (Some(_), Some(_)) => {
            return Err(Problem::bad(
                "invalid-parameter",
                "'offset' and 'timestamp' are both given; give one of them",
            ));
        }
        (Some("latest"), None) => OffsetSpec::Latest,
        (Some("earliest") | None, None) => OffsetSpec::Earliest,
        (Some(number), None) => {
            return number.parse().map(Offset).map_err(|_| {
                Problem::parameter("offset", number, "a number from 0, 'earliest' or 'latest'")
            });
        }
        (None, Some(ms)) => OffsetSpec::Time(Timestamp(ms)),
    };
    let look = |spec| {
        api.broker
            .list_offset(partition, spec, Isolation::ReadUncommitted, None)
    };
    if let Some(found) = look(spec).await? {
        return Ok(found.offset);
    }
    let end = look(OffsetSpec::Latest).await?;
    Ok(end.map_or(Offset::ZERO, |found| found.offset))
}

async fn answer(
    api: &Api,
    (name, index): (&TopicName, PartitionIndex),
    from: Offset,
    part: FetchedPart,
    max: u64,
    room: usize,
    form: Form,
) -> Answered {
    let mut pages = Pages::begin(&api.answers).await?;
    let mut line = Vec::new();
    let mut count = 0;
    let mut next = from;
    let mut refused = None;
    if form == Form::Json {
        let head = format!("{{\"topic\":\"{name}\",\"partition\":{index},\"records\":[");
        drop(pages.push(head.as_bytes()));
    }
    let walked = walk(&api.scratches, &part.records, from, |found| {
        if count == max || (count > 0 && pages.len() >= room) {
            return false;
        }
        line.clear();
        if count > 0 && form == Form::Json {
            line.push(b',');
        }
        render::record(&mut line, None, index, found, form == Form::Lines);
        if form == Form::Lines {
            line.push(b'\n');
        }
        if pages.push(&line).is_err() {
            refused = Some(line.len());
            return false;
        }
        count += 1;
        next = found.offset.plus(1);
        true
    });
    match walked {
        Ok(true) => next = next.max(part.next),
        Err(unreadable) if count == 0 => return Err(unreadable.problem()),
        // What lies before the damage is given now; the next read meets it first.
        Ok(false) | Err(_) => {}
    }
    if count == 0 && refused.is_some() {
        return Err(Problem::later(
            "the memory for answers is in use; try again in a second",
            1,
        ));
    }
    api.metrics.read_records.inc_by(count);
    if form == Form::Json {
        let tail = format!(
            "],\"nextOffset\":{next},\"commitOffset\":{},\"logStart\":{}}}",
            part.high_watermark, part.log_start
        );
        if pages.push(tail.as_bytes()).is_err() {
            return Err(Problem::later(
                "the memory for answers is in use; try again in a second",
                1,
            ));
        }
    }
    let content_type = match form {
        Form::Json => media::JSON,
        Form::Lines => media::NDJSON,
    };
    let mut response = Response::new(pages.finish(()));
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    out.insert("floe-next-offset", HeaderValue::from(next.0));
    out.insert(
        "floe-commit-offset",
        HeaderValue::from(part.high_watermark.0),
    );
    out.insert("floe-log-start", HeaderValue::from(part.log_start.0));
    Ok(response.into_response())
}
