//! The kill -9 loop: an idempotent producer of librdkafka's goes on while its node is killed again and again.
//!
//! What must hold in the end, for every run: each acknowledged record is there once, at the offset it was
//! acknowledged with; nothing is there twice; offsets are dense from zero; the records of a key are in the order they
//! were sent; `floe verify` finds nothing; the leader epoch has risen with every start.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Node, tools};

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Records in all.
    pub records: usize,
    /// Keys they go round.
    pub keys: usize,
    /// Partitions of the topic.
    pub partitions: usize,
    /// Time the producer takes, kills left out.
    pub seconds: u64,
    /// How often the node is killed; every fourth time again while it recovers.
    pub kills: usize,
    /// Decides the moments.
    pub seed: u64,
}

/// What a run saw.
#[derive(Debug)]
pub struct Seen {
    /// Records the producer had acknowledged.
    pub acknowledged: usize,
    /// Kills done while the node was not ready yet.
    pub during_recovery: usize,
    /// Longest time from a start to an answer.
    pub slowest_recovery: Duration,
}

const TOPIC: &str = "crash";

/// Runs the loop and checks everything.
///
/// # Panics
/// When anything that must hold does not.
pub fn run(plan: Plan) -> Seen {
    eprintln!("kill -9 loop: {plan:?}");
    let mut node = Node::start();
    node.kafka().create_topic(TOPIC, plan.partitions as i32);
    let first_epoch = node.kafka().topic(TOPIC).partitions[0].leader_epoch;
    let out = node.scratch().join("acknowledged");
    let numbers = [
        plan.records,
        plan.keys,
        plan.seconds as usize,
        plan.partitions,
    ]
    .map(|number| number.to_string());
    let mut producer = tools::client("paced.py")
        .args([&node.kafka_address(), TOPIC])
        .args(&numbers)
        .arg(&out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let mut chance = plan.seed;
    let mut random = |limit: u64| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % limit
    };
    let pause = plan.seconds * 1000 / plan.kills as u64;
    let mut seen = Seen {
        acknowledged: 0,
        during_recovery: 0,
        slowest_recovery: Duration::ZERO,
    };
    let mut starts = 1;
    while starts <= plan.kills {
        std::thread::sleep(Duration::from_millis(pause / 2 + random(pause.max(1))));
        node.kill();
        if starts % 4 == 0 && starts < plan.kills {
            node.spawn_and_kill_after(Duration::from_millis(random(60)));
            seen.during_recovery += 1;
            starts += 1;
        }
        let started = Instant::now();
        node.restart();
        seen.slowest_recovery = seen.slowest_recovery.max(started.elapsed());
        starts += 1;
    }
    let output = producer.wait().and_then(|status| {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut producer.stderr.take().unwrap(), &mut said)?;
        Ok((status, said))
    });
    let (status, said) = output.unwrap();
    assert!(status.success(), "the producer ended with {status}: {said}");

    let last_epoch = node.kafka().topic(TOPIC).partitions[0].leader_epoch;
    // A start that was killed early may not have got as far as opening a generation.
    let ready = plan.kills - seen.during_recovery;
    assert!(
        last_epoch - first_epoch >= ready as i32,
        "epoch {first_epoch} to {last_epoch} over {ready} full starts"
    );
    seen.acknowledged = check(&node, plan, &std::fs::read_to_string(out).unwrap());
    node.kill();
    node.verify();
    eprintln!("kill -9 loop: {seen:?}");
    seen
}

fn check(node: &Node, plan: Plan, acknowledged: &str) -> usize {
    let mut kafka = node.kafka();
    let mut values: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut next: HashMap<usize, usize> = HashMap::new();
    for partition in 0..plan.partitions {
        let records = kafka.read_all(TOPIC, partition as i32, 0);
        for (index, record) in records.iter().enumerate() {
            assert_eq!(
                record.offset, index as i64,
                "offsets of partition {partition} are not dense"
            );
            let value = String::from_utf8(record.value.clone().unwrap()).unwrap();
            let (key, count) = value.split_once(':').unwrap();
            let (key, count): (usize, usize) = (key.parse().unwrap(), count.parse().unwrap());
            assert_eq!(
                key % plan.partitions,
                partition,
                "{value} lies in partition {partition}"
            );
            // Every record was acknowledged, so the counts of a key run without a gap, a repeat or a step back.
            let expected = next.entry(key).or_default();
            assert_eq!(
                count, *expected,
                "order of key {key} at offset {index} of partition {partition}"
            );
            *expected += 1;
        }
        values.push(
            records
                .into_iter()
                .map(|record| record.value.unwrap())
                .collect(),
        );
    }
    let mut count = 0;
    for line in acknowledged.lines() {
        let numbers: Vec<usize> = line
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let (number, partition, offset) = (numbers[0], numbers[1], numbers[2]);
        let expected = format!("{}:{}", number % plan.keys, number / plan.keys);
        let found = values[partition]
            .get(offset)
            .map(|value| String::from_utf8_lossy(value).into_owned());
        assert_eq!(
            found.as_deref(),
            Some(expected.as_str()),
            "record {number}, acknowledged at {partition}/{offset}"
        );
        count += 1;
    }
    assert_eq!(count, plan.records, "acknowledged records");
    assert_eq!(
        values.iter().map(Vec::len).sum::<usize>(),
        plan.records,
        "records in the log"
    );
    count
}
