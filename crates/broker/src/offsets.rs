//! Looking up offsets: ends, times, epochs.

use floe_model::{LeaderEpoch, Offset, Timestamp};

/// What is looked for (Kafka's ListOffsets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// -1: the next offset a reader will see.
    Latest,
    /// -2: the first offset kept.
    Earliest,
    /// -3: the record with the largest time (KIP-734).
    MaxTimestamp,
    /// -4: the first offset kept on local disks (KIP-405).
    EarliestLocal,
    /// -5: the last offset in tiered storage (KIP-1005).
    LatestTiered,
    /// -6: the first offset that waits for tiering (KIP-1023).
    EarliestPendingUpload,
    /// The first record at or after this time.
    Time(Timestamp),
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset.
    pub offset: Offset,
    /// The record's own time, when a record was looked for; else none.
    pub timestamp: Timestamp,
    /// The epoch that holds for this offset.
    pub epoch: LeaderEpoch,
}

/// Where an epoch ends (Kafka's OffsetForLeaderEpoch, KIP-101 and KIP-279).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch known that is not above the one asked for.
    pub epoch: LeaderEpoch,
    /// The offset after its last.
    pub end: Offset,
}
