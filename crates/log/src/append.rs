//! The way of a batch into memory: one copy, no allocation, no I/O. A leader's is stamped on the way; what comes from another
//! copy is stored as it is, at its place or not at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;

use crate::engine::Engine;
use crate::format::batch::{self, BatchHead};
use crate::generation::GenerationState;
use crate::partition::{Large, PartitionLog, State};
use crate::run::Run;
use crate::{Admission, AppendError, Full};

/// Whose batches are appended as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The leader of the open generation, to a follower: nothing is taken once it is fenced.
    Leader,
    /// A holder, to a copy (repair, backfill): any generation that is held takes it, below the fence too.
    Holder,
}

/// See [`crate::Log::append`].
pub(crate) fn append(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
    batch: &[u8],
) -> Result<Offset, AppendError> {
    let limit = engine.config.batch_bytes_max;
    let bytes = batch.len();
    let Some(head) = BatchHead::first(batch).filter(|_| bytes <= limit) else {
        return Err(AppendError::TooLarge { bytes, limit });
    };
    refuse_when_full(engine)?;
    let mut spare = None;
    loop {
        let mut state = partition.state.lock();
        check(&state, epoch)?;
        if let Some(end) = push(engine, partition, &mut state, &head, &mut spare) {
            return Ok(Offset(end));
        }
        let wanted = state.run_bytes.max(Run::bytes_for(bytes));
        drop(state);
        // Order: memory is taken from other partitions' runs here, so no state is held.
        let buffer = engine.tail_buffer(wanted, Run::bytes_for(bytes));
        let Some(buffer) = buffer else {
            // A checkpoint writes what many small runs hold, and lets it go.
            engine.checkpoint_wanted.set();
            return Err(AppendError::Full(Full::Memory));
        };
        spare = Some(buffer);
    }
}

pub(crate) fn refuse_when_full(engine: &Engine) -> Result<(), AppendError> {
    if engine.failure().is_some() || engine.is_closing() {
        return Err(AppendError::Poisoned);
    }
    if engine.is_disk_full.load(Ordering::Relaxed) {
        return Err(AppendError::Full(Full::Disk));
    }
    if engine.ring.is_short() {
        engine.checkpoint_wanted.set();
        return Err(AppendError::Full(Full::Journal));
    }
    Ok(())
}

/// See [`crate::Log::append_as_is`].
pub(crate) fn append_as_is(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
    origin: Origin,
    batches: &[Bytes],
    mut admission: Admission,
) -> Result<Offset, AppendError> {
    if engine.is_usable().is_err() {
        return Err(AppendError::Poisoned);
    }
    let mut state = partition.state.lock();
    let at = check_as_is(&state, epoch, origin)?;
    in_place(engine, &state.generations[at], batches, &admission)?;
    for (_, head) in batches.iter().flat_map(|bytes| batch::walk(bytes)) {
        let spare = &mut admission.buffer;
        let has_room = make_room(engine, partition, &mut state, at, head.bytes().len(), spare);
        let is_placed = has_room && place(&mut state.generations[at], &head, None).is_some();
        assert!(
            is_placed,
            "what was admitted has room in the open run and one more"
        );
    }
    let end = state.generations[at].end;
    partition.publish(&state);
    wake(engine, partition, &mut state);
    Ok(Offset(end))
}

/// The place of the generation, if it takes what comes from there.
fn check_as_is(state: &State, epoch: LeaderEpoch, origin: Origin) -> Result<usize, AppendError> {
    let newest = state.generations.last().map(|newest| newest.epoch);
    let fence = state.fencing.max(newest.unwrap_or_default());
    if origin == Origin::Leader && epoch < fence {
        return Err(AppendError::Fenced { fence });
    }
    let held = &state.generations;
    let at = held.binary_search_by_key(&epoch, |held| held.epoch);
    let at = at.ok().filter(|at| !held[*at].is_leaving);
    let at = at.ok_or(AppendError::NotHeld { epoch })?;
    if held[at].is_closed {
        return Err(AppendError::Truncated { epoch });
    }
    Ok(at)
}

/// Whether the batches follow one another from the generation's end on, in its epoch, and were admitted.
fn in_place(
    engine: &Engine,
    generation: &GenerationState,
    batches: &[Bytes],
    admission: &Admission,
) -> Result<(), AppendError> {
    let (mut next, mut bytes, mut count) = (generation.end, 0, 0);
    for part in batches {
        let mut whole = 0;
        for (range, head) in batch::walk(part) {
            let limit = engine.config.batch_bytes_max;
            if range.len() > limit {
                let bytes = range.len();
                return Err(AppendError::TooLarge { bytes, limit });
            }
            if head.base() != next || head.epoch() != generation.epoch {
                return Err(AppendError::OutOfPlace {
                    expected: (generation.epoch, Offset(next)),
                    found: (head.epoch(), Offset(head.base())),
                });
            }
            (next, whole) = (head.end(), range.end);
            count += 1;
        }
        if whole < part.len() {
            return Err(AppendError::NotABatch { at: Offset(next) });
        }
        bytes += whole;
    }
    if !admission.takes(bytes, count) {
        let limit = admission.bytes();
        return Err(AppendError::TooLarge { bytes, limit });
    }
    Ok(())
}

fn check(state: &State, epoch: LeaderEpoch) -> Result<(), AppendError> {
    if epoch < state.fencing {
        return Err(AppendError::Fenced {
            fence: state.fencing,
        });
    }
    let newest = state.generations.last();
    if newest.is_none_or(|newest| newest.epoch != epoch || newest.is_closed) {
        let open = newest.map(|newest| newest.epoch);
        return Err(AppendError::NotOpen { open });
    }
    Ok(())
}

/// Into the open run of the newest generation, or into a new one made of `spare`; `None` if there is neither.
fn push(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    state: &mut State,
    head: &BatchHead<'_>,
    spare: &mut Option<Buffer>,
) -> Option<u64> {
    let at = state.generations.len().checked_sub(1)?;
    if !make_room(engine, partition, state, at, head.bytes().len(), spare) {
        return None;
    }
    let newest = &mut state.generations[at];
    let stamp = (newest.end, newest.epoch);
    place(newest, head, Some(stamp))?;
    let end = newest.end;
    partition.publish(state);
    wake(engine, partition, state);
    Some(end)
}

/// Whether the generation at a place has an open run with room, after opening one in `spare` if need be.
fn make_room(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    state: &mut State,
    at: usize,
    bytes: usize,
    spare: &mut Option<Buffer>,
) -> bool {
    let generation = &mut state.generations[at];
    if generation.open_run(bytes).is_some() {
        return true;
    }
    let Some(buffer) = spare.take() else {
        return false;
    };
    let open = generation.runs.back().filter(|run| run.is_open);
    let full = open.map(Run::position_end);
    generation.seal_run();
    let run = Run::new(buffer, generation.end, &engine.held);
    generation.runs.push_back(run);
    if let Some(used) = full {
        let max = engine.config.run_bytes_max;
        state.size_next_run(used, floe_world::memory::class(used), max);
        // The full run is copied to its segment in the background.
        engine.queue_write(partition, &mut state.has_job);
    }
    true
}

fn place(
    generation: &mut GenerationState,
    head: &BatchHead<'_>,
    stamp: Option<(u64, LeaderEpoch)>,
) -> Option<()> {
    let run = generation.open_run(head.bytes().len())?;
    run.push(head, stamp);
    generation.end = run.end;
    generation.last = head.crc_to_keep();
    Some(())
}

/// Tells whoever is next: the segment thread when much is pending, else the journal.
fn wake(engine: &Engine, partition: &Arc<PartitionLog>, state: &mut State) {
    if matches!(state.large, Large::Idle) {
        if state.pending().0 >= engine.config.large_append_bytes {
            state.large = Large::Wanted;
            engine.queue_write(partition, &mut state.has_job);
        } else {
            engine.queue(partition, &mut state.is_queued);
        }
    }
}
