//! What a node is asked, drawn from the seed: appends small and large, fences, truncations, generations, catalog
//! entries, votes, reads, deletions, checkpoints, rolls, in between steps of the log's parts.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use floe_log::{CatalogEntry, Snapshot, Vote};
use floe_model::{LeaderEpoch, TopicPartition};

use crate::chance::Chance;
use crate::check::{self, Hit};
use crate::node::{Node, Part, World};
use crate::truth::{Truth, partition};

/// How a run is shaped; drawn once a seed.
pub(crate) struct Mix {
    pub(crate) partitions: u64,
    pub(crate) batch_bytes_max: u64,
    pub(crate) steps_percent: u64,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Append,
    Burst,
    Advance,
    Fence,
    Truncate,
    Forget,
    Catalog,
    Rewrite,
    Compact,
    Vote,
    Delete,
    Read,
    Time,
    Roll,
}

const OPERATIONS: &[(u64, Operation)] = &[
    (45, Operation::Append),
    (5, Operation::Burst),
    (8, Operation::Advance),
    (4, Operation::Fence),
    (4, Operation::Truncate),
    (1, Operation::Forget),
    (6, Operation::Catalog),
    (2, Operation::Rewrite),
    (2, Operation::Compact),
    (3, Operation::Vote),
    (2, Operation::Delete),
    (8, Operation::Read),
    (4, Operation::Time),
    (2, Operation::Roll),
];

impl Mix {
    pub(crate) fn draw(chance: &Chance) -> Self {
        Self {
            partitions: chance.of(&[1, 2, 3, 8]),
            batch_bytes_max: chance.of(&[400, 4_000, 40_000, 100_000]),
            steps_percent: chance.of(&[20, 40, 60]),
        }
    }
}

/// One operation and, by chance, some steps. `Ok(false)` if the log could not be asked at all.
pub(crate) fn one(
    chance: &Chance,
    mix: &Mix,
    world: &World,
    node: &mut Node,
    truth: &mut Truth,
) -> Result<(), String> {
    while chance.percent(mix.steps_percent) {
        let part = chance.weighted(&[
            (10, Part::Journal),
            (5, Part::Segment),
            (1, Part::Checkpoint),
            (1, Part::Reader),
            (1, Part::Fill),
            (1, Part::Removal),
        ]);
        if node.step(part) {
            truth.note(format!(
                "step {part:?}, operation {}",
                world.disk.operations()
            ));
        }
        node.hear(truth)?;
    }
    let name = partition(chance.number(0..mix.partitions));
    match chance.weighted(OPERATIONS) {
        Operation::Append => append(chance, mix, node, truth, name),
        Operation::Burst => burst(chance, mix, node, truth, name),
        Operation::Advance => advance(chance, node, truth, name),
        Operation::Fence => fence(chance, node, truth, name),
        Operation::Truncate => truncate(chance, node, truth, name),
        Operation::Forget => {
            forget(chance, node, truth, name);
            Ok(())
        }
        Operation::Catalog => {
            catalog(chance, node, truth, false);
            Ok(())
        }
        Operation::Rewrite => {
            catalog(chance, node, truth, true);
            Ok(())
        }
        Operation::Compact => {
            compact(chance, node, truth);
            Ok(())
        }
        Operation::Vote => {
            vote(chance, node, truth);
            Ok(())
        }
        Operation::Delete => {
            delete(chance, node, truth, name);
            Ok(())
        }
        Operation::Read => read(chance, node, truth, name),
        Operation::Time => {
            world
                .clock
                .advance(Duration::from_secs(chance.number(1..90)));
            Ok(())
        }
        Operation::Roll => roll(chance, node, truth, name),
    }
}

/// Whether appends may go to the partition's last generation.
fn is_open(node: &Node, truth: &Truth, name: TopicPartition) -> bool {
    let Some(known) = truth.partitions.get(&name) else {
        return false;
    };
    let Some(last) = known.generations.last() else {
        return false;
    };
    last.is_kept && known.fence_asked <= last.epoch && last.cuts.is_empty() && !node.is_busy(name)
}

fn is_bound(node: &Node, truth: &Truth, name: TopicPartition) -> bool {
    let known = truth.partitions.get(&name);
    known.is_some_and(|known| known.is_usable) && !node.is_busy(name)
}

fn append(
    chance: &Chance,
    mix: &Mix,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if !is_open(node, truth, name) {
        return advance(chance, node, truth, name);
    }
    let records = chance.number(1..20) as u32;
    let bytes = if chance.percent(70) {
        chance.number(70..600)
    } else {
        chance.number(70..mix.batch_bytes_max + 1)
    };
    let time = chance.number(1_000_000..2_000_000) as i64;
    let batch = crate::batches::draw(chance, records, bytes as usize, time);
    node.append(truth, name, batch, records).map(|_| ())
}

fn burst(
    chance: &Chance,
    mix: &Mix,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    for _ in 0..chance.number(2..20) {
        append(chance, mix, node, truth, name)?;
    }
    Ok(())
}

/// Binds the partition, or opens its next generation.
fn advance(
    chance: &Chance,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if node.is_busy(name) {
        return Ok(());
    }
    if !is_bound(node, truth, name) {
        node.bind(truth, name);
        return Ok(());
    }
    let asked = truth
        .partitions
        .get(&name)
        .map_or(LeaderEpoch(0), crate::truth::Partition::epoch_asked);
    let epoch = LeaderEpoch(asked.0 + chance.number(1..3) as u32);
    let descriptor: Bytes = format!("descriptor {epoch} {}", chance.number(0..100)).into();
    node.open_generation(truth, name, epoch, descriptor)
}

fn fence(
    chance: &Chance,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if !is_bound(node, truth, name) {
        return Ok(());
    }
    let asked = truth
        .partitions
        .get(&name)
        .map_or(LeaderEpoch(0), crate::truth::Partition::epoch_asked);
    node.fence(
        truth,
        name,
        LeaderEpoch(asked.0 + chance.number(1..3) as u32),
    )
}

/// Cuts the last generation, if a fence has sealed it, at the end of one of its batches.
fn truncate(
    chance: &Chance,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if !is_bound(node, truth, name) {
        return Ok(());
    }
    let Some(known) = truth.partitions.get(&name) else {
        return Ok(());
    };
    let Some(last) = known.generations.last() else {
        return Ok(());
    };
    if !last.is_kept || known.fence_kept <= last.epoch {
        return fence(chance, node, truth, name);
    }
    let place = chance.number(0..last.batches.len() as u64 + 1) as usize;
    let end = place
        .checked_sub(1)
        .map_or(last.start, |at| last.batches[at].end);
    if end < known.log_start {
        return Ok(());
    }
    let epoch = last.epoch;
    node.truncate(truth, name, epoch, end)
}

fn forget(chance: &Chance, node: &mut Node, truth: &mut Truth, name: TopicPartition) {
    if is_bound(node, truth, name) && chance.percent(50) {
        node.forget(truth, name);
    }
}

fn catalog(chance: &Chance, node: &mut Node, truth: &mut Truth, rewrite: bool) {
    let group = chance.number(0..2) as u32;
    let stream = truth.streams.entry(group).or_default();
    let below = stream.snapshots.last().map_or(0, |snapshot| snapshot.index);
    let last = stream.last().max(below);
    let first = if rewrite && last > below {
        chance.number(below + 1..last + 1)
    } else {
        last + 1
    };
    let term = stream.entries.len() as u64 + 1;
    let entries = (first..first + chance.number(1..5))
        .map(|index| CatalogEntry {
            index,
            term,
            data: vec![index as u8; chance.number(1..3000) as usize].into(),
        })
        .collect();
    node.catalog(truth, group, entries);
}

fn compact(chance: &Chance, node: &mut Node, truth: &mut Truth) {
    let group = chance.number(0..2) as u32;
    let stream = truth.streams.entry(group).or_default();
    let below = stream.snapshots.last().map_or(0, |snapshot| snapshot.index);
    // Only what nothing in flight may still replace.
    if stream.entries_kept < stream.entries.len() || stream.last_kept() <= below {
        return;
    }
    let index = chance.number(below + 1..stream.last_kept() + 1);
    let data = vec![0xcc; chance.number(0..5000) as usize].into();
    let snapshot = Snapshot {
        index,
        term: stream.entries.len() as u64,
        data,
    };
    stream.snapshots.push(snapshot.clone());
    node.log.compact(group, snapshot);
}

fn vote(chance: &Chance, node: &mut Node, truth: &mut Truth) {
    let group = chance.number(0..2) as u32;
    let term = truth
        .streams
        .get(&group)
        .map_or(0, |s| s.votes.last().map_or(0, |vote| vote.term));
    let term = term + chance.number(1..3);
    let (node_id, incarnation) = (chance.number(0..3), chance.bits());
    node.vote(
        truth,
        group,
        Vote {
            term,
            node: node_id,
            incarnation,
        },
    );
}

/// Raises the log start; what lies below is deleted when that is durable.
fn delete(chance: &Chance, node: &mut Node, truth: &mut Truth, name: TopicPartition) {
    if !is_open(node, truth, name) {
        return;
    }
    let Some(known) = truth.partitions.get(&name) else {
        return;
    };
    let first = known.generations[0].start.max(known.log_start);
    let durable = known.generations.last().map_or(first, |g| g.durable);
    if first < durable {
        let to = chance.number(first..durable);
        node.advance_log_start(truth, name, to);
    }
}

fn read(
    chance: &Chance,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if !is_open(node, truth, name) || node.failure().is_some() {
        return Ok(());
    }
    let Some(known) = truth.partitions.get(&name) else {
        return Ok(());
    };
    let (first, end) = (known.generations[0].start.max(known.log_start), known.end());
    if first >= end {
        return Ok(());
    }
    let from = chance.number(first..end);
    let range: Range<u64> = from..chance.number(from..end) + 1;
    let up_to = align(known, range.end);
    let read = check::range(node, name, known, range.start..up_to, &Hit::default());
    match read {
        Err(_) if node.failure().is_some() => Ok(()),
        other => other.map(|_| ()).map_err(|what| format!("{name}: {what}")),
    }
}

/// The end of the batch that holds the offset before `at`.
fn align(known: &crate::truth::Partition, at: u64) -> u64 {
    let mut all = known.generations.iter().flat_map(|g| g.batches.iter());
    all.find(|batch| batch.end >= at)
        .map_or(at, |batch| batch.end)
}

fn roll(
    chance: &Chance,
    node: &mut Node,
    truth: &mut Truth,
    name: TopicPartition,
) -> Result<(), String> {
    if is_bound(node, truth, name) {
        let bytes = chance.of(&[Some(32 << 10), Some(128 << 10), None]);
        node.handle(name)?
            .set_roll(bytes, chance.of(&[None, Some(30_000)]));
    }
    Ok(())
}
