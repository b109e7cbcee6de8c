//! Why a request of a group's client is not done: cheap, expected, and told apart by what the client does next.

use crate::{ConsumerId, GroupId, MemberId};

/// Why a request is refused. Doors map each variant to their own code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Kafka: INVALID_GROUP_ID.
    #[error(
        "group id is empty or longer than {} bytes; give one of 1 to that many",
        crate::GROUP_ID_BYTES_MAX
    )]
    InvalidGroupId,
    /// Kafka: INVALID_SESSION_TIMEOUT.
    #[error(
        "session time-out of {given_ms} ms is outside {min_ms} to {max_ms} ms; choose one inside, or change group.min.session.timeout.ms or group.max.session.timeout.ms"
    )]
    InvalidSessionTimeout {
        /// As asked.
        given_ms: u64,
        /// Least allowed.
        min_ms: u64,
        /// Most allowed.
        max_ms: u64,
    },
    /// Kafka: MEMBER_ID_REQUIRED; join again with this id (KIP-394).
    #[error("join again with member id {0}")]
    MemberIdRequired(MemberId),
    /// Kafka: UNKNOWN_MEMBER_ID; forget the member id and join again.
    #[error("the group has no such member; join again")]
    UnknownMember,
    /// Kafka: ILLEGAL_GENERATION; join again.
    #[error("generation is not the group's current one; join again")]
    IllegalGeneration,
    /// Kafka: REBALANCE_IN_PROGRESS; join again with the same member id.
    #[error("the group is rebalancing; join again")]
    RebalanceInProgress,
    /// Kafka: FENCED_INSTANCE_ID; another process has taken this instance id over. Fatal for the client.
    #[error("another member has taken this group.instance.id over; give each process its own")]
    FencedInstance,
    /// Kafka: INCONSISTENT_GROUP_PROTOCOL; HTTP: 409.
    #[error(
        "the group is in use by members of another kind or without a common protocol; use another group id, or end those members first"
    )]
    InconsistentProtocol,
    /// Kafka: GROUP_MAX_SIZE_REACHED.
    #[error("the group, or the node's number of groups, has reached its limit (group.max.size)")]
    Full,
    /// Kafka: INVALID_REQUEST; more protocol metadata than a member may bring.
    #[error(
        "member metadata is larger than the limit of {0} bytes; subscribe to fewer topics or by pattern"
    )]
    MetadataTooLarge(usize),
    /// Kafka: GROUP_ID_NOT_FOUND.
    #[error("there is no group '{0}'")]
    NotFound(GroupId),
    /// Kafka: NON_EMPTY_GROUP; end its members first.
    #[error("the group has members; end them first")]
    NotEmpty,
    /// Kafka: GROUP_SUBSCRIBED_TO_TOPIC.
    #[error("members of the group are subscribed to the topic; end them first")]
    SubscribedToTopic,

    /// HTTP: 409; register first.
    #[error("consumer '{0}' is not registered here; register it first")]
    NotRegistered(ConsumerId),
    /// HTTP: 409; the call names no consumer, and its connection is nobody's.
    #[error(
        "no consumer is registered over this connection; name one with the parameter consumerId, or register one over it first"
    )]
    NoConsumer,
    /// HTTP: 400; same consumer id, another group, other topics or another style.
    #[error("Consumer already registered with different parameters")]
    RegisteredDifferently,
    /// HTTP: 409; a newer poll of the same consumer has begun.
    #[error("a newer poll of the same consumer has begun; only the newest is answered")]
    Superseded,
    /// HTTP: 400; a delivery token this broker did not give to this consumer.
    #[error("delivery token was not given to this consumer; send the last one received, or 'none'")]
    UnknownDelivery,
}
