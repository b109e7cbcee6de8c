//! Reading: by reference from memory, or from disk on a reader thread.

pub(crate) mod chunks;
pub(crate) mod cold;
pub(crate) mod index;
pub(crate) mod time;

use std::sync::Arc;

use floe_model::{LeaderEpoch, Offset};

use crate::engine::Engine;
use crate::format::batch;
use crate::generation::GenerationState;
use crate::partition::{PartitionLog, State};
use crate::{Outcome, ReadError, Slices};

/// What is asked for; see [`crate::Log::read`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Of this generation; none: of the partition, as a consumer sees it.
    pub(crate) epoch: Option<LeaderEpoch>,
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
    let on_disk = generation.written;
    let place = (generation.epoch, generation.version);
    drop(state);
    let bounded = Wanted { up_to, ..wanted };
    let kept = engine.chunks.lock().serve(partition, place, bounded);
    let Some((slices, is_at_end)) = kept else {
        return Ok(Outcome::Cold(cold::read(engine, partition, wanted)));
    };
    if is_at_end && slices.next.0 < on_disk {
        cold::read_ahead(engine, partition, wanted.epoch, slices.next.0);
    }
    Ok(Outcome::Memory(slices))
}

/// The generation that an offset is in, and up to where it may be read; `None` at the very end.
pub(crate) fn locate(
    state: &mut State,
    wanted: Wanted,
) -> Result<Option<(&mut GenerationState, u64)>, ReadError> {
    let from = wanted.from;
    let place = match wanted.epoch {
        Some(epoch) => in_generation(state, epoch, wanted)?,
        None => in_partition(state, from)?,
    };
    let Some((at, bound)) = place else {
        return Ok(None);
    };
    let generation = &mut state.generations[at];
    let mut up_to = wanted.up_to.min(generation.end).min(bound);
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

/// What one generation has, its excess too.
fn in_generation(
    state: &State,
    epoch: LeaderEpoch,
    wanted: Wanted,
) -> Result<Option<(usize, u64)>, ReadError> {
    let from = wanted.from;
    let held = &state.generations;
    let Ok(at) = held.binary_search_by_key(&epoch, |held| held.epoch) else {
        return Err(ReadError::NotHeld {
            offsets: from..wanted.up_to.max(from),
        });
    };
    let (start, end) = (held[at].start, held[at].end);
    if from < start {
        return Err(ReadError::NotHeld {
            offsets: from..start,
        });
    }
    if from > end {
        return Err(ReadError::OutOfRange {
            start: Offset(start),
            end: Offset(end),
        });
    }
    Ok((from < end).then_some((at, u64::MAX)))
}

/// What a consumer sees: the newest generation that starts at or below the offset, up to where the next one starts. Never what
/// an older one has above that, and never past a hole.
fn in_partition(state: &State, from: u64) -> Result<Option<(usize, u64)>, ReadError> {
    let held = &state.generations;
    let start = held.first().map_or(0, |first| first.start);
    let end = held.last().map_or(0, |newest| newest.end);
    if from < start && from >= state.delete_below {
        return Err(ReadError::NotHeld {
            offsets: from..start,
        });
    }
    if from < start || from > end {
        return Err(ReadError::OutOfRange {
            start: Offset(start),
            end: Offset(end),
        });
    }
    let after = held.partition_point(|generation| generation.start <= from);
    let next = held.get(after).map(|next| next.start);
    let Some(at) = after.checked_sub(1) else {
        return Ok(None);
    };
    if from < held[at].end {
        return Ok(Some((at, next.unwrap_or(u64::MAX))));
    }
    match next {
        Some(next) => Err(ReadError::NotHeld {
            offsets: from..next,
        }),
        None => Ok(None),
    }
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

/// See [`crate::Log::last_checksum`].
pub(crate) async fn last_checksum(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
) -> Result<Option<u32>, ReadError> {
    let known = {
        let mut state = partition.state.lock();
        let held = state.generation(epoch);
        held.map(|held| (held.start, held.end, held.last))
    };
    let end = match known {
        None => return Err(ReadError::NotHeld { offsets: 0..0 }),
        Some((start, end, last)) if last.is_some() || start == end => return Ok(last),
        Some((_, end, _)) => end,
    };
    let wanted = Wanted {
        epoch: Some(epoch),
        from: end - 1,
        up_to: end,
        max_bytes: 1,
        at_least_one: true,
    };
    let slices = match read(engine, partition, wanted)? {
        Outcome::Memory(slices) => slices,
        Outcome::Cold(read) => read.await?,
    };
    let batches = slices.batches.iter();
    let heads = batches.flat_map(|bytes| batch::walk(bytes).map(|(_, head)| head.crc()));
    let last = heads.last();
    let mut state = partition.state.lock();
    if let Some(held) = state.generation(epoch)
        && held.end == end
    {
        held.last = held.last.or(last);
    }
    Ok(last)
}
