//! Reading: several partitions at once, with a long poll inside.

use std::time::Duration;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset, TopicPartition};

use crate::FetchError;

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
