//! The way of a batch into memory: one copy, no allocation, no I/O.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;

use crate::engine::Engine;
use crate::format::batch::BatchHead;
use crate::partition::{Large, PartitionLog, State};
use crate::run::Run;
use crate::{AppendError, Full};

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

fn refuse_when_full(engine: &Engine) -> Result<(), AppendError> {
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

fn check(state: &State, epoch: LeaderEpoch) -> Result<(), AppendError> {
    if epoch < state.fencing {
        return Err(AppendError::Fenced {
            fence: state.fencing,
        });
    }
    let open = state.generations.last().map(|open| open.epoch);
    if open != Some(epoch) || state.is_forgotten {
        return Err(AppendError::NotOpen { open });
    }
    Ok(())
}

/// Into the open run, or into a new one made of `spare`; `None` if there is neither.
fn push(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    state: &mut State,
    head: &BatchHead<'_>,
    spare: &mut Option<Buffer>,
) -> Option<u64> {
    let bytes = head.bytes().len();
    let open = state.generations.last_mut()?;
    if open.open_run(bytes).is_none() {
        let buffer = spare.take()?;
        let full = open
            .runs
            .back()
            .filter(|run| run.is_open)
            .map(Run::position_end);
        open.seal_run();
        open.runs
            .push_back(Run::new(buffer, open.end, &engine.held));
        if let Some(used) = full {
            let max = engine.config.run_bytes_max;
            state.size_next_run(used, floe_world::memory::class(used), max);
            // The full run is copied to its segment in the background.
            engine.queue_write(partition, &mut state.has_job);
        }
    }
    let open = state.generations.last_mut()?;
    let (end, epoch) = (open.end, open.epoch);
    let run = open.open_run(bytes)?;
    run.push(head, Some((end, epoch)));
    open.end = run.end;
    let end = open.end;
    partition.publish(state);
    wake(engine, partition, state);
    Some(end)
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
