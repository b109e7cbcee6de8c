//! What a voter of the catalog asks of its stream: a suffix replaced, a vote kept, a snapshot in place of everything.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::convert::Infallible;
use std::path::Path;

use bytes::Bytes;
use common::{Node, config, open};
use floe_log::verify::{self, LogStarts};
use floe_log::{CatalogEntry, Snapshot, Stream, Verdict, Vote};
use floe_world::disk::Simulated;

const VOTE: Vote = Vote {
    term: 3,
    node: 1,
    incarnation: 9,
};

fn entry(index: u64, term: u64) -> CatalogEntry {
    CatalogEntry {
        index,
        term,
        data: Bytes::from(format!("entry {index} of {term}")),
    }
}

fn snapshot(bytes: usize) -> Snapshot {
    Snapshot {
        index: 8,
        term: 4,
        data: Bytes::from(vec![7; bytes]),
    }
}

fn append(node: &Node, entries: Vec<CatalogEntry>) {
    node.wait(node.log.catalog_append(0, entries)).unwrap();
}

/// Entries 1 to 10 of term 1, and a vote in term 3.
fn followed(disk: &Simulated) -> Node {
    let node = open(disk, 1);
    append(&node, (1..=10).map(|index| entry(index, 1)).collect());
    node.wait(node.log.vote(0, VOTE)).unwrap();
    node
}

fn stream(node: &Node) -> &Stream {
    assert!(!matches!(node.recovered.verdict, Verdict::Damage { .. }));
    &node.recovered.streams[0]
}

fn is_sound(disk: &Simulated) -> bool {
    let none = |_: &[Stream]| Ok::<_, Infallible>(LogStarts::new());
    let report = verify::verify(disk, Path::new("/data"), none).unwrap();
    report.findings.is_empty()
}

#[test]
fn a_suffix_that_was_replaced_does_not_return_after_a_power_cut() {
    let disk = Simulated::new(1);
    let node = followed(&disk);
    append(&node, vec![entry(4, 2), entry(5, 2)]);
    drop(node);
    let disk = disk.after_power_cut();
    let node = open(&disk, 2);
    let kept = [
        entry(1, 1),
        entry(2, 1),
        entry(3, 1),
        entry(4, 2),
        entry(5, 2),
    ];
    assert_eq!(stream(&node).entries, kept);
    assert_eq!(stream(&node).vote, VOTE);
}

#[test]
fn a_snapshot_put_in_place_leaves_no_entry_and_stays_whichever_checkpoint_is_lost() {
    let large = snapshot(2 * config().group_bytes_max);
    for slot in 0..2 {
        let disk = Simulated::new(2);
        let node = followed(&disk);
        let receipt = node.log.install(0, large.clone());
        assert!(!receipt.is_resolved(), "not before it is durable");
        node.log.step_checkpoint();
        node.wait(receipt).unwrap();
        append(&node, vec![entry(9, 4)]);
        drop(node);
        let disk = disk.after_power_cut();
        let path = format!("/data/checkpoint.{slot}");
        disk.flip(Path::new(&path), 20, 1).unwrap();
        let node = open(&disk, 3);
        assert_eq!(stream(&node).snapshot, Some(large.clone()));
        assert_eq!(stream(&node).entries, [entry(9, 4)], "10 of term 1 is gone");
        assert_eq!(stream(&node).vote, VOTE);
    }
}

#[test]
fn a_power_cut_while_a_snapshot_is_put_in_place_leaves_all_of_it_or_nothing() {
    let mut ends = [0; 2];
    for ahead in 1..40 {
        let disk = Simulated::new(ahead);
        let node = followed(&disk);
        node.log.step_checkpoint();
        disk.cut_power_at(disk.operations() + ahead);
        let receipt = node.log.install(0, snapshot(10_000));
        node.log.step_checkpoint();
        let is_promised = receipt.is_resolved() && node.wait(receipt).is_ok();
        drop(node);
        let disk = disk.after_power_cut();
        assert!(is_sound(&disk), "{ahead}");
        let node = open(&disk, 3);
        let is_in_place = stream(&node).snapshot.is_some();
        assert!(is_in_place || !is_promised, "{ahead}");
        ends[usize::from(is_in_place)] += 1;
        if !is_in_place {
            assert_eq!(stream(&node).entries.len(), 10, "{ahead}");
            continue;
        }
        assert_eq!(stream(&node).entries, [], "{ahead}");
        // This life goes on from it; one checkpoint may still be lost.
        append(&node, vec![entry(9, 4)]);
        drop(node);
        for slot in 0..2 {
            let disk = disk.after_power_cut();
            let path = format!("/data/checkpoint.{slot}");
            disk.flip(Path::new(&path), 20, 1).unwrap();
            let node = open(&disk, 4);
            assert_eq!(stream(&node).entries, [entry(9, 4)], "{ahead} {slot}");
        }
    }
    assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
}
