//! What recovery says of every way a journal can end: the hard cases of the log's design, one by one.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::convert::Infallible;
use std::path::Path;

use common::{Node, batch, open, tp, values};
use floe_log::verify::{self, LogStarts};
use floe_log::{Step, Stream, Verdict};
use floe_model::{Incarnation, LeaderEpoch, Offset};
use floe_world::disk::{Disk, Failure, Simulated};
use floe_world::{OpenOptions, Pool};

const SECTOR: u64 = 4096;
const JOURNAL: &str = "/data/journal";

/// Ten durable batches, one a group; the lsn of the group of batch n is `first + n`.
fn ten(disk: &Simulated) -> (Node, u64, Incarnation) {
    let node = open(disk, 1);
    let held = node.topic(1);
    let first = node.log.groups() + 1;
    for number in 0..10 {
        node.append(&held, 0, &batch(number..number + 1, 100));
        node.steps();
    }
    let incarnation = held.incarnation();
    (node, first, incarnation)
}

fn is_damage(node: &Node) -> bool {
    matches!(node.recovered.verdict, Verdict::Damage { .. })
}

fn incarnation(node: &Node) -> Incarnation {
    node.log.partition(tp(1)).unwrap().incarnation()
}

/// The node again after its process has ended.
fn again(node: Node, disk: &Simulated, seed: u64) -> (Node, Simulated) {
    drop(node);
    let disk = disk.after_crash();
    (open(&disk, seed), disk)
}

/// What a sector held is put back as zeros: a lost write.
fn zero(disk: &Simulated, lsn: u64) {
    let options = OpenOptions {
        write: true,
        direct: true,
        ..OpenOptions::default()
    };
    let file = disk.open(Path::new(JOURNAL), options).unwrap();
    let mut zeros = Pool::new(4096).try_get(4096).unwrap();
    zeros.fill(0);
    file.write_at(&zeros, lsn * SECTOR).unwrap();
    file.sync_data().unwrap();
}

#[test]
fn a_process_that_ends_leaves_a_clean_log() {
    let disk = Simulated::new(1);
    let (node, _, before) = ten(&disk);
    let (node, _) = again(node, &disk, 2);
    assert_eq!(node.recovered.verdict, Verdict::Clean);
    assert_eq!(incarnation(&node), before);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 0), values(0..10, 100));
}

#[test]
fn a_group_cut_by_a_power_failure_is_torn_and_never_returns() {
    for seed in 0..40 {
        let disk = Simulated::new(seed);
        let (node, _, before) = ten(&disk);
        let held = node.log.partition(tp(1)).unwrap();
        node.append(&held, 0, &batch(10..11, 15_000));
        disk.cut_power_at(disk.operations() + 1);
        node.log.step_journal();
        assert!(node.seen.failed.lock().is_some());
        drop(node);
        let mut disk = disk.after_power_cut();
        let mut node = open(&disk, seed + 100);
        assert!(!is_damage(&node), "{seed}: {:?}", node.recovered.verdict);
        assert_eq!(incarnation(&node), before);
        let held = node.log.partition(tp(1)).unwrap();
        let end = held.end();
        assert!(end == Offset(10) || end == Offset(11));
        // Whatever was decided stays decided, also without another append (rule BootGroupFirst).
        for life in 0..3 {
            (node, disk) = again(node, &disk, seed + 200 + life);
            assert_eq!(node.log.partition(tp(1)).unwrap().end(), end);
        }
    }
}

#[test]
fn a_flipped_sector_of_a_flushed_group_is_damage_once_with_new_incarnations() {
    let disk = Simulated::new(3);
    let (node, first, before) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    disk.flip(Path::new(JOURNAL), (first + 4) * SECTOR + 200, 1)
        .unwrap();
    let node = open(&disk, 5);
    assert!(is_damage(&node));
    let after = incarnation(&node);
    assert_ne!(after, before);
    // What the later groups hold is kept, what the bad one held is named (rule BadIsDamage).
    let entry = &node.recovered.partitions[0];
    assert_eq!(entry.lost.len(), 1);
    assert_eq!(entry.lost[0].offsets, 4..5);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(held.durable_end(), Offset(10));
    assert_eq!(node.values(&held, 5), values(5..10, 100));
    let (node, _) = again(node, &disk, 6);
    assert!(
        !is_damage(&node),
        "damage is said once (rule DamageClosesWithCheckpoint)"
    );
    assert_eq!(incarnation(&node), after);
    assert_eq!(node.recovered.partitions[0].lost[0].offsets, 4..5);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 5), values(5..10, 100));
}

#[test]
fn a_flip_in_the_last_flushed_group_is_damage() {
    let disk = Simulated::new(4);
    let (node, first, before) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    disk.flip(Path::new(JOURNAL), (first + 9) * SECTOR + 100, 1)
        .unwrap();
    let node = open(&disk, 5);
    assert!(is_damage(&node));
    assert_ne!(incarnation(&node), before);
    assert_eq!(node.log.partition(tp(1)).unwrap().end(), Offset(9));
    let (node, _) = again(node, &disk, 6);
    assert!(
        !is_damage(&node),
        "the bad sector was wiped (rule WipeBadAhead)"
    );
}

#[test]
fn a_lost_write_below_a_later_group_is_damage() {
    let disk = Simulated::new(5);
    let (node, first, before) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    zero(&disk, first + 4);
    let node = open(&disk, 5);
    assert!(is_damage(&node), "rule GapIsDamage");
    assert_ne!(incarnation(&node), before);
    assert_eq!(node.recovered.partitions[0].lost[0].offsets, 4..5);
}

#[test]
fn a_rotten_sector_at_the_end_is_damage_once_and_then_wiped() {
    let disk = Simulated::new(6);
    let (node, first, _) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    disk.flip(Path::new(JOURNAL), (first + 10) * SECTOR + 100, 1)
        .unwrap();
    let node = open(&disk, 5);
    assert!(is_damage(&node));
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 0), values(0..10, 100));
    let (node, _) = again(node, &disk, 6);
    assert!(!is_damage(&node));
}

#[test]
fn a_rotten_sector_after_the_end_is_nothing() {
    let disk = Simulated::new(7);
    let (node, first, before) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    disk.flip(Path::new(JOURNAL), (first + 12) * SECTOR + 100, 1)
        .unwrap();
    let node = open(&disk, 5);
    assert!(!is_damage(&node));
    assert_eq!(incarnation(&node), before);
    // It was wiped: later groups go over it and are read back.
    let held = node.log.partition(tp(1)).unwrap();
    let opened = node
        .log
        .open_generation(&held, LeaderEpoch(1), Offset(10), bytes::Bytes::new());
    node.wait(opened).unwrap();
    for number in 10..20 {
        node.append(&held, 1, &batch(number..number + 1, 100));
        node.steps();
    }
    let (node, _) = again(node, &disk, 6);
    assert!(!is_damage(&node));
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 0), values(0..20, 100));
}

#[test]
fn a_flip_in_one_checkpoint_slot_costs_a_longer_replay_and_nothing_else() {
    for slot in 0..2 {
        let disk = Simulated::new(8);
        let (node, _, before) = ten(&disk);
        node.log.step_checkpoint();
        let held = node.log.partition(tp(1)).unwrap();
        node.append(&held, 0, &batch(10..11, 100));
        node.steps();
        drop(node);
        let disk = disk.after_crash();
        let path = format!("/data/checkpoint.{slot}");
        disk.flip(Path::new(&path), 20, 1).unwrap();
        let node = open(&disk, 5);
        assert!(!is_damage(&node), "{slot}");
        assert_eq!(incarnation(&node), before);
        let held = node.log.partition(tp(1)).unwrap();
        assert_eq!(node.values(&held, 0), values(0..11, 100));
        // The bad slot was rewritten: now the other one may go.
        drop(node);
        let disk = disk.after_crash();
        disk.flip(Path::new(&format!("/data/checkpoint.{}", 1 - slot)), 20, 1)
            .unwrap();
        let node = open(&disk, 6);
        assert!(!is_damage(&node), "{slot}");
        let held = node.log.partition(tp(1)).unwrap();
        assert_eq!(node.values(&held, 0), values(0..11, 100));
    }
}

#[test]
fn two_bad_slots_are_damage_of_the_whole_node_and_never_a_new_one() {
    let disk = Simulated::new(9);
    let (node, ..) = ten(&disk);
    let boot = node.recovered.boot;
    drop(node);
    let disk = disk.after_crash();
    for slot in 0..2 {
        disk.flip(Path::new(&format!("/data/checkpoint.{slot}")), 20, 1)
            .unwrap();
    }
    let node = open(&disk, 5);
    assert!(is_damage(&node) && !node.recovered.is_new);
    assert!(node.recovered.boot > boot);
    assert!(node.recovered.partitions.is_empty());
    // Nothing of the old life returns, and the new one works.
    let held = node.topic(2);
    node.append(&held, 0, &batch(0..1, 100));
    node.steps();
    let (node, _) = again(node, &disk, 6);
    assert!(!is_damage(&node));
    assert_eq!(node.recovered.partitions.len(), 1);
}

#[test]
fn an_identity_that_is_gone_beside_data_is_refused() {
    let disk = Simulated::new(10);
    let (node, ..) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    disk.remove_file(Path::new("/data/node.id")).unwrap();
    let refused = common::try_open(&disk, 5).err();
    assert!(matches!(
        refused,
        Some(floe_log::OpenError::NoIdentity { .. })
    ));
}

#[test]
fn a_journal_that_was_taken_or_cut_is_refused_and_nothing_is_touched() {
    let disk = Simulated::new(10);
    let (node, ..) = ten(&disk);
    drop(node);
    let disk = disk.after_crash();
    let path = Path::new("/data/journal");
    let whole = disk.open(path, OpenOptions::default()).unwrap();
    let expected = whole.len().unwrap();
    disk.remove_file(path).unwrap();
    let refused = |disk: &Simulated, bytes: u64| {
        let refused = common::try_open(disk, 5).err();
        let Some(floe_log::OpenError::JournalCut {
            found,
            expected: whole,
            ..
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!((found, whole), (bytes, expected));
    };
    refused(&disk, 0);
    assert!(!disk.exists(path));
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    let cut = disk.open(path, options).unwrap();
    // One sector less than it was made with.
    cut.allocate(expected - 4096).unwrap();
    refused(&disk, expected - 4096);
}

#[test]
fn one_copy_of_the_identity_is_enough_and_another_cluster_is_refused() {
    let disk = Simulated::new(11);
    let (node, ..) = ten(&disk);
    let cluster = node.recovered.cluster;
    drop(node);
    let disk = disk.after_crash();
    disk.flip(Path::new("/data/node.id"), 33, 1).unwrap();
    let node = open(&disk, 5);
    assert_eq!(node.recovered.cluster, cluster);
    drop(node);
    let other = floe_log::Config {
        cluster: Some([9; 16]),
        ..common::config()
    };
    let refused = common::try_open_with(&disk.after_crash(), 6, other, 16 << 20).err();
    assert!(matches!(
        refused,
        Some(floe_log::OpenError::OtherIdentity { .. })
    ));
}

#[test]
fn a_first_start_that_was_cut_at_any_point_is_begun_anew() {
    for operation in 1..40 {
        let disk = Simulated::new(operation);
        disk.cut_power_at(operation);
        let cut = common::try_open(&disk, 1);
        let is_cut = disk.is_cut();
        drop(cut);
        let disk = disk.after_power_cut();
        let node = open(&disk, 2);
        assert!(!is_damage(&node), "{operation}");
        let held = node.topic(1);
        node.append(&held, 0, &batch(0..1, 100));
        node.steps();
        assert_eq!(node.values(&held, 0), values(0..1, 100));
        if !is_cut {
            break;
        }
    }
}

#[test]
fn a_power_cut_at_any_operation_of_a_recovery_changes_nothing() {
    for operation in 1..30 {
        let disk = Simulated::new(operation + 100);
        let (node, first, _) = ten(&disk);
        drop(node);
        let disk = disk.after_crash();
        disk.flip(Path::new(JOURNAL), (first + 4) * SECTOR + 200, 1)
            .unwrap();
        disk.cut_power_at(disk.operations() + operation);
        drop(common::try_open(&disk, 3));
        let disk = disk.after_power_cut();
        let node = open(&disk, 4);
        assert_eq!(
            node.recovered.partitions[0].lost[0].offsets,
            4..5,
            "{operation}"
        );
        let held = node.log.partition(tp(1)).unwrap();
        assert_eq!(node.values(&held, 5), values(5..10, 100), "{operation}");
        let (node, _) = again(node, &disk, 5);
        assert!(!is_damage(&node), "{operation}");
    }
}

#[test]
fn a_power_cut_while_a_checkpoint_is_written_leaves_both_slots_whole() {
    let is_cut = |ahead: u64, seed: u64| {
        let disk = Simulated::new(seed);
        let node = open(&disk, 16);
        let held = node.topic(1);
        // Both slots hold something that a write in place would spoil.
        for number in 0..3 {
            node.log.step_checkpoint();
            node.append(&held, 0, &batch(number..number + 1, 100));
            node.steps();
        }
        let cut = disk.operations() + ahead;
        disk.cut_power_at(cut);
        node.log.step_checkpoint();
        if !disk.is_cut() {
            return false;
        }
        drop(node);
        let disk = disk.after_power_cut();
        let none = |_: &[Stream]| Ok::<_, Infallible>(LogStarts::new());
        let report = verify::verify(&disk, Path::new("/data"), none).unwrap();
        assert!(
            report.findings.is_empty(),
            "{ahead} {seed}: {:?}",
            report.findings
        );
        true
    };
    for seed in 0..20 {
        let cuts = (1..40).take_while(|ahead| is_cut(*ahead, seed)).count();
        assert!((1..39).contains(&cuts), "{cuts}");
    }
}

#[test]
fn a_run_that_was_never_acknowledged_stays_dead_when_a_later_life_writes_on_and_rolls() {
    let disk = Simulated::new(17);
    let node = open(&disk, 17);
    let held = node.topic(1);
    node.append(&held, 0, &batch(0..1, 150_000));
    node.steps();
    // Two runs that no pointer names, the second one with an offset that the next life gives to another record.
    node.append(&held, 0, &batch(1..2, 150_000));
    node.append(&held, 0, &batch(2..3, 150_000));
    while node.log.step_segments() == Step::Worked {}
    assert_eq!(held.durable_end(), Offset(1));

    let (node, disk) = again(node, &disk, 18);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(held.end(), Offset(1));
    held.set_roll(Some(400 << 10), None);
    node.append(&held, 0, &batch(1..3, 70_000));
    node.steps();
    node.append(&held, 0, &batch(3..4, 150_000));
    node.steps();
    assert_eq!(held.durable_end(), Offset(4));

    let (node, disk) = again(node, &disk, 19);
    let held = node.log.partition(tp(1)).unwrap();
    let acknowledged = [
        values(0..1, 150_000),
        values(1..3, 70_000),
        values(3..4, 150_000),
    ];
    assert_eq!(node.values(&held, 0), acknowledged.concat());
    drop(node);
    let none = |_: &[Stream]| Ok::<_, Infallible>(LogStarts::new());
    let report = verify::verify(&disk.after_crash(), Path::new("/data"), none).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_group_that_is_read_though_its_flush_failed_survives_a_power_loss_once_the_node_has_spoken() {
    let mut survivors = 0;
    for seed in 0..20 {
        let disk = Simulated::new(seed);
        let node = open(&disk, 1);
        let held = node.topic(1);
        node.append(&held, 0, &batch(0..1, 100));
        disk.fail_flush_at(disk.flushes() + 1, Failure::Device);
        node.steps();
        assert!(node.seen.failed.lock().is_some());
        drop(node);

        let disk = disk.after_crash();
        let node = open(&disk, 2);
        let end = node.log.partition(tp(1)).unwrap().durable_end();
        survivors += end.0;
        drop(node);

        let node = open(&disk.after_power_cut(), 3);
        let held = node.log.partition(tp(1)).unwrap();
        assert_eq!(held.durable_end(), end, "{seed}");
        assert_eq!(node.values(&held, 0), values(0..end.0, 100), "{seed}");
        assert!(!is_damage(&node), "{seed}");
    }
    assert!((1..20).contains(&survivors), "{survivors}");
}
