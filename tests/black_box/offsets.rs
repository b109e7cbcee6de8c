//! Offsets, times, waiting, epochs.

use std::time::{Duration, Instant};

use floe_tests::Node;
use floe_tests::batch::Record;
use floe_tests::kafka::{code, text};
use kacrab_protocol::generated as wire;

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;

/// C1 of the cases.
#[test]
fn an_offset_by_time_is_the_first_at_or_after_it_or_none() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("times", 1);
    for timestamp in [2, 4, 6, 8] {
        kafka.produce("times", 0, &[Record::value("v").at(timestamp)]);
    }
    let in_an_hour = 1_000 * 3_600 + 1_900_000_000_000;
    for (asked, offset, timestamp) in [
        (3, 1, 4),
        (5, 2, 6),
        (7, 3, 8),
        (9, -1, -1),
        (0, 0, 2),
        (2, 0, 2),
        (8, 3, 8),
        (in_an_hour, -1, -1),
    ] {
        let (error, found_timestamp, found, _) = kafka.list_offset("times", 0, asked);
        assert_eq!(
            (error, found, found_timestamp),
            (code::NONE, offset, timestamp),
            "asked for {asked}"
        );
    }
    assert_eq!(kafka.list_offset("times", 0, EARLIEST).2, 0);
    assert_eq!(kafka.list_offset("times", 0, LATEST).2, 4);
    let (error, timestamp, offset, _) = kafka.list_offset("times", 0, MAX_TIMESTAMP);
    assert_eq!((error, timestamp, offset), (code::NONE, 8, 3));
}

/// C2 of the cases.
#[test]
fn a_time_inside_a_batch_finds_its_record_also_when_times_go_back() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("inside", 2);
    let rising: Vec<Record> = (1..=100)
        .map(|n| Record::value(format!("{n}")).at(n))
        .collect();
    kafka.produce("inside", 0, &rising);
    for asked in [1, 2, 50, 99, 100] {
        assert_eq!(
            kafka.list_offset("inside", 0, asked).2,
            asked - 1,
            "asked for {asked}"
        );
    }
    let jumping: Vec<Record> = [5, 1, 9, 2, 7].map(|n| Record::value("v").at(n)).to_vec();
    kafka.produce("inside", 1, &jumping);
    for (asked, offset) in [(1, 0), (5, 0), (6, 2), (9, 2), (10, -1)] {
        assert_eq!(
            kafka.list_offset("inside", 1, asked).2,
            offset,
            "asked for {asked}"
        );
    }
}

/// C9 of the cases.
#[test]
fn a_fetch_of_an_idle_topic_waits_and_a_record_ends_the_wait() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("idle", 1);
    let started = Instant::now();
    let fetched = kafka.fetch("idle", 0, 0, 500);
    let waited = started.elapsed();
    assert!(fetched.records.is_empty());
    assert!(
        (Duration::from_millis(400)..Duration::from_secs(5)).contains(&waited),
        "{waited:?}"
    );

    let producer = node.kafka();
    let started = Instant::now();
    let writer = std::thread::spawn(move || {
        let mut producer = producer;
        std::thread::sleep(Duration::from_millis(200));
        producer.produce("idle", 0, &[Record::value("now")]);
    });
    let fetched = kafka.fetch("idle", 0, 0, 30_000);
    assert_eq!(fetched.records.len(), 1);
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    writer.join().unwrap();
}

#[test]
fn out_of_range_is_said_on_both_sides() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("range", 1);
    kafka.produce("range", 0, &[Record::value("v")]);
    assert_eq!(
        kafka.fetch("range", 0, 1, 0).error,
        code::NONE,
        "the end is in range"
    );
    assert_eq!(
        kafka.fetch("range", 0, 2, 0).error,
        code::OFFSET_OUT_OF_RANGE
    );
    assert_eq!(
        kafka.fetch("range", 1, 0, 0).error,
        code::UNKNOWN_TOPIC_OR_PARTITION
    );
}

#[test]
fn the_leader_epoch_rises_with_each_restart_and_old_epochs_have_ends() {
    let mut node = Node::start();
    node.kafka().create_topic("epochs", 1);
    let mut epochs = Vec::new();
    for round in 0..3 {
        let mut kafka = node.kafka();
        kafka.produce("epochs", 0, &[Record::value(format!("{round}"))]);
        epochs.push(kafka.topic("epochs").partitions[0].leader_epoch);
        if round % 2 == 0 {
            node.kill();
        } else {
            assert!(node.stop().success());
        }
        node.restart();
    }
    assert!(
        epochs.is_sorted_by(|earlier, later| earlier < later),
        "{epochs:?}"
    );
    let mut kafka = node.kafka();
    for (round, epoch) in epochs.iter().enumerate() {
        let request = wire::OffsetForLeaderEpochRequestData {
            replica_id: -1,
            topics: vec![
                wire::offset_for_leader_epoch_request::OffsetForLeaderTopic {
                    topic: text("epochs"),
                    partitions: vec![
                        wire::offset_for_leader_epoch_request::OffsetForLeaderPartition {
                            partition: 0,
                            current_leader_epoch: -1,
                            leader_epoch: *epoch,
                            ..Default::default()
                        },
                    ],
                    ..Default::default()
                },
            ],
            ..Default::default()
        };
        let answer = kafka.call(&request, 3);
        let end = &answer.topics[0].partitions[0];
        assert_eq!(
            (end.error_code, end.end_offset),
            (code::NONE, round as i64 + 1),
            "end of epoch {epoch}"
        );
    }
}
