//! Reading back the sequence state of idempotent producers: the kept snapshot, then the batches after it.
//!
//! Guarantees: exact: the state is the fold of every batch that is still there; what a kept snapshot cannot give is read from the
//! log, as far as a node may know producers. Damaged ranges are passed over; they are reported where they are read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_log::{Outcome, ReadError};
use floe_model::Offset;
use floe_wire::batch;
use floe_world::tasks;

use crate::StartError;
use crate::node::Node;
use crate::partition::{Partition, Producers};

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Bytes read back from which the outcome is kept.
const KEPT_FROM_BYTES: usize = 1 << 20;
/// Partitions read back at once: enough to keep the log's readers busy.
const AT_ONCE: usize = 4;

/// Reads back the producers of every partition.
pub(super) async fn producers(node: &Arc<Node>) -> Result<(), StartError> {
    // One moment for all, so that none looks older for having been read first.
    let now = node.world.clock.monotonic();
    let mut partitions = node.all_partitions().into_iter();
    let mut reading = VecDeque::new();
    loop {
        while reading.len() < AT_ONCE
            && let Some(partition) = partitions.next()
        {
            let node = Arc::clone(node);
            reading.push_back(tasks::spawn(async move {
                let (producers, bytes) = read_back(&node, &partition, now).await?;
                if bytes >= KEPT_FROM_BYTES {
                    // The next start need not read the same again, also if nothing is appended until then.
                    let snapshot = producers.snapshot(partition.epoch).into();
                    let end = partition.committed();
                    node.log.keep_producers(&partition.log, end, snapshot);
                    node.log.checkpoint_soon();
                }
                *partition.producers().lock() = producers.counted_in(node.producers.clone());
                node.make_room_for_producers();
                Ok(())
            }));
        }
        let Some(next) = reading.pop_front() else {
            return Ok(());
        };
        next.await?;
    }
}

/// The state, and how many bytes of the log were read for it.
async fn read_back(
    node: &Node,
    partition: &Partition,
    now: Duration,
) -> Result<(Producers, usize), StartError> {
    let end = partition.committed();
    let log_start = partition.log_start();
    if end == Offset::ZERO {
        return Ok((Producers::default(), 0));
    }
    let (mut at, mut producers) = kept(node, partition, end, now)
        .await
        .unwrap_or_else(|| (log_start, Producers::default()));
    at = at.max(log_start);
    let mut bytes_read = 0;
    while at < end {
        let (batches, next) = read(node, partition, at, end).await?;
        bytes_read += batches.iter().map(Bytes::len).sum::<usize>();
        for bytes in &batches {
            for view in batch::batches(bytes).flatten() {
                let base = Offset(view.base_offset().max(0) as u64);
                // A snapshot lies on a batch border, so a batch that begins before it is in it.
                if base >= at {
                    producers.replay(&view, now);
                }
            }
        }
        producers.bound();
        if next <= at {
            return Err(StartError::Damaged {
                dir: node.settings.data_dir.clone(),
                what: format!(
                    "{} holds nothing at {at}, below its end {end}",
                    partition.address
                ),
            });
        }
        at = next;
    }
    Ok((producers, bytes_read))
}

/// The kept state, if it can be read and belongs to what is there: one drawn above the end of its generation is of a tail that
/// damage has taken.
async fn kept(
    node: &Node,
    partition: &Partition,
    end: Offset,
    now: Duration,
) -> Option<(Offset, Producers)> {
    let (at, bytes) = node.log.producers(&partition.log).await?;
    let (epoch, producers) = Producers::restore(&bytes, now)
        .inspect_err(|error| {
            tracing::warn!(partition = %partition.address, %error, "producers are read from the log");
        })
        .ok()?;
    let catalog = node.catalog.load();
    let chain = catalog.partition(partition.address)?.chain();
    let is_there = chain
        .epoch_end(epoch, end)
        .is_some_and(|found| at <= found.end);
    is_there.then_some((at, producers))
}

async fn read(
    node: &Node,
    partition: &Partition,
    at: Offset,
    end: Offset,
) -> Result<(Vec<Bytes>, Offset), StartError> {
    let outcome = match node.log.read(&partition.log, at, end, READ_BYTES, true) {
        Ok(Outcome::Memory(slices)) => Ok(slices),
        Ok(Outcome::Cold(read)) => read.await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(slices) => Ok((slices.batches, slices.next)),
        Err(ReadError::Lost { offsets } | ReadError::NotHeld { offsets }) => {
            Ok((Vec::new(), Offset(offsets.end).max(at.plus(1))))
        }
        Err(error) => Err(StartError::Damaged {
            dir: node.settings.data_dir.clone(),
            what: format!("reading {} at {at}: {error}", partition.address),
        }),
    }
}
