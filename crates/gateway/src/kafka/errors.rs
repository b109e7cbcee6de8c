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
        Unavailable::Busy { .. } | Unavailable::NotAgreed => ErrorCode::NotEnoughReplicas,
        Unavailable::DiskFull => ErrorCode::KafkaStorageError,
        Unavailable::Stopping => ErrorCode::NotLeaderOrFollower,
        Unavailable::Undecided => ErrorCode::RequestTimedOut,
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
        FetchError::NotLeader(_) | FetchError::Unavailable(Unavailable::Stopping) => {
            ErrorCode::NotLeaderOrFollower
        }
        FetchError::Unavailable(
            Unavailable::Busy { .. }
            | Unavailable::DiskFull
            | Unavailable::NotAgreed
            | Unavailable::Undecided,
        ) => ErrorCode::KafkaStorageError,
    }
}

pub(super) fn produce(error: &ProduceError) -> ErrorCode {
    match error {
        ProduceError::UnknownPartition(_) => ErrorCode::UnknownTopicOrPartition,
        ProduceError::NotLeader(_) => ErrorCode::NotLeaderOrFollower,
        ProduceError::NotWritable(_) => ErrorCode::InvalidTopicException,
        ProduceError::Batch { class, .. } => class.error_code(),
        ProduceError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        ProduceError::DuplicateSequence { .. } => ErrorCode::DuplicateSequenceNumber,
        ProduceError::StaleProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        // Of the codes that make clients try again, the one that does not say that nothing was appended.
        ProduceError::Undecided { .. } => ErrorCode::RequestTimedOut,
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
        Unavailable::Busy { .. } | Unavailable::Undecided => ErrorCode::RequestTimedOut,
        Unavailable::DiskFull => ErrorCode::KafkaStorageError,
        Unavailable::Stopping | Unavailable::NotAgreed => ErrorCode::NotController,
    }
}

/// For producer ids and look-ups of coordinators.
pub(super) fn coordinate(error: &Unavailable) -> ErrorCode {
    match error {
        Unavailable::Busy { .. } => ErrorCode::CoordinatorLoadInProgress,
        Unavailable::DiskFull
        | Unavailable::Stopping
        | Unavailable::NotAgreed
        | Unavailable::Undecided => ErrorCode::CoordinatorNotAvailable,
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
        Refusal::NotFound(_) => ErrorCode::GroupIdNotFound,
        Refusal::NotEmpty => ErrorCode::NonEmptyGroup,
        Refusal::SubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        // The last four speak to consumers over HTTP and cannot be met here.
        Refusal::MetadataTooLarge(_)
        | Refusal::NotRegistered(_)
        | Refusal::NoConsumer
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

#[cfg(test)]
mod tests {
    use super::*;
    use floe_model::{LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicId, TopicPartition};
    use floe_wire::batch::Class;
    use std::time::Duration;

    const ADDRESS: TopicPartition = TopicPartition {
        topic: TopicId::ZERO,
        partition: PartitionIndex(0),
    };
    const BUSY: Unavailable = Unavailable::Busy {
        retry_after: Duration::from_millis(1),
    };

    #[test]
    fn every_refusal_has_the_code_its_readers_act_on() {
        let epoch = |given, current| (LeaderEpoch(given), LeaderEpoch(current));
        let (given, current) = epoch(1, 2);
        let range = FetchError::OutOfRange {
            offset: Offset(9),
            log_start: Offset(1),
            end: Offset(5),
        };
        let damaged = FetchError::Damaged {
            from: Offset(1),
            to: Offset(2),
        };
        let codes = [
            (fetch(&FetchError::UnknownPartition(ADDRESS)), 3),
            (fetch(&FetchError::FencedEpoch { given, current }), 74),
            (fetch(&FetchError::UnknownEpoch { given, current }), 75),
            (fetch(&range), 1),
            (fetch(&damaged), 2),
            (fetch(&FetchError::Unavailable(BUSY)), 56),
            (fetch(&FetchError::Unavailable(Unavailable::Stopping)), 6),
            (refusal(&Refusal::InvalidGroupId), 24),
            (refusal(&Refusal::MemberIdRequired("m".into())), 79),
            (refusal(&Refusal::UnknownMember), 25),
            (refusal(&Refusal::IllegalGeneration), 22),
            (refusal(&Refusal::RebalanceInProgress), 27),
            (refusal(&Refusal::FencedInstance), 82),
            (refusal(&Refusal::InconsistentProtocol), 23),
            (refusal(&Refusal::Full), 81),
            (refusal(&Refusal::NotFound("g".into())), 69),
            (refusal(&Refusal::NotEmpty), 68),
            (refusal(&Refusal::SubscribedToTopic), 86),
            (refusal(&Refusal::MetadataTooLarge(1)), 42),
            (group(&GroupError::Unavailable("x".into())), 15),
            (commit(CommitRefusal::MetadataTooLarge), 12),
            (commit(CommitRefusal::UnknownPartition), 3),
            (delete_topic(&DeleteTopicError::Unknown("t".into())), 3),
            (coordinate(&BUSY), 14),
            (administer(&Unavailable::Stopping), 41),
            (administer(&Unavailable::NotAgreed), 41),
            (administer(&Unavailable::Undecided), 7),
            (coordinate(&Unavailable::Undecided), 15),
        ];
        for (place, (code, number)) in codes.iter().enumerate() {
            assert_eq!(code.code(), *number, "row {place}");
        }
    }

    #[test]
    fn every_refused_batch_has_the_code_its_producer_acts_on() {
        let batch = |class| ProduceError::Batch {
            class,
            record: None,
            reason: String::new(),
        };
        let producer = ProducerId(1);
        let codes = [
            (batch(Class::Corrupt), 2),
            (batch(Class::TooLarge), 10),
            (batch(Class::Invalid), 87),
            (batch(Class::Timestamp), 32),
            (batch(Class::Codec), 76),
            (ProduceError::UnknownPartition(ADDRESS), 3),
            (
                ProduceError::OutOfOrderSequence {
                    producer,
                    sequence: 5,
                    expected: 3,
                },
                45,
            ),
            (
                ProduceError::DuplicateSequence {
                    producer,
                    sequence: 1,
                },
                46,
            ),
            (
                ProduceError::StaleProducerEpoch {
                    producer,
                    epoch: 0,
                    current: 1,
                },
                47,
            ),
            (ProduceError::Undecided { is_disk_full: true }, 7),
            (ProduceError::Unavailable(BUSY), 19),
            (ProduceError::Unavailable(Unavailable::DiskFull), 56),
            (ProduceError::Unavailable(Unavailable::Stopping), 6),
        ];
        for (error, number) in codes {
            assert_eq!(produce(&error).code(), number, "{error:?}");
        }
    }
}
