//! The HTTP door: producing, plain reads, consumers.

use std::fmt::Write;
use std::time::{Duration, Instant};

use floe_tests::batch::Record;
use floe_tests::http::{self, Client, Response};
use floe_tests::{Node, wait};
use serde_json::Value;

const NDJSON: &str = "application/x-ndjson";
const JSON: (&str, &str) = ("Accept", "application/json");

fn produce(node: &Node, topic: &str, query: &str, content_type: &str, body: &[u8]) -> Response {
    http::post(
        &node.produce_address(),
        &format!("/v1/topic/{topic}/messages{query}"),
        content_type,
        body,
    )
}

/// A consumer known by its id.
struct Consumer<'a> {
    node: &'a Node,
    id: &'a str,
}

impl<'a> Consumer<'a> {
    fn register(node: &'a Node, id: &'a str, query: &str) -> Self {
        let consumer = Self { node, id };
        consumer.try_register(query).expect(200);
        consumer
    }

    fn try_register(&self, query: &str) -> Response {
        let path = format!("/v1/consumer/register?consumerId={}&{query}", self.id);
        http::request(&self.node.consume_address(), "PUT", &path, &[], b"")
    }

    fn call(&self, verb: &str, query: &str) -> Response {
        let path = format!("/v1/consumer/{verb}?consumerId={}{query}", self.id);
        http::request(&self.node.consume_address(), "POST", &path, &[JSON], b"")
    }

    /// Items of one poll, on a connection of its own.
    fn poll(&self, query: &str) -> Vec<Value> {
        let response = self.call("poll", query);
        if response.status == 204 {
            return Vec::new();
        }
        response.expect(200).json().as_array().unwrap().clone()
    }

    /// Polls until so many values have come; gives (partition, offset, value), in the order they came.
    fn collect(&self, count: usize) -> Vec<(i64, i64, Value)> {
        let mut values = Vec::new();
        wait::until(&format!("{count} values at {}", self.id), || {
            values.extend(flat(&self.poll("&wait=1000")));
            (values.len() >= count).then_some(())
        });
        assert_eq!(values.len(), count, "{values:?}");
        values
    }
}

fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn flat(items: &[Value]) -> Vec<(i64, i64, Value)> {
    items
        .iter()
        .flat_map(|item| {
            let (partition, start) = (number(&item["partition"]), number(&item["startOffset"]));
            let values = item["values"].as_array().unwrap();
            values
                .iter()
                .enumerate()
                .map(move |(index, value)| (partition, start + index as i64, value.clone()))
        })
        .collect()
}

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

/// Scenario 4: NDJSON with blank lines.
#[test]
fn blank_lines_of_ndjson_are_no_records_and_the_rest_keeps_order_and_bytes() {
    let node = Node::start();
    for body in 0..3 {
        let lines = format!(
            "{{\"n\": {}}}\n\n{{\"n\": {}}}\r\n{{ \"n\":{} }}",
            body * 3,
            body * 3 + 1,
            body * 3 + 2
        );
        produce(&node, "lines", "?partitionKey=k", NDJSON, lines.as_bytes()).expect(200);
    }
    let consumer = Consumer::register(
        &node,
        "c",
        "group=g&topic=lines&onNewGroup=startFromEarliest",
    );
    let values = consumer.collect(9);
    let numbers: Vec<i64> = values
        .iter()
        .map(|(_, _, value)| number(&value["n"]))
        .collect();
    assert_eq!(numbers, (0..9).collect::<Vec<i64>>());
    let mut kafka = node.kafka();
    let partition = values[0].0 as i32;
    let third = kafka.read_all("lines", partition, 2)[0]
        .value
        .clone()
        .unwrap();
    assert_eq!(third, b"{ \"n\":2 }", "bytes as they came");
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

/// C10 of the cases.
#[test]
fn a_read_begins_at_the_offset_asked_for_also_inside_a_batch() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("inside", 1);
    let records = |from: i64, to: i64| -> Vec<Record> {
        (from..to)
            .map(|n| Record::value(format!("{{\"n\":{n}}}")).at(1_000 + n))
            .collect()
    };
    kafka.produce("inside", 0, &records(0, 32));
    kafka.produce("inside", 0, &records(32, 64));
    let read = |query: &str| {
        let path = format!("/v1/topic/inside/partitions/0/records?{query}");
        http::get(&node.consume_address(), &path).expect(200).json()
    };
    let answer = read("offset=45");
    assert_eq!(number(&answer["records"][0]["offset"]), 45);
    assert_eq!(number(&answer["records"][0]["value"]["n"]), 45);
    assert_eq!(answer["records"].as_array().unwrap().len(), 19);
    assert_eq!(number(&answer["nextOffset"]), 64);
    assert_eq!(number(&read("timestamp=1045")["records"][0]["offset"]), 45);
    assert_eq!(
        read("timestamp=999999999")["records"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let refused = http::get(
        &node.consume_address(),
        "/v1/topic/inside/partitions/0/records?offset=65",
    );
    assert!(
        (400..500).contains(&refused.status),
        "{}: {}",
        refused.status,
        refused.text()
    );
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
}

#[test]
fn produce_answers_ok_or_json_and_always_says_where() {
    let node = Node::start();
    let plain = produce(&node, "where", "?partitionKey=k", "text/plain", b"x").expect(200);
    assert_eq!(plain.text(), "OK");
    let partition = plain
        .header("floe-partition")
        .expect("the partition")
        .to_owned();
    assert_eq!(plain.header("floe-offset"), Some("0"));
    let path = "/v1/topic/where/messages?partitionKey=k";
    let headers = [JSON, ("Content-Type", NDJSON)];
    let asked = http::request(
        &node.produce_address(),
        "POST",
        path,
        &headers,
        b"1\n2\n3\n",
    )
    .expect(200);
    assert_eq!(asked.header("floe-partition"), Some(partition.as_str()));
    assert_eq!(asked.header("floe-offset"), Some("1"));
    assert!(asked.json().is_object(), "{}", asked.text());
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
