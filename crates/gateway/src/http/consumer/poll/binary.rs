//! A poll's answer as `application/vnd.polar.consumermessage`, all big endian:
//!
//! ```text
//! items u16 × { token i64 (the partition) | rangeIndex u8 = 0 | version u32 (leader epoch)
//!             | topic: length u8, UTF-8 | startOffset i64 | payload: length i32, zstd frame }
//! payload:  { timestamp i64 microseconds | length u32 | bytes }…
//! ```
//! Offsets of an item's records have no holes and one leader epoch. A null value is one of no bytes: this form has no
//! other; ask for JSON where the difference matters.

use std::io::Write;

use axum::http::StatusCode;
use floe_broker::groups::Chunk;
use floe_model::{LeaderEpoch, Offset};

use super::super::super::Api;
use super::super::super::answer::Pages;
use super::super::super::problem::Problem;
use super::super::super::read::{Found, walk};
use super::no_memory;

/// zstd's own default.
const LEVEL: i32 = 3;

struct Item {
    start: Offset,
    next: Offset,
    epoch: LeaderEpoch,
    payload: zstd::stream::write::Encoder<'static, Vec<u8>>,
}

/// Writes all items.
pub(super) fn items(api: &Api, pages: &mut Pages, chunks: &[Chunk]) -> Result<u64, Problem> {
    let mut count = 0;
    let mut written = 0_u32;
    let mut body = Vec::new();
    for chunk in chunks {
        let mut item: Option<Item> = None;
        let walked = walk(&api.scratches, &chunk.batches, chunk.start, |found| {
            if found.offset >= chunk.end {
                return false;
            }
            let fits = |i: &Item| i.next == found.offset && i.epoch == found.epoch;
            if let Some(done) = item.take_if(|i| !fits(i)) {
                close(&mut body, chunk, done);
                written += 1;
            }
            add(item.get_or_insert_with(|| begin(found)), found);
            count += 1;
            true
        });
        walked.map_err(|unreadable| unreadable.problem())?;
        if let Some(done) = item {
            close(&mut body, chunk, done);
            written += 1;
        }
    }
    let written = u16::try_from(written).map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "too-many-items",
            format!("{written} items do not fit this form, which counts to 65535; poll with Accept: application/json"),
        )
    })?;
    let bytes = pages.len() + size_of::<u16>() + body.len();
    let pushed = pages
        .push(&written.to_be_bytes())
        .and_then(|()| pages.push(&body));
    pushed.map_err(|_| no_memory(&api.answers, bytes, chunks))?;
    Ok(count)
}

fn begin(found: &Found<'_>) -> Item {
    let encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL);
    let mut payload =
        encoder.expect("a context of a constant level is made as long as there is memory");
    payload
        .include_checksum(true)
        .expect("the checksum is a setting that every context has");
    Item {
        start: found.offset,
        next: found.offset,
        epoch: found.epoch,
        payload,
    }
}

fn add(item: &mut Item, found: &Found<'_>) {
    let value = found.value.unwrap_or_default();
    let micros = found.timestamp.0.saturating_mul(1000);
    let parts = [
        &micros.to_be_bytes()[..],
        &(value.len() as u32).to_be_bytes(),
        value,
    ];
    for part in parts {
        item.payload
            .write_all(part)
            .expect("writing into memory does not fail");
    }
    item.next = found.offset.plus(1);
}

fn close(body: &mut Vec<u8>, chunk: &Chunk, item: Item) {
    let payload = item
        .payload
        .finish()
        .expect("writing into memory does not fail");
    let topic = chunk.topic.as_str().as_bytes();
    body.extend_from_slice(&i64::from(chunk.partition.partition.0).to_be_bytes());
    body.push(0);
    body.extend_from_slice(&item.epoch.0.to_be_bytes());
    body.push(topic.len() as u8);
    body.extend_from_slice(topic);
    body.extend_from_slice(&item.start.0.to_be_bytes());
    body.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    body.extend_from_slice(&payload);
}
