//! What consumers are given.

use std::fmt::Write;
use std::time::{Duration, Instant};

use floe_tests::{Node, wait};
use serde_json::Value;

use super::{Consumer, NDJSON, flat, number, produce};

/// Scenario 3: many large records of one key, read until nothing is left.
#[test]
fn fifty_large_records_of_one_key_come_back_dense_and_in_order() {
    let node = Node::start_with(&[("log.segment.bytes", "16MiB")]);
    let mut seed = 1_u64;
    for n in 0..50 {
        // Digits of a generator do not compress, and stay JSON.
        let mut text = String::with_capacity(500 << 10);
        while text.len() < 500 << 10 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write!(text, "{seed:016x}").unwrap();
        }
        let body = format!("{{\"n\":{n},\"text\":\"{text}\"}}");
        let response = produce(
            &node,
            "large",
            "?partitionKey=one",
            "application/json",
            body.as_bytes(),
        )
        .expect(200);
        assert_eq!(response.text(), "OK");
        assert_eq!(response.header("floe-offset"), Some(n.to_string().as_str()));
    }
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=large&onNewGroup=startFromEarliest",
    );
    let values = consumer.collect(50);
    for (n, (partition, offset, value)) in values.iter().enumerate() {
        assert_eq!(
            (*partition, *offset, number(&value["n"])),
            (values[0].0, n as i64, n as i64)
        );
    }
    assert!(consumer.poll("").is_empty());
}

/// Scenario 5: three topics, concurrent producers, JSON polls.
#[test]
fn polls_over_three_topics_give_each_partition_in_order() {
    let node = Node::start();
    let topics = ["t1", "t2", "t3"];
    for topic in topics {
        node.kafka().create_topic(topic, 4);
    }
    std::thread::scope(|scope| {
        for topic in topics {
            let node = &node;
            scope.spawn(move || {
                for body in 0..20 {
                    let lines: Vec<String> = (0..10)
                        .map(|n| format!("{{\"id\":{}}}", body * 10 + n))
                        .collect();
                    let key = format!("?partitionKey={}", body % 7);
                    produce(node, topic, &key, NDJSON, lines.join("\n").as_bytes()).expect(200);
                }
            });
        }
    });
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=t1&topic=t2&topic=t3&onNewGroup=startFromEarliest",
    );
    let mut items = Vec::new();
    wait::until("600 values", || {
        items.extend(consumer.poll("&wait=1000"));
        (flat(&items).len() >= 600).then_some(())
    });
    for topic in topics {
        let of_topic: Vec<Value> = items
            .iter()
            .filter(|item| item["topic"] == topic)
            .cloned()
            .collect();
        let values = flat(&of_topic);
        assert_eq!(values.len(), 200, "{topic}");
        for partition in 0..4 {
            let offsets: Vec<i64> = values
                .iter()
                .filter(|value| value.0 == partition)
                .map(|value| value.1)
                .collect();
            assert_eq!(
                offsets,
                (0..offsets.len() as i64).collect::<Vec<_>>(),
                "{topic}-{partition}"
            );
        }
    }
}

/// Scenario 8: earliest and latest, fixed at registration.
#[test]
fn a_new_group_begins_at_earliest_or_at_what_was_latest_when_it_registered() {
    let node = Node::start();
    let send = |from: usize| {
        for n in from..from + 12 {
            let body = format!("{{\"n\":{n}}}");
            produce(
                &node,
                "fresh",
                &format!("?partitionKey={n}"),
                "application/json",
                body.as_bytes(),
            )
            .expect(200);
        }
    };
    send(0);
    let earliest = Consumer::register(
        &node,
        "e",
        "group=g1&topic=fresh&onNewGroup=startFromEarliest",
    );
    let latest = Consumer::register(
        &node,
        "l",
        "group=g2&topic=fresh&onNewGroup=startFromLatest",
    );
    assert_eq!(earliest.collect(12).len(), 12);
    // Produced before its first poll, after its registration.
    send(12);
    let numbers = |values: Vec<(i64, i64, Value)>| {
        let mut numbers: Vec<i64> = values
            .iter()
            .map(|(_, _, value)| number(&value["n"]))
            .collect();
        numbers.sort_unstable();
        numbers
    };
    let expected: Vec<i64> = (12..24).collect();
    assert_eq!(numbers(latest.collect(12)), expected);
    assert_eq!(numbers(earliest.collect(12)), expected);
}

/// C30 of the cases.
#[test]
fn the_first_poll_of_a_new_consumer_has_the_data() {
    let node = Node::start();
    produce(&node, "first", "?partitionKey=k", "application/json", b"{}").expect(200);
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=first&onNewGroup=startFromEarliest",
    );
    assert_eq!(flat(&consumer.poll("&wait=10000")).len(), 1, "with a wait");
    let other = Consumer::register(
        &node,
        "d",
        "group=h&topic=first&onNewGroup=startFromEarliest",
    );
    assert_eq!(flat(&other.poll("")).len(), 1, "without one");
}

#[test]
fn a_poll_waits_for_a_record_and_no_longer_than_asked() {
    let node = Node::start();
    node.kafka().create_topic("wait", 1);
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=wait&onNewGroup=startFromEarliest",
    );
    let started = Instant::now();
    assert!(consumer.poll("&wait=400").is_empty());
    assert!(
        (Duration::from_millis(300)..Duration::from_secs(5)).contains(&started.elapsed()),
        "{:?}",
        started.elapsed()
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            produce(&node, "wait", "", "application/json", b"{}").expect(200);
        });
        let started = Instant::now();
        assert_eq!(flat(&consumer.poll("&wait=30000")).len(), 1);
        assert!(started.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn values_that_are_no_json_are_marked_and_the_answer_stays_json() {
    let node = Node::start();
    node.kafka().create_topic("bytes", 1);
    for body in [&b"plain words"[..], b"\xff\xfe", b"{\"a\":1}"] {
        produce(&node, "bytes", "", "application/octet-stream", body).expect(200);
    }
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=bytes&onNewGroup=startFromEarliest",
    );
    let values = consumer.collect(3);
    assert_eq!(values[0].2["$text"], "plain words");
    assert_eq!(values[1].2["$base64"], "//4=");
    assert_eq!(values[2].2["a"], 1);
}
