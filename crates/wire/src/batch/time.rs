//! Looking up records by time inside a stored batch (KIP-79, KIP-734).

use floe_model::{Offset, Timestamp};

use super::refusal::Refusal;
use super::{TimestampType, View, records};
use crate::codec::Scratch;

/// The first record, at `from` or later, whose timestamp is at or after `target`: its offset and timestamp. The scratch
/// buffer is at rest afterwards.
pub fn first_at_or_after(
    view: &View<'_>,
    from: Offset,
    target: Timestamp,
    scratch: &mut Scratch,
) -> Result<Option<(Offset, Timestamp)>, Refusal> {
    let found = first(view, from, target, scratch);
    scratch.rest();
    found
}

fn first(
    view: &View<'_>,
    from: Offset,
    target: Timestamp,
    scratch: &mut Scratch,
) -> Result<Option<(Offset, Timestamp)>, Refusal> {
    if view.max_timestamp() < target.0 || view.is_control() {
        return Ok(None);
    }
    let base = view.base_offset().max(0) as u64;
    let mut walk = records(view, scratch)?;
    while let Some(record) = walk.try_next()? {
        let offset = Offset(base + record.offset_delta.max(0) as u64);
        let timestamp = view.timestamp_of(&record);
        if offset >= from && timestamp >= target.0 {
            return Ok(Some((offset, Timestamp(timestamp))));
        }
    }
    Ok(None)
}

/// The earliest record that has the batch's greatest timestamp: its offset and timestamp. The scratch buffer is at rest
/// afterwards.
pub fn greatest_timestamp(
    view: &View<'_>,
    scratch: &mut Scratch,
) -> Result<Option<(Offset, Timestamp)>, Refusal> {
    let found = greatest(view, scratch);
    scratch.rest();
    found
}

fn greatest(
    view: &View<'_>,
    scratch: &mut Scratch,
) -> Result<Option<(Offset, Timestamp)>, Refusal> {
    let base = view.base_offset().max(0) as u64;
    if view.timestamp_type() == TimestampType::LogAppend {
        return Ok(Some((Offset(base), Timestamp(view.max_timestamp()))));
    }
    let mut best: Option<(Offset, Timestamp)> = None;
    let mut walk = records(view, scratch)?;
    while let Some(record) = walk.try_next()? {
        let timestamp = Timestamp(view.timestamp_of(&record));
        if best.is_none_or(|(_, greatest)| timestamp > greatest) {
            best = Some((Offset(base + record.offset_delta.max(0) as u64), timestamp));
        }
    }
    Ok(best)
}
