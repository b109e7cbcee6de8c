//! What [`Groups`](super::Groups) answers.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use floe_groups::assigned::DeliveryToken;
use floe_groups::{GroupId, InstanceId, Kind, MemberId, Refusal};
use floe_model::{Offset, TopicName, TopicPartition};

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request does not fit the group's state.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Positions cannot be written or read now; try again. Kafka: COORDINATOR_NOT_AVAILABLE, HTTP: 503.
    #[error("positions cannot be stored or records read now ({0}); try again")]
    Unavailable(Arc<str>),
}

/// Why one position was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitRefusal {
    /// Kafka: OFFSET_METADATA_TOO_LARGE.
    #[error("metadata of the position is larger than 4096 bytes (offset.metadata.max.bytes)")]
    MetadataTooLarge,
    /// Kafka: UNKNOWN_TOPIC_OR_PARTITION.
    #[error("there is no such partition")]
    UnknownPartition,
    /// Kafka: POLICY_VIOLATION.
    #[error("the node stores as many positions as it may; delete groups that are no longer used")]
    TooMany,
}

/// Where a group stands; the names of Kafka's `ConsumerGroupState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No members; at most positions.
    Empty,
    /// Waiting for members to join again.
    PreparingRebalance,
    /// Waiting for the leader's assignment.
    CompletingRebalance,
    /// All have their assignment.
    Stable,
}

/// A group in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub group: GroupId,
    /// How it is assigned; without members, how it was when a position was stored last.
    pub kind: Kind,
    /// Where it stands.
    pub state: State,
    /// `consumer`, `connect`, …; empty without members.
    pub protocol_type: Arc<str>,
}

/// A group in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// As in the list.
    pub listed: Listed,
    /// The chosen protocol; empty while none is.
    pub protocol: Arc<str>,
    /// Everybody in it.
    pub members: Vec<MemberDescription>,
}

/// A member as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// Its id; for HTTP consumers the consumer id.
    pub member_id: MemberId,
    /// Its `group.instance.id`.
    pub instance_id: Option<InstanceId>,
    /// Its `client.id`.
    pub client_id: Arc<str>,
    /// Where it came from.
    pub client_host: Arc<str>,
    /// What it registered, in the bytes of its protocol.
    pub metadata: Bytes,
    /// What it is assigned, in the bytes of its protocol (HTTP consumers: as Kafka's consumer protocol, version 0).
    pub assignment: Bytes,
}

/// How a registration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is new.
    New,
    /// It was there, the same; its idle time begins anew.
    Already,
}

/// What a poll brought.
#[derive(Clone, Debug)]
pub enum Polled {
    /// Records; the token names them for the next poll.
    Records(DeliveryToken, Vec<Chunk>),
    /// Nothing to read now in the partitions the consumer has.
    Nothing,
    /// No partition is assigned to the consumer now.
    Unassigned,
}

/// Consecutive records of one partition.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its topic's name.
    pub topic: TopicName,
    /// Its partition.
    pub partition: TopicPartition,
    /// Offset of the first record for the consumer; the first batch may begin earlier, what lies below is not meant.
    pub start: Offset,
    /// Offset after the last record.
    pub end: Offset,
    /// Whole record batches, in order.
    pub batches: Vec<Bytes>,
    /// Offsets the group had not read when retention or an operator deleted them; they lie right below `start`.
    pub gone: Option<Range<Offset>>,
}
