//! How consumers come and go, with their connections and with the node.

use std::time::{Duration, Instant};

use floe_tests::http::{self, Client};
use floe_tests::{Node, wait};

use super::{Consumer, JSON, flat, number, produce};

/// Scenario 6: a consumer is its id, not its connection.
#[test]
fn a_consumer_lives_across_connections_and_says_goodbye_once() {
    let node = Node::start();
    let query = "group=g&topic=stateless&onNewGroup=startFromEarliest";
    let consumer = Consumer::register(&node, "c", query);
    let old_name = format!("/v1/consumer/register?consumer_id=c&{query}");
    let again = http::request(&node.consume_address(), "PUT", &old_name, &[], b"").expect(200);
    assert!(
        again.text().contains("Already registered"),
        "{}",
        again.text()
    );
    consumer
        .try_register("group=other&topic=stateless")
        .expect(400);
    for n in 0..12 {
        produce(
            &node,
            "stateless",
            &format!("?partitionKey={n}"),
            "application/json",
            b"{}",
        )
        .expect(200);
    }
    let values = consumer.collect(12);
    let partitions: std::collections::BTreeSet<i64> = values.iter().map(|value| value.0).collect();
    assert!(partitions.len() > 1, "{partitions:?}");
    consumer.call("goodbye", "").expect(200);
    consumer.call("poll", "").expect(409);
    // Also where the connection is kept.
    let mut kept = Client::open(&node.consume_address());
    let path = format!("/v1/consumer/register?consumerId=d&{query}");
    kept.call("PUT", &path, &[], b"").expect(200);
    kept.call("POST", "/v1/consumer/goodbye?consumerId=d", &[], b"")
        .expect(200);
    kept.call("POST", "/v1/consumer/poll?consumerId=d", &[JSON], b"")
        .expect(409);
}

/// Scenario 10: developer mode keeps data over a restart; commit and goodbye have their answers.
#[test]
fn a_restart_keeps_what_a_group_has_read() {
    let mut node = Node::start();
    for n in 0..4 {
        produce(
            &node,
            "dev",
            "?partitionKey=k",
            "application/json",
            format!("{{\"n\":{n}}}").as_bytes(),
        )
        .expect(200);
    }
    {
        let consumer =
            Consumer::register(&node, "c", "group=g&topic=dev&onNewGroup=startFromEarliest");
        assert_eq!(consumer.collect(4).len(), 4);
        consumer.call("commit", "").expect(204);
        consumer.call("goodbye", "").expect(200);
    }
    assert!(node.stop().success());
    node.restart();
    produce(
        &node,
        "dev",
        "?partitionKey=k",
        "application/json",
        b"{\"n\":4}",
    )
    .expect(200);
    let consumer = Consumer::register(&node, "c", "group=g&topic=dev&onNewGroup=startFromEarliest");
    let values = consumer.collect(1);
    assert_eq!((values[0].1, number(&values[0].2["n"])), (4, 4));
    assert!(
        !node.log().to_lowercase().contains("error"),
        "{}",
        node.log()
    );
}

/// 10.3 l: what a consumer leaves is taken over in a bounded time.
#[test]
fn partitions_of_a_consumer_that_leaves_or_falls_silent_go_to_the_others() {
    let node = Node::start();
    node.kafka().create_topic("left", 4);
    let query = "group=g&topic=left&onNewGroup=startFromEarliest&sessionTimeout=2s";
    let stays = Consumer::register(&node, "stays", query);
    let leaves = Consumer::register(&node, "leaves", query);
    let mut sent = 0;
    let mut round = |stays: &Consumer<'_>| {
        for partition in 0..4 {
            let path = format!("?partition={partition}");
            produce(&node, "left", &path, "application/json", b"{}").expect(200);
        }
        sent += 4;
        let started = Instant::now();
        let mut got = std::collections::BTreeSet::new();
        wait::until_within(
            Duration::from_secs(15),
            "all partitions at the one that stays",
            || {
                got.extend(
                    flat(&stays.poll("&wait=200"))
                        .into_iter()
                        .map(|value| value.0),
                );
                (got.len() == 4).then_some(())
            },
        );
        started.elapsed()
    };
    // One that says goodbye.
    leaves.call("goodbye", "").expect(200);
    let taken = round(&stays);
    assert!(taken < Duration::from_secs(3), "{taken:?} after a goodbye");
    // One that falls silent with what it was given.
    let silent = Consumer::register(&node, "silent", query);
    wait::until("the silent one to hold something", || {
        drop(stays.poll(""));
        (silent.call("poll", "&wait=100").header("retry-after") != Some("5")).then_some(())
    });
    let taken = round(&stays);
    assert!(taken < Duration::from_secs(10), "{taken:?} after silence");
}

/// 10.3 m: a lost response is delivered again.
#[test]
fn a_chunk_whose_answer_was_lost_is_delivered_again() {
    let node = Node::start();
    node.kafka().create_topic("lost", 1);
    for n in 0..3 {
        produce(
            &node,
            "lost",
            "",
            "application/json",
            format!("{{\"n\":{n}}}").as_bytes(),
        )
        .expect(200);
    }
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=lost&onNewGroup=startFromEarliest",
    );
    // Asks, and is gone before the answer is taken.
    let mut gone = Client::open(&node.consume_address());
    let linger = rustix::net::sockopt::set_socket_linger(gone.stream(), Some(Duration::ZERO));
    linger.expect("a reset on close");
    gone.send(
        "POST",
        "/v1/consumer/poll?consumerId=c&wait=2000",
        &[JSON],
        b"",
    );
    wait::until("the answer to be on its way", || {
        let mut one = [0];
        gone.stream()
            .peek(&mut one)
            .ok()
            .filter(|length| *length > 0)
    });
    drop(gone);
    let values = consumer.collect(3);
    assert_eq!(
        values.iter().map(|value| value.1).collect::<Vec<_>>(),
        [0, 1, 2]
    );
}
