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

use super::answer::{NoMemory, Pages};
use super::json::Text as _;
use super::path::PartitionPath;
use super::problem::Problem;
use super::produce::unknown_partition;
use super::query::{Known, Query};
use super::{ANSWER_BYTES_MAX, Answered, Api, State, WAIT_MAX, media, topics};
use crate::listen::Phase;
pub(crate) use records::{Found, Scratches, oversized, walk};
pub(crate) use render::record as render_record;

const KNOWN: &[Known] = &[
    ("offset", &[]),
    ("timestamp", &[]),
    ("max", &[]),
    ("wait", &[]),
];
/// Records of one answer, if the caller does not say.
pub(super) const RECORDS_DEFAULT: u64 = 500;
pub(super) const RECORDS_MAX: u64 = 100_000;

/// What ends an answer: three offsets and their names.
const TAIL_BYTES_MAX: usize = 256;

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

/// What an answer holds.
struct Page {
    pages: Pages,
    records: u64,
    /// Where to read on.
    next: Offset,
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
    if form == Form::Json {
        let head = format!("{{\"topic\":\"{name}\",\"partition\":{index},\"records\":[");
        pages.push(head.as_bytes()).map_err(|_| no_memory())?;
    }
    let mut page = Page {
        pages,
        records: 0,
        next: from,
    };
    page.fill(api, index, &part, max, room, form)?;
    api.metrics.read_records.inc_by(page.records);
    let next = page.next;
    if form == Form::Json {
        let tail = format!(
            "],\"nextOffset\":{next},\"commitOffset\":{},\"logStart\":{}}}",
            part.high_watermark, part.log_start
        );
        if let Err(short) = page.pages.push(tail.as_bytes()) {
            return Err(match page.records {
                1 => page.refusal(api, Offset(next.0.saturating_sub(1)), &short),
                _ => no_memory(),
            });
        }
    }
    let content_type = match form {
        Form::Json => media::JSON,
        Form::Lines => media::NDJSON,
    };
    let mut response = Response::new(page.pages.finish(()));
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

impl Page {
    /// Writes records until there are `max`, about `room` bytes, or no more; at least one if there is one.
    fn fill(
        &mut self,
        api: &Api,
        index: PartitionIndex,
        part: &FetchedPart,
        max: u64,
        room: usize,
        form: Form,
    ) -> Result<(), Problem> {
        let mut short = None;
        let walked = walk(&api.scratches, &part.records, self.next, |found| {
            let is_first = self.records == 0;
            if self.records == max || (!is_first && self.pages.len() >= room) {
                return false;
            }
            let written = self.pages.write(|out| {
                if !is_first && form == Form::Json {
                    out.put(b",");
                }
                render::record(out, None, index, found, form == Form::Lines);
                if form == Form::Lines {
                    out.put(b"\n");
                }
            });
            match written {
                Ok(()) => {
                    self.records += 1;
                    self.next = found.offset.plus(1);
                }
                Err(no_memory) => short = Some((found.offset, no_memory)),
            }
            short.is_none()
        });
        match walked {
            Ok(true) => self.next = self.next.max(part.next),
            Err(unreadable) if self.records == 0 => return Err(unreadable.problem()),
            // What lies before the damage is given now; the next read meets it first.
            Ok(false) | Err(_) => {}
        }
        match short {
            Some((offset, short)) if self.records == 0 => Err(self.refusal(api, offset, &short)),
            Some(_) | None => Ok(()),
        }
    }

    /// There is no memory for the first record: for now, or for ever.
    fn refusal(&self, api: &Api, offset: Offset, short: &NoMemory) -> Problem {
        let bytes = self.pages.len() + short.bytes + TAIL_BYTES_MAX;
        if Pages::can_hold(&api.answers, bytes) {
            return no_memory();
        }
        let next = offset.plus(1);
        let what = format!("the record at offset {offset}");
        oversized(
            &api.answers,
            &what,
            bytes,
            &format!("go on at offset={next}"),
        )
        .with("from", offset.0)
        .with("nextOffset", next.0)
    }
}

fn no_memory() -> Problem {
    Problem::later("the memory for answers is in use; try again in a second", 1)
}
