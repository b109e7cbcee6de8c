//! What nobody should send, and the slow and the silent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use floe_gateway::kafka;
use floe_world::{Random, random};
use kacrab_protocol::generated::api_versions_request::ApiVersionsRequestData;
use kacrab_protocol::generated::api_versions_response::ApiVersionsResponseData;
use kacrab_protocol::generated::fetch_request::{FetchPartition, FetchRequestData, FetchTopic};
use kacrab_protocol::generated::metadata_request::MetadataRequestData;

use crate::client::{Client, frame};
use crate::everyday;
use crate::node::{Node, short};

async fn is_well(node: &Node) {
    let mut client = Client::connect(node.address).await;
    let request = ApiVersionsRequestData::default();
    let answer = client
        .ask(
            18,
            0,
            |out, v| request.write(out, v),
            ApiVersionsResponseData::read,
        )
        .await;
    assert_eq!(answer.error_code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_close_their_connection_and_no_other() {
    let node = Node::with(short(), kafka::Settings::default()).await;
    let chance = random::Seeded::new(5);
    for _ in 0..200 {
        let mut client = Client::connect(node.address).await;
        let length = (chance.next_u64() % 600) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| chance.next_u64() as u8).collect();
        // The other side may have closed half-way through.
        drop(tokio::io::AsyncWriteExt::write_all(&mut client.stream, &bytes).await);
    }
    is_well(&node).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn well_framed_nonsense_of_every_api_is_answered_or_closed() {
    let node = Node::start().await;
    let chance = random::Seeded::new(9);
    for key in -2..100_i16 {
        for version in [-1, 0, 3, 4, 9, 12, 13, 99] {
            let mut client = Client::connect(node.address).await;
            let length = (chance.next_u64() % 80) as usize;
            let body: Vec<u8> = (0..length)
                .map(|_| chance.next_u64() as u8 & 0x83)
                .collect();
            let frame = frame(key, version, 1, |out: &mut BytesMut, _| {
                out.extend_from_slice(&body);
                Ok(())
            });
            client.send_raw(&frame).await;
            tokio::io::AsyncWriteExt::shutdown(&mut client.stream)
                .await
                .unwrap();
            client.closed().await;
        }
    }
    is_well(&node).await;
    assert_eq!(node.requests.used(), 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_lengths_close_at_once_and_take_no_memory() {
    let node = Node::start().await;
    for length in [-1, 0, 7, i32::MAX, 100 * 1024 * 1024 + 1, i32::MIN] {
        let mut client = Client::connect(node.address).await;
        client.send_raw(&length.to_be_bytes()).await;
        client.closed().await;
    }
    assert_eq!(node.requests.used(), 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_frames_and_silence_are_closed_after_their_time() {
    let node = Node::with(short(), kafka::Settings::default()).await;
    let mut silent = Client::connect(node.address).await;
    let mut half_length = Client::connect(node.address).await;
    half_length.send_raw(&[0, 0]).await;
    let mut half_body = Client::connect(node.address).await;
    half_body.send_raw(&[0, 0, 0, 100, 0, 18]).await;
    let mut dripping = Client::connect(node.address).await;
    dripping.send_raw(&[0, 0, 0, 200]).await;
    let drip = async {
        loop {
            if tokio::io::AsyncWriteExt::write_all(&mut dripping.stream, &[0])
                .await
                .is_err()
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), async {
        tokio::join!(
            silent.closed(),
            half_length.closed(),
            half_body.closed(),
            drip
        )
    })
    .await
    .unwrap();
    is_well(&node).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_version_of_api_versions_is_answered_in_version_zero() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    let sent = client.send(18, 4, |_, _| Ok(())).await;
    // Version 4 without its body does not decode: closed.
    assert_eq!(sent, 1);
    client.closed().await;
    let mut client = Client::connect(node.address).await;
    let mut newer = BytesMut::from(&frame(18, 4, 3, |_, _| Ok(()))[..]);
    newer[6..8].copy_from_slice(&5_i16.to_be_bytes());
    client.send_raw(&newer).await;
    let (correlation, mut body) = client.receive().await;
    let answer = ApiVersionsResponseData::read(&mut body, 0).unwrap();
    assert_eq!((correlation, answer.error_code), (3, 35));
    assert_eq!(answer.api_keys[0].api_key, 18);
    // And the connection goes on.
    let request = ApiVersionsRequestData::default()
        .with_client_software_name(kacrab_protocol::KafkaString::from_static("test"))
        .with_client_software_version(kacrab_protocol::KafkaString::from_static("1"));
    let answer = client
        .ask(
            18,
            4,
            |out, v| request.write(out, v),
            ApiVersionsResponseData::read,
        )
        .await;
    assert_eq!(answer.error_code, 0);
    let produce = &answer.api_keys[0];
    assert_eq!(
        (produce.api_key, produce.min_version, produce.max_version),
        (0, 0, 13)
    );
    assert!(answer.supported_features.is_empty());
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_their_order_and_bounded() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    let request = MetadataRequestData::default();
    let mut all = BytesMut::new();
    for correlation in 0..1_000 {
        all.extend_from_slice(&frame(3, 1, correlation, |out, v| request.write(out, v)));
    }
    client.send_raw(&all).await;
    for correlation in 0..1_000 {
        assert_eq!(client.receive().await.0, correlation);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_take_its_answer_is_closed() {
    let node = Node::with(short(), kafka::Settings::default()).await;
    let mut client = Client::connect(node.address).await;
    everyday::create(&mut client, "large", 1).await;
    for _ in 0..8 {
        everyday::produce(&mut client, "large", everyday::batch(700, &[b'x'; 1024])).await;
    }
    let mut deaf = Client::connect(node.address).await;
    let request = fetch_all("large");
    for _ in 0..20 {
        deaf.send(1, 11, |out, v| request.write(out, v)).await;
    }
    // Nothing is read until well after the limit; then the connection is found cut.
    tokio::time::sleep(Duration::from_secs(2)).await;
    deaf.closed().await;
    assert_eq!(node.requests.used(), 0);
    is_well(&node).await;
    node.stop().await;
}

fn fetch_all(topic: &'static str) -> FetchRequestData {
    FetchRequestData::default()
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![
            FetchTopic::default()
                .with_topic(kacrab_protocol::KafkaString::from_static(topic))
                .with_partitions(vec![
                    FetchPartition::default().with_partition_max_bytes(50 << 20),
                ]),
        ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_idle_and_waiting_connections_at_once() {
    let node = Node::start().await;
    let mut idle = Client::connect(node.address).await;
    let mut waiting = Client::connect(node.address).await;
    everyday::create(&mut waiting, "t", 1).await;
    let request = fetch_all("t").with_max_wait_ms(30_000).with_min_bytes(1);
    waiting.send(1, 11, |out, v| request.write(out, v)).await;
    let stopping = tokio::time::timeout(Duration::from_secs(5), node.stop());
    let (stopped, (), ()) = tokio::join!(stopping, idle.closed(), waiting.closed());
    stopped.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acks_zero_is_never_answered_and_its_failure_closes() {
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    everyday::create(&mut client, "t", 1).await;
    let good = everyday::produce_request("t", everyday::batch(3, b"v"), 0);
    client.send(0, 9, |out, v| good.write(out, v)).await;
    // The next answer is that of the next request.
    let end = everyday::latest(&mut client, "t").await;
    assert!(end <= 3);
    let bad = everyday::produce_request("nowhere", Bytes::from_static(b"x"), 0);
    client.send(0, 9, |out, v| bad.write(out, v)).await;
    client.closed().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_announced_and_slow_frames_do_not_starve_a_producer() {
    let node = Node::start().await;
    let mut slow = Vec::new();
    for sent in [0, 10, 5_000] {
        // Together they announce ten times what requests may hold.
        for _ in 0..60 {
            let mut client = Client::connect(node.address).await;
            let mut bytes = (1_000_000_i32).to_be_bytes().to_vec();
            bytes.resize(4 + sent, 0);
            client.send_raw(&bytes).await;
            slow.push(client);
        }
    }
    let mut client = Client::connect(node.address).await;
    everyday::create(&mut client, "t", 1).await;
    for _ in 0..5 {
        let answer = everyday::produce(&mut client, "t", everyday::batch(700, &[1; 1024])).await;
        assert_eq!(answer.error_code, 0);
    }
    drop(slow);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_large_frame_that_trickles_does_not_shut_the_door() {
    let node = Node::start().await;
    let mut slow = Client::connect(node.address).await;
    // All memory of requests is announced, and comes faster than a small frame may.
    let mut bytes = (16_000_000_i32).to_be_bytes().to_vec();
    bytes.resize(100_000, 0);
    slow.send_raw(&bytes).await;
    let piece = vec![0; 60_000];
    let trickling = floe_world::tasks::spawn(async move {
        while slow.try_send_raw(&piece).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let mut client = Client::connect(node.address).await;
    everyday::create(&mut client, "t", 1).await;
    for _ in 0..5 {
        let answer = everyday::produce(&mut client, "t", everyday::batch(700, &[1; 1024])).await;
        assert_eq!(answer.error_code, 0);
    }
    trickling.await;
    node.stop().await;
}
