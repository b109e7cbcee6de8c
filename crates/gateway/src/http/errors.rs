//! The broker's errors as problems: exhaustive, one line of table each.

use axum::http::StatusCode;
use floe_broker::groups;
use floe_broker::{CreateTopicError, DeleteTopicError, FetchError, ProduceError, Unavailable};
use floe_groups::Refusal;
use floe_model::InvalidTopicName;
use floe_wire::batch::Class;

use super::problem::Problem;

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Busy { retry_after } => Self::later(
                error.to_string(),
                retry_after.as_millis().div_ceil(1000).max(1) as u64,
            ),
            Unavailable::DiskFull => {
                let mut problem = Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "disk-full",
                    error.to_string(),
                );
                problem.retry_after = Some(5);
                problem
            }
            Unavailable::Stopping | Unavailable::NotAgreed | Unavailable::Undecided => {
                Self::later(error.to_string(), 1)
            }
        }
    }
}

impl From<InvalidTopicName> for Problem {
    fn from(error: InvalidTopicName) -> Self {
        Self::bad("invalid-topic", error.to_string())
    }
}

impl From<ProduceError> for Problem {
    fn from(error: ProduceError) -> Self {
        let text = error.to_string();
        match error {
            ProduceError::UnknownPartition(_) => Self::absent(
                "unknown-partition",
                format!("{text}; it was deleted meanwhile"),
            ),
            ProduceError::NotLeader(_) => Self::later(text, 1),
            ProduceError::NotWritable(_) => {
                Self::new(StatusCode::FORBIDDEN, "internal-topic", text)
            }
            ProduceError::Batch { class, .. } => match class {
                Class::Corrupt | Class::Invalid => Self::bad("invalid-record", text),
                Class::TooLarge => {
                    Self::new(StatusCode::PAYLOAD_TOO_LARGE, "record-too-large", text)
                }
                Class::Timestamp => Self::bad("invalid-timestamp", text),
                Class::Codec => Self::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "unsupported-compression",
                    text,
                ),
            },
            ProduceError::OutOfOrderSequence { .. }
            | ProduceError::DuplicateSequence { .. }
            | ProduceError::StaleProducerEpoch { .. } => {
                Self::new(StatusCode::CONFLICT, "producer-session", text)
            }
            ProduceError::Undecided { is_disk_full } => {
                let (status, kind) = if is_disk_full {
                    (StatusCode::INSUFFICIENT_STORAGE, "disk-full")
                } else {
                    (StatusCode::GATEWAY_TIMEOUT, "not-durable-in-time")
                };
                let mut problem = Self::new(status, kind, text);
                problem.retry_after = Some(5);
                problem.with("outcome", "unknown")
            }
            ProduceError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<FetchError> for Problem {
    fn from(error: FetchError) -> Self {
        let text = error.to_string();
        match error {
            FetchError::UnknownPartition(_) => Self::absent(
                "unknown-partition",
                format!("{text}; it was deleted meanwhile"),
            ),
            FetchError::NotLeader(_) => Self::later(text, 1),
            FetchError::FencedEpoch { .. } | FetchError::UnknownEpoch { .. } => {
                Self::new(StatusCode::CONFLICT, "leader-epoch", text)
            }
            FetchError::OutOfRange {
                offset,
                log_start,
                end,
            } => {
                let gone = if offset < log_start {
                    format!(
                        "offset {offset} is gone: records below {log_start} were deleted by retention or an operator; go on at offset={log_start}"
                    )
                } else {
                    format!(
                        "offset {offset} is beyond the end: the next record will have offset {end}; read at offset={end} or offset=latest"
                    )
                };
                Self::new(
                    StatusCode::RANGE_NOT_SATISFIABLE,
                    "offset-out-of-range",
                    gone,
                )
                .with("offset", offset.0)
                .with("logStart", log_start.0)
                .with("end", end.0)
            }
            FetchError::Damaged { from, to } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", text)
                    .with("from", from.0)
                    .with("nextOffset", to.0)
            }
            FetchError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<CreateTopicError> for Problem {
    fn from(error: CreateTopicError) -> Self {
        let text = error.to_string();
        match error {
            CreateTopicError::Name(name) => name.into(),
            CreateTopicError::Collision { existing, .. } => {
                Self::new(StatusCode::CONFLICT, "topic-collision", text)
                    .with("existing", existing.as_str())
            }
            CreateTopicError::Exists(_) => Self::new(StatusCode::CONFLICT, "topic-exists", text),
            CreateTopicError::Partitions { limit, .. } => {
                Self::bad("invalid-partitions", text).with("limit", limit)
            }
            CreateTopicError::ReplicationFactor { .. } => {
                Self::bad("invalid-replication-factor", text)
            }
            CreateTopicError::Settings(_) => Self::bad("invalid-setting", text),
            CreateTopicError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<DeleteTopicError> for Problem {
    fn from(error: DeleteTopicError) -> Self {
        let text = error.to_string();
        match error {
            DeleteTopicError::Unknown(_) => Self::absent("unknown-topic", text),
            DeleteTopicError::Internal(_) => {
                Self::new(StatusCode::FORBIDDEN, "internal-topic", text)
            }
            DeleteTopicError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        let conflict = |kind| Self::new(StatusCode::CONFLICT, kind, text.clone());
        match refusal {
            Refusal::InvalidGroupId => Self::bad("invalid-group", text),
            Refusal::InvalidSessionTimeout { min_ms, max_ms, .. } => {
                Self::bad("invalid-session-timeout", text)
                    .with("min", min_ms)
                    .with("max", max_ms)
            }
            Refusal::RegisteredDifferently => Self::bad("registered-differently", text),
            Refusal::UnknownDelivery => Self::bad("unknown-delivery", text),
            Refusal::MetadataTooLarge(limit) => {
                Self::bad("registration-too-large", text).with("limit", limit)
            }
            Refusal::NotRegistered(_) | Refusal::NoConsumer => conflict("not-registered"),
            Refusal::Superseded => conflict("superseded"),
            Refusal::InconsistentProtocol => conflict("other-kind-of-group"),
            Refusal::NotEmpty => conflict("group-not-empty"),
            Refusal::SubscribedToTopic => conflict("group-subscribed"),
            Refusal::NotFound(_) => Self::absent("unknown-group", text),
            Refusal::Full => Self::later(text, 5),
            Refusal::MemberIdRequired(_)
            | Refusal::UnknownMember
            | Refusal::IllegalGeneration
            | Refusal::RebalanceInProgress
            | Refusal::FencedInstance => conflict("group-membership"),
        }
    }
}

impl From<groups::Error> for Problem {
    fn from(error: groups::Error) -> Self {
        let text = error.to_string();
        match error {
            groups::Error::Refused(refusal) => refusal.into(),
            groups::Error::Unavailable(_) => Self::later(text, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_model::{LeaderEpoch, Offset, ProducerId, TopicName, TopicPartition};
    use std::time::Duration;

    fn seen(problem: impl Into<Problem>) -> (u16, &'static str) {
        let problem = problem.into();
        assert!(!problem.detail.is_empty());
        (problem.status.as_u16(), problem.kind)
    }

    fn tp() -> TopicPartition {
        TopicPartition {
            topic: floe_model::TopicId::ZERO,
            partition: floe_model::PartitionIndex(0),
        }
    }

    #[test]
    fn each_unavailability_says_when_to_come_again() {
        let busy = Unavailable::Busy {
            retry_after: Duration::from_millis(1200),
        };
        assert_eq!(Problem::from(busy).retry_after, Some(2));
        assert_eq!(seen(busy), (503, "unavailable"));
        assert_eq!(seen(Unavailable::DiskFull), (507, "disk-full"));
        assert_eq!(seen(Unavailable::Stopping), (503, "unavailable"));
        assert_eq!(seen(Unavailable::NotAgreed), (503, "unavailable"));
        assert_eq!(seen(Unavailable::Undecided), (503, "unavailable"));
    }

    #[test]
    fn each_produce_error_has_its_problem() {
        let producer = ProducerId(7);
        let batch = |class| ProduceError::Batch {
            class,
            record: None,
            reason: "x".into(),
        };
        let table = [
            (
                ProduceError::UnknownPartition(tp()),
                (404, "unknown-partition"),
            ),
            (
                ProduceError::NotWritable(TopicName::parse("__own").unwrap()),
                (403, "internal-topic"),
            ),
            (batch(Class::Corrupt), (400, "invalid-record")),
            (batch(Class::Invalid), (400, "invalid-record")),
            (batch(Class::TooLarge), (413, "record-too-large")),
            (batch(Class::Codec), (415, "unsupported-compression")),
            (batch(Class::Timestamp), (400, "invalid-timestamp")),
            (
                ProduceError::OutOfOrderSequence {
                    producer,
                    sequence: 3,
                    expected: 1,
                },
                (409, "producer-session"),
            ),
            (
                ProduceError::DuplicateSequence {
                    producer,
                    sequence: 3,
                },
                (409, "producer-session"),
            ),
            (
                ProduceError::StaleProducerEpoch {
                    producer,
                    epoch: 0,
                    current: 1,
                },
                (409, "producer-session"),
            ),
            (
                ProduceError::Undecided { is_disk_full: true },
                (507, "disk-full"),
            ),
            (
                ProduceError::Undecided {
                    is_disk_full: false,
                },
                (504, "not-durable-in-time"),
            ),
            (
                ProduceError::Unavailable(Unavailable::DiskFull),
                (507, "disk-full"),
            ),
        ];
        for (error, expected) in table {
            assert_eq!(seen(error.clone()), expected, "{error:?}");
        }
    }

    #[test]
    fn each_fetch_error_has_its_problem() {
        let (given, current) = (LeaderEpoch(1), LeaderEpoch(2));
        let range = |offset| FetchError::OutOfRange {
            offset: Offset(offset),
            log_start: Offset(10),
            end: Offset(20),
        };
        let table = [
            (
                FetchError::UnknownPartition(tp()),
                (404, "unknown-partition"),
            ),
            (
                FetchError::FencedEpoch { given, current },
                (409, "leader-epoch"),
            ),
            (
                FetchError::UnknownEpoch { given, current },
                (409, "leader-epoch"),
            ),
            (range(3), (416, "offset-out-of-range")),
            (
                FetchError::Damaged {
                    from: Offset(1),
                    to: Offset(9),
                },
                (500, "damaged"),
            ),
            (
                FetchError::Unavailable(Unavailable::Stopping),
                (503, "unavailable"),
            ),
        ];
        for (error, expected) in table {
            assert_eq!(seen(error.clone()), expected, "{error:?}");
        }
        assert!(
            Problem::from(range(3))
                .detail
                .contains("below 10 were deleted")
        );
        assert!(
            Problem::from(range(30))
                .detail
                .contains("read at offset=20")
        );
    }

    #[test]
    fn each_topic_error_has_its_problem() {
        let name = TopicName::parse("a.b").unwrap();
        let existing = TopicName::parse("a_b").unwrap();
        let table = [
            (
                CreateTopicError::Name(InvalidTopicName::Empty),
                (400, "invalid-topic"),
            ),
            (
                CreateTopicError::Collision {
                    name: name.clone(),
                    existing,
                },
                (409, "topic-collision"),
            ),
            (
                CreateTopicError::Exists(name.clone()),
                (409, "topic-exists"),
            ),
            (
                CreateTopicError::Partitions {
                    partitions: 0,
                    limit: 9,
                },
                (400, "invalid-partitions"),
            ),
            (
                CreateTopicError::ReplicationFactor {
                    factor: 3,
                    nodes: 1,
                },
                (400, "invalid-replication-factor"),
            ),
            (
                CreateTopicError::Settings(Vec::new()),
                (400, "invalid-setting"),
            ),
            (
                CreateTopicError::Unavailable(Unavailable::Stopping),
                (503, "unavailable"),
            ),
        ];
        for (error, expected) in table {
            let problem = Problem::from(error.clone());
            assert_eq!(
                (problem.status.as_u16(), problem.kind),
                expected,
                "{error:?}"
            );
        }
        assert_eq!(
            seen(DeleteTopicError::Unknown("x".into())),
            (404, "unknown-topic")
        );
        assert_eq!(
            seen(DeleteTopicError::Internal(name)),
            (403, "internal-topic")
        );
        let stopping = DeleteTopicError::Unavailable(Unavailable::Stopping);
        assert_eq!(seen(stopping), (503, "unavailable"));
    }

    #[test]
    fn each_refusal_of_a_group_has_its_problem() {
        let table = [
            (Refusal::InvalidGroupId, (400, "invalid-group")),
            (
                Refusal::InvalidSessionTimeout {
                    given_ms: 1,
                    min_ms: 2,
                    max_ms: 3,
                },
                (400, "invalid-session-timeout"),
            ),
            (
                Refusal::MemberIdRequired("m".into()),
                (409, "group-membership"),
            ),
            (Refusal::UnknownMember, (409, "group-membership")),
            (Refusal::IllegalGeneration, (409, "group-membership")),
            (Refusal::RebalanceInProgress, (409, "group-membership")),
            (Refusal::FencedInstance, (409, "group-membership")),
            (Refusal::InconsistentProtocol, (409, "other-kind-of-group")),
            (Refusal::Full, (503, "unavailable")),
            (
                Refusal::MetadataTooLarge(1),
                (400, "registration-too-large"),
            ),
            (Refusal::NotFound("g".into()), (404, "unknown-group")),
            (Refusal::NotEmpty, (409, "group-not-empty")),
            (Refusal::SubscribedToTopic, (409, "group-subscribed")),
            (Refusal::NotRegistered("c".into()), (409, "not-registered")),
            (Refusal::NoConsumer, (409, "not-registered")),
            (
                Refusal::RegisteredDifferently,
                (400, "registered-differently"),
            ),
            (Refusal::Superseded, (409, "superseded")),
            (Refusal::UnknownDelivery, (400, "unknown-delivery")),
        ];
        for (refusal, expected) in table {
            assert_eq!(seen(refusal.clone()), expected, "{refusal:?}");
        }
        let unavailable = groups::Error::Unavailable("x".into());
        assert_eq!(seen(unavailable), (503, "unavailable"));
    }
}
