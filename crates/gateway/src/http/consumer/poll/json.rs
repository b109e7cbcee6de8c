//! A poll's answer as JSON: items as the API this one is compatible with has them, or plain records.

use floe_broker::groups::Chunk;
use floe_model::{LeaderEpoch, Offset};

use super::super::super::Api;
use super::super::super::answer::Pages;
use super::super::super::json::{Text as _, write_poll_value, write_string};
use super::super::super::problem::Problem;
use super::super::super::read::{render_record, walk};
use super::no_memory;

/// `[{topic, token, partition, rangeIndex, version, startOffset, values}]`. Offsets of an item's values have no holes
/// and one leader epoch: where either breaks, the next item begins.
pub(super) fn items(api: &Api, pages: &mut Pages, chunks: &[Chunk]) -> Result<u64, Problem> {
    let mut count = 0;
    let mut is_open = false;
    let mut missing = 0;
    let mut text = b"[".to_vec();
    for chunk in chunks {
        let mut expected: Option<(Offset, LeaderEpoch)> = None;
        let walked = walk(&api.scratches, &chunk.batches, chunk.start, |found| {
            if found.offset >= chunk.end {
                return false;
            }
            if expected == Some((found.offset, found.epoch)) {
                text.push(b',');
            } else {
                if is_open {
                    text.extend_from_slice(b"]},");
                }
                begin(
                    &mut text,
                    chunk,
                    found.offset,
                    found.epoch,
                    expected.is_none(),
                );
                is_open = true;
            }
            let written = pages.write(|out| {
                out.put(&text);
                write_poll_value(out, found.value);
            });
            missing += written.map_or_else(|short| short.bytes, |()| 0);
            text.clear();
            expected = Some((found.offset.plus(1), found.epoch));
            count += 1;
            true
        });
        walked.map_err(|unreadable| unreadable.problem())?;
    }
    text.extend_from_slice(if is_open { b"]}]" } else { b"]" });
    end(api, pages, chunks, &text, missing)?;
    Ok(count)
}

/// `[{topic, partition, offset, timestamp, key, value, headers}]`.
pub(super) fn records(api: &Api, pages: &mut Pages, chunks: &[Chunk]) -> Result<u64, Problem> {
    let mut count = 0;
    let mut missing = 0;
    for chunk in chunks {
        let walked = walk(&api.scratches, &chunk.batches, chunk.start, |found| {
            if found.offset >= chunk.end {
                return false;
            }
            let partition = chunk.partition.partition;
            let written = pages.write(|out| {
                out.put(if count > 0 { b"," } else { b"[" });
                render_record(out, Some(&chunk.topic), partition, found, false);
            });
            missing += written.map_or_else(|short| short.bytes, |()| 0);
            count += 1;
            true
        });
        walked.map_err(|unreadable| unreadable.problem())?;
    }
    let tail: &[u8] = if count > 0 { b"]" } else { b"[]" };
    end(api, pages, chunks, tail, missing)?;
    Ok(count)
}

/// Ends an answer, which is whole only if nothing of it is missing for want of memory.
fn end(
    api: &Api,
    pages: &mut Pages,
    chunks: &[Chunk],
    tail: &[u8],
    missing: usize,
) -> Result<(), Problem> {
    if missing == 0 && pages.push(tail).is_ok() {
        return Ok(());
    }
    let bytes = pages.len() + missing + tail.len();
    Err(no_memory(&api.answers, bytes, chunks))
}

fn begin(text: &mut Vec<u8>, chunk: &Chunk, start: Offset, epoch: LeaderEpoch, is_first: bool) {
    let partition = chunk.partition.partition;
    text.extend_from_slice(b"{\"topic\":");
    write_string(text, chunk.topic.as_str());
    let fields = format!(
        ",\"token\":\"{partition}\",\"partition\":{partition},\"rangeIndex\":0,\"version\":{epoch},\"startOffset\":\"{start}\""
    );
    text.extend_from_slice(fields.as_bytes());
    if let Some(gone) = chunk.gone.as_ref().filter(|_| is_first) {
        let fields = format!(
            ",\"gone\":{{\"from\":\"{}\",\"to\":\"{}\"}}",
            gone.start, gone.end
        );
        text.extend_from_slice(fields.as_bytes());
    }
    text.extend_from_slice(b",\"values\":[");
}
