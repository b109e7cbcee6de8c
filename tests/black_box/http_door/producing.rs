//! Producing and plain reads.

use floe_tests::batch::Record;
use floe_tests::{Node, http};

use super::{Consumer, JSON, NDJSON, number, produce};

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
