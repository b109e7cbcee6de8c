//! Produce, fetch and look-ups in every version.

use bytes::{Bytes, BytesMut};
use floe_model::Timestamp;
use floe_wire::batch::{self, Builder, View};
use floe_wire::codec::{Codec, Scratch};
use kacrab_protocol::generated::create_topics_request::{CreatableTopic, CreateTopicsRequestData};
use kacrab_protocol::generated::create_topics_response::CreateTopicsResponseData;
use kacrab_protocol::generated::fetch_request::{FetchPartition, FetchRequestData, FetchTopic};
use kacrab_protocol::generated::fetch_response::FetchResponseData;
use kacrab_protocol::generated::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequestData, ListOffsetsTopic,
};
use kacrab_protocol::generated::list_offsets_response::ListOffsetsResponseData;
use kacrab_protocol::generated::metadata_request::{MetadataRequestData, MetadataRequestTopic};
use kacrab_protocol::generated::metadata_response::MetadataResponseData;
use kacrab_protocol::generated::produce_request::{
    PartitionProduceData, ProduceRequestData, TopicProduceData,
};
use kacrab_protocol::generated::produce_response::{PartitionProduceResponse, ProduceResponseData};
use kacrab_protocol::{KafkaString, KafkaUuid};

use crate::client::Client;
use crate::node::Node;

pub(crate) fn string(text: &str) -> KafkaString {
    KafkaString::new(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

pub(crate) fn batch(count: i64, value: &[u8]) -> Bytes {
    let mut builder = Builder::new(Codec::None);
    for n in 0..count {
        builder
            .record(Timestamp(1_000 + n), Some(b"k"), Some(value), &[])
            .unwrap();
    }
    builder.finish().unwrap().into()
}

pub(crate) fn produce_request(topic: &str, records: Bytes, acks: i16) -> ProduceRequestData {
    ProduceRequestData::default()
        .with_acks(acks)
        .with_timeout_ms(10_000)
        .with_topic_data(vec![
            TopicProduceData::default()
                .with_name(string(topic))
                .with_partition_data(vec![
                    PartitionProduceData::default().with_records(Some(records)),
                ]),
        ])
}

pub(crate) async fn create(
    client: &mut Client,
    topic: &str,
    partitions: i32,
) -> CreateTopicsResponseData {
    let request = CreateTopicsRequestData::default().with_topics(vec![
        CreatableTopic::default()
            .with_name(string(topic))
            .with_num_partitions(partitions)
            .with_replication_factor(-1),
    ]);
    client
        .ask(
            19,
            7,
            |out, v| request.write(out, v),
            CreateTopicsResponseData::read,
        )
        .await
}

pub(crate) async fn produce(
    client: &mut Client,
    topic: &str,
    records: Bytes,
) -> PartitionProduceResponse {
    let request = produce_request(topic, records, -1);
    let answer = client
        .ask(
            0,
            9,
            |out, v| request.write(out, v),
            ProduceResponseData::read,
        )
        .await;
    answer.responses[0].partition_responses[0].clone()
}

pub(crate) async fn latest(client: &mut Client, topic: &str) -> i64 {
    look_up(client, topic, -1, 4).await.1
}

/// Error code and offset.
async fn look_up(client: &mut Client, topic: &str, timestamp: i64, version: i16) -> (i16, i64) {
    let request = ListOffsetsRequestData::default()
        .with_replica_id(-1)
        .with_topics(vec![
            ListOffsetsTopic::default()
                .with_name(string(topic))
                .with_partitions(vec![
                    ListOffsetsPartition::default().with_timestamp(timestamp),
                ]),
        ]);
    let answer = client
        .ask(
            2,
            version,
            |out: &mut BytesMut, v| request.write(out, v),
            ListOffsetsResponseData::read,
        )
        .await;
    let partition = &answer.topics[0].partitions[0];
    (partition.error_code, partition.offset)
}

async fn topic_id(client: &mut Client, topic: &str) -> KafkaUuid {
    let request = MetadataRequestData::default().with_topics(Some(vec![
        MetadataRequestTopic::default().with_name(Some(string(topic))),
    ]));
    let answer = client
        .ask(
            3,
            12,
            |out, v| request.write(out, v),
            MetadataResponseData::read,
        )
        .await;
    assert_eq!(answer.topics[0].error_code, 0);
    answer.topics[0].topic_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn produce_and_fetch_work_in_every_version() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    let created = create(&mut client, "t", 1).await;
    assert_eq!(created.topics[0].error_code, 0);
    assert!(created.topics[0].configs.as_ref().unwrap().len() > 30);
    let id = topic_id(&mut client, "t").await;
    for version in 3..=13 {
        let mut request = produce_request("t", batch(2, b"v"), -1);
        if version >= 13 {
            request.topic_data[0].name = KafkaString::default();
            request.topic_data[0].topic_id = id;
        }
        let answer = client
            .ask(
                0,
                version,
                |out, v| request.write(out, v),
                ProduceResponseData::read,
            )
            .await;
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, 0, "{partition:?}");
        assert_eq!(partition.base_offset, i64::from(version - 3) * 2);
    }
    for version in 4..=18 {
        let topic = FetchTopic::default().with_partitions(vec![
            // Inside a batch: it comes whole.
            FetchPartition::default()
                .with_fetch_offset(3)
                .with_partition_max_bytes(1),
        ]);
        let topic = if version >= 13 {
            topic.with_topic_id(id)
        } else {
            topic.with_topic(string("t"))
        };
        let mut request = FetchRequestData::default()
            .with_max_bytes(1 << 20)
            .with_topics(vec![topic]);
        if version >= 7 {
            request = request.with_session_epoch(-1);
        }
        let answer = client
            .ask(
                1,
                version,
                |out, v| request.write(out, v),
                FetchResponseData::read,
            )
            .await;
        let partition = &answer.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 22));
        let records = partition.records.clone().unwrap();
        let view = View::first(&records).unwrap();
        assert_eq!((view.base_offset(), view.record_count()), (2, 2));
        assert!(view.leader_epoch() >= 0);
        assert!(view.is_crc_right());
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_by_time_are_the_first_at_or_after_it() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    create(&mut client, "t", 1).await;
    for timestamp in [2, 4, 6, 8] {
        let mut builder = Builder::default();
        builder
            .record(Timestamp(timestamp), None, Some(b"v"), &[])
            .unwrap();
        let answer = produce(&mut client, "t", builder.finish().unwrap().into()).await;
        assert_eq!(answer.error_code, 0);
    }
    for (timestamp, offset) in [(0, 0), (3, 1), (5, 2), (7, 3), (8, 3), (9, -1)] {
        let found = look_up(&mut client, "t", timestamp, 4).await;
        assert_eq!(found, (0, offset), "at {timestamp}");
    }
    assert_eq!(look_up(&mut client, "t", -1, 1).await, (0, 4));
    assert_eq!(look_up(&mut client, "t", -2, 1).await, (0, 0));
    assert_eq!(look_up(&mut client, "t", -3, 7).await, (0, 3));
    assert_eq!(look_up(&mut client, "t", -3, 6).await, (35, -1));
    assert_eq!(look_up(&mut client, "t", -4, 8).await, (0, 0));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn null_empty_and_repeated_headers_come_back_as_they_were_sent() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    create(&mut client, "t", 1).await;
    for codec in Codec::ALL {
        let parts: [Option<&[u8]>; 3] = [None, Some(b""), Some(b"bytes")];
        let mut builder = Builder::new(codec);
        for key in parts {
            for value in parts {
                let headers: [(&[u8], Option<&[u8]>); 3] =
                    [(b"h", value), (b"h", key), (b"", None)];
                builder.record(Timestamp(5), key, value, &headers).unwrap();
            }
        }
        let sent = Bytes::from(builder.finish().unwrap());
        let answer = produce(&mut client, "t", sent.clone()).await;
        assert_eq!(answer.error_code, 0, "{codec:?}");
        let request = FetchRequestData::default()
            .with_max_bytes(1 << 20)
            .with_topics(vec![
                FetchTopic::default()
                    .with_topic(string("t"))
                    .with_partitions(vec![
                        FetchPartition::default()
                            .with_fetch_offset(answer.base_offset)
                            .with_partition_max_bytes(1 << 20),
                    ]),
            ]);
        let fetched = client
            .ask(
                1,
                4,
                |out, v| request.write(out, v),
                FetchResponseData::read,
            )
            .await;
        let records = fetched.responses[0].partitions[0].records.clone().unwrap();
        assert_eq!(records[16..], sent[16..], "given back as it came");
        let view = View::first(&records).unwrap();
        let mut scratch = Scratch::default();
        let read = batch::records(&view, &mut scratch).unwrap();
        assert_eq!(read.count(), 9);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_batches_say_why_and_change_nothing() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    create(&mut client, "t", 1).await;
    let mut damaged = batch(3, b"value").to_vec();
    let last = damaged.len() - 2;
    damaged[last] ^= 1;
    let corrupt = produce(&mut client, "t", damaged.into()).await;
    assert_eq!(corrupt.error_code, 2);
    assert!(corrupt.error_message.unwrap().as_str().contains("CRC"));
    let cut = batch(3, b"value").slice(..70);
    assert_eq!(produce(&mut client, "t", cut).await.error_code, 2);
    let empty = produce(&mut client, "t", Bytes::new()).await;
    assert_eq!(empty.error_code, 2);
    let twice = [&batch(1, b"v")[..], &batch(1, b"v")[..]].concat();
    assert_eq!(produce(&mut client, "t", twice.into()).await.error_code, 87);
    let large = produce(&mut client, "t", batch(1_100, &[1; 1024])).await;
    assert_eq!(large.error_code, 10);
    let nowhere = produce(&mut client, "nowhere", batch(1, b"v")).await;
    assert_eq!(nowhere.error_code, 3);
    assert_eq!(latest(&mut client, "t").await, 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_behind_one_another_on_a_full_disk_are_all_answered_in_their_time() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    create(&mut client, "t", 1).await;
    node.disk
        .set_capacity(node.disk.files().iter().map(|(_, len)| len).sum());
    // The client gives up after 20 s: an answer that began to wait when the one before was out would come far too late.
    let waits = 40;
    for _ in 0..waits {
        let request = produce_request("t", batch(1, &vec![1; 100_000]), -1).with_timeout_ms(1_000);
        client.send(0, 9, |out, v| request.write(out, v)).await;
    }
    let begun = node.broker.world().clock.monotonic();
    for n in 0..waits {
        let (_, mut body) = client.receive().await;
        assert_eq!(body.split_to(1)[0], 0);
        let answer = ProduceResponseData::read(&mut body, 9).unwrap();
        let part = &answer.responses[0].partition_responses[0];
        // Undecided, and from when the disk was found full, refused.
        assert!(
            part.error_code == 7 || (n > 0 && part.error_code == 56),
            "{part:?}"
        );
        assert!(part.error_message.is_some());
    }
    let took = node.broker.world().clock.monotonic().saturating_sub(begun);
    assert!(took.as_secs() < 15, "{took:?}");
    node.disk.set_capacity(1 << 40);
    while produce(&mut client, "t", batch(1, b"room"))
        .await
        .error_code
        != 0
    {}
    assert!(latest(&mut client, "t").await >= 2);
    node.stop().await;
}
