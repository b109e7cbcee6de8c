//! Changes of one partition beside appends: generations that come and go, fences, truncations.
//!
//! Guarantees: each is a record behind everything accepted before it, and takes effect when that is flushed, in the order of calls.
//! What it forbids is forbidden from the call on, and what it opens takes appends from the call on. By the time a receipt is
//! kept, every durable end of what lies before it has been reported.

use std::sync::Arc;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset};

use crate::Failure;
use crate::engine::Engine;
use crate::format::record::Record;
use crate::generation::{self, GenerationState};
use crate::partition::{PartitionLog, State};
use crate::receipt::{Promise, Receipt, promise};
use crate::removal::Removal;

/// A change that takes effect when its record is flushed.
#[derive(Debug)]
pub(crate) enum Control {
    Open {
        epoch: LeaderEpoch,
        start: u64,
        descriptor: Bytes,
        promise: Promise,
    },
    Fence {
        epoch: LeaderEpoch,
        /// Accepted end when it was asked.
        end: u64,
        promise: Promise<Offset>,
    },
    Truncate {
        epoch: LeaderEpoch,
        /// `None`: nothing lay above it.
        end: Option<u64>,
        promise: Promise,
    },
    Drop {
        /// `None`: it was not held.
        epoch: Option<LeaderEpoch>,
        promise: Promise,
    },
    Forget {
        fence: LeaderEpoch,
        promise: Promise,
    },
}

/// Queues a change; the caller has taken in what it forbids.
fn queue(engine: &Engine, partition: &Arc<PartitionLog>, state: &mut State, control: Control) {
    state.controls.push_back(control);
    engine.queue(partition, &mut state.is_queued);
}

/// See [`crate::Log::open_generation`].
pub(crate) fn open(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
    start: Offset,
    descriptor: Bytes,
) -> Receipt {
    let (promise, receipt) = promise();
    let start = start.0;
    let mut state = partition.state.lock();
    let at = state.generations.partition_point(|one| one.epoch < epoch);
    let (below, above) = state.generations.split_at(at);
    let refusal = if !state.is_bound || state.is_leaving {
        Some("the partition is not held")
    } else if above.first().is_some_and(|one| one.epoch == epoch) {
        Some("the epoch is held already")
    } else if below.last().is_some_and(|one| one.start > start)
        || above.first().is_some_and(|one| one.start < start)
    {
        Some("the start lies outside of what its neighbours leave")
    } else if descriptor.len() > usize::from(u16::MAX) {
        Some("the descriptor is too large")
    } else {
        None
    };
    if let Some(why) = refusal {
        promise.resolve(Err(Failure::refused("open", "generation", why)));
        return receipt;
    }
    if let Err(failure) = engine.is_usable() {
        promise.resolve(Err(failure));
        return receipt;
    }
    if at == state.generations.len() {
        // The one before takes no more of its leader, and what it has goes to its segment in the background.
        state.fencing = state.fencing.max(epoch);
        if let Some(last) = state.generations.last_mut() {
            last.seal_run();
        }
    }
    state.insert(GenerationState::new(epoch, start, descriptor.clone()));
    partition.publish(&state);
    let control = Control::Open {
        epoch,
        start,
        descriptor,
        promise,
    };
    queue(engine, partition, &mut state, control);
    receipt
}

/// See [`crate::Log::fence`].
pub(crate) fn fence(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
) -> Receipt<Offset> {
    let (promise, receipt) = promise();
    let mut state = partition.state.lock();
    if let Err(failure) = engine.is_usable() {
        promise.resolve(Err(failure));
        return receipt;
    }
    state.fencing = state.fencing.max(epoch);
    let mut below = state.generations.iter().rev();
    let newest = below.find(|one| one.epoch < epoch);
    let control = Control::Fence {
        epoch,
        end: newest.map_or(0, |newest| newest.end),
        promise,
    };
    queue(engine, partition, &mut state, control);
    receipt
}

/// See [`crate::Log::truncate`].
pub(crate) fn truncate(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
    end: Offset,
) -> Receipt {
    let (promise, receipt) = promise();
    let mut state = partition.state.lock();
    if let Err(failure) = engine.is_usable() {
        promise.resolve(Err(failure));
        return receipt;
    }
    state.fencing = state.fencing.max(epoch.next());
    let held = state.generation(epoch).filter(|one| !one.is_leaving);
    let end = held.and_then(|generation| {
        let end = end.0.max(generation.start);
        let has_excess = end < generation.end;
        generation.is_closed |= has_excess;
        has_excess.then_some(end)
    });
    let control = Control::Truncate {
        epoch,
        end,
        promise,
    };
    queue(engine, partition, &mut state, control);
    receipt
}

/// See [`crate::Log::forget_generation`].
pub(crate) fn forget_generation(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
) -> Receipt {
    let (promise, receipt) = promise();
    let mut state = partition.state.lock();
    if let Err(failure) = engine.is_usable() {
        promise.resolve(Err(failure));
        return receipt;
    }
    let held = state.generation(epoch).filter(|one| !one.is_leaving);
    let held = held.map(|generation| {
        generation.leave();
        epoch
    });
    let control = Control::Drop {
        epoch: held,
        promise,
    };
    queue(engine, partition, &mut state, control);
    receipt
}

/// See [`crate::Log::forget`].
pub(crate) fn forget(engine: &Engine, partition: &Arc<PartitionLog>) -> Receipt {
    let (promise, receipt) = promise();
    let mut state = partition.state.lock();
    if let Err(failure) = engine.is_usable() {
        promise.resolve(Err(failure));
        return receipt;
    }
    if let Some(last) = state.generations.last() {
        state.fencing = state.fencing.max(last.epoch.next());
    }
    state.is_leaving = true;
    for generation in &mut state.generations {
        generation.leave();
    }
    let fence = state.fencing;
    queue(
        engine,
        partition,
        &mut state,
        Control::Forget { fence, promise },
    );
    receipt
}

impl Control {
    /// What goes into the journal; `None`: there was nothing to change, only an order to keep.
    pub(crate) fn record(&self) -> Option<Record<'_>> {
        match self {
            Self::Open {
                epoch,
                start,
                descriptor,
                ..
            } => Some(Record::Generation {
                epoch: *epoch,
                start: *start,
                descriptor,
            }),
            Self::Fence { epoch, .. } => Some(Record::Fence(*epoch)),
            Self::Truncate { epoch, end, .. } => {
                end.map(|end| Record::Truncate { epoch: *epoch, end })
            }
            Self::Drop { epoch, .. } => epoch.map(Record::Drop),
            Self::Forget { fence, .. } => Some(Record::Forget(*fence)),
        }
    }

    /// Its record is in a group: the generation that it opens may follow. Says whether it opens one.
    pub(crate) fn composed(&self, state: &mut State) -> bool {
        let Self::Open { epoch, .. } = self else {
            return false;
        };
        if let Some(generation) = state.generation(*epoch) {
            generation.record = generation::Record::Composed;
        }
        true
    }

    /// Its record is flushed.
    pub(crate) fn take_effect(self, partition: &Arc<PartitionLog>, engine: &Engine) {
        let mut state = partition.state.lock();
        match self {
            Self::Open { epoch, promise, .. } => {
                if let Some(generation) = state.generation(epoch) {
                    generation.record = generation::Record::Durable;
                }
                partition.publish(&state);
                drop(state);
                promise.resolve(Ok(()));
            }
            Self::Fence {
                epoch,
                end,
                promise,
            } => {
                state.fence = state.fence.max(epoch);
                drop(state);
                promise.resolve(Ok(Offset(end)));
            }
            Self::Truncate {
                epoch,
                end,
                promise,
            } => {
                if let Some((generation, end)) = state.generation(epoch).zip(end) {
                    generation.cut(end);
                }
                partition.publish(&state);
                drop(state);
                promise.resolve(Ok(()));
            }
            Self::Drop { epoch, promise } => {
                let gone = epoch.and_then(|epoch| state.take(epoch));
                partition.publish(&state);
                // What never had a record has no file either.
                if let Some(gone) = gone.filter(|gone| gone.end > gone.start || gone.file.is_some())
                {
                    state.left_over += 1;
                    drop(state);
                    drop(gone);
                    let files = Removal::Forgotten(Arc::clone(partition));
                    engine.removals.push(files);
                } else {
                    drop(state);
                }
                promise.resolve(Ok(()));
            }
            Self::Forget { fence, promise } => {
                state.fence = state.fence.max(fence);
                state.is_forgotten = true;
                state.is_leaving = false;
                state.is_bound = false;
                state.left_over += 1;
                let generations = std::mem::take(&mut state.generations);
                state.producers = None;
                // A partition that comes back begins at offset 0 again.
                state.delete_below = 0;
                partition.publish(&state);
                drop(state);
                drop(generations);
                let files = Removal::Forgotten(Arc::clone(partition));
                engine.removals.push(files);
                promise.resolve(Ok(()));
            }
        }
    }

    /// Ends it without effect.
    pub(crate) fn fail(self, failure: &Failure) {
        match self {
            Self::Open { promise, .. }
            | Self::Truncate { promise, .. }
            | Self::Drop { promise, .. }
            | Self::Forget { promise, .. } => promise.resolve(Err(failure.clone())),
            Self::Fence { promise, .. } => promise.resolve(Err(failure.clone())),
        }
    }
}
