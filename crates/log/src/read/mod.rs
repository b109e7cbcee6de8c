//! Reading: by reference from memory, or from disk on a reader thread.

pub(crate) mod chunks;
pub(crate) mod cold;
pub(crate) mod index;
pub(crate) mod time;

use std::sync::Arc;

use floe_model::Offset;

use crate::engine::Engine;
use crate::partition::{GenerationState, PartitionLog, State};
use crate::{Outcome, ReadError, Slices};

/// What is asked for; see [`crate::Log::read`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) from: u64,
    pub(crate) up_to: u64,
    pub(crate) max_bytes: usize,
    pub(crate) at_least_one: bool,
}

pub(crate) fn read(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    wanted: Wanted,
) -> Result<Outcome, ReadError> {
    let is_pinned = engine.is_tail_pinned();
    let mut state = partition.state.lock();
    if let Some(slices) = from_memory(&mut state, wanted)? {
        if is_pinned && !slices.batches.is_empty() {
            drop(state);
            return Ok(Outcome::Cold(cold::read(engine, partition, wanted)));
        }
        return Ok(Outcome::Memory(slices));
    }
    let Some((generation, up_to)) = locate(&mut state, wanted)? else {
        return Ok(Outcome::Memory(Slices {
            batches: Vec::new(),
            next: Offset(wanted.from),
        }));
    };
    let (epoch, on_disk) = (generation.epoch, generation.written);
    drop(state);
    let bounded = Wanted { up_to, ..wanted };
    let kept = engine.chunks.lock().serve(partition, epoch, bounded);
    let Some((slices, is_at_end)) = kept else {
        return Ok(Outcome::Cold(cold::read(engine, partition, wanted)));
    };
    if is_at_end && slices.next.0 < on_disk {
        cold::read_ahead(engine, partition, slices.next.0);
    }
    Ok(Outcome::Memory(slices))
}

/// The generation that an offset is in, and up to where it may be read; `None` at the very end.
pub(crate) fn locate(
    state: &mut State,
    wanted: Wanted,
) -> Result<Option<(&mut GenerationState, u64)>, ReadError> {
    let generations = &mut state.generations;
    let from = wanted.from;
    let start = generations.first().map_or(0, |first| first.start);
    let end = generations.last().map_or(0, |last| last.end);
    if from < start || from > end {
        return Err(ReadError::OutOfRange {
            start: Offset(start),
            end: Offset(end),
        });
    }
    let after = generations.partition_point(|generation| generation.start <= from);
    let next = generations.get(after).map(|next| next.start);
    let Some(generation) = after.checked_sub(1).map(|at| &mut generations[at]) else {
        return Ok(None);
    };
    if from >= generation.end {
        // Between two generations of which this node does not hold what lies between.
        return match next {
            Some(next) if next > from => Err(ReadError::Lost {
                offsets: from..next,
            }),
            _ => Ok(None),
        };
    }
    let mut up_to = wanted.up_to.min(generation.end);
    for (lost, until) in &generation.lost {
        if *lost <= from && from < *until {
            return Err(ReadError::Lost {
                offsets: *lost..*until,
            });
        }
        if *lost > from {
            up_to = up_to.min(*lost);
        }
    }
    Ok((from < up_to).then_some((generation, up_to)))
}

/// What memory has; `None`: it is on disk.
fn from_memory(state: &mut State, wanted: Wanted) -> Result<Option<Slices>, ReadError> {
    let mut slices = Slices {
        batches: Vec::new(),
        next: Offset(wanted.from),
    };
    let Some((generation, up_to)) = locate(state, wanted)? else {
        return Ok(Some(slices));
    };
    let after = generation
        .runs
        .partition_point(|run| run.base <= wanted.from);
    let Some(first) = after.checked_sub(1) else {
        return Ok(None);
    };
    if wanted.from >= generation.runs[first].end {
        return Ok(None);
    }
    let mut left = wanted.max_bytes;
    let mut at_least_one = wanted.at_least_one;
    for run in generation.runs.range(first..) {
        let position = run.position_of(slices.next.0);
        let Some((bytes, next)) = run.slice(position, up_to, left, at_least_one) else {
            break;
        };
        left = left.saturating_sub(bytes.len());
        at_least_one = false;
        slices.batches.push(bytes);
        slices.next = Offset(next);
        if next < run.end || left == 0 {
            break;
        }
    }
    Ok(Some(slices))
}
