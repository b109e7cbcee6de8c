//! Reading: several partitions at once, with a long poll inside.
//!
//! Guarantees: a reader sees whole batches below the commit offset; it is answered when `min_bytes` are there, when something
//! is wrong with one of its partitions, or when `max_wait` is over, whichever is first, and never spins. The first batch of
//! the first partition that has one comes whole, however large (KIP-74).

mod cold;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_log::{ColdRead, Outcome, ReadError, Slices};
use floe_model::{LeaderEpoch, Offset, TopicPartition};

use crate::node::Node;
use crate::partition::{Ended, Partition};
use crate::{FetchError, Unavailable};

/// Reads from disk that one fetch has under way at once.
const COLD_READS_MAX: usize = 16;

/// What a reader may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Everything below the commit offset.
    #[default]
    ReadUncommitted,
    /// Everything below the last stable offset.
    ReadCommitted,
}

/// A request to read.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Which partitions, in the order they may fill the answer.
    pub parts: Vec<FetchPart>,
    /// Answer at once when this much is there.
    pub min_bytes: usize,
    /// Most bytes in all; the first batch of the first partition that has one comes whole in any case (KIP-74).
    pub max_bytes: usize,
    /// Answer with what is there after this long.
    pub max_wait: Duration,
    /// What may be seen.
    pub isolation: Isolation,
}

/// One partition to read.
#[derive(Clone, Copy, Debug)]
pub struct FetchPart {
    /// Which.
    pub partition: TopicPartition,
    /// From where; a batch that holds this offset inside comes whole.
    pub offset: Offset,
    /// Most bytes of this partition.
    pub max_bytes: usize,
    /// The epoch the reader knows, when it says so (KIP-320).
    pub current_epoch: Option<LeaderEpoch>,
}

/// What one partition answers. Comes also with an error, so that a reader learns the bounds.
#[derive(Clone, Debug)]
pub struct FetchedPart {
    /// Which.
    pub partition: TopicPartition,
    /// Whole batches, in order, as they are stored.
    pub records: Vec<Bytes>,
    /// Where to read on after them.
    pub next: Offset,
    /// First offset not readable yet: the commit offset.
    pub high_watermark: Offset,
    /// First offset that an open transaction hides; without transactions the high watermark.
    pub last_stable_offset: Offset,
    /// First offset kept.
    pub log_start: Offset,
    /// Why there is nothing.
    pub error: Option<FetchError>,
}

impl FetchedPart {
    /// Bytes of its records.
    pub fn bytes(&self) -> usize {
        self.records.iter().map(Bytes::len).sum()
    }

    fn empty(part: &FetchPart, partition: Option<&Partition>) -> Self {
        let (committed, log_start) = partition
            .map(|partition| (partition.committed(), partition.log_start()))
            .unwrap_or_default();
        Self {
            partition: part.partition,
            records: Vec::new(),
            next: part.offset,
            high_watermark: committed,
            last_stable_offset: committed,
            log_start,
            error: None,
        }
    }

    fn fill(&mut self, slices: Slices) {
        if !slices.batches.is_empty() {
            self.next = slices.next;
        }
        self.records = slices.batches;
    }
}

/// One pass over the partitions.
#[derive(Default)]
struct Round {
    parts: Vec<FetchedPart>,
    /// What to watch for the next pass: partitions and the commit offset seen.
    seen: Vec<(Arc<Partition>, Offset)>,
    cold: Vec<(usize, ColdRead)>,
    /// Bytes that may still be read.
    left: usize,
    /// Whether some partition gives a batch already.
    has_batch: bool,
}

impl Node {
    /// See [`Broker::fetch`](crate::Broker::fetch).
    pub(crate) async fn fetch(&self, fetch: &Fetch) -> Vec<FetchedPart> {
        let mut timeout = std::pin::pin!(floe_world::time::sleep(fetch.max_wait));
        loop {
            let round = self.read_round(fetch).await;
            let bytes: usize = round.parts.iter().map(FetchedPart::bytes).sum();
            let is_done = bytes >= fetch.min_bytes
                || round.parts.iter().any(|part| part.error.is_some())
                || fetch.max_wait.is_zero()
                || fetch.parts.is_empty()
                || timeout.is_elapsed();
            if is_done {
                self.metrics.fetched(bytes);
                return round.parts;
            }
            wait::moved_or(&round.seen, timeout.as_mut()).await;
        }
    }

    async fn read_round(&self, fetch: &Fetch) -> Round {
        let mut round = Round {
            left: fetch.max_bytes,
            ..Round::default()
        };
        for part in &fetch.parts {
            round.read(self, part);
        }
        round.await_cold().await;
        round
    }
}

impl Round {
    fn read(&mut self, node: &Node, part: &FetchPart) {
        let partition = node.partition(part.partition);
        let mut fetched = FetchedPart::empty(part, partition.as_deref());
        match partition {
            None if node.is_elsewhere(part.partition) => {
                fetched.error = Some(FetchError::NotLeader(part.partition));
            }
            None => fetched.error = Some(FetchError::UnknownPartition(part.partition)),
            Some(partition) => {
                let up_to = fetched.high_watermark;
                if let Err(error) = self.read_partition(node, part, &partition, &mut fetched) {
                    fetched.error = Some(error);
                }
                self.seen.push((partition, up_to));
            }
        }
        self.parts.push(fetched);
    }

    fn read_partition(
        &mut self,
        node: &Node,
        part: &FetchPart,
        partition: &Arc<Partition>,
        fetched: &mut FetchedPart,
    ) -> Result<(), FetchError> {
        check(partition, part.current_epoch)?;
        let up_to = fetched.high_watermark;
        if part.offset < fetched.log_start || part.offset > partition.log.end() {
            return Err(FetchError::OutOfRange {
                offset: part.offset,
                log_start: fetched.log_start,
                end: up_to,
            });
        }
        let limit = part.max_bytes.min(self.left);
        let is_full = (limit == 0 && self.has_batch) || self.cold.len() == COLD_READS_MAX;
        if part.offset >= up_to || is_full {
            return Ok(());
        }
        let outcome = node
            .log
            .read(&partition.log, part.offset, up_to, limit, !self.has_batch)
            .map_err(|error| unreadable(error, fetched))?;
        match outcome {
            Outcome::Memory(slices) => {
                let bytes = slices.bytes();
                self.has_batch |= bytes > 0;
                self.left = self.left.saturating_sub(bytes);
                fetched.fill(slices);
            }
            Outcome::Cold(read) => {
                // What it will bring is not known yet: the most that it can is set aside.
                self.has_batch = true;
                self.left -= limit.min(node.log.cold_read_bytes_max());
                self.cold.push((self.parts.len(), read));
            }
        }
        Ok(())
    }

    async fn await_cold(&mut self) {
        let has_bytes = self.parts.iter().any(|part| !part.records.is_empty());
        for (place, outcome) in cold::gather(std::mem::take(&mut self.cold), has_bytes).await {
            let fetched = &mut self.parts[place];
            match outcome {
                Ok(slices) => fetched.fill(slices),
                Err(error) => fetched.error = Some(unreadable(error, fetched)),
            }
        }
    }
}

/// Whether the partition still takes requests, of a reader that knows this epoch (KIP-320).
pub(crate) fn check(
    partition: &Partition,
    current_epoch: Option<LeaderEpoch>,
) -> Result<(), FetchError> {
    match partition.progress.ended() {
        Some(Ended::Deleted) => return Err(FetchError::UnknownPartition(partition.address)),
        Some(Ended::Moved) => return Err(FetchError::NotLeader(partition.address)),
        Some(Ended::Stopping) => return Err(Unavailable::Stopping.into()),
        None => {}
    }
    let current = partition.epoch;
    match current_epoch {
        Some(given) if given < current => Err(FetchError::FencedEpoch { given, current }),
        Some(given) if given > current => Err(FetchError::UnknownEpoch { given, current }),
        _ => Ok(()),
    }
}

fn unreadable(error: ReadError, fetched: &FetchedPart) -> FetchError {
    match error {
        ReadError::OutOfRange { start, end } => FetchError::OutOfRange {
            offset: fetched.next,
            log_start: start,
            end,
        },
        other => failed(other),
    }
}

/// What a read that found nothing to read means to a caller.
pub(crate) fn failed(error: ReadError) -> FetchError {
    match error {
        ReadError::OutOfRange { start, end } => FetchError::OutOfRange {
            offset: start,
            log_start: start,
            end,
        },
        // With one copy, what is not held here is nowhere.
        ReadError::Lost { offsets } | ReadError::NotHeld { offsets } => FetchError::Damaged {
            from: Offset(offsets.start),
            to: Offset(offsets.end),
        },
        ReadError::Failed(failure) => {
            tracing::error!(%failure, "a read from disk failed");
            Unavailable::Busy {
                retry_after: Duration::from_secs(1),
            }
            .into()
        }
        ReadError::Closed => Unavailable::Stopping.into(),
    }
}
