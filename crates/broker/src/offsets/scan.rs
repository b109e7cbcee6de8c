//! Looking for a record by time from the log start on, batch by batch.
//!
//! Only for the rare case that the log's index names a record below the log start: the log deletes whole segments, and
//! the log start may lie inside one.

use floe_log::{Outcome, ReadError, TimeLookup};
use floe_model::{LeaderEpoch, Offset, Timestamp};
use floe_wire::batch::{self, View, records};
use floe_wire::codec::Scratch;

use crate::OffsetError;
use crate::fetch::failed;
use crate::node::Node;
use crate::partition::Partition;

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// What is looked for.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// The first record at or after this time.
    From(Timestamp),
    /// The first record with the largest time.
    Largest,
}

/// Searches from the log start up to `up_to`.
pub(super) async fn from_log_start(
    node: &Node,
    partition: &Partition,
    wanted: Wanted,
    up_to: Offset,
) -> Result<Option<TimeLookup>, OffsetError> {
    let log_start = partition.log_start();
    let mut found = None;
    let mut at = log_start;
    while at < up_to {
        let outcome = match node.log.read(&partition.log, at, up_to, READ_BYTES, true) {
            Ok(Outcome::Memory(slices)) => Ok(slices),
            Ok(Outcome::Cold(read)) => read.await,
            Err(error) => Err(error),
        };
        let slices = match outcome {
            // Nothing can be found in what is lost; it is named where it is read.
            Err(ReadError::Lost { offsets } | ReadError::NotHeld { offsets }) => {
                at = Offset(offsets.end).max(at.plus(1));
                continue;
            }
            other => other.map_err(failed)?,
        };
        for view in slices
            .batches
            .iter()
            .flat_map(|bytes| batch::batches(bytes))
        {
            let Ok(view) = view else { break };
            let mut scratch = Scratch::new(node.settings.log.decompressed_bytes_max);
            look(&view, log_start, wanted, &mut scratch, &mut found);
            if found.is_some() && matches!(wanted, Wanted::From(_)) {
                return Ok(found);
            }
        }
        if slices.next <= at {
            break;
        }
        at = slices.next;
    }
    Ok(found)
}

fn look(
    view: &View<'_>,
    from: Offset,
    wanted: Wanted,
    scratch: &mut Scratch,
    found: &mut Option<TimeLookup>,
) {
    // A batch was walked when it was appended; one that is damaged since is named where it is read.
    let Ok(walk) = records(view, scratch) else {
        return;
    };
    for record in walk.map_while(Result::ok) {
        let offset = Offset(
            (view.base_offset().max(0) as u64).saturating_add(record.offset_delta.max(0) as u64),
        );
        let timestamp = Timestamp(view.timestamp_of(&record));
        let is_better = match wanted {
            Wanted::From(time) => found.is_none() && timestamp >= time,
            Wanted::Largest => found.is_none_or(|best| timestamp > best.timestamp),
        };
        if offset >= from && is_better {
            *found = Some(TimeLookup {
                offset,
                timestamp,
                epoch: LeaderEpoch(view.leader_epoch().max(0) as u32),
            });
        }
    }
}
