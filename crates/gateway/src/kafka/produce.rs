//! Produce (key 0, versions 3 to 13; KIP-98, KIP-516): appends one batch per partition.
//!
//! Appends happen as the request is read; the answer waits until all of them are durable. `timeout ms` begins when the request
//! is read and holds for all of it: what waits for room may take half of it, whatever number of partitions it names, and
//! answers ahead of it take none of it away from the caller.
//! acks=0 is never answered: a failure closes the connection, as in Kafka. acks=1 waits like acks=all: with one copy
//! there is nothing weaker to wait for. Transactions are refused by name.

use std::time::Duration;

use floe_broker::{Pending, ProduceError, ProduceOptions, Produced, Unavailable};
use floe_model::{TopicId, TopicPartition};
use floe_wire::ErrorCode;
use floe_wire::produce::{PartitionData, ProduceRequest, TopicRef};
use kacrab_protocol::generated::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponseData, TopicProduceResponse,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::{Answer, NONE, text, uuid};
use super::connection::Outcome;
use super::door::Door;
use super::errors;
use super::request::{Close, Request};
use super::topics::partition;

/// A request whose batches are on their way.
pub(super) struct Waiting {
    deadline: Instant,
    parts: Vec<(TopicRef, i32, Part)>,
}

enum Part {
    Pending(Pending),
    Done(Result<Produced, Refused>),
}

/// Why one partition's batch was not appended, in Kafka's words.
struct Refused {
    code: ErrorCode,
    record: Option<u32>,
    message: Option<String>,
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            record: None,
            message: None,
        }
    }
}

impl From<ProduceError> for Refused {
    fn from(error: ProduceError) -> Self {
        let record = match &error {
            ProduceError::Batch { record, .. } => *record,
            _ => None,
        };
        Self {
            code: errors::produce(&error),
            record,
            message: Some(error.to_string()),
        }
    }
}

/// How long to wait before a node that is busy is asked again; doubled each time up to the second.
const BUSY_WAITS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(32)];

/// What a connection's requests have left for a busy node. Those behind one that waited in vain have waited with it, so they
/// are tried once each, until one gets in.
#[derive(Debug, Default)]
pub(super) struct Patience {
    is_spent: bool,
}

/// Appends all batches of a request. `None` when nothing is to be answered. Waits while the node is busy, so that
/// nothing more is read from this connection meanwhile: order is kept, and the client slows down.
pub(super) async fn begin(
    door: &Door,
    request: &Request,
    patience: &mut Patience,
) -> Result<Option<Waiting>, Close> {
    let produce = ProduceRequest::read(&request.body, request.version)
        .map_err(|e| request.undecodable(&e))?;
    let refused = refuse_all(&produce);
    let timeout = Duration::from_millis(produce.timeout_ms.max(1) as u64);
    let now = sleep(Duration::ZERO).deadline();
    let deadline = now + timeout;
    let busy_until = if patience.is_spent {
        now
    } else {
        now + timeout / 2
    };
    let mut parts = Vec::with_capacity(produce.partitions.len());
    for part in produce.partitions {
        let outcome = match &refused {
            Some((code, message)) => Err(Refused {
                message: Some(message.clone()),
                ..Refused::from(*code)
            }),
            None => append(door, &part, busy_until, patience).await,
        };
        let outcome = match outcome {
            Ok(pending) => Part::Pending(pending),
            Err(refused) => Part::Done(Err(refused)),
        };
        parts.push((part.topic, part.index, outcome));
    }
    if produce.acks == 0 {
        return match parts
            .into_iter()
            .find_map(|(topic, index, part)| match part {
                Part::Done(Err(refused)) => Some((topic, index, refused)),
                _ => None,
            }) {
            None => Ok(None),
            Some((topic, index, refused)) => Err(Close::Unacknowledged(format!(
                "{}/{index}: {}",
                topic.name(),
                refused.message.unwrap_or_else(|| refused.code.to_string())
            ))),
        };
    }
    Ok(Some(Waiting { deadline, parts }))
}

/// What is wrong with the request as a whole.
fn refuse_all(produce: &ProduceRequest) -> Option<(ErrorCode, String)> {
    if produce.transactional_id.is_some() {
        let message = "transactions are not supported; produce without transactional.id";
        let error = ErrorCode::TransactionalIdAuthorizationFailed;
        return Some((error, message.to_owned()));
    }
    if !matches!(produce.acks, -1..=1) {
        let message = format!("acks is {}; use 0, 1 or -1 (all)", produce.acks);
        return Some((ErrorCode::InvalidRequiredAcks, message));
    }
    None
}

async fn append(
    door: &Door,
    part: &PartitionData,
    busy_until: Instant,
    patience: &mut Patience,
) -> Result<Pending, Refused> {
    let [mut wait, longest] = BUSY_WAITS;
    loop {
        let address = find(door, part)?;
        let options = ProduceOptions::default();
        let outcome = door.broker().produce(address, &part.records, options);
        let is_busy = matches!(
            outcome,
            Err(ProduceError::Unavailable(Unavailable::Busy { .. }))
        );
        if is_busy && timeout_at(busy_until, sleep(wait)).await.is_ok() {
            wait = longest.min(wait * 2);
            continue;
        }
        if is_busy || outcome.is_ok() {
            patience.is_spent = is_busy;
        }
        return Ok(outcome?);
    }
}

fn find(door: &Door, part: &PartitionData) -> Result<TopicPartition, ErrorCode> {
    let catalog = door.broker().catalog();
    let topic = match &part.topic {
        TopicRef::Name(_) => catalog
            .topic(part.topic.name())
            .ok_or(ErrorCode::UnknownTopicOrPartition)?,
        TopicRef::Id(id) => catalog
            .topic_by_id(TopicId(*id))
            .ok_or(ErrorCode::UnknownTopicId)?,
    };
    partition(topic, part.index)
}

impl Waiting {
    /// Waits for the appends, then answers.
    pub(super) async fn answer(mut self, door: Door, request: Request) -> Outcome {
        let all = async {
            for (_, _, part) in &mut self.parts {
                if let Part::Pending(pending) = part {
                    *part = Part::Done(pending.await.map_err(Refused::from));
                }
            }
        };
        // Those that are still on their way then may be durable later; the producer tries again.
        drop(timeout_at(self.deadline, all).await);
        let mut topics: Vec<TopicProduceResponse> = Vec::new();
        let mut last: Option<TopicRef> = None;
        for (topic, index, part) in self.parts {
            let answer = match part {
                Part::Done(outcome) => answer_part(index, outcome, request.version),
                Part::Pending(_) => {
                    let late = Refused::from(door.broker().undecided());
                    answer_part(index, Err(late), request.version)
                }
            };
            if last.as_ref() != Some(&topic) {
                topics.push(match &topic {
                    TopicRef::Name(_) => {
                        TopicProduceResponse::default().with_name(text(topic.name()))
                    }
                    TopicRef::Id(id) => {
                        TopicProduceResponse::default().with_topic_id(uuid(TopicId(*id)))
                    }
                });
                last = Some(topic);
            }
            if let Some(topic) = topics.last_mut() {
                topic.partition_responses.push(answer);
            }
        }
        let message = ProduceResponseData::default().with_responses(topics);
        Answer::encode(&request, |out, version| message.write(out, version)).map(Some)
    }
}

fn answer_part(
    index: i32,
    outcome: Result<Produced, Refused>,
    version: i16,
) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    let refused = match outcome {
        Ok(produced) => {
            return answer
                .with_error_code(NONE)
                .with_base_offset(produced.base_offset.0 as i64)
                .with_log_append_time_ms(produced.log_append_time.map_or(-1, |t| t.0))
                .with_log_start_offset(if version >= 5 {
                    produced.log_start.0 as i64
                } else {
                    -1
                });
        }
        Err(refused) => refused,
    };
    let answer = answer
        .with_error_code(refused.code.code())
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1);
    if version < 8 {
        return answer;
    }
    // KIP-467: which record, and why.
    let message = refused.message.as_deref().map(text);
    let records = refused.record.map(|record| {
        BatchIndexAndErrorMessage::default()
            .with_batch_index(record as i32)
            .with_batch_index_error_message(message.clone())
    });
    answer
        .with_record_errors(records.into_iter().collect())
        .with_error_message(message)
}
