//! Creating and deleting topics.

use floe_tests::batch::Record;
use floe_tests::kafka::code;
use floe_tests::{Node, http, tools, wait};

/// C20 of the cases.
#[test]
fn names_are_checked_as_kafka_does_and_a_collision_of_dot_and_underscore_is_refused() {
    let node = Node::start();
    let mut kafka = node.kafka();
    assert_eq!(kafka.try_create_topic("a.b", 1), code::NONE);
    assert_eq!(kafka.try_create_topic("a_b", 1), code::INVALID_TOPIC);
    assert_eq!(kafka.try_create_topic("a.b", 1), code::TOPIC_ALREADY_EXISTS);
    let longest = "n".repeat(249);
    assert_eq!(kafka.try_create_topic(&longest, 1), code::NONE);
    let too_long = "n".repeat(250);
    for name in [".", "..", "", "a*b", "a/b", "../up", too_long.as_str()] {
        assert_eq!(
            kafka.try_create_topic(name, 1),
            code::INVALID_TOPIC,
            "name '{name}'"
        );
    }
    let address = node.produce_address();
    for path in ["a*b", "..%2Fup", "a%2Fb", "%00", "a_b"] {
        let response = http::post(
            &address,
            &format!("/v1/topic/{path}/messages"),
            "application/json",
            b"1",
        );
        assert!(
            (400..500).contains(&response.status),
            "{path}: {}",
            response.status
        );
    }
    let mut names = kafka.topics();
    names.retain(|name| !name.starts_with("__"));
    names.sort();
    assert_eq!(names, ["a.b".to_owned(), longest]);
}

/// C17 and R26 of the cases.
#[test]
fn a_topic_made_again_shares_nothing_with_the_old_one() {
    let node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("again", 1);
    let old_id = kafka.topic("again").topic_id;
    let records: Vec<Record> = (0..10).map(|n| Record::value(format!("old {n}"))).collect();
    kafka.produce("again", 0, &records);
    assert_eq!(kafka.commit("reader", "again", 10), code::NONE);
    assert_eq!(kafka.committed("reader", "again"), 10);

    assert_eq!(kafka.delete_topic("again"), code::NONE);
    kafka.create_topic("again", 1);
    assert_ne!(kafka.topic("again").topic_id, old_id);
    assert_eq!(
        kafka.committed("reader", "again"),
        -1,
        "the old position is gone"
    );
    kafka.produce(
        "again",
        0,
        &(0..5)
            .map(|n| Record::value(format!("new {n}")))
            .collect::<Vec<_>>(),
    );

    let mut request = floe_tests::kafka::fetch_request("", 0, 0, 0);
    request.topics[0].topic_id = old_id;
    let answer = kafka.call(&request, 13);
    assert_eq!(
        answer.responses[0].partitions[0].error_code,
        code::UNKNOWN_TOPIC_ID,
        "fetch by the old id"
    );

    let printed = tools::run(tools::kcat(&node.kafka_address()).args([
        "-C",
        "-t",
        "again",
        "-o",
        "beginning",
        "-e",
        "-q",
    ]));
    let values: Vec<&str> = printed.lines().collect();
    assert_eq!(values, ["new 0", "new 1", "new 2", "new 3", "new 4"]);
}

/// C22 of the cases.
#[test]
fn all_topics_deleted_at_once_are_gone_with_their_files() {
    let mut node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("stays", 1);
    kafka.produce("stays", 0, &[Record::value("v".repeat(100_000))]);
    let before = segments(node.data());
    let names: Vec<String> = (0..30).map(|n| format!("many-{n}")).collect();
    for name in &names {
        kafka.create_topic(name, 2);
        kafka.produce(name, 1, &[Record::value("v".repeat(100_000))]);
    }
    wait::until("segments of the topics", || {
        (segments(node.data()) > before).then_some(())
    });
    let request = kacrab_protocol::generated::DeleteTopicsRequestData {
        topic_names: names.iter().map(floe_tests::kafka::text).collect(),
        timeout_ms: 30_000,
        ..Default::default()
    };
    let answer = kafka.call(&request, 5);
    assert!(
        answer
            .responses
            .iter()
            .all(|topic| topic.error_code == code::NONE),
        "{answer:?}"
    );
    assert!(kafka.topics().iter().all(|name| !name.starts_with("many-")));
    wait::until("the segments to go", || {
        (segments(node.data()) <= before.max(1)).then_some(())
    });
    assert!(node.is_alive());
    kafka.create_topic("many-0", 1);
    assert_eq!(kafka.produce("many-0", 0, &[Record::value("fresh")]), 0);
}

/// Segment files in a folder and below.
fn segments(folder: &std::path::Path) -> usize {
    // A folder may go while it is read.
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| {
            let path = entry.path();
            let is_segment = path.extension().is_some_and(|extension| extension == "seg");
            if path.is_dir() {
                segments(&path)
            } else {
                usize::from(is_segment)
            }
        })
        .sum()
}

/// R26 of the cases: no old offset or record appears in the new topic, while producers and readers go on.
#[test]
fn deleting_and_creating_under_load_mixes_nothing() {
    let node = Node::start();
    let mut kafka = node.kafka();
    for round in 0..8_u8 {
        kafka.create_topic("churn", 2);
        let mut producer = node.kafka();
        let writer = std::thread::spawn(move || {
            let mut sent = 0;
            // Ends when the topic is gone under it.
            while sent < 10_000 {
                let (error, _) = producer.produce_bytes(
                    "churn",
                    0,
                    floe_tests::batch::encode(
                        &[Record::value(format!("{round}"))],
                        floe_tests::batch::NO_PRODUCER,
                    ),
                );
                if error != code::NONE {
                    return sent;
                }
                sent += 1;
            }
            sent
        });
        wait::until("records of this round", || {
            (!kafka.read_all("churn", 0, 0).is_empty()).then_some(())
        });
        for record in kafka.read_all("churn", 0, 0) {
            assert_eq!(
                record.value.unwrap(),
                format!("{round}").into_bytes(),
                "a record of an older topic"
            );
        }
        assert_eq!(kafka.delete_topic("churn"), code::NONE);
        assert!(writer.join().unwrap() > 0);
    }
}

#[test]
fn a_setting_that_is_not_honoured_is_refused_by_name() {
    let node = Node::start();
    let mut kafka = node.kafka();
    for (name, value) in [
        ("cleanup.policy", "compact"),
        ("compression.type", "zstd"),
        ("durability", "replicated"),
        ("min.insync.replicas", "2"),
        ("no.such.setting", "1"),
    ] {
        let (error, words) = kafka.create_topic_with("set", 1, &[(name, value)]);
        assert_eq!(error, code::INVALID_CONFIG, "{name}={value}: {words}");
        assert!(words.contains(name), "{words}");
    }
    let (error, words) = kafka.create_topic_with(
        "set",
        1,
        &[("compression.type", "producer"), ("retention.ms", "60000")],
    );
    assert_eq!(error, code::NONE, "{words}");
}

#[test]
fn a_topic_without_settings_of_its_own_has_those_of_the_node() {
    let node = Node::start_with(&[
        ("log.segment.bytes", "1MiB"),
        ("log.retention.hours", "5"),
        ("log.retention.bytes", "7000000"),
        ("message.max.bytes", "200000"),
    ]);
    node.kafka().create_topic("plain", 1);
    let settings = &http::get(&node.discovery_address(), "/v1/topic/plain").json()["settings"];
    for (name, value) in [
        ("segment.bytes", "1048576"),
        ("retention.ms", "18000000"),
        ("retention.bytes", "7000000"),
        ("max.message.bytes", "200000"),
    ] {
        let shown = &settings[name];
        let shown = shown
            .as_str()
            .map_or_else(|| shown.to_string(), str::to_owned);
        assert_eq!(shown, value, "{name}");
    }
}
