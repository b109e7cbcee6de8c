//! A data directory as a release leaves it behind, packed: `cargo xtask fixture NAME` writes it, a test opens it ever
//! after. It holds what the formats can hold: every codec, keys, headers and nulls, several generations, positions,
//! producers, records in segments and records that only the journal has.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::batch::{self, Producer, Record};
use crate::kafka::code;
use crate::{Node, http, tools};

/// Partitions of the topic `records`.
pub const PARTITIONS: i32 = 3;
/// The group with a position.
pub const GROUP: &str = "readers";
/// Its position in partition 0.
pub const POSITION: i64 = 7;

/// Where fixtures lie.
pub fn folder() -> PathBuf {
    tools::root().join("tests/fixtures")
}

/// What a partition of `records` holds.
pub fn expected(partition: i32) -> Vec<Record> {
    (0..20)
        .map(|n| {
            let mut record =
                Record::value(format!("{partition}/{n}")).at(1_700_000_000_000 + n * 10);
            record.offset = n;
            match n % 4 {
                0 => record.key = None,
                1 => record.key = Some(Vec::new()),
                2 => record = record.keyed(format!("key {n}")),
                _ => record.value = None,
            }
            if n % 5 == 0 {
                record.headers = vec![
                    ("h".to_owned(), None),
                    ("h".to_owned(), Some(b"2".to_vec())),
                ];
            }
            record
        })
        .collect()
}

/// Values of the topic `large`, each longer than what the journal carries itself.
pub fn large(n: usize) -> Vec<u8> {
    vec![b'a' + n as u8; 100_000]
}

/// The producer whose last batch is remembered: its id is printed into the fixture's `producer` file.
pub fn retried_batch(id: i64, epoch: i16) -> Vec<u8> {
    batch::encode(
        &[Record::value("once").at(5)],
        Producer {
            id,
            epoch,
            sequence: 0,
        },
    )
}

/// Fills a node, kills it, and packs its directory.
///
/// # Panics
/// When anything of it fails.
pub fn write(name: &str) {
    let mut node = Node::start_with(&[("journal.bytes", "33MiB")]);
    let mut kafka = node.kafka();
    kafka.create_topic("records", PARTITIONS);
    kafka.create_topic("large", 1);
    kafka.create_topic("producers", 1);
    kafka.create_topic("deleted", 1);
    kafka.produce("deleted", 0, &[Record::value("gone")]);
    for partition in 0..PARTITIONS {
        kafka.produce("records", partition, &expected(partition)[..10]);
    }
    assert_eq!(kafka.delete_topic("deleted"), code::NONE);
    assert!(node.stop().success());
    node.restart();
    let mut kafka = node.kafka();
    for partition in 0..PARTITIONS {
        for record in &expected(partition)[10..] {
            kafka.produce("records", partition, std::slice::from_ref(record));
        }
    }
    for n in 0..5 {
        kafka.produce("large", 0, &[Record::value(large(n)).at(1)]);
    }
    let (id, epoch) = kafka.producer_id();
    assert_eq!(
        kafka.produce_bytes("producers", 0, retried_batch(id, epoch)),
        (code::NONE, 0)
    );
    assert_eq!(kafka.commit(GROUP, "records", POSITION), code::NONE);
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let topic = format!("codec-{codec}");
        kafka.create_topic(&topic, 1);
        let line = "the same words again and again ".repeat(20);
        tools::run_with_input(
            tools::kcat(&node.kafka_address()).args(["-P", "-t", &topic, "-p", "0", "-z", codec]),
            format!("{line}\n{line}\n").as_bytes(),
        );
    }
    let path = "/v1/consumer/register?consumerId=c&group=http-readers&topic=records&onNewGroup=startFromEarliest";
    http::request(&node.consume_address(), "PUT", path, &[], b"").expect(200);
    node.kill();
    std::fs::write(node.data().join("producer"), format!("{id} {epoch}")).unwrap();
    let packed = folder().join(format!("{name}.tar.gz"));
    std::fs::create_dir_all(folder()).unwrap();
    tools::run(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--sparse", "-czf"])
            .arg(&packed)
            .arg("-C")
            .arg(node.data())
            .arg("."),
    );
    eprintln!(
        "{}: {} bytes",
        packed.display(),
        std::fs::metadata(&packed).unwrap().len()
    );
}

/// Unpacks a fixture.
///
/// # Panics
/// When it cannot be unpacked.
pub fn unpack(packed: &Path, into: &Path) {
    std::fs::create_dir_all(into).unwrap();
    tools::run(
        Command::new("tar")
            .arg("-xzf")
            .arg(packed)
            .arg("-C")
            .arg(into),
    );
}
