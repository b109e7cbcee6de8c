//! What a record is, from one door to the other, and batches that are refused.

use floe_tests::batch::{self, NO_PRODUCER, Producer, Record};
use floe_tests::kafka::{code, produce_request};
use floe_tests::{Node, http};
use serde_json::{Value, json};

const RECORDS: &str = "application/vnd.floe.records+json";

/// Every combination of null, empty and bytes, and header names that repeat.
fn combinations() -> Vec<Record> {
    let kinds = [None, Some(Vec::new()), Some(b"x".to_vec())];
    let mut records = Vec::new();
    for key in &kinds {
        for value in &kinds {
            for header in &kinds {
                let headers = vec![
                    ("h".to_owned(), header.clone()),
                    ("h".to_owned(), Some(b"again".to_vec())),
                ];
                let offset = records.len() as i64;
                records.push(Record {
                    offset,
                    timestamp: 1_000,
                    key: key.clone(),
                    value: value.clone(),
                    headers,
                });
            }
        }
    }
    records
}

fn as_json(record: &Record) -> Value {
    let text = |bytes: &Option<Vec<u8>>| {
        bytes
            .as_ref()
            .map(|bytes| String::from_utf8(bytes.clone()).unwrap())
    };
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| json!({"key": name, "value": text(value)}))
        .collect();
    json!({
        "partition": 0, "offset": record.offset, "timestamp": record.timestamp,
        "key": text(&record.key), "value": text(&record.value), "headers": headers,
    })
}

/// C24 of the cases, in through Kafka.
#[test]
fn null_and_empty_stay_apart_from_kafka_to_both_doors() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("kinds", 1);
    let records = combinations();
    kafka.produce("kinds", 0, &records);
    assert_eq!(kafka.read_all("kinds", 0, 0), records);
    let read = http::get(
        &node.consume_address(),
        "/v1/topic/kinds/partitions/0/records",
    )
    .expect(200)
    .json();
    let expected: Vec<Value> = records.iter().map(as_json).collect();
    assert_eq!(read["records"], json!(expected));
}

/// C24 of the cases, in through HTTP.
#[test]
fn null_and_empty_stay_apart_from_http_to_both_doors() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("kinds", 1);
    let records = combinations();
    let mut body: Vec<Value> = records.iter().map(as_json).collect();
    for record in &mut body {
        record.as_object_mut().unwrap().remove("offset");
    }
    let body = serde_json::to_vec(&body).unwrap();
    http::post(
        &node.produce_address(),
        "/v1/topic/kinds/messages",
        RECORDS,
        &body,
    )
    .expect(200);
    assert_eq!(kafka.read_all("kinds", 0, 0), records);
    let read = http::get(
        &node.consume_address(),
        "/v1/topic/kinds/partitions/0/records",
    )
    .expect(200)
    .json();
    assert_eq!(
        read["records"],
        json!(records.iter().map(as_json).collect::<Vec<_>>())
    );
}

/// What a batch can be wrong in; none may enter the log, and the connection stays.
#[test]
fn a_batch_that_lies_is_refused_and_nothing_of_it_is_kept() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("lies", 1);
    kafka.produce("lies", 0, &[Record::value("first")]);
    let honest = batch::encode(&[Record::value("a"), Record::value("b")], NO_PRODUCER);
    let lie = |at: usize, bytes: &[u8]| {
        let mut batch = honest.clone();
        batch::patch(&mut batch, at, bytes);
        batch
    };
    let mut broken = honest.clone();
    *broken.last_mut().unwrap() ^= 1;
    let mut magic = honest.clone();
    magic[16] = 1;
    let cases: [(&str, Vec<u8>); 12] = [
        ("a flipped bit", broken),
        ("magic 1", magic),
        ("three records claimed", lie(57, &3_i32.to_be_bytes())),
        ("no records claimed", lie(57, &0_i32.to_be_bytes())),
        ("a negative count", lie(57, &(-1_i32).to_be_bytes())),
        ("the largest count", lie(57, &i32::MAX.to_be_bytes())),
        ("a last offset delta of 5", lie(23, &5_i32.to_be_bytes())),
        ("a control batch", lie(21, &0x20_i16.to_be_bytes())),
        ("an unknown codec", lie(21, &7_i16.to_be_bytes())),
        ("gzip that is none", lie(21, &1_i16.to_be_bytes())),
        ("a batch cut short", honest[..honest.len() - 3].to_vec()),
        ("bytes behind the batch", [&honest[..], &[0; 7]].concat()),
    ];
    for (what, bytes) in cases {
        let (error, base) = kafka.produce_bytes("lies", 0, bytes);
        assert!(error != code::NONE, "{what} was accepted at {base}");
        assert_eq!(base, -1, "{what}");
    }
    assert_eq!(kafka.produce("lies", 0, &[Record::value("second")]), 1);
    let values: Vec<_> = kafka
        .read_all("lies", 0, 0)
        .into_iter()
        .map(|record| record.value.unwrap())
        .collect();
    assert_eq!(values, [b"first".to_vec(), b"second".to_vec()]);
}

/// C26 of the cases, the sizes alone.
#[test]
fn a_batch_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    let node = Node::start();
    let mut kafka = node.kafka();
    let (error, words) = kafka.create_topic_with("sizes", 1, &[("max.message.bytes", "20000")]);
    assert_eq!(error, code::NONE, "{words}");
    let sized = |total: usize| {
        let mut value = total - batch::encode(&[Record::value("")], NO_PRODUCER).len();
        loop {
            let batch = batch::encode(&[Record::value(vec![b'x'; value])], NO_PRODUCER);
            if batch.len() == total {
                return batch;
            }
            value -= 1;
        }
    };
    let (error, _) = kafka.produce_bytes("sizes", 0, sized(20_000));
    assert_eq!(error, code::NONE, "exactly the limit");
    let (error, _) = kafka.produce_bytes("sizes", 0, sized(20_001));
    assert_eq!(error, code::MESSAGE_TOO_LARGE, "one more");
}

#[test]
fn a_retried_batch_is_answered_with_its_first_offset_also_after_a_kill() {
    let mut node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("retry", 1);
    let (id, epoch) = kafka.producer_id();
    let send = |kafka: &mut floe_tests::kafka::Connection, sequence: i32| {
        let producer = Producer {
            id,
            epoch,
            sequence,
        };
        let batch = batch::encode(
            &[Record::value(format!("{sequence}")), Record::value("+")],
            producer,
        );
        kafka.produce_bytes("retry", 0, batch)
    };
    for (index, sequence) in [0, 2, 4, 6, 8].into_iter().enumerate() {
        assert_eq!(send(&mut kafka, sequence), (code::NONE, 2 * index as i64));
    }
    assert_eq!(send(&mut kafka, 0), (code::NONE, 0), "the fifth last");
    assert_eq!(send(&mut kafka, 11).0, code::OUT_OF_ORDER_SEQUENCE, "a gap");
    node.kill();
    node.restart();
    let mut kafka = node.kafka();
    assert_eq!(
        send(&mut kafka, 8),
        (code::NONE, 8),
        "the last one, after a kill"
    );
    assert_eq!(
        send(&mut kafka, 10),
        (code::NONE, 10),
        "the next one, after a kill"
    );
    assert_eq!(kafka.read_all("retry", 0, 0).len(), 12);
}

#[test]
fn acks_zero_is_never_answered_and_answers_keep_the_order_of_requests() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("order", 1);
    let mut quiet = produce_request(
        "order",
        0,
        batch::encode(&[Record::value("quiet")], NO_PRODUCER),
    );
    quiet.acks = 0;
    kafka.send(&quiet, 9);
    for n in 0..50 {
        let batch = batch::encode(&[Record::value(format!("{n}"))], NO_PRODUCER);
        kafka.send(&produce_request("order", 0, batch), 9);
    }
    for n in 0..50 {
        let answer = kafka.receive::<kacrab_protocol::generated::ProduceRequestData>(9);
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(
            (partition.error_code, partition.base_offset),
            (code::NONE, n + 1)
        );
    }
}
