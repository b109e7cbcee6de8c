//! A poll's answer as JSON: items as the API this one is compatible with has them, or plain records.

use floe_broker::groups::Chunk;
use floe_model::{LeaderEpoch, Offset};

use super::super::super::Api;
use super::super::super::answer::Pages;
use super::super::super::json::{write_poll_value, write_string};
use super::super::super::problem::Problem;
use super::super::super::read::{Unreadable, render_record, walk};
use super::no_memory;

/// `[{topic, token, partition, rangeIndex, version, startOffset, values}]`. Offsets of an item's values have no holes
/// and one leader epoch: where either breaks, the next item begins.
pub(super) fn items(api: &Api, pages: &mut Pages, chunks: &[Chunk]) -> Result<u64, Problem> {
    let mut count = 0;
    let mut is_open = false;
    let mut text = b"[".to_vec();
    for chunk in chunks {
        let mut expected: Option<(Offset, LeaderEpoch)> = None;
        let mut failed = false;
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
            write_poll_value(&mut text, found.value);
            expected = Some((found.offset.plus(1), found.epoch));
            count += 1;
            failed = pages.push(&text).is_err();
            text.clear();
            !failed
        });
        check(walked, failed)?;
    }
    text.extend_from_slice(if is_open { b"]}]" } else { b"]" });
    pages.push(&text).map_err(|_| no_memory())?;
    Ok(count)
}

/// `[{topic, partition, offset, timestamp, key, value, headers}]`.
pub(super) fn records(api: &Api, pages: &mut Pages, chunks: &[Chunk]) -> Result<u64, Problem> {
    let mut count = 0;
    let mut text = b"[".to_vec();
    for chunk in chunks {
        let mut failed = false;
        let walked = walk(&api.scratches, &chunk.batches, chunk.start, |found| {
            if found.offset >= chunk.end {
                return false;
            }
            if count > 0 {
                text.push(b',');
            }
            let partition = chunk.partition.partition;
            render_record(&mut text, Some(&chunk.topic), partition, found, false);
            count += 1;
            failed = pages.push(&text).is_err();
            text.clear();
            !failed
        });
        check(walked, failed)?;
    }
    text.push(b']');
    pages.push(&text).map_err(|_| no_memory())?;
    Ok(count)
}

fn check(walked: Result<bool, Unreadable>, failed: bool) -> Result<(), Problem> {
    match walked {
        _ if failed => Err(no_memory()),
        Ok(_) => Ok(()),
        Err(unreadable) => Err(unreadable.problem()),
    }
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
