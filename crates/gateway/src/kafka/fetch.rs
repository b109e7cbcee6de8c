//! Fetch (key 1, versions 4 to 18; KIP-74, KIP-227, KIP-516): reads records, waiting for some to come.
//!
//! Sessions are never made: every answer has session id 0, which tells clients to name all partitions each time. The
//! answer is encoded here, not by the message library, so that records leave by reference, never copied. A partition
//! without records has an empty field, not a null one: librdkafka takes null for a broken size.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use floe_broker::{Fetch, FetchError, FetchPart, FetchedPart, Isolation};
use floe_model::{LeaderEpoch, Offset, TopicPartition};
use floe_wire::ErrorCode;
use floe_wire::varint::write_u64;
use kacrab_protocol::KafkaString;
use kacrab_protocol::KafkaUuid;
use kacrab_protocol::generated::fetch_request::{FetchPartition, FetchRequestData};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};
use super::topics::{Named, partition};

/// Longest wait for records, whatever a client asks.
pub(super) const WAIT_MAX: Duration = Duration::from_mins(1);

/// One topic asked for, compact while it waits.
struct AskedTopic {
    name: KafkaString,
    id: KafkaUuid,
    partitions: Vec<AskedPartition>,
}

struct AskedPartition {
    index: i32,
    /// Place among what the broker is asked, or why it is not.
    place: Result<usize, ErrorCode>,
}

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let room = door.room_to_decode(request).await;
    let asked = request.read(FetchRequestData::read)?;
    if asked.session_id != 0 {
        return Ok(encode(request, ErrorCode::FetchSessionIdNotFound, &[], &[]));
    }
    let mut fetch = Fetch {
        parts: Vec::new(),
        min_bytes: asked.min_bytes.max(0) as usize,
        max_bytes: (asked.max_bytes.max(0) as usize).min(door.settings().fetch_bytes_max),
        max_wait: Duration::from_millis(asked.max_wait_ms.max(0) as u64).min(WAIT_MAX),
        isolation: if asked.isolation_level == 1 {
            Isolation::ReadCommitted
        } else {
            Isolation::ReadUncommitted
        },
    };
    let topics = resolve(door, request.version, asked, &mut fetch.parts);
    drop(room);
    if topics.iter().any(AskedTopic::has_error) {
        // An error is news: the others are answered with what is there now.
        fetch.max_wait = Duration::ZERO;
    }
    let is_committed = fetch.isolation == Isolation::ReadCommitted;
    let fetched = if fetch.parts.is_empty() {
        wait_for_nothing(&topics, fetch.max_wait).await;
        Vec::new()
    } else {
        door.broker().fetch(fetch).await
    };
    let mut answer = Encoder::new(request, is_committed);
    answer.start(ErrorCode::None, topics.len());
    for topic in &topics {
        answer.topic(topic, &fetched);
    }
    Ok(answer.finish())
}

/// A fetch of no partitions waits its time too: clients without anything to read must not spin.
async fn wait_for_nothing(topics: &[AskedTopic], wait: Duration) {
    if topics.is_empty() {
        tokio::time::sleep(wait).await;
    }
}

fn resolve(
    door: &Door,
    version: i16,
    asked: FetchRequestData,
    parts: &mut Vec<FetchPart>,
) -> Vec<AskedTopic> {
    let catalog = door.broker().catalog();
    let topics = asked.topics.into_iter().map(|topic| {
        let named = Named::by(version, 13, topic.topic.as_str(), topic.topic_id);
        let found = named.find(&catalog);
        let partitions = topic.partitions.iter().map(|asked| AskedPartition {
            index: asked.partition,
            place: found
                .as_ref()
                .map_err(|code| *code)
                .and_then(|topic| part(partition(topic, asked.partition)?, asked))
                .map(|part| {
                    parts.push(part);
                    parts.len() - 1
                }),
        });
        AskedTopic {
            partitions: partitions.collect(),
            // A copy, so that the frame's buffer goes back while this waits.
            name: super::answer::text(topic.topic.as_str()),
            id: topic.topic_id,
        }
    });
    topics.collect()
}

fn part(partition: TopicPartition, asked: &FetchPartition) -> Result<FetchPart, ErrorCode> {
    let offset = u64::try_from(asked.fetch_offset).map_err(|_| ErrorCode::OffsetOutOfRange)?;
    Ok(FetchPart {
        partition,
        offset: Offset(offset),
        max_bytes: asked.partition_max_bytes.max(0) as usize,
        current_epoch: u32::try_from(asked.current_leader_epoch)
            .ok()
            .map(LeaderEpoch),
    })
}

impl AskedTopic {
    fn has_error(&self) -> bool {
        self.partitions.iter().any(|p| p.place.is_err())
    }
}

fn encode(
    request: &Request,
    error: ErrorCode,
    topics: &[AskedTopic],
    fetched: &[FetchedPart],
) -> Answer {
    let mut answer = Encoder::new(request, false);
    answer.start(error, topics.len());
    for topic in topics {
        answer.topic(topic, fetched);
    }
    answer.finish()
}

/// Writes the answer: fields into `head`, which is cut wherever records come in between.
struct Encoder {
    version: i16,
    is_flexible: bool,
    is_committed: bool,
    parts: Vec<Bytes>,
    head: BytesMut,
}

impl Encoder {
    fn new(request: &Request, is_committed: bool) -> Self {
        Self {
            version: request.version,
            is_flexible: request.is_flexible(),
            is_committed,
            parts: Vec::new(),
            head: Answer::begin(request),
        }
    }

    fn start(&mut self, error: ErrorCode, topics: usize) {
        self.head.put_i32(0); // throttle time
        if self.version >= 7 {
            self.head.put_i16(code(error));
            self.head.put_i32(0); // session id
        }
        self.count(topics);
    }

    fn topic(&mut self, topic: &AskedTopic, fetched: &[FetchedPart]) {
        if self.version >= 13 {
            self.head.extend_from_slice(&topic.id.to_bytes());
        } else if self.is_flexible {
            self.varint(topic.name.len() + 1);
            self.head.extend_from_slice(topic.name.as_bytes());
        } else {
            self.head.put_i16(topic.name.len() as i16);
            self.head.extend_from_slice(topic.name.as_bytes());
        }
        self.count(topic.partitions.len());
        for asked in &topic.partitions {
            match asked.place.map(|place| fetched.get(place)) {
                Ok(Some(part)) => self.partition(asked.index, part),
                Ok(None) => self.refused(asked.index, ErrorCode::UnknownServerError),
                Err(code) => self.refused(asked.index, code),
            }
        }
        self.no_tagged_fields();
    }

    fn partition(&mut self, index: i32, part: &FetchedPart) {
        let error = part.error.as_ref().map_or(NONE, |error| {
            code(match error {
                FetchError::UnknownPartition(_) if self.version >= 13 => ErrorCode::UnknownTopicId,
                other => errors::fetch(other),
            })
        });
        self.bounds(
            index,
            error,
            part.high_watermark.0 as i64,
            part.last_stable_offset.0 as i64,
            part.log_start.0 as i64,
        );
        let bytes: usize = part.records.iter().map(Bytes::len).sum();
        self.length(bytes);
        if bytes > 0 {
            self.parts.push(self.head.split().freeze());
            self.parts.extend(part.records.iter().cloned());
        }
        self.no_tagged_fields();
    }

    fn refused(&mut self, index: i32, error: ErrorCode) {
        self.bounds(index, code(error), -1, -1, -1);
        self.length(0);
        self.no_tagged_fields();
    }

    fn bounds(&mut self, index: i32, error: i16, high_watermark: i64, stable: i64, start: i64) {
        self.head.put_i32(index);
        self.head.put_i16(error);
        self.head.put_i64(high_watermark);
        self.head.put_i64(stable);
        if self.version >= 5 {
            self.head.put_i64(start);
        }
        // Aborted transactions: null for who does not ask for committed records only, else (yet) none.
        match (self.is_flexible, self.is_committed) {
            (true, committed) => self.head.put_u8(u8::from(committed)),
            (false, true) => self.head.put_i32(0),
            (false, false) => self.head.put_i32(-1),
        }
        if self.version >= 11 {
            self.head.put_i32(-1); // preferred read replica
        }
    }

    fn count(&mut self, count: usize) {
        if self.is_flexible {
            self.varint(count + 1);
        } else {
            self.head.put_i32(count as i32);
        }
    }

    fn length(&mut self, bytes: usize) {
        self.count(bytes);
    }

    fn varint(&mut self, value: usize) {
        let mut raw = Vec::with_capacity(5);
        write_u64(&mut raw, value as u64);
        self.head.extend_from_slice(&raw);
    }

    fn no_tagged_fields(&mut self) {
        if self.is_flexible {
            self.head.put_u8(0);
        }
    }

    fn finish(mut self) -> Answer {
        self.no_tagged_fields();
        self.parts.push(self.head.freeze());
        Answer::finish(self.parts)
    }
}

#[cfg(test)]
mod tests;
