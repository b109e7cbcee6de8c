//! What the door is set to, at each limit and one past it; and callers that close their sending side.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use floe_gateway::kafka::Settings;
use floe_gateway::listen::Limits;
use floe_wire::batch::View;
use kacrab_protocol::generated::describe_cluster_request::DescribeClusterRequestData;
use kacrab_protocol::generated::describe_cluster_response::DescribeClusterResponseData;
use kacrab_protocol::generated::describe_configs_request::{
    DescribeConfigsRequestData, DescribeConfigsResource,
};
use kacrab_protocol::generated::describe_configs_response::DescribeConfigsResponseData;
use kacrab_protocol::generated::fetch_request::{FetchPartition, FetchRequestData, FetchTopic};
use kacrab_protocol::generated::fetch_response::FetchResponseData;
use kacrab_protocol::generated::find_coordinator_request::FindCoordinatorRequestData;
use kacrab_protocol::generated::find_coordinator_response::FindCoordinatorResponseData;
use kacrab_protocol::generated::join_group_request::{
    JoinGroupRequestData, JoinGroupRequestProtocol,
};
use kacrab_protocol::generated::metadata_request::MetadataRequestData;
use kacrab_protocol::generated::metadata_response::MetadataResponseData;
use tokio::io::AsyncWriteExt;

use crate::client::{Client, frame};
use crate::everyday::{batch, create, latest, produce, produce_request, string};
use crate::node::Node;

async fn with(settings: Settings) -> Node {
    Node::with(Limits::default(), settings).await
}

/// The host and port that each API tells.
async fn told(client: &mut Client) -> Vec<(String, i32)> {
    let request = MetadataRequestData::default();
    let metadata = client
        .ask(
            3,
            9,
            |out, v| request.write(out, v),
            MetadataResponseData::read,
        )
        .await;
    let request = FindCoordinatorRequestData::default().with_key(string("g"));
    let coordinator = client
        .ask(
            10,
            3,
            |out, v| request.write(out, v),
            FindCoordinatorResponseData::read,
        )
        .await;
    let request = DescribeClusterRequestData::default();
    let cluster = client
        .ask(
            60,
            0,
            |out, v| request.write(out, v),
            DescribeClusterResponseData::read,
        )
        .await;
    let (node, broker) = (&metadata.brokers[0], &cluster.brokers[0]);
    vec![
        (node.host.as_str().to_owned(), node.port),
        (coordinator.host.as_str().to_owned(), coordinator.port),
        (broker.host.as_str().to_owned(), broker.port),
    ]
}

async fn setting(client: &mut Client, name: &str) -> String {
    let request = DescribeConfigsRequestData::default().with_resources(vec![
        DescribeConfigsResource::default()
            .with_resource_type(4)
            .with_resource_name(string("0"))
            .with_configuration_keys(Some(vec![string(name)])),
    ]);
    let answer = client
        .ask(
            32,
            4,
            |out, v| request.write(out, v),
            DescribeConfigsResponseData::read,
        )
        .await;
    let value = answer.results[0].configs[0].value.as_ref();
    value.unwrap().as_str().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_api_tells_the_advertised_address_or_else_the_one_called() {
    let node = with(Settings {
        advertised: Some(("kafka.example".to_owned(), 19_092)),
        ..Settings::default()
    })
    .await;
    let mut client = Client::connect(node.address).await;
    let advertised = ("kafka.example".to_owned(), 19_092);
    assert_eq!(told(&mut client).await, vec![advertised; 3]);
    let listeners = setting(&mut client, "advertised.listeners").await;
    assert_eq!(listeners, "PLAINTEXT://kafka.example:19092");
    node.stop().await;
    let node = Node::start().await;
    let mut client = Client::connect(node.address).await;
    let port = node.address.port();
    let called = ("127.0.0.1".to_owned(), i32::from(port));
    assert_eq!(told(&mut client).await, vec![called; 3]);
    let listeners = setting(&mut client, "advertised.listeners").await;
    assert_eq!(listeners, format!("PLAINTEXT://127.0.0.1:{port}"));
    node.stop().await;
}

fn fetch(topic: &str, offset: i64) -> FetchRequestData {
    FetchRequestData::default()
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![
            FetchTopic::default()
                .with_topic(string(topic))
                .with_partitions(vec![
                    FetchPartition::default()
                        .with_fetch_offset(offset)
                        .with_partition_max_bytes(50 << 20),
                ]),
        ])
}

/// Bytes of records in one answer.
async fn fetched(client: &mut Client, topic: &str) -> usize {
    let request = fetch(topic, 0);
    let answer = client
        .ask(
            1,
            11,
            |out, v| request.write(out, v),
            FetchResponseData::read,
        )
        .await;
    let records = answer.responses[0].partitions[0].records.clone();
    records.map_or(0, |records| records.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_answer_holds_what_fetch_max_bytes_allows_and_one_batch_in_any_case() {
    let one = batch(10, &[b'x'; 100]);
    for (fetch_bytes_max, batches) in [
        (2 * one.len(), 2),
        (2 * one.len() - 1, 1),
        (one.len() - 1, 1),
        (3 * one.len(), 3),
    ] {
        let node = with(Settings {
            fetch_bytes_max,
            ..Settings::default()
        })
        .await;
        let mut client = Client::connect(node.address).await;
        create(&mut client, "t", 1).await;
        for _ in 0..4 {
            produce(&mut client, "t", one.clone()).await;
        }
        let bytes = fetched(&mut client, "t").await;
        assert_eq!(bytes, batches * one.len(), "{fetch_bytes_max}");
        let told = setting(&mut client, "fetch.max.bytes").await;
        assert_eq!(told, fetch_bytes_max.to_string());
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_requests_are_read_before_the_first_is_answered_and_no_more() {
    let node = with(Settings {
        in_flight_max: 3,
        ..Settings::default()
    })
    .await;
    let mut looking = Client::connect(node.address).await;
    create(&mut looking, "empty", 1).await;
    create(&mut looking, "t", 1).await;
    let mut client = Client::connect(node.address).await;
    // The first waits for records that do not come yet; the others would be appended as they are read.
    let waiting = fetch("empty", 0).with_max_wait_ms(60_000).with_min_bytes(1);
    client.send(1, 11, |out, v| waiting.write(out, v)).await;
    let request = produce_request("t", batch(1, b"v"), -1);
    for _ in 0..5 {
        client.send(0, 9, |out, v| request.write(out, v)).await;
    }
    while latest(&mut looking, "t").await < 2 {}
    for _ in 0..50 {
        assert_eq!(latest(&mut looking, "t").await, 2);
    }
    produce(&mut looking, "empty", batch(1, b"v")).await;
    for correlation in 1..=6 {
        assert_eq!(client.receive().await.0, correlation);
    }
    assert_eq!(latest(&mut looking, "t").await, 5);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_at_a_time_is_enough_for_every_client() {
    let node = with(Settings {
        in_flight_max: 1,
        ..Settings::default()
    })
    .await;
    let mut client = Client::connect(node.address).await;
    create(&mut client, "t", 1).await;
    let request = produce_request("t", batch(1, b"v"), -1);
    let mut all = BytesMut::new();
    for correlation in 0..50 {
        all.extend_from_slice(&frame(0, 9, correlation, |out, v| request.write(out, v)));
    }
    client.send_raw(&all).await;
    for correlation in 0..50 {
        assert_eq!(client.receive().await.0, correlation);
    }
    assert_eq!(latest(&mut client, "t").await, 50);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closes_its_sending_side_is_answered_all_it_asked() {
    let node = Node::start().await;
    let mut looking = Client::connect(node.address).await;
    create(&mut looking, "t", 1).await;
    create(&mut looking, "empty", 1).await;
    let mut client = Client::connect(node.address).await;
    let request = produce_request("t", batch(1, b"v"), -1);
    for _ in 0..3 {
        client.send(0, 9, |out, v| request.write(out, v)).await;
    }
    let read = fetch("t", 0);
    client.send(1, 11, |out, v| read.write(out, v)).await;
    let waiting = fetch("empty", 0).with_max_wait_ms(300).with_min_bytes(1);
    client.send(1, 11, |out, v| waiting.write(out, v)).await;
    client.stream.shutdown().await.unwrap();
    for correlation in 1..=5 {
        let (answered, mut body) = client.receive().await;
        assert_eq!(answered, correlation);
        if correlation == 4 {
            let answer = FetchResponseData::read(&mut body, 11).unwrap();
            let records = answer.responses[0].partitions[0].records.clone().unwrap();
            assert_eq!(View::first(&records).unwrap().record_count(), 1);
        }
    }
    client.closed().await;
    node.stop().await;
}

fn join(member: &str) -> JoinGroupRequestData {
    JoinGroupRequestData::default()
        .with_group_id(string("g"))
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(600_000)
        .with_member_id(string(member))
        .with_protocol_type(string("consumer"))
        .with_protocols(vec![
            JoinGroupRequestProtocol::default()
                .with_name(string("range"))
                .with_metadata(Bytes::new()),
        ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_can_send_no_more_does_not_wait_for_the_others() {
    let node = Node::start().await;
    let mut first = Client::connect(node.address).await;
    let request = join("");
    first.send(11, 3, |out, v| request.write(out, v)).await;
    first.receive().await;
    // The second waits for the first to join again, which it does not.
    let mut second = Client::connect(node.address).await;
    second.send(11, 3, |out, v| request.write(out, v)).await;
    second.stream.shutdown().await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), second.closed())
        .await
        .expect("at once");
    node.stop().await;
}
