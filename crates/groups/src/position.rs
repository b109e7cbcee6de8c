//! A group's place in one partition.

use std::sync::Arc;

use crate::Kind;
use floe_model::{LeaderEpoch, Offset, Timestamp, TopicPartition};

/// Where a group reads on in one partition. Lives as long as the topic; moves only by commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Next offset to read: 0 means "the first record".
    pub offset: Offset,
    /// Leader epoch of the last record read, if the client gave it (KIP-320).
    pub leader_epoch: Option<LeaderEpoch>,
    /// The client's own note, at most [`OFFSET_METADATA_BYTES_MAX`](floe_model::limits::OFFSET_METADATA_BYTES_MAX) bytes.
    pub metadata: Arc<str>,
    /// Wall clock of the commit.
    pub committed_at: Timestamp,
    /// Kind of the group then: what is known of it once its members are gone.
    pub kind: Kind,
}

/// One position to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPosition {
    /// Of which partition.
    pub partition: TopicPartition,
    /// Next offset to read.
    pub offset: Offset,
    /// Leader epoch of the last record read.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The client's own note.
    pub metadata: Arc<str>,
}
