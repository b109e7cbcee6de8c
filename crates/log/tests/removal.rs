//! What goes: its name at once, its room in pieces.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{Node, batch, open, tp};
use floe_log::{PartitionLog, Step};
use floe_model::Offset;
use floe_world::disk::Simulated;

const PIECE: u64 = 4 << 20;

fn segments(disk: &Simulated) -> Vec<(PathBuf, u64)> {
    let all = disk.files().into_iter();
    all.filter(|(path, _)| path.extension().is_some_and(|it| it == "seg"))
        .collect()
}

/// A partition with 9 MiB in segments of about `bytes`.
fn filled(node: &Node, bytes: u64) -> Arc<PartitionLog> {
    let held = node.topic(1);
    held.set_roll(Some(bytes), None);
    for number in 0..64 {
        node.append(&held, 0, &batch(number..number + 1, 150_000));
        node.steps();
    }
    held
}

/// Removal steps that did something, until there is nothing to do.
fn removal_steps(node: &Node) -> u64 {
    let mut steps = 0;
    while node.log.step_removals() == Step::Worked {
        steps += 1;
    }
    steps
}

#[test]
fn a_deleted_partition_gives_its_room_back_in_pieces_behind_its_names() {
    let disk = Simulated::new(31);
    let node = open(&disk, 31);
    filled(&node, 16 << 20);
    let before = segments(&disk);
    let &[(_, len)] = before.as_slice() else {
        panic!("one segment: {before:?}");
    };
    assert!(len > 2 * PIECE, "{len}");

    let receipt = node.log.forget(tp(1));
    while node.log.step_journal() == Step::Worked {}
    assert_eq!(segments(&disk).len(), 1);
    assert_eq!(node.log.step_removals(), Step::Worked);
    assert!(segments(&disk).is_empty());
    // Its pieces, and then its directories.
    assert_eq!(removal_steps(&node), len.div_ceil(PIECE) + 1);
    let topic = PathBuf::from("/data").join(tp(1).topic.to_string());
    assert!(
        !disk
            .files()
            .iter()
            .any(|(path, _)| path.starts_with(&topic))
    );
    node.wait(receipt).unwrap();
}

#[test]
fn retention_gives_one_file_back_before_it_takes_the_name_of_the_next() {
    let disk = Simulated::new(32);
    let node = open(&disk, 32);
    let held = filled(&node, PIECE + (1 << 19));
    let before = segments(&disk).len();
    assert!(before > 2, "{before}");

    node.log.delete_below(&held, Offset(held.durable_end().0));
    for gone in 1..before {
        assert_eq!(node.log.step_removals(), Step::Worked);
        assert_eq!(segments(&disk).len(), before - gone);
        // Its room, which is two pieces.
        for _ in 0..2 {
            assert_eq!(node.log.step_removals(), Step::Worked);
            assert_eq!(segments(&disk).len(), before - gone);
        }
    }
    // The file that is written to stays.
    removal_steps(&node);
    assert_eq!(segments(&disk).len(), 1);
}
