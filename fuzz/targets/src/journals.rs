//! What recovery reads: the journal's groups and records, checkpoints, segments, indexes, the identity, the catalog.
//!
//! Checksums are made right first, as damage that keeps its checksum is what reaches the code behind them.

use bytes::Bytes;
use floe_log::format::checkpoint::{Body, SlotHeader, encode_stream};
use floe_log::format::identity::Identity;
use floe_log::format::record::Records;
use floe_log::format::sector::{Found, GroupHeader, PAYLOAD, SECTOR, Seed, inspect};
use floe_log::format::segment::{FileHeader, RunHeader};
use floe_log::format::{BLOCK, batch, crc, index};
use floe_model::{PartitionIndex, TopicId, TopicPartition};

use crate::catalogs::catalog;
use crate::directories::directory;

const JOURNAL: u64 = 7;

/// The first byte chooses the layout, the rest is what the disk gives back: it is decoded or refused.
pub fn journal(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    match choice % 8 {
        0 => records(bytes),
        1 => sectors(bytes),
        2 => checkpoint(bytes),
        3 => run(bytes),
        4 => pages(bytes),
        5 => heads(bytes),
        6 => catalog(bytes),
        _ => directory(bytes),
    }
}

fn records(bytes: &[u8]) {
    let mut all = Records::new(bytes);
    let mut taken = 0;
    for (local, record) in all.by_ref() {
        let mut again = Vec::new();
        record.encode(local, |part| again.extend_from_slice(part));
        assert_eq!(
            again.len(),
            record.encoded_len(),
            "a record's length is what it says"
        );
        let mut reread = Records::new(&again);
        assert_eq!(
            reread.next(),
            Some((local, record)),
            "what is written is what is read"
        );
        taken += again.len();
    }
    assert!(
        taken <= bytes.len(),
        "records of {taken} bytes in {}",
        bytes.len()
    );
}

fn sectors(bytes: &[u8]) {
    if let Some(header) = GroupHeader::decode(bytes) {
        assert!(header.sectors > 0, "a group has a sector");
    }
    let mut sector = vec![0; SECTOR];
    let length = bytes.len().min(SECTOR);
    sector[..length].copy_from_slice(&bytes[..length]);
    let sum = crc(&[&JOURNAL.to_le_bytes(), &sector[4..]]);
    sector[..4].copy_from_slice(&sum.to_le_bytes());
    let stamp = match inspect(&sector, Seed::new(JOURNAL)) {
        Found::Good(stamp) => stamp,
        found => return assert_eq!(found, Found::Bad, "it is not empty"),
    };
    assert!(usize::from(stamp.used) <= PAYLOAD, "no more than there is");
    assert_eq!(
        inspect(&sector, Seed::new(JOURNAL + 1)),
        Found::Bad,
        "it is no other journal's"
    );
}

fn checkpoint(bytes: &[u8]) {
    if let Ok(header) = SlotHeader::decode(bytes) {
        drop(Body::decode(&header, &Bytes::copy_from_slice(bytes)));
    }
    let Some((counts, body)) = bytes.split_at_checked(2) else {
        return;
    };
    let header = SlotHeader {
        body_crc: crc(&[body]),
        body_bytes: body.len() as u64,
        partitions: u32::from(counts[0]),
        streams: u32::from(counts[1]),
        ..SlotHeader::default()
    };
    let Ok(body) = Body::decode(&header, &Bytes::copy_from_slice(body)) else {
        return;
    };
    let mut again = Vec::new();
    for entry in &body.partitions {
        let tails = entry.generations.iter().map(|g| vec![g.tail.clone()]);
        entry.encode(&tails.collect::<Vec<_>>(), &mut again);
    }
    for stream in &body.streams {
        encode_stream(stream, &mut again);
    }
    let header = SlotHeader {
        body_crc: crc(&[&again]),
        body_bytes: again.len() as u64,
        ..header
    };
    let reread = Body::decode(&header, &Bytes::from(again));
    assert_eq!(reread, Ok(body), "what is written is what is read");
}

fn run(bytes: &[u8]) {
    let partition = TopicPartition {
        topic: TopicId([1; 16]),
        partition: PartitionIndex(0),
    };
    let mut bytes = bytes.to_vec();
    let _refused_or_not = RunHeader::verify(&bytes, partition, 1, true);
    let Ok(header) = RunHeader::decode(&bytes) else {
        return;
    };
    let Some(table) = bytes.get(header.table()) else {
        return;
    };
    let sum = header.checksum(partition, 1, table);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    if let Ok(header) = RunHeader::verify(&bytes, partition, 1, false) {
        assert!(
            header.end() > header.base || header.base == u64::MAX,
            "a run has records"
        );
    }
}

fn pages(bytes: &[u8]) {
    let mut page = vec![0; BLOCK];
    let length = bytes.len().min(BLOCK - 4);
    page[4..4 + length].copy_from_slice(&bytes[..length]);
    let sum = crc(&[&page[4..]]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
    let mut entries = Vec::new();
    let _refused_or_not = index::decode_page(&page, &mut entries);
    assert!(
        entries.len() <= index::PAGE_ENTRIES,
        "a page has room for so many"
    );
    let _refused_or_not = index::decode_producers(bytes);
}

fn heads(bytes: &[u8]) {
    let _refused_or_not = FileHeader::decode(bytes);
    let _refused_or_not = Identity::decode(bytes);
    let mut end = 0;
    for (place, head) in batch::walk(bytes) {
        assert!(
            place.start == end && place.end <= bytes.len(),
            "batches lie one behind the other"
        );
        end = place.end;
        assert!(head.end() >= head.base(), "offsets do not go back");
        head.crc_holds();
    }
}
