//! Consumer groups through the Kafka door.

use floe_tests::batch::Record;
use floe_tests::kafka::{Connection, code, text};
use floe_tests::{Node, http, tools};
use kacrab_protocol::generated as wire;

/// Joins as the only member and takes everything; gives member and generation.
fn join(kafka: &mut Connection, group: &str) -> (String, i32) {
    let mut request = wire::JoinGroupRequestData {
        group_id: text(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: text("consumer"),
        protocols: vec![wire::join_group_request::JoinGroupRequestProtocol {
            name: text("range"),
            metadata: bytes::Bytes::from_static(b"opaque"),
            ..Default::default()
        }],
        ..Default::default()
    };
    let asked = kafka.call(&request, 5);
    assert_eq!(asked.error_code, code::MEMBER_ID_REQUIRED);
    request.member_id = asked.member_id;
    let joined = kafka.call(&request, 5);
    assert_eq!(joined.error_code, code::NONE);
    let sync = wire::SyncGroupRequestData {
        group_id: text(group),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: vec![wire::sync_group_request::SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: bytes::Bytes::from_static(b"all"),
            ..Default::default()
        }],
        ..Default::default()
    };
    let synced = kafka.call(&sync, 3);
    assert_eq!(
        (synced.error_code, &synced.assignment[..]),
        (code::NONE, &b"all"[..])
    );
    (joined.member_id.as_str().to_owned(), joined.generation_id)
}

/// C15 of the cases.
#[test]
fn a_commit_without_member_is_taken_by_an_empty_group_only() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("commits", 1);
    assert_eq!(
        kafka.commit("g", "commits", 3),
        code::NONE,
        "the group is empty"
    );
    assert_eq!(kafka.committed("g", "commits"), 3);

    let (member, generation) = join(&mut kafka, "g");
    assert_eq!(kafka.commit("g", "commits", 4), code::UNKNOWN_MEMBER_ID);
    assert_eq!(
        kafka.commit_as("g", "commits", 4, &member, generation - 1),
        code::ILLEGAL_GENERATION
    );
    assert_eq!(
        kafka.commit_as("g", "commits", 4, "stranger", generation),
        code::UNKNOWN_MEMBER_ID
    );
    assert_eq!(
        kafka.committed("g", "commits"),
        3,
        "no refused commit moved it"
    );
    assert_eq!(
        kafka.commit_as("g", "commits", 4, &member, generation),
        code::NONE
    );
    assert_eq!(kafka.committed("g", "commits"), 4);
}

#[test]
fn positions_are_the_same_after_a_kill() {
    let mut node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("positions", 1);
    for offset in [0, 7, 5] {
        assert_eq!(kafka.commit("g", "positions", offset), code::NONE);
    }
    node.kill();
    node.restart();
    assert_eq!(node.kafka().committed("g", "positions"), 5);
}

/// C12 of the cases, with a real client.
#[test]
fn a_reader_that_took_one_record_goes_on_with_the_next_and_position_zero_is_record_zero() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("one", 1);
    kafka.produce(
        "one",
        0,
        &(0..3)
            .map(|n| Record::value(format!("{n}")))
            .collect::<Vec<_>>(),
    );
    let read_one = || {
        let printed =
            tools::run(tools::client("read_one.py").args([&node.kafka_address(), "one", "reader"]));
        printed.trim().to_owned()
    };
    assert_eq!(read_one(), "0");
    assert_eq!(read_one(), "1");
    assert_eq!(kafka.commit("reader", "one", 0), code::NONE);
    assert_eq!(read_one(), "0");
}

#[test]
fn one_group_id_is_one_kind_of_group() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("kinds", 1);
    join(&mut kafka, "kafka-group");
    let register = |group: &str| {
        let path = format!("/v1/consumer/register?consumerId=c&group={group}&topic=kinds");
        http::request(&node.consume_address(), "PUT", &path, &[], b"")
    };
    register("kafka-group").expect(409);
    register("http-group").expect(200);
    let request = wire::JoinGroupRequestData {
        group_id: text("http-group"),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: text("consumer"),
        protocols: vec![wire::join_group_request::JoinGroupRequestProtocol {
            name: text("range"),
            metadata: bytes::Bytes::new(),
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(
        kafka.call(&request, 3).error_code,
        code::INCONSISTENT_GROUP_PROTOCOL
    );
}
