//! An encoded checkpoint, byte by byte.

use super::*;

fn body() -> Body {
    let generation = GenerationEntry {
        epoch: LeaderEpoch(2),
        start: 3,
        end: 9,
        synced: 7,
        file_base: 3,
        next_block: 4,
        lost: vec![(4, 5)],
        descriptor: Bytes::from_static(b"who"),
        last: Some(6),
        tail: Bytes::from_static(b"tail"),
    };
    let partition = TopicPartition {
        topic: TopicId(*b"0123456789abcdef"),
        partition: PartitionIndex(1),
    };
    Body {
        partitions: vec![PartitionEntry {
            local: 1,
            partition,
            incarnation: 5,
            fence: LeaderEpoch(2),
            is_forgotten: false,
            has_left_over: false,
            generations: vec![generation],
            producers: Some((7, Bytes::from_static(b"ids"))),
        }],
        streams: vec![Stream {
            group: 0,
            vote: Vote {
                term: 1,
                node: 2,
                incarnation: 3,
            },
            snapshot: Some(Snapshot {
                index: 4,
                term: 1,
                data: Bytes::from_static(b"state"),
            }),
            entries: vec![CatalogEntry {
                index: 5,
                term: 1,
                data: Bytes::from_static(b"x"),
            }],
        }],
    }
}

fn encode(body: &Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in &body.partitions {
        let tails: Vec<_> = entry
            .generations
            .iter()
            .map(|g| vec![g.tail.clone()])
            .collect();
        entry.encode(&tails, &mut bytes);
    }
    for stream in &body.streams {
        encode_stream(stream, &mut bytes);
    }
    bytes
}

#[test]
fn a_number_that_nothing_follows_is_refused() {
    let held = SlotHeader {
        seq: u64::MAX - 1,
        x: u64::MAX / 2,
        boot: u32::MAX - 1,
        ..SlotHeader::default()
    };
    let read = |header: SlotHeader| {
        let mut bytes = vec![0; SLOT_HEADER];
        header.encode(&mut bytes);
        SlotHeader::decode(&bytes)
    };
    assert_eq!(read(held), Ok(held));
    let (seq, x, boot) = (u64::MAX, u64::MAX / 2 + 1, u32::MAX);
    for header in [
        SlotHeader { seq, ..held },
        SlotHeader { x, ..held },
        SlotHeader { boot, ..held },
    ] {
        assert!(read(header).is_err(), "{header:?}");
    }
}

#[test]
fn a_body_is_laid_out_as_drawn() {
    let bytes = encode(&body());
    assert_eq!(&bytes[..4], b"\x01\0\0\0");
    assert_eq!(
        &bytes[20..40],
        b"\x01\0\0\0\x05\0\0\0\0\0\0\0\x02\0\0\0\x02\0\x01\0"
    );
    assert_eq!(
        &bytes[40..60],
        b"\x02\0\0\0\x03\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0"
    );
    assert_eq!(
        &bytes[76..92],
        b"\x04\0\0\0\x04\0\0\0\x01\0\x03\0\x06\0\0\0"
    );
    assert_eq!(&bytes[108..115], b"whotail");
    assert_eq!(&bytes[115..128], b"\x07\0\0\0\0\0\0\0\x03\0ids");
    let header = SlotHeader {
        partitions: 1,
        streams: 1,
        body_crc: crc(&[&bytes]),
        body_bytes: bytes.len() as u64,
        ..SlotHeader::default()
    };
    assert_eq!(Body::decode(&header, &Bytes::from(bytes)), Ok(body()));
}

#[test]
fn a_header_is_laid_out_as_drawn() {
    let header = SlotHeader {
        version: VERSION,
        scrub: true,
        seq: 5,
        x: 6,
        boot: 7,
        body_crc: 8,
        body_bytes: 9,
        partitions: 10,
        streams: 11,
    };
    let mut bytes = [1; BLOCK];
    header.encode(&mut bytes);
    assert_eq!(&bytes[..12], b"FloeChkp\x02\0\x01\0");
    assert_eq!(
        &bytes[16..36],
        b"\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x07\0\0\0"
    );
    assert_eq!(
        &bytes[36..56],
        b"\x08\0\0\0\x09\0\0\0\0\0\0\0\x0a\0\0\0\x0b\0\0\0"
    );
    assert_eq!(SlotHeader::decode(&bytes), Ok(header));
    bytes[30] ^= 1;
    assert_eq!(
        SlotHeader::decode(&bytes),
        Err(FormatError::Checksum("checkpoint header"))
    );
}

#[test]
fn a_body_of_version_1_has_no_checksum_of_the_last_batch() {
    let mut bytes = encode(&body());
    drop(bytes.drain(88..92));
    let header = SlotHeader {
        version: 1,
        partitions: 1,
        streams: 1,
        body_crc: crc(&[&bytes]),
        body_bytes: bytes.len() as u64,
        ..SlotHeader::default()
    };
    let mut expected = body();
    expected.partitions[0].generations[0].last = None;
    assert_eq!(Body::decode(&header, &Bytes::from(bytes)), Ok(expected));
}

#[test]
fn a_body_cut_short_is_refused_without_panic() {
    let bytes = encode(&body());
    for cut in 0..bytes.len() {
        let part = Bytes::copy_from_slice(&bytes[..cut]);
        let header = SlotHeader {
            partitions: 1,
            streams: 1,
            body_crc: crc(&[&part]),
            ..SlotHeader::default()
        };
        assert!(Body::decode(&header, &part).is_err(), "{cut}");
    }
}
