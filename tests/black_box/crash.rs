//! Killed nodes. The full run, a million records and 20 kills over a minute, is `cargo xtask crash`.

use floe_tests::batch::{self, NO_PRODUCER, Record};
use floe_tests::crash::{self, Plan};
use floe_tests::kafka::{code, produce_request};
use floe_tests::{Node, tools};

#[test]
fn a_node_killed_six_times_under_an_idempotent_producer_loses_repeats_and_reorders_nothing() {
    let plan = Plan {
        records: 120_000,
        keys: 1_000,
        partitions: 12,
        seconds: 10,
        kills: 6,
        seed: 20_261_130,
    };
    assert_eq!(crash::run(plan).acknowledged, plan.records);
}

/// R2 of the faults: the process dies with answers under way; what was answered stays.
#[test]
fn every_answer_that_was_given_before_a_kill_holds() {
    let mut node = Node::start();
    node.kafka().create_topic("answers", 4);
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); 4];
    for round in 0..5 {
        let address = node.kafka_address();
        let writers: Vec<_> = (0..4)
            .map(|partition| {
                let address = address.clone();
                std::thread::spawn(move || {
                    let mut kafka = floe_tests::kafka::Connection::open(&address);
                    let mut answered = Vec::new();
                    for n in 0.. {
                        let value = format!("{round}-{n}");
                        let batch = batch::encode(&[Record::value(value.as_bytes())], NO_PRODUCER);
                        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                            let answer =
                                kafka.call(&produce_request("answers", partition, batch), 9);
                            let answer = &answer.responses[0].partition_responses[0];
                            (answer.error_code, answer.base_offset)
                        }));
                        match sent {
                            Ok((code::NONE, offset)) => answered.push((offset, value)),
                            _ => break,
                        }
                    }
                    answered
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(150));
        node.kill();
        let answered: Vec<Vec<(i64, String)>> = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect();
        node.restart();
        let mut kafka = node.kafka();
        for (partition, answered) in answered.iter().enumerate() {
            assert!(
                !answered.is_empty(),
                "round {round}, partition {partition}: nothing was answered"
            );
            let records = kafka.read_all("answers", partition as i32, 0);
            let values: Vec<String> = records
                .iter()
                .map(|record| String::from_utf8(record.value.clone().unwrap()).unwrap())
                .collect();
            for (offset, value) in answered {
                assert_eq!(
                    values.get(*offset as usize),
                    Some(value),
                    "partition {partition} offset {offset}"
                );
            }
            // Nothing that could be read ever changes.
            assert!(
                values.starts_with(&expected[partition]),
                "partition {partition} changed below its old end"
            );
            expected[partition] = values;
        }
    }
    node.kill();
    node.verify();
}

#[test]
fn verify_names_a_flipped_byte() {
    let mut node = Node::start();
    let mut kafka = node.kafka();
    kafka.create_topic("flip", 1);
    for n in 0..20 {
        kafka.produce("flip", 0, &[Record::value(vec![b'a' + n; 200_000])]);
    }
    assert!(node.stop().success());
    node.verify();
    let damaged = largest_segment(node.data());
    let mut bytes = std::fs::read(&damaged).unwrap();
    let at = bytes
        .iter()
        .position(|byte| *byte == b'k')
        .expect("the eleventh record lies in the segment")
        + 1000;
    bytes[at] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let output = tools::output(floe_tests::node::floe().arg("verify").arg(node.data()));
    assert!(!output.status.success());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(
        said.contains("flip")
            || said.contains(&damaged.file_name().unwrap().to_string_lossy().into_owned()),
        "{said}"
    );
    // The rest is served, the damaged range fails by name.
    node.restart();
    let mut kafka = node.kafka();
    assert_eq!(
        kafka.fetch("flip", 0, 0, 0).records[0]
            .value
            .as_ref()
            .unwrap()
            .len(),
        200_000
    );
}

fn largest_segment(folder: &std::path::Path) -> std::path::PathBuf {
    fn walk(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if !path.to_string_lossy().contains("journal") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, &mut found);
    found
        .into_iter()
        .max_by_key(|path| std::fs::metadata(path).unwrap().len())
        .expect("a segment")
}
