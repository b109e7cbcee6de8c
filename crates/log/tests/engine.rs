//! One log on the simulated disk, stepped in one thread.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use bytes::Bytes;
use common::{batch, config, open, open_with, tp, values};
use floe_log::{
    AppendError, CatalogEntry, Durable, Outcome, ReadError, Snapshot, Step, Verdict, Vote,
};
use floe_model::{LeaderEpoch, Offset, Timestamp};
use floe_world::disk::{Disk, Simulated};

#[test]
fn small_appends_are_durable_after_one_group_and_read_by_reference() {
    let disk = Simulated::new(1);
    let node = open(&disk, 1);
    assert!(node.recovered.is_new);
    let held = node.topic(1);
    assert_eq!(node.append(&held, 0, &batch(0..3, 10)), 3);
    assert_eq!(node.append(&held, 0, &batch(3..4, 10)), 4);
    assert_eq!(held.durable_end(), Offset(0));
    assert_eq!(node.log.step_journal(), Step::Worked);
    assert_eq!(held.durable_end(), Offset(4));
    let durable = node.seen.durable.lock().clone();
    assert_eq!(
        durable,
        [Durable {
            partition: tp(1),
            epoch: LeaderEpoch(0),
            end: Offset(4)
        }]
    );
    assert_eq!(node.values(&held, 0), values(0..4, 10));
}

#[test]
fn what_was_durable_is_there_after_a_power_cut() {
    for seed in 0..50 {
        let disk = Simulated::new(seed);
        let node = open(&disk, seed);
        let (small, large) = (node.topic(1), node.topic(2));
        for number in 0..20 {
            node.append(&small, 0, &batch(number..number + 1, 100));
            node.append(&large, 0, &batch(number..number + 1, 30_000));
            node.steps();
            if number == 10 {
                assert_eq!(node.log.step_checkpoint(), Step::Worked);
            }
        }
        assert_eq!(
            (small.durable_end(), large.durable_end()),
            (Offset(20), Offset(20))
        );
        node.append(&small, 0, &batch(20..21, 100));
        disk.cut_power();
        drop(node);
        let node = open(&disk.after_power_cut(), seed + 1000);
        assert!(
            !matches!(node.recovered.verdict, Verdict::Damage { .. }),
            "{seed}"
        );
        assert_eq!(node.recovered.boot.0, 2);
        let (small, large) = (
            node.log.partition(tp(1)).unwrap(),
            node.log.partition(tp(2)).unwrap(),
        );
        assert_eq!(node.values(&small, 0), values(0..20, 100), "{seed}");
        assert_eq!(node.values(&large, 0), values(0..20, 30_000), "{seed}");
    }
}

#[test]
fn data_beyond_memory_is_read_back_from_segments() {
    let disk = Simulated::new(3);
    let node = open_with(&disk, 3, config(), 1 << 20);
    let held = node.topic(1);
    for number in 0..400 {
        node.append(&held, 0, &batch(number..number + 1, 20_000));
        node.steps();
    }
    assert_eq!(node.values(&held, 0), values(0..400, 20_000));
    let segments = node.log.segments(&held);
    assert!(segments.len() >= 8, "{segments:?}");
    assert!(segments.windows(2).all(|pair| pair[0].end == pair[1].base));
    node.log.close().unwrap();
    drop(node);
    let node = open_with(&disk.after_crash(), 4, config(), 1 << 20);
    assert_eq!(node.recovered.verdict, Verdict::Clean);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 0), values(0..400, 20_000));
    assert_eq!(node.values(&held, 399), values(399..400, 20_000));
}

#[test]
fn a_lost_index_is_rebuilt_from_run_headers() {
    let disk = Simulated::new(4);
    let node = open_with(&disk, 3, config(), 1 << 20);
    let held = node.topic(1);
    for number in 0..100 {
        node.append(&held, 0, &batch(number..number + 1, 20_000));
        node.steps();
    }
    node.log.close().unwrap();
    drop(node);
    let disk = disk.after_crash();
    for (path, _) in disk.files() {
        if path.extension().is_some_and(|kind| kind == "idx") {
            disk.remove_file(&path).unwrap();
        }
    }
    let node = open_with(&disk, 5, config(), 1 << 20);
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(node.values(&held, 0), values(0..100, 20_000));
}

#[test]
fn generations_follow_one_another_and_old_epochs_are_refused() {
    let disk = Simulated::new(5);
    let node = open(&disk, 5);
    let held = node.topic(1);
    node.append(&held, 0, &batch(0..2, 50));
    let end = node.wait(node.log.fence(&held, LeaderEpoch(1))).unwrap();
    assert_eq!(end, Offset(2));
    let refused = node.log.append(&held, LeaderEpoch(0), &batch(2..3, 50));
    assert!(matches!(
        refused,
        Err(AppendError::Fenced {
            fence: LeaderEpoch(1)
        })
    ));
    let opened = node
        .log
        .open_generation(&held, LeaderEpoch(1), end, Bytes::new());
    node.wait(opened).unwrap();
    node.append(&held, 1, &batch(2..4, 50));
    node.steps();
    assert_eq!(node.values(&held, 0), values(0..4, 50));
    node.log.close().unwrap();
    drop(node);
    let node = open(&disk.after_crash(), 6);
    let held = node.log.partition(tp(1)).unwrap();
    let epochs: Vec<_> = held
        .generations()
        .iter()
        .map(|held| (held.epoch.0, held.start.0, held.end.0))
        .collect();
    assert_eq!(epochs, [(0, 0, 2), (1, 2, 4)]);
    assert_eq!(held.generations()[0].descriptor, &b"who"[..]);
    assert_eq!(held.fence(), LeaderEpoch(1));
    assert_eq!(node.values(&held, 0), values(0..4, 50));
}

#[test]
fn a_truncation_holds_after_a_crash_also_of_what_a_segment_has() {
    for large in [100, 30_000] {
        let disk = Simulated::new(6);
        let node = open(&disk, 6);
        let held = node.topic(1);
        for number in 0..10 {
            node.append(&held, 0, &batch(number..number + 1, large));
            node.steps();
        }
        node.wait(node.log.truncate(&held, LeaderEpoch(0), Offset(6)))
            .unwrap();
        node.wait(
            node.log
                .open_generation(&held, LeaderEpoch(1), Offset(6), Bytes::new()),
        )
        .unwrap();
        node.append(&held, 1, &batch(6..7, large));
        node.steps();
        assert_eq!(node.values(&held, 0), values(0..7, large));
        drop(node);
        let node = open(&disk.after_crash(), 7);
        assert!(!matches!(node.recovered.verdict, Verdict::Damage { .. }));
        let held = node.log.partition(tp(1)).unwrap();
        assert_eq!(node.values(&held, 0), values(0..7, large));
    }
}

#[test]
fn producer_state_kept_after_a_checkpoint_is_in_the_next_one_though_nothing_was_appended() {
    let disk = Simulated::new(7);
    let node = open(&disk, 7);
    let held = node.topic(1);
    node.append(&held, 0, &batch(0..1, 100));
    node.steps();
    assert_eq!(node.log.step_checkpoint(), Step::Worked);
    let snapshot = Bytes::from_static(b"who wrote what");
    node.log.keep_producers(&held, Offset(1), snapshot.clone());
    node.log.close().unwrap();
    drop(node);
    let node = open(&disk.after_crash(), 8);
    let held = node.log.partition(tp(1)).unwrap();
    let kept = node.wait(node.log.producers(&held));
    assert_eq!(kept, Some((Offset(1), snapshot)));
}

#[test]
fn a_forgotten_partition_keeps_its_fence_and_loses_its_files() {
    let disk = Simulated::new(7);
    let node = open(&disk, 7);
    let held = node.topic(1);
    node.append(&held, 0, &batch(0..1, 30_000));
    node.steps();
    node.wait(node.log.forget(tp(1))).unwrap();
    node.steps();
    assert!(node.log.partition(tp(1)).is_none());
    assert!(
        !disk
            .files()
            .iter()
            .any(|(path, _)| path.to_string_lossy().contains("0101"))
    );
    drop(node);
    let node = open(&disk.after_crash(), 8);
    let entry = &node.recovered.partitions[0];
    assert_eq!((entry.fence, entry.generations.len()), (LeaderEpoch(1), 0));
    assert!(node.log.partition(tp(1)).is_none());
}

#[test]
fn streams_survive_with_votes_and_snapshots() {
    let disk = Simulated::new(8);
    let node = open(&disk, 8);
    let entry = |index| CatalogEntry {
        index,
        term: 1,
        data: Bytes::from(format!("entry {index}")),
    };
    let vote = Vote {
        term: 3,
        node: 1,
        incarnation: 9,
    };
    node.wait(node.log.catalog_append(0, (1..=5).map(entry).collect()))
        .unwrap();
    node.wait(node.log.vote(0, vote)).unwrap();
    let snapshot = Snapshot {
        index: 3,
        term: 1,
        data: Bytes::from(vec![7; 100_000]),
    };
    node.log.compact(0, snapshot.clone());
    node.log.step_checkpoint();
    node.wait(node.log.catalog_append(0, vec![entry(6)]))
        .unwrap();
    drop(node);
    let node = open(&disk.after_crash(), 9);
    let stream = &node.recovered.streams[0];
    assert_eq!(stream.vote, vote);
    assert_eq!(stream.snapshot, Some(snapshot));
    assert_eq!(stream.entries, (4..=6).map(entry).collect::<Vec<_>>());
}

#[test]
fn the_ring_is_recycled_behind_checkpoints_many_times_over() {
    let disk = Simulated::new(9);
    let node = open(&disk, 9);
    let held = node.topic(1);
    let mut number = 0;
    for _ in 0..40 {
        for _ in 0..400 {
            node.append(&held, 0, &batch(number..number + 1, 7_000));
            number += 1;
            node.log.step_journal();
        }
        node.steps();
        node.log.step_checkpoint();
    }
    assert_eq!(held.durable_end().0, number);
    assert!(node.log.groups() > 3 * 10_240 / 2);
    drop(node);
    let node = open(&disk.after_crash(), 10);
    assert!(!matches!(node.recovered.verdict, Verdict::Damage { .. }));
    let held = node.log.partition(tp(1)).unwrap();
    assert_eq!(
        node.values(&held, number - 100),
        values(number - 100..number, 7_000)
    );
}

#[test]
fn without_checkpoints_appends_are_refused_and_fences_still_go() {
    let disk = Simulated::new(10);
    let node = open_with(&disk, 10, config(), 64 << 20);
    let held = node.topic(1);
    let refused = (0..).find_map(|number| {
        let result = node
            .log
            .append(&held, LeaderEpoch(0), &batch(number..number + 1, 12_000));
        node.log.step_journal();
        result.err()
    });
    assert!(matches!(
        refused,
        Some(AppendError::Full(floe_log::Full::Journal))
    ));
    node.wait(node.log.fence(&held, LeaderEpoch(4))).unwrap();
    assert_eq!(held.fence(), LeaderEpoch(4));
}

#[test]
fn a_failed_flush_ends_the_right_to_answer() {
    let disk = Simulated::new(11);
    let node = open(&disk, 11);
    let held = node.topic(1);
    node.append(&held, 0, &batch(0..1, 100));
    disk.fail_at(disk.operations() + 1, floe_world::disk::Failure::Device);
    node.log.step_journal();
    assert!(node.seen.failed.lock().is_some());
    assert_eq!(held.durable_end(), Offset(0));
    assert!(matches!(
        node.log.append(&held, LeaderEpoch(0), &batch(1..2, 10)),
        Err(AppendError::Poisoned)
    ));
    assert!(node.wait(node.log.fence(&held, LeaderEpoch(4))).is_err());
}

#[test]
fn records_are_found_by_time_in_memory_and_on_disk() {
    let disk = Simulated::new(12);
    let node = open_with(&disk, 12, config(), 1 << 20);
    let held = node.topic(1);
    for number in 0..100 {
        node.append(&held, 0, &batch(number * 3..number * 3 + 3, 7_000));
        node.steps();
    }
    let end = held.durable_end();
    for (at, offset) in [
        (0, 0),
        (1, 1),
        (10, 1),
        (11, 2),
        (15, 2),
        (1500, 150),
        (2985, 299),
        (2990, 299),
    ] {
        let found = node
            .wait(node.log.offset_for_time(&held, Timestamp(at), end))
            .unwrap();
        assert_eq!(
            found.map(|found| found.offset),
            Some(Offset(offset)),
            "{at}"
        );
    }
    assert_eq!(
        node.wait(node.log.offset_for_time(&held, Timestamp(2991), end))
            .unwrap(),
        None
    );
    let last = node
        .wait(node.log.max_timestamp(&held, end))
        .unwrap()
        .unwrap();
    assert_eq!(
        (last.offset, last.timestamp),
        (Offset(299), Timestamp(2990))
    );
}

#[test]
fn whole_segments_below_an_offset_are_removed() {
    let disk = Simulated::new(13);
    let node = open_with(&disk, 13, config(), 1 << 20);
    let held = node.topic(1);
    for number in 0..200 {
        node.append(&held, 0, &batch(number..number + 1, 20_000));
        node.steps();
    }
    let before = node.log.segments(&held);
    let cut = before[2].base;
    node.log.delete_below(&held, Offset(cut.0 + 1));
    node.steps();
    let after = node.log.segments(&held);
    assert_eq!(after[0].base, cut);
    assert_eq!(after[..], before[2..]);
    assert_eq!(node.values(&held, cut.0), values(cut.0..200, 20_000));
    assert!(matches!(
        node.read(&held, 0, 1000),
        Err(ReadError::OutOfRange { .. })
    ));
}

#[test]
fn a_flip_in_a_segment_fails_for_that_range_only() {
    let disk = Simulated::new(14);
    let node = open_with(&disk, 14, config(), 1 << 20);
    let held = node.topic(1);
    for number in 0..50 {
        node.append(&held, 0, &batch(number..number + 1, 20_000));
        node.steps();
    }
    node.log.close().unwrap();
    drop(node);
    let disk = disk.after_crash();
    let (path, _) = disk
        .files()
        .into_iter()
        .find(|(path, _)| path.ends_with("0-0.seg"))
        .unwrap();
    disk.flip(&path, 4096 * 3 + 100, 1).unwrap();
    let node = open_with(&disk, 15, config(), 1 << 20);
    let held = node.log.partition(tp(1)).unwrap();
    let Err(ReadError::Lost { offsets }) = node.read(&held, 0, 1000) else {
        panic!()
    };
    assert!(offsets.start == 0 && offsets.end < 10, "{offsets:?}");
    assert_eq!(
        node.values(&held, offsets.end),
        values(offsets.end..50, 20_000)
    );
}

#[test]
fn a_full_disk_refuses_appends_until_there_is_room() {
    let disk = Simulated::new(15);
    let node = open(&disk, 15);
    let held = node.topic(1);
    disk.set_capacity(disk.files().iter().map(|(_, len)| len).sum::<u64>() + (300 << 10));
    let mut accepted = 0;
    let refused = (0..100).find_map(|number| {
        let result = node
            .log
            .append(&held, LeaderEpoch(0), &batch(number..number + 1, 30_000));
        for _ in 0..5 {
            node.log.step_journal();
            node.log.step_segments();
        }
        accepted += u64::from(result.is_ok());
        result.err()
    });
    assert!(
        matches!(refused, Some(AppendError::Full(floe_log::Full::Disk))),
        "{refused:?}"
    );
    assert!(node.seen.failed.lock().is_none());
    disk.set_capacity(1 << 40);
    node.steps();
    node.steps();
    assert_eq!(held.durable_end().0, accepted);
    node.append(&held, 0, &batch(accepted..accepted + 1, 30_000));
    node.steps();
    assert_eq!(node.values(&held, 0), values(0..accepted + 1, 30_000));
}

#[test]
fn readers_that_keep_their_answers_do_not_keep_others_from_appending() {
    let disk = Simulated::new(16);
    let node = open_with(&disk, 16, config(), 4 << 20);
    let held = node.topic(1);
    let mut kept = Vec::new();
    for number in 0..400 {
        node.append(&held, 0, &batch(number..number + 1, 20_000));
        node.steps();
        // The answers to readers that never take them, as far as memory for reads goes.
        match node
            .log
            .read(&held, Offset(number), held.durable_end(), 100_000, true)
        {
            Ok(Outcome::Memory(slices)) => kept.push(slices),
            Ok(Outcome::Cold(read)) if kept.len() % 7 == 0 => drop(read),
            _ => {}
        }
    }
    assert!(kept.len() > 10, "{}", kept.len());
    assert_eq!(held.durable_end(), Offset(400));
    drop(kept);
    assert_eq!(node.values(&held, 0), values(0..400, 20_000));
}
