//! After the replay: partitions in memory, with the batches that no segment has.
//!
//! A second pass over the journal, so that memory holds only what is needed at the end (rule TailByReference); when even
//! that is too much, runs go to their segments, above what checkpoint and pointers name.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_model::Incarnation;

use super::replay::{Groups, Replay};
use crate::OpenError;
use crate::engine::Engine;
use crate::format::batch::{self, BatchHead};
use crate::format::checkpoint::{GenerationEntry, PartitionEntry};
use crate::format::record::Record;
use crate::generation::{FilePlace, GenerationState, Record as Opening};
use crate::partition::{PartitionLog, State};
use crate::run::Run;
use crate::segment::{self, Wish};

/// Makes the partitions and fills their tails; gives what turned out to be missing.
pub(crate) fn load(
    engine: &Engine,
    replay: &mut Replay,
    groups: &mut Groups<'_>,
) -> Result<Vec<String>, OpenError> {
    let mut by_local = BTreeMap::new();
    let mut findings = Vec::new();
    let entries: Vec<_> = replay.partitions.values().cloned().collect();
    for entry in &entries {
        let partition = PartitionLog::new(entry.partition, entry.local, state(entry));
        by_local.insert(entry.local, Arc::clone(&partition));
        let other = engine.partitions.write().insert(entry.partition, partition);
        if other.is_some() {
            findings.push(format!("{} has two local numbers", entry.partition));
        }
    }
    for entry in &entries {
        for generation in &entry.generations {
            for (_, head) in batch::walk(&generation.tail) {
                put(engine, &by_local[&entry.local], &head)?;
            }
        }
    }
    for lsn in &replay.groups {
        if !groups.read_again(*lsn)? {
            return Ok(vec![format!(
                "the group at {lsn} changed while it was read"
            )]);
        }
        for (local, record) in groups.records() {
            let Record::Batch(bytes) = record else {
                continue;
            };
            if let (Some(partition), Some(head)) = (by_local.get(&local), BatchHead::first(bytes)) {
                put(engine, partition, &head)?;
            }
        }
    }
    for partition in by_local.values() {
        check(partition, &mut findings);
    }
    Ok(findings)
}

fn state(entry: &PartitionEntry) -> State {
    let mut state = State::new(Incarnation(entry.incarnation));
    state.fence = entry.fence;
    state.fencing = entry.fence;
    state.is_bound = !entry.is_forgotten;
    state.is_forgotten = entry.is_forgotten;
    state.left_over = u32::from(entry.has_left_over);
    for entry in &entry.generations {
        state.insert(generation(entry));
    }
    let end = entry.generations.last().map_or(0, |last| last.end);
    state.producers = entry.producers.clone().filter(|(at, _)| *at <= end);
    state
}

fn generation(entry: &GenerationEntry) -> GenerationState {
    let mut generation = GenerationState::new(entry.epoch, entry.start, entry.descriptor.clone());
    generation.record = Opening::Durable;
    generation.last = entry.last;
    generation.end = entry.end;
    generation.durable = entry.end;
    generation.written = entry.synced;
    generation.synced = entry.synced;
    generation.lost.clone_from(&entry.lost);
    generation.file = (entry.next_block > 0).then_some(FilePlace {
        base: entry.file_base,
        next_block: entry.next_block,
    });
    generation
}

/// Keeps a batch that no segment has and no cut took. One at a place that is taken replaces it and all above: the journal
/// lost the truncation in between (rule OffsetImpliesCut).
fn put(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    head: &BatchHead<'_>,
) -> Result<(), OpenError> {
    let bytes = head.bytes().len();
    {
        let mut state = partition.state.lock();
        let Some(generation) = state.generation(head.epoch()) else {
            return Ok(());
        };
        if head.base() < generation.written || head.base() >= generation.end {
            return Ok(());
        }
        while generation
            .runs
            .back()
            .is_some_and(|run| run.base >= head.base())
        {
            generation.runs.pop_back();
        }
        if let Some(run) = generation.runs.back_mut() {
            if run.end > head.base() {
                run.cut(head.base());
            }
            if run.end < head.base() {
                run.is_open = false;
            }
        }
        if push(generation, head) {
            return Ok(());
        }
        generation.seal_run();
    }
    let needed = Run::bytes_for(bytes);
    let buffer = match room(engine, partition, needed) {
        Some(buffer) => buffer,
        None => make_room(engine, needed)?,
    };
    let mut state = partition.state.lock();
    if let Some(generation) = state.generation(head.epoch()) {
        generation
            .runs
            .push_back(Run::new(buffer, head.base(), &engine.held));
        push(generation, head);
    }
    Ok(())
}

fn push(generation: &mut GenerationState, head: &BatchHead<'_>) -> bool {
    let Some(run) = generation.open_run(head.bytes().len()) else {
        return false;
    };
    run.push(head, None);
    run.take_pending();
    true
}

fn room(engine: &Engine, partition: &PartitionLog, needed: usize) -> Option<floe_world::Buffer> {
    let mut state = partition.state.lock();
    let wanted = state.run_bytes.max(needed);
    state.run_bytes = (wanted * 2).min(engine.config.run_bytes_max);
    drop(state);
    engine.tail_buffer(wanted, needed)
}

/// Everything in memory goes to segments, which lets it leave.
fn make_room(engine: &Engine, needed: usize) -> Result<floe_world::Buffer, OpenError> {
    for partition in engine.all_partitions() {
        segment::write(
            engine,
            &partition,
            Wish {
                all: true,
                sync: false,
            },
        )?;
    }
    engine.tail_buffer(needed, needed).ok_or_else(|| {
        OpenError::Config(format!(
            "memory for the tail ({} bytes) is too small to recover; allow more",
            engine.tail.limit()
        ))
    })
}

/// Every offset from the flushed end on is in a run or known to be lost.
fn check(partition: &PartitionLog, findings: &mut Vec<String>) {
    let mut state = partition.state.lock();
    let last = state.generations.len();
    for (at, generation) in state.generations.iter_mut().enumerate() {
        let mut next = generation.written;
        let mut missing = Vec::new();
        let bounds = generation.runs.iter().map(|run| (run.base, run.end));
        for (base, end) in bounds.chain([(generation.end, generation.end)]) {
            let is_known = |lost: &&(u64, u64)| lost.0 <= next && base <= lost.1;
            if base > next && generation.lost.iter().find(is_known).is_none() {
                missing.push((next, base));
            }
            next = next.max(end);
        }
        for (from, to) in missing {
            let name = partition.partition;
            findings.push(format!("{name}: offsets {from} to {to} are in no tail"));
            generation.lost.push((from, to));
        }
        generation.last = generation.checksum_at(generation.end);
        if at + 1 < last {
            generation.seal_run();
        }
    }
}
