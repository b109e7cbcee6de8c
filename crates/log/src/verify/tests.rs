//! A directory made by hand from the layouts: one partition with a run in a segment, a tail in the checkpoint, and
//! batches in the journal.

use std::convert::Infallible;

use bytes::Bytes;
use floe_model::{PartitionIndex, TopicId};
use floe_world::disk::Simulated;

use super::*;
use crate::format::batch::{self, tests::example};
use crate::format::checkpoint::{GenerationEntry, PartitionEntry, SLOT_HEADER, SlotHeader};
use crate::format::crc;
use crate::format::record::Record;
use crate::format::sector::{GroupWriter, SECTOR, Seed};
use crate::format::segment::{FileHeader, RUN_HEADER, RunHeader, write_table};

const DIR: &str = "/node";
const EPOCH: LeaderEpoch = LeaderEpoch(3);
const IDENTITY: Identity = Identity {
    is_founder: false,
    cluster: [7; 16],
    node: 1,
    ring_sectors: 64,
    journal_id: 99,
};

fn name() -> TopicPartition {
    TopicPartition {
        topic: TopicId([1; 16]),
        partition: PartitionIndex(2),
    }
}

fn segment_path() -> PathBuf {
    Path::new(DIR)
        .join(name().topic.to_string())
        .join("2/3-0.seg")
}

fn put(disk: &Simulated, path: &Path, offset: u64, bytes: &[u8]) {
    let options = OpenOptions {
        write: true,
        create_new: !disk.exists(path),
        ..OpenOptions::default()
    };
    let file = disk.open(path, options).unwrap();
    file.write_at(bytes, offset).unwrap();
}

/// A batch of one record at `base`.
fn one(base: u64) -> Vec<u8> {
    let mut bytes = example(1, 30, 5);
    batch::stamp(&mut bytes, Offset(base), EPOCH);
    bytes
}

/// Offsets 0 and 1 as a run of one block.
fn segment(disk: &Simulated) {
    let header = FileHeader {
        partition: name(),
        epoch: EPOCH,
        base: 0,
        journal_id: IDENTITY.journal_id,
        descriptor: Vec::new(),
    };
    let mut block = vec![0; BLOCK];
    header.encode(&mut block);
    put(disk, &segment_path(), 0, &block);
    let batches = [one(0), one(1)].concat();
    let mut table = Vec::new();
    write_table(&batches, |_, crc| table.extend(crc));
    let mut header = RunHeader {
        crc: 0,
        base: 0,
        batches: 2,
        bytes: batches.len() as u32,
        blocks: 1,
        last_delta: 1,
        max_timestamp: 5,
    };
    header.crc = header.checksum(name(), 1, &table);
    let mut run = vec![0; RUN_HEADER];
    header.encode(&mut run);
    run.extend(batches);
    run.extend(table);
    run.resize(BLOCK, 0);
    put(disk, &segment_path(), BLOCK as u64, &run);
}

/// Both slots: 0 and 1 are in the segment, 2 is the tail; replay begins at sector 0 or 1.
fn slots(disk: &Simulated) {
    for slot in 0..2_u64 {
        let tail = Bytes::from(one(2));
        let entry = PartitionEntry {
            local: 0,
            partition: name(),
            incarnation: 5,
            fence: EPOCH,
            is_forgotten: false,
            has_left_over: false,
            generations: vec![GenerationEntry {
                epoch: EPOCH,
                start: 0,
                end: 3,
                synced: 2,
                file_base: 0,
                next_block: 2,
                lost: Vec::new(),
                descriptor: Bytes::new(),
                last: None,
                tail: tail.clone(),
            }],
            producers: None,
        };
        let mut body = Vec::new();
        entry.encode(&[vec![tail]], &mut body);
        let header = SlotHeader {
            seq: slot + 1,
            x: slot,
            boot: 1,
            body_crc: crc(&[&body]),
            body_bytes: body.len() as u64,
            partitions: 1,
            ..SlotHeader::default()
        };
        let mut bytes = vec![0; SLOT_HEADER];
        header.encode(&mut bytes);
        bytes.extend(body);
        put(
            disk,
            &Path::new(DIR).join(format!("checkpoint.{slot}")),
            0,
            &bytes,
        );
    }
}

/// One group at `lsn`; `known` is its own number.
fn group(disk: &Simulated, lsn: u64, records: &[Record<'_>]) {
    let mut staging = vec![0; SECTOR];
    let mut writer = GroupWriter::new(&mut staging);
    for record in records {
        record.encode(0, |bytes| writer.put(bytes));
    }
    let seed = Seed::new(IDENTITY.journal_id);
    writer.finish(lsn, 1, lsn, lsn.saturating_sub(1), seed);
    put(
        disk,
        &Path::new(DIR).join("journal"),
        lsn * SECTOR as u64,
        &staging,
    );
}

fn node() -> Simulated {
    let disk = Simulated::new(1);
    disk.create_dir_all(segment_path().parent().unwrap())
        .unwrap();
    let mut identity = vec![0; 2 * BLOCK];
    IDENTITY.encode(&mut identity);
    IDENTITY.encode(&mut identity[BLOCK..]);
    put(&disk, &Path::new(DIR).join("node.id"), 0, &identity);
    put(
        &disk,
        &Path::new(DIR).join("journal"),
        63 * SECTOR as u64,
        &[0; SECTOR],
    );
    segment(&disk);
    slots(&disk);
    group(&disk, 0, &[Record::Fence(EPOCH)]);
    group(&disk, 1, &[Record::Batch(&one(3)), Record::Batch(&one(4))]);
    group(&disk, 2, &[Record::Batch(&one(5))]);
    disk
}

fn check(disk: &Simulated) -> Report {
    check_from(disk, 0)
}

fn try_check(disk: &Simulated) -> Result<Report, VerifyError> {
    verify(disk, Path::new(DIR), |_| {
        Ok::<_, Infallible>(LogStarts::new())
    })
}

/// With this log start in the catalog.
fn check_from(disk: &Simulated, log_start: u64) -> Report {
    let log_starts = LogStarts::from([(name(), Offset(log_start))]);
    verify(disk, Path::new(DIR), |_| Ok::<_, Infallible>(log_starts)).unwrap()
}

#[test]
fn a_whole_directory_is_whole() {
    let report = check(&node());
    assert_eq!(
        report.condition(),
        Condition::Whole,
        "{:?}",
        report.findings
    );
    assert_eq!((report.cluster, report.node), ([7; 16], NodeId(1)));
    assert_eq!(
        (
            report.journal.from,
            report.journal.end,
            report.journal.groups
        ),
        (0, 3, 3)
    );
    let partition = &report.partitions[0];
    assert_eq!((partition.partition, partition.fence), (name(), EPOCH));
    let generation = &partition.generations[0];
    assert_eq!((generation.end, generation.synced), (Offset(6), Offset(2)));
    assert_eq!(
        (generation.files, generation.runs, generation.batches),
        (1, 1, 6)
    );
    assert!(report.unnamed.is_empty());
}

#[test]
fn a_group_that_was_cut_is_a_torn_tail() {
    let disk = node();
    let mut staging = vec![0; 2 * SECTOR];
    let mut writer = GroupWriter::new(&mut staging);
    writer.put(&[0; SECTOR]);
    writer.finish(3, 1, 3, 2, Seed::new(IDENTITY.journal_id));
    // Its second sector reached the disk, its first did not.
    put(
        &disk,
        &Path::new(DIR).join("journal"),
        4 * SECTOR as u64,
        &staging[SECTOR..],
    );
    assert_eq!(check(&disk).condition(), Condition::TornTail);
}

#[test]
fn a_flip_in_a_run_names_its_offsets() {
    let disk = node();
    disk.flip(&segment_path(), BLOCK as u64 + 150, 1).unwrap();
    let report = check(&disk);
    assert_eq!(report.condition(), Condition::Damage);
    let finding = &report.findings[0];
    assert_eq!(
        (finding.partition, finding.offsets.clone()),
        (Some(name()), Some(0..2))
    );
    assert!(finding.to_string().contains("3-0.seg"), "{finding}");
    let lost = &report.partitions[0].generations[0].lost;
    assert_eq!((lost.len(), &lost[0]), (1, &(0..2)));
}

#[test]
fn a_flip_in_the_journal_is_damage_and_says_which_offsets_jump() {
    let disk = node();
    disk.flip(&Path::new(DIR).join("journal"), SECTOR as u64 + 100, 1)
        .unwrap();
    let report = check(&disk);
    assert_eq!(report.condition(), Condition::Damage);
    let lost = report
        .findings
        .iter()
        .find_map(|finding| finding.offsets.clone());
    assert_eq!(lost, Some(3..5), "{:?}", report.findings);
}

#[test]
fn a_group_that_a_later_one_knew_flushed_is_damage() {
    let disk = node();
    put(
        &disk,
        &Path::new(DIR).join("journal"),
        SECTOR as u64,
        &[0; SECTOR],
    );
    let report = check(&disk);
    assert_eq!(report.condition(), Condition::Damage);
    assert!(
        report.findings[0].what.contains("missing"),
        "{:?}",
        report.findings
    );
}

#[test]
fn a_bad_slot_is_found_and_the_other_one_serves() {
    let disk = node();
    disk.flip(
        &Path::new(DIR).join("checkpoint.1"),
        SLOT_HEADER as u64 + 3,
        1,
    )
    .unwrap();
    let report = check(&disk);
    assert_eq!(report.condition(), Condition::Damage);
    assert_eq!(report.partitions[0].generations[0].end, Offset(6));
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.offsets.is_none())
    );
}

#[test]
fn a_missing_segment_and_one_that_nobody_names_are_told_apart() {
    let disk = node();
    disk.rename(&segment_path(), &segment_path().with_file_name("3-9.seg"))
        .unwrap();
    let report = check(&disk);
    assert_eq!(report.findings[0].offsets, Some(0..2));
    assert_eq!(report.unnamed, [segment_path().with_file_name("3-9.seg")]);
}

#[test]
fn a_segment_that_lies_below_the_log_start_whole_is_not_missed() {
    let disk = node();
    disk.remove_file(&segment_path()).unwrap();
    let report = check_from(&disk, 2);
    let findings = &report.findings;
    assert_eq!(report.condition(), Condition::Whole, "{findings:?}");
    let generation = &report.partitions[0].generations[0];
    assert_eq!((generation.start, generation.files), (Offset(2), 0));
}

#[test]
fn a_missing_segment_costs_what_lies_at_or_above_the_log_start() {
    for log_start in [0, 1] {
        let disk = node();
        disk.remove_file(&segment_path()).unwrap();
        let report = check_from(&disk, log_start);
        assert_eq!(report.condition(), Condition::Damage);
        assert_eq!(report.findings[0].offsets, Some(log_start..2));
    }
}

#[test]
fn a_segment_below_the_log_start_that_is_there_is_checked() {
    let disk = node();
    disk.flip(&segment_path(), BLOCK as u64 + 150, 1).unwrap();
    assert_eq!(check_from(&disk, 2).condition(), Condition::Damage);
}

#[test]
fn a_catalog_that_cannot_be_read_is_damage() {
    let disk = node();
    let report = verify(&disk, Path::new(DIR), |_| Err("entry 3 is no command")).unwrap();
    assert_eq!(report.condition(), Condition::Damage);
    let finding = report.findings[0].to_string();
    assert!(finding.contains("entry 3 is no command"), "{finding}");
}

#[test]
fn the_catalog_is_found_as_checkpoint_and_journal_tell_it() {
    let disk = node();
    let entry = |index, data| Record::Catalog {
        group: 1,
        index,
        term: 1,
        data,
    };
    group(&disk, 3, &[entry(1, b"a"), entry(2, b"b"), entry(2, b"c")]);
    let mut found = Vec::new();
    let report = verify(&disk, Path::new(DIR), |streams| {
        found = streams.to_vec();
        Ok::<_, Infallible>(LogStarts::new())
    });
    assert_eq!(report.unwrap().streams, [(1, 2)]);
    let entries: Vec<_> = found[0]
        .entries
        .iter()
        .map(|entry| &entry.data[..])
        .collect();
    assert_eq!(entries, [b"a", b"c"]);
}

#[test]
fn a_directory_in_use_or_without_identity_is_refused() {
    let disk = node();
    put(&disk, &Path::new(DIR).join("node.lock"), 0, b"");
    let held = disk.lock(&Path::new(DIR).join("node.lock")).unwrap();
    let refused = try_check(&disk).unwrap_err();
    assert!(matches!(refused, VerifyError::InUse { .. }));
    drop(held);
    put(&disk, &Path::new(DIR).join("node.id"), 0, &[0; 2 * BLOCK]);
    let refused = try_check(&disk).unwrap_err();
    assert!(matches!(refused, VerifyError::NoIdentity { .. }));
}

#[test]
fn foreign_bytes_never_panic() {
    for seed in 0..300_u64 {
        let disk = node();
        let files = disk.files();
        let (path, len) = &files[(seed % files.len() as u64) as usize];
        for step in 0..40 {
            let at = (seed * 7919 + step * 104_729) % len.min(&(12 << 10));
            disk.flip(path, at, (seed * 31 + step) as u8 | 1).unwrap();
        }
        drop(try_check(&disk));
    }
}
