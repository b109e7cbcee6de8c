//! Room that is taken before something is decided: so that a follower's log never refuses what its state machine has taken.
//!
//! Guarantees: whoever holds an admission has memory for what it said, and the journal was not short when it got it. Nobody polls: a
//! waiter is woken by what may have made room. What all admissions hold is bounded by the memory of the tail; dropped, they give
//! it back.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

use floe_world::Buffer;
use parking_lot::Mutex;

use crate::append::refuse_when_full;
use crate::engine::Engine;
use crate::format::segment::{RUN_HEADER, TABLE_ENTRY};
use crate::partition::PartitionLog;
use crate::{AppendError, Full};

/// Room for batches that are to be appended as they are: see [`crate::Log::admit`].
#[derive(Debug)]
pub struct Admission {
    /// For a run of its own, should the open one have no room.
    pub(crate) buffer: Option<Buffer>,
    bytes: usize,
    batches: usize,
}

impl Admission {
    /// Whether so much was admitted.
    pub(crate) fn takes(&self, bytes: usize, batches: usize) -> bool {
        bytes <= self.bytes && batches <= self.batches
    }

    /// Bytes that were admitted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rung whenever there may be room that was not there.
#[derive(Default)]
pub(crate) struct Bell {
    rung: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.fetch_add(1, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for waker in waiting {
            waker.wake();
        }
    }

    fn count(&self) -> u64 {
        self.rung.load(Ordering::Acquire)
    }

    /// Wakes at the next ring; `false` if it has rung since it was counted.
    fn wait(&self, counted: u64, waker: &Waker) -> bool {
        let mut waiting = self.waiting.lock();
        let is_quiet = self.count() == counted;
        if is_quiet {
            waiting.push(waker.clone());
        }
        is_quiet
    }
}

/// See [`crate::Log::admit`].
pub(crate) async fn admit(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    bytes: usize,
    batches: usize,
) -> Result<Admission, AppendError> {
    let needed = RUN_HEADER + bytes + batches * TABLE_ENTRY;
    let limit = engine.config.run_bytes_max.min(engine.tail.limit());
    if floe_world::memory::class(needed) > limit {
        return Err(AppendError::TooLarge { bytes, limit });
    }
    journal(engine).await?;
    let wanted = partition.state.lock().run_bytes.max(needed);
    let buffer = match engine.tail_buffer(wanted, needed) {
        Some(buffer) => buffer,
        None => memory(engine, needed).await?,
    };
    Ok(Admission {
        buffer: Some(buffer),
        bytes,
        batches,
    })
}

/// Waits until the journal is not short.
async fn journal(engine: &Engine) -> Result<(), AppendError> {
    poll_fn(|context| {
        loop {
            let counted = engine.room.count();
            match refuse_when_full(engine) {
                Err(AppendError::Full(Full::Journal)) => {}
                other => return Poll::Ready(other),
            }
            if engine.room.wait(counted, context.waker()) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Waits for memory, in the order of asking, and lets leave what can.
async fn memory(engine: &Engine, needed: usize) -> Result<Buffer, AppendError> {
    let mut turn = pin!(engine.tail.get(needed));
    poll_fn(|context| {
        loop {
            let counted = engine.room.count();
            if let Poll::Ready(buffer) = turn.as_mut().poll(context) {
                return Poll::Ready(Ok(buffer));
            }
            match refuse_when_full(engine) {
                Ok(()) | Err(AppendError::Full(Full::Journal)) => {}
                Err(other) => return Poll::Ready(Err(other)),
            }
            if engine.evict_oldest() {
                continue;
            }
            // A checkpoint writes what many small runs hold, and lets it go.
            engine.checkpoint_wanted.set();
            if engine.room.wait(counted, context.waker()) {
                return Poll::Pending;
            }
        }
    })
    .await
}
