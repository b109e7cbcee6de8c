//! The broker's refusals in Kafka's codes: exhaustive, one place.

use floe_broker::groups::{CommitRefusal, Error as GroupError};
use floe_broker::{
    CreateTopicError, DeleteTopicError, FetchError, InvalidSetting, ProduceError, Unavailable,
};
use floe_groups::Refusal;
use floe_wire::ErrorCode;

/// Not now: each code makes clients try again; none of them was appended.
pub(super) fn unavailable(error: &Unavailable) -> ErrorCode {
    match error {
        Unavailable::Busy { .. } => ErrorCode::NotEnoughReplicas,
        Unavailable::DiskFull => ErrorCode::KafkaStorageError,
        Unavailable::Stopping => ErrorCode::NotLeaderOrFollower,
    }
}

pub(super) fn fetch(error: &FetchError) -> ErrorCode {
    match error {
        FetchError::UnknownPartition(_) => ErrorCode::UnknownTopicOrPartition,
        FetchError::FencedEpoch { .. } => ErrorCode::FencedLeaderEpoch,
        FetchError::UnknownEpoch { .. } => ErrorCode::UnknownLeaderEpoch,
        FetchError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        // Clients stop with the offset in their message instead of going round for ever.
        FetchError::Damaged { .. } => ErrorCode::CorruptMessage,
        // Readers know fewer retriable codes than writers.
        FetchError::Unavailable(Unavailable::Stopping) => ErrorCode::NotLeaderOrFollower,
        FetchError::Unavailable(Unavailable::Busy { .. } | Unavailable::DiskFull) => {
            ErrorCode::KafkaStorageError
        }
    }
}

pub(super) fn produce(error: &ProduceError) -> ErrorCode {
    match error {
        ProduceError::UnknownPartition(_) => ErrorCode::UnknownTopicOrPartition,
        ProduceError::NotWritable(_) => ErrorCode::InvalidTopicException,
        ProduceError::Batch { class, .. } => class.error_code(),
        ProduceError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        ProduceError::DuplicateSequence { .. } => ErrorCode::DuplicateSequenceNumber,
        ProduceError::StaleProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        ProduceError::Unavailable(error) => unavailable(error),
    }
}

pub(super) fn create_topic(error: &CreateTopicError) -> ErrorCode {
    match error {
        CreateTopicError::Name(_) | CreateTopicError::Collision { .. } => {
            ErrorCode::InvalidTopicException
        }
        CreateTopicError::Exists(_) => ErrorCode::TopicAlreadyExists,
        CreateTopicError::Partitions { .. } => ErrorCode::InvalidPartitions,
        CreateTopicError::ReplicationFactor { .. } => ErrorCode::InvalidReplicationFactor,
        CreateTopicError::Settings(faults) => settings(faults),
        CreateTopicError::Unavailable(error) => administer(error),
    }
}

fn settings(faults: &[InvalidSetting]) -> ErrorCode {
    faults
        .first()
        .map_or(ErrorCode::InvalidConfig, |fault| match fault {
            InvalidSetting::Unknown { .. }
            | InvalidSetting::Value { .. }
            | InvalidSetting::Unsupported { .. } => ErrorCode::InvalidConfig,
        })
}

pub(super) fn delete_topic(error: &DeleteTopicError) -> ErrorCode {
    match error {
        DeleteTopicError::Unknown(_) => ErrorCode::UnknownTopicOrPartition,
        DeleteTopicError::Internal(_) => ErrorCode::PolicyViolation,
        DeleteTopicError::Unavailable(error) => administer(error),
    }
}

/// For requests to the controller.
fn administer(error: &Unavailable) -> ErrorCode {
    match error {
        Unavailable::Busy { .. } => ErrorCode::RequestTimedOut,
        Unavailable::DiskFull => ErrorCode::KafkaStorageError,
        Unavailable::Stopping => ErrorCode::NotController,
    }
}

/// For producer ids and look-ups of coordinators.
pub(super) fn coordinate(error: &Unavailable) -> ErrorCode {
    match error {
        Unavailable::Busy { .. } => ErrorCode::CoordinatorLoadInProgress,
        Unavailable::DiskFull | Unavailable::Stopping => ErrorCode::CoordinatorNotAvailable,
    }
}

pub(super) fn refusal(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::InvalidGroupId => ErrorCode::InvalidGroupId,
        Refusal::InvalidSessionTimeout { .. } => ErrorCode::InvalidSessionTimeout,
        Refusal::MemberIdRequired(_) => ErrorCode::MemberIdRequired,
        Refusal::UnknownMember => ErrorCode::UnknownMemberId,
        Refusal::IllegalGeneration => ErrorCode::IllegalGeneration,
        Refusal::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        Refusal::FencedInstance => ErrorCode::FencedInstanceId,
        Refusal::InconsistentProtocol => ErrorCode::InconsistentGroupProtocol,
        Refusal::Full => ErrorCode::GroupMaxSizeReached,
        Refusal::NotFound => ErrorCode::GroupIdNotFound,
        Refusal::NotEmpty => ErrorCode::NonEmptyGroup,
        Refusal::SubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        // The last four speak to consumers over HTTP and cannot be met here.
        Refusal::MetadataTooLarge(_)
        | Refusal::NotRegistered
        | Refusal::RegisteredDifferently
        | Refusal::Superseded
        | Refusal::UnknownDelivery => ErrorCode::InvalidRequest,
    }
}

pub(super) fn group(error: &GroupError) -> ErrorCode {
    match error {
        GroupError::Refused(refused) => refusal(refused),
        GroupError::Unavailable(_) => ErrorCode::CoordinatorNotAvailable,
    }
}

pub(super) fn commit(error: CommitRefusal) -> ErrorCode {
    match error {
        CommitRefusal::MetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        CommitRefusal::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
        CommitRefusal::TooMany => ErrorCode::PolicyViolation,
    }
}
