//! `POST /v1/consumer/poll`: the next records of a consumer's partitions.
//!
//! Guarantees: the poll commits what the consumer was given before, unless `received` says otherwise or the answer was
//! lost on its way; an answer that is given up before its end is delivered again. In each item of an answer the offset
//! of value `i` is `startOffset + i`.

mod binary;
mod json;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use floe_broker::groups::{Chunk, Polled};
use floe_groups::assigned::{Caller, DeliveryToken, Received};
use floe_world::Pool;

use super::super::answer::{Pages, Watch};
use super::super::problem::Problem;
use super::super::query::Query;
use super::super::read::oversized;
use super::super::{ANSWER_BYTES_MAX, Answered, Api, State, WAIT_MAX, media};
use super::{caller, parse};
use crate::listen::{Connection, Phase};

/// What an answer can look like.
const OFFERED: &[&str] = &[media::JSON, media::RECORDS, media::CONSUMER_MESSAGE];

/// A chunk is given whole or not at all, so it is chosen such that several batches may grow so many times, decompressed
/// and as JSON, before they are too much for the memory for answers.
const GROWTH: usize = 64;

/// See the file's head.
pub(crate) async fn poll(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let query = parse(query.as_deref())?;
    let caller = caller(&query, &connection)?;
    let wait = query.duration("wait", WAIT_MAX)?.unwrap_or_default();
    let received = received(&query)?;
    let form = media::wanted(&headers, OFFERED).unwrap_or(media::CONSUMER_MESSAGE);
    // The memory comes first: once records are delivered nothing may fail any more.
    let pages = Pages::begin(&api.answers).await?;
    let most = ANSWER_BYTES_MAX.min(api.answers.limit() / GROWTH);
    let room = Pages::room(&api.answers, most);
    let groups = api.broker.groups();
    let polled = groups.poll(&caller, received, wait, room);
    let polled = api.deliveries.poll(groups, &caller, &connection, polled);
    let polled = tokio::select! {
        polled = polled => polled?,
        () = api.gate.stop.reached(Phase::Draining), if !wait.is_zero() => return Ok(nothing(1)),
    };
    let (token, chunks) = match polled {
        Polled::Records(token, chunks) => (token, chunks),
        Polled::Nothing => return Ok(nothing(u64::from(wait.is_zero()))),
        Polled::Unassigned => return Ok(nothing(5)),
    };
    let delivery = Delivery {
        api: Arc::clone(&api),
        caller,
        token,
        is_given: false,
    };
    answer(&api, form, pages, &chunks, delivery)
}

fn received(query: &Query) -> Result<Received, Problem> {
    Ok(match query.text("received")?.as_deref() {
        None => Received::Unsaid,
        Some("none") => Received::Nothing,
        Some(token) => Received::UpTo(token.parse()?),
    })
}

/// 204: poll again after so many seconds; 0 is at once.
fn nothing(seconds: u64) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let out = response.headers_mut();
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if seconds > 0 {
        out.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn answer(
    api: &Api,
    form: &'static str,
    mut pages: Pages,
    chunks: &[Chunk],
    delivery: Delivery,
) -> Answered {
    let written = match form {
        media::JSON => json::items(api, &mut pages, chunks),
        media::RECORDS => json::records(api, &mut pages, chunks),
        _ => binary::items(api, &mut pages, chunks),
    };
    // On a refusal `delivery` is dropped ungiven here, so the chunk comes again; its token is told for those who decide
    // to go on without it.
    let token = delivery.token.to_string();
    let count = written.map_err(|problem| problem.with("delivery", token.as_str()))?;
    api.metrics.read_records.inc_by(count);
    let mut response = Response::new(pages.finish(delivery));
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(form));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(token) = HeaderValue::from_str(&token) {
        out.insert("floe-delivery", token);
    }
    Ok(response)
}

/// Takes a chunk back unless its answer was handed over whole.
struct Delivery {
    api: Arc<Api>,
    caller: Caller,
    token: DeliveryToken,
    is_given: bool,
}

impl Watch for Delivery {
    fn given(&mut self) {
        self.is_given = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.is_given {
            self.api
                .broker
                .groups()
                .delivery_lost(&self.caller, self.token);
        }
    }
}

/// Memory ran out in the middle of an answer: nothing of it is sent. It comes again, unless it can never fit.
fn no_memory(pool: &Pool, bytes: usize, chunks: &[Chunk]) -> Problem {
    if Pages::can_hold(pool, bytes) {
        return Problem::later(
            "the memory for answers is in use; poll again in a second",
            Duration::from_secs(1).as_secs(),
        );
    }
    let ranges = chunks.iter().map(|chunk| {
        let (topic, partition) = (&chunk.topic, chunk.partition.partition);
        format!(
            "offsets {} up to {} of {topic}/{partition}",
            chunk.start, chunk.end
        )
    });
    let ranges = ranges.collect::<Vec<_>>().join(", ");
    let go_on = "read them with GET /v1/topic/{topic}/partitions/{partition}/records, which gives one record at a time if \
                 need be, and poll with this problem's 'delivery' as 'received'";
    oversized(pool, &ranges, bytes, go_on)
}
