//! A Kafka client that does exactly what it is told: one connection, one request, one answer.
//!
//! For what the real clients hide: exact error codes, times, versions and malformed frames.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use kacrab_protocol::KafkaString;
use kacrab_protocol::frame::{RequestFrameSpec, decode_response_envelope, encode_request_frame};
use kacrab_protocol::generated::{self as wire, ApiKey};

use crate::batch::{self, NO_PRODUCER, Record};

/// Error codes by Kafka's names, as far as the tests ask for them.
pub mod code {
    #![allow(missing_docs, reason = "the names are Kafka's")]
    pub const NONE: i16 = 0;
    pub const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const INVALID_TOPIC: i16 = 17;
    pub const ILLEGAL_GENERATION: i16 = 22;
    pub const INCONSISTENT_GROUP_PROTOCOL: i16 = 23;
    pub const UNKNOWN_MEMBER_ID: i16 = 25;
    pub const UNSUPPORTED_VERSION: i16 = 35;
    pub const TOPIC_ALREADY_EXISTS: i16 = 36;
    pub const INVALID_CONFIG: i16 = 40;
    pub const INVALID_REQUEST: i16 = 42;
    pub const OUT_OF_ORDER_SEQUENCE: i16 = 45;
    pub const MEMBER_ID_REQUIRED: i16 = 79;
    pub const INVALID_RECORD: i16 = 87;
    pub const UNKNOWN_TOPIC_ID: i16 = 100;
}

/// A request, and what answers it.
pub trait Request {
    /// Its number.
    const KEY: ApiKey;
    /// The answer's type.
    type Response;
    /// Writes the body.
    fn write_body(&self, out: &mut BytesMut, version: i16) -> kacrab_protocol::Result<()>;
    /// Reads the answer's body.
    fn read_answer(body: &mut Bytes, version: i16) -> kacrab_protocol::Result<Self::Response>;
}

macro_rules! requests {
    ($($name:ident: $request:ident -> $response:ident;)*) => {$(
        impl Request for wire::$request {
            const KEY: ApiKey = ApiKey::$name;
            type Response = wire::$response;
            fn write_body(&self, out: &mut BytesMut, version: i16) -> kacrab_protocol::Result<()> {
                self.write(out, version)
            }
            fn read_answer(body: &mut Bytes, version: i16) -> kacrab_protocol::Result<Self::Response> {
                wire::$response::read(body, version)
            }
        }
    )*};
}

requests! {
    ApiVersions: ApiVersionsRequestData -> ApiVersionsResponseData;
    CreateTopics: CreateTopicsRequestData -> CreateTopicsResponseData;
    DeleteTopics: DeleteTopicsRequestData -> DeleteTopicsResponseData;
    Fetch: FetchRequestData -> FetchResponseData;
    FindCoordinator: FindCoordinatorRequestData -> FindCoordinatorResponseData;
    Heartbeat: HeartbeatRequestData -> HeartbeatResponseData;
    InitProducerId: InitProducerIdRequestData -> InitProducerIdResponseData;
    JoinGroup: JoinGroupRequestData -> JoinGroupResponseData;
    LeaveGroup: LeaveGroupRequestData -> LeaveGroupResponseData;
    ListOffsets: ListOffsetsRequestData -> ListOffsetsResponseData;
    Metadata: MetadataRequestData -> MetadataResponseData;
    OffsetCommit: OffsetCommitRequestData -> OffsetCommitResponseData;
    OffsetFetch: OffsetFetchRequestData -> OffsetFetchResponseData;
    OffsetForLeaderEpoch: OffsetForLeaderEpochRequestData -> OffsetForLeaderEpochResponseData;
    Produce: ProduceRequestData -> ProduceResponseData;
    SyncGroup: SyncGroupRequestData -> SyncGroupResponseData;
}

/// A string on the wire.
pub fn text(text: impl Into<String>) -> KafkaString {
    KafkaString::from(text.into())
}

/// One connection to the Kafka door.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    correlation: i32,
}

impl Connection {
    /// Connects.
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            correlation: 0,
        }
    }

    /// The socket, for bytes that are no request.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request without waiting for its answer.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) {
        self.correlation += 1;
        let spec = RequestFrameSpec {
            api_key: R::KEY,
            api_version: version,
            correlation_id: self.correlation,
            client_id: "floe-tests",
            capacity_hint: 4096,
        };
        let frame = encode_request_frame(spec, |out| request.write_body(out, version)).unwrap();
        self.stream.write_all(&frame).unwrap();
    }

    /// Reads the answer to a request of this kind.
    pub fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let frame = self.frame().expect("the broker answers");
        let mut envelope = decode_response_envelope(R::KEY, version, frame).unwrap();
        let answer = R::read_answer(&mut envelope.body, version).unwrap();
        assert!(
            !envelope.body.has_remaining(),
            "bytes behind the answer to {:?} v{version}",
            R::KEY
        );
        answer
    }

    /// Sends a request and reads its answer.
    pub fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        self.receive::<R>(version)
    }

    /// The next frame, or nothing when the broker closed the connection.
    pub fn frame(&mut self) -> Option<Bytes> {
        let mut length = [0_u8; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0_u8; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        Some(Bytes::from(frame))
    }

    /// Whether the broker knows of at least one broker: itself.
    pub fn has_brokers(&mut self) -> bool {
        let request = wire::MetadataRequestData {
            topics: Some(Vec::new()),
            ..Default::default()
        };
        !self.call(&request, 9).brokers.is_empty()
    }

    /// Creates a topic with default settings and waits until it has leaders.
    pub fn create_topic(&mut self, name: &str, partitions: i32) {
        assert_eq!(
            self.try_create_topic(name, partitions),
            code::NONE,
            "creating {name}"
        );
        crate::wait::until("leaders of a new topic", || {
            let topic = self.topic(name);
            let led = topic
                .partitions
                .iter()
                .all(|partition| partition.error_code == code::NONE);
            (topic.error_code == code::NONE && led).then_some(())
        });
    }

    /// Creates a topic and gives the error code.
    pub fn try_create_topic(&mut self, name: &str, partitions: i32) -> i16 {
        self.create_topic_with(name, partitions, &[]).0
    }

    /// Creates a topic with settings; gives the error code and its words.
    pub fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> (i16, String) {
        let request = wire::CreateTopicsRequestData {
            topics: vec![wire::create_topics_request::CreatableTopic {
                name: text(name),
                num_partitions: partitions,
                replication_factor: -1,
                configs: settings
                    .iter()
                    .map(
                        |(name, value)| wire::create_topics_request::CreatableTopicConfig {
                            name: text(*name),
                            value: Some(text(*value)),
                            ..Default::default()
                        },
                    )
                    .collect(),
                ..Default::default()
            }],
            timeout_ms: 30_000,
            ..Default::default()
        };
        let answer = self.call(&request, 5);
        let words = answer.topics[0]
            .error_message
            .as_ref()
            .map_or("", KafkaString::as_str);
        (answer.topics[0].error_code, words.to_owned())
    }

    /// Deletes a topic and gives the error code.
    pub fn delete_topic(&mut self, name: &str) -> i16 {
        let request = wire::DeleteTopicsRequestData {
            topic_names: vec![text(name)],
            timeout_ms: 30_000,
            ..Default::default()
        };
        self.call(&request, 5).responses[0].error_code
    }

    /// A topic's metadata, without creating it.
    pub fn topic(&mut self, name: &str) -> wire::metadata_response::MetadataResponseTopic {
        let request = wire::MetadataRequestData {
            topics: Some(vec![wire::metadata_request::MetadataRequestTopic {
                name: Some(text(name)),
                ..Default::default()
            }]),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        self.call(&request, 12).topics.remove(0)
    }

    /// All topic names.
    pub fn topics(&mut self) -> Vec<String> {
        let request = wire::MetadataRequestData {
            topics: None,
            ..Default::default()
        };
        let answer = self.call(&request, 9);
        answer
            .topics
            .iter()
            .filter_map(|topic| Some(topic.name.as_ref()?.as_str().to_owned()))
            .collect()
    }

    /// Produces bytes as they are, acks=all; gives error code and base offset.
    pub fn produce_bytes(
        &mut self,
        topic: &str,
        partition: i32,
        records: impl Into<Bytes>,
    ) -> (i16, i64) {
        let request = produce_request(topic, partition, records);
        let answer = self.call(&request, 9);
        let partition = &answer.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// Produces records as one batch; gives the base offset.
    pub fn produce(&mut self, topic: &str, partition: i32, records: &[Record]) -> i64 {
        let (error, base) =
            self.produce_bytes(topic, partition, batch::encode(records, NO_PRODUCER));
        assert_eq!(error, code::NONE, "producing to {topic}-{partition}");
        base
    }

    /// Fetches once from an offset.
    pub fn fetch(&mut self, topic: &str, partition: i32, offset: i64, wait_ms: i32) -> Fetched {
        let answer = self.call(&fetch_request(topic, partition, offset, wait_ms), 11);
        fetched(&answer)
    }

    /// The first batches from an offset, as they lie there.
    pub fn fetch_bytes(&mut self, topic: &str, partition: i32, offset: i64) -> Bytes {
        let answer = self.call(&fetch_request(topic, partition, offset, 0), 11);
        answer.responses[0].partitions[0]
            .records
            .clone()
            .unwrap_or_default()
    }

    /// Every record from an offset up to the high watermark.
    pub fn read_all(&mut self, topic: &str, partition: i32, from: i64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut position = from;
        loop {
            let fetched = self.fetch(topic, partition, position, 0);
            assert_eq!(
                fetched.error,
                code::NONE,
                "fetching {topic}-{partition} from {position}"
            );
            records.extend(
                fetched
                    .records
                    .into_iter()
                    .filter(|record| record.offset >= from),
            );
            let next = records
                .last()
                .map_or(from, |record: &Record| record.offset + 1);
            if next >= fetched.high_watermark {
                return records;
            }
            assert!(
                next > position,
                "no progress at {position} below {}",
                fetched.high_watermark
            );
            position = next;
        }
    }

    /// Asks for an offset by time; gives error code, timestamp, offset and leader epoch.
    pub fn list_offset(
        &mut self,
        topic: &str,
        partition: i32,
        timestamp: i64,
    ) -> (i16, i64, i64, i32) {
        let request = wire::ListOffsetsRequestData {
            replica_id: -1,
            topics: vec![wire::list_offsets_request::ListOffsetsTopic {
                name: text(topic),
                partitions: vec![wire::list_offsets_request::ListOffsetsPartition {
                    partition_index: partition,
                    current_leader_epoch: -1,
                    timestamp,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.call(&request, 7);
        let partition = &answer.topics[0].partitions[0];
        (
            partition.error_code,
            partition.timestamp,
            partition.offset,
            partition.leader_epoch,
        )
    }

    /// Commits a position of partition 0 from outside the group; gives the error code.
    pub fn commit(&mut self, group: &str, topic: &str, offset: i64) -> i16 {
        self.commit_as(group, topic, offset, "", -1)
    }

    /// Commits a position of partition 0 as a member; gives the error code.
    pub fn commit_as(
        &mut self,
        group: &str,
        topic: &str,
        offset: i64,
        member: &str,
        generation: i32,
    ) -> i16 {
        let request = wire::OffsetCommitRequestData {
            group_id: text(group),
            generation_id_or_member_epoch: generation,
            member_id: text(member),
            topics: vec![wire::offset_commit_request::OffsetCommitRequestTopic {
                name: text(topic),
                partitions: vec![wire::offset_commit_request::OffsetCommitRequestPartition {
                    partition_index: 0,
                    committed_offset: offset,
                    committed_leader_epoch: -1,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        self.call(&request, 7).topics[0].partitions[0].error_code
    }

    /// The committed position of partition 0, -1 for none.
    pub fn committed(&mut self, group: &str, topic: &str) -> i64 {
        let request = wire::OffsetFetchRequestData {
            group_id: text(group),
            topics: Some(vec![wire::offset_fetch_request::OffsetFetchRequestTopic {
                name: text(topic),
                partition_indexes: vec![0],
                ..Default::default()
            }]),
            ..Default::default()
        };
        let answer = self.call(&request, 5);
        assert_eq!(answer.error_code, code::NONE, "positions of {group}");
        answer.topics[0].partitions[0].committed_offset
    }

    /// Takes a producer id.
    pub fn producer_id(&mut self) -> (i64, i16) {
        let request = wire::InitProducerIdRequestData::default();
        let answer = self.call(&request, 4);
        assert_eq!(answer.error_code, code::NONE, "InitProducerId");
        (answer.producer_id, answer.producer_epoch)
    }
}

/// What one partition answered to a fetch.
#[derive(Debug)]
pub struct Fetched {
    /// Error code.
    pub error: i16,
    /// First offset not readable.
    pub high_watermark: i64,
    /// First offset readable.
    pub log_start: i64,
    /// All records of the batches sent, those before the asked offset included.
    pub records: Vec<Record>,
}

/// A produce of bytes to one partition, acks=all.
pub fn produce_request(
    topic: &str,
    partition: i32,
    records: impl Into<Bytes>,
) -> wire::ProduceRequestData {
    wire::ProduceRequestData {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![wire::produce_request::TopicProduceData {
            name: text(topic),
            partition_data: vec![wire::produce_request::PartitionProduceData {
                index: partition,
                records: Some(records.into()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A fetch of one partition.
pub fn fetch_request(
    topic: &str,
    partition: i32,
    offset: i64,
    wait_ms: i32,
) -> wire::FetchRequestData {
    wire::FetchRequestData {
        replica_id: -1,
        max_wait_ms: wait_ms,
        min_bytes: 1,
        max_bytes: 50 << 20,
        session_epoch: -1,
        topics: vec![wire::fetch_request::FetchTopic {
            topic: text(topic),
            partitions: vec![wire::fetch_request::FetchPartition {
                partition,
                current_leader_epoch: -1,
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The first partition of a fetch's answer.
pub fn fetched(answer: &wire::FetchResponseData) -> Fetched {
    assert_eq!(answer.error_code, code::NONE, "a fetch as a whole");
    let partition = &answer.responses[0].partitions[0];
    Fetched {
        error: partition.error_code,
        high_watermark: partition.high_watermark,
        log_start: partition.log_start_offset,
        records: partition
            .records
            .as_ref()
            .map(batch::decode)
            .unwrap_or_default(),
    }
}
