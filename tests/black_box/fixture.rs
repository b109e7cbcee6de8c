//! Data directories of earlier builds, and of builds to come.

use floe_tests::kafka::code;
use floe_tests::node::floe;
use floe_tests::{Node, fixture, tools};

const NEWER_FORMAT: i32 = 14;

/// Every packed directory in `tests/fixtures`.
fn fixtures() -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(fixture::folder())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no fixture");
    found
}

#[test]
fn data_of_earlier_builds_opens_with_everything_in_it() {
    for packed in fixtures() {
        let mut node = Node::prepare(&[("journal.bytes", "33MiB")]);
        fixture::unpack(&packed, node.data());
        let producer = std::fs::read_to_string(node.data().join("producer")).unwrap();
        std::fs::remove_file(node.data().join("producer")).unwrap();
        let (id, epoch) = producer.split_once(' ').unwrap();
        node.verify();
        node.restart();
        let said = node.log();
        assert!(said.contains("the broker is ready"), "{said}");
        // What the machine grants may be worth a warning; what was read from the directory is not.
        let worries = [" WARN floe_broker", " WARN floe_log", "ERROR"];
        let is_worry = |line: &&str| worries.iter().any(|worry| line.contains(worry));
        let worries: Vec<_> = said.lines().filter(is_worry).collect();
        assert!(worries.is_empty(), "{worries:#?}");
        let mut kafka = node.kafka();
        for partition in 0..fixture::PARTITIONS {
            assert_eq!(
                kafka.read_all("records", partition, 0),
                fixture::expected(partition)
            );
        }
        for n in 0..5 {
            let record = &kafka.read_all("large", 0, n)[0];
            assert_eq!(record.value.as_ref().unwrap(), &fixture::large(n as usize));
        }
        let retried = fixture::retried_batch(id.parse().unwrap(), epoch.parse().unwrap());
        assert_eq!(
            kafka.produce_bytes("producers", 0, retried),
            (code::NONE, 0),
            "a retry after all this time"
        );
        assert_eq!(
            kafka.committed(fixture::GROUP, "records"),
            fixture::POSITION
        );
        let line = "the same words again and again ".repeat(20);
        for codec in ["gzip", "snappy", "lz4", "zstd"] {
            let printed = tools::run(tools::kcat(&node.kafka_address()).args([
                "-C",
                "-t",
                &format!("codec-{codec}"),
                "-p",
                "0",
                "-o",
                "beginning",
                "-e",
                "-q",
            ]));
            assert_eq!(printed, format!("{line}\n{line}\n"), "{codec}");
        }
        assert_eq!(
            kafka.topic("deleted").error_code,
            code::UNKNOWN_TOPIC_OR_PARTITION
        );
        assert!(
            kafka.topic("records").partitions[0].leader_epoch >= 2,
            "one generation for each start"
        );
    }
}

#[test]
fn the_newest_packed_directory_has_the_format_that_is_written_today() {
    let format = |node: &Node| {
        let identity = std::fs::read(node.data().join("node.id")).unwrap();
        u16::from_le_bytes([identity[8], identity[9]])
    };
    let packed = Node::prepare(&[]);
    fixture::unpack(&fixtures().pop().unwrap(), packed.data());
    assert_eq!(format(&packed), format(&Node::start()));
}

#[test]
fn data_of_a_newer_format_is_refused_by_name_and_left_alone() {
    // Two copies; a newer release may have been cut down between the two.
    for newer in [&[0, 1][..], &[0], &[1]] {
        refuses_newer(newer);
    }
}

fn refuses_newer(copies: &[usize]) {
    let packed = fixtures().pop().unwrap();
    let mut node = Node::prepare(&[("journal.bytes", "33MiB")]);
    fixture::unpack(&packed, node.data());
    // Each of 4 KiB: magic 8, version u16, sector u16, CRC-32C of all but itself (`floe_log::format`).
    let path = node.data().join("node.id");
    let mut bytes = std::fs::read(&path).unwrap();
    for copy in copies {
        let copy = &mut bytes[copy * 4096..(copy + 1) * 4096];
        copy[8..10].copy_from_slice(&99_u16.to_le_bytes());
        let covered = [&copy[..12], &copy[16..]].concat();
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &covered) as u32;
        copy[12..16].copy_from_slice(&crc.to_le_bytes());
    }
    std::fs::write(&path, &bytes).unwrap();
    let verified = floe().arg("verify").arg(node.data()).output().unwrap();
    assert_eq!(verified.status.code(), Some(NEWER_FORMAT), "{verified:?}");
    node.spawn();
    assert_eq!(node.wait_end().code(), Some(NEWER_FORMAT), "{}", node.log());
    assert!(node.log().contains("99"), "{}", node.log());
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}
