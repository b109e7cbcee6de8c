//! Storing positions: appended to `__group_positions`, applied to the table once they are durable.
//!
//! Guarantees: the table takes batches in the order of the log, each when the commit offset has passed it, whether or
//! not the caller still waits. A shard has at most [`WRITES_MAX`] batches and about [`IN_FLIGHT_BYTES_MAX`] bytes on their
//! way; other commits wait a little for room, then are refused.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_groups::Refusal;
use floe_model::Timestamp;
use floe_wire::batch::{Builder, View};
use floe_wire::codec::{Codec, Scratch};
use tokio::sync::{mpsc, oneshot};

use super::shard::{Shard, State};
use super::snapshots::Keeper;
use super::usage::Usage;
use super::{Error, Inner};
use crate::node::Node;
use crate::{Pending, ProduceError, ProduceOptions, Unavailable};

/// Commits of one shard on their way to the disk.
pub(super) const WRITES_MAX: usize = 4096;
/// Bytes of them, unless one request alone is larger.
const IN_FLIGHT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How long a commit waits for room in the log.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause when a shard has too many commits on their way.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);
/// Rows of one batch, in bytes.
const BATCH_BYTES: usize = 256 * 1024;

/// A row's key and its new value; `None` deletes it.
pub(super) type Row = (Vec<u8>, Option<Vec<u8>>);

/// A batch on its way.
pub(super) struct Write {
    pending: Pending,
    batch: Bytes,
    done: oneshot::Sender<Result<(), ProduceError>>,
}

/// Resolves when rows are durable and in the table.
#[must_use = "positions are stored only when this has been waited for"]
pub(super) struct Receipt(Vec<oneshot::Receiver<Result<(), ProduceError>>>);

impl Receipt {
    pub(super) async fn stored(self) -> Result<(), Error> {
        for one in self.0 {
            let stopping = || unavailable(&Unavailable::Stopping);
            one.await
                .map_err(|_| stopping())?
                .map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }
}

/// Why a step under a shard's lock was not done.
pub(super) enum NotDone {
    /// The log or the queue is full for the moment.
    Busy(Duration),
    /// As the caller is told.
    Error(Error),
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for NotDone {
    fn from(refusal: Refusal) -> Self {
        Self::Error(refusal.into())
    }
}

impl Inner {
    /// Does a step under the shard's lock; while there is no room for what it stores, again after a pause. What was
    /// decided before the pause is decided anew.
    pub(super) async fn patiently<T>(
        &self,
        shard: &Shard,
        mut step: impl FnMut(&mut State) -> Result<T, NotDone>,
    ) -> Result<T, Error> {
        let until = self.now() + PATIENCE;
        loop {
            let done = step(&mut shard.lock());
            match done {
                Ok(value) => return Ok(value),
                Err(NotDone::Error(error)) => return Err(error),
                Err(NotDone::Busy(pause)) if self.now() + pause < until => {
                    floe_world::time::sleep(pause).await;
                }
                Err(NotDone::Busy(_)) => return Err(unavailable(&"the node is busy")),
            }
        }
    }
}

pub(super) fn unavailable(error: &dyn std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string().into())
}

impl State {
    /// Appends rows in this order. The caller holds the shard's lock, which is what orders them among other commits.
    pub(super) fn store(
        &mut self,
        node: &Node,
        shard: &Shard,
        rows: Vec<Row>,
    ) -> Result<Receipt, NotDone> {
        let batches = batches(node.world.clock.now(), rows);
        let bytes: usize = batches.iter().map(Bytes::len).sum();
        if self.in_flight > 0 && self.in_flight + bytes > IN_FLIGHT_BYTES_MAX {
            return Err(NotDone::Busy(QUEUE_PAUSE));
        }
        let mut receipts = Vec::new();
        for batch in batches {
            receipts.push(self.append(node, shard, batch)?);
        }
        Ok(Receipt(receipts))
    }

    fn append(
        &mut self,
        node: &Node,
        shard: &Shard,
        batch: Bytes,
    ) -> Result<oneshot::Receiver<Result<(), ProduceError>>, NotDone> {
        let stopping = || unavailable(&Unavailable::Stopping);
        let writes = self.writes.as_ref().ok_or_else(stopping)?;
        // Order: room first, then the append: what is in the log must reach the table.
        let room = writes.try_reserve().map_err(|error| match error {
            mpsc::error::TrySendError::Full(()) => NotDone::Busy(QUEUE_PAUSE),
            mpsc::error::TrySendError::Closed(()) => stopping().into(),
        })?;
        let led = node.partition(shard.partition).ok_or_else(stopping)?;
        let options = ProduceOptions { internal: true };
        let pending = led
            .append(&batch, options, node.now())
            .map_err(|error| match error {
                ProduceError::Unavailable(Unavailable::Busy { retry_after }) => {
                    NotDone::Busy(retry_after)
                }
                error => unavailable(&error).into(),
            })?;
        self.appended += 1;
        self.in_flight += batch.len();
        let (done, receipt) = oneshot::channel();
        room.send(Write {
            pending,
            batch,
            done,
        });
        Ok(receipt)
    }
}

fn batches(now: Timestamp, rows: Vec<Row>) -> Vec<Bytes> {
    let mut whole = Vec::new();
    let mut batch = Builder::new(Codec::None);
    for (key, value) in rows {
        batch
            .record(now, Some(&key), value.as_deref(), &[])
            .expect("a row is some kilobytes and a batch some hundred");
        if batch.bytes_len() >= BATCH_BYTES {
            whole.extend(std::mem::take(&mut batch).finish());
        }
    }
    whole.extend(batch.finish());
    whole.into_iter().map(Bytes::from).collect()
}

/// Applies a shard's batches as they become durable, until the node stops.
pub(super) async fn apply(
    node: Arc<Node>,
    shard: Arc<Shard>,
    usage: Arc<Usage>,
    mut writes: mpsc::Receiver<Write>,
    mut keeper: Keeper,
) {
    let mut scratch = Scratch::default();
    while let Some(write) = writes.recv().await {
        let stored = write.pending.await;
        let stored = stored.map(|produced| {
            let view = View::first(&write.batch).expect("it was built here");
            let mut state = shard.lock();
            let before = state.table.bytes();
            state
                .table
                .apply(&view, produced.base_offset, &mut scratch)
                .expect("it was built here");
            usage.positions_changed(before, state.table.bytes());
            keeper.applied(view.record_count().max(0).unsigned_abs().into());
        });
        shard.lock().in_flight -= write.batch.len();
        shard.dealt_with.send_modify(|count| *count += 1);
        // Whoever asked may be gone; the rows are in the table all the same.
        drop(write.done.send(stored));
        keeper.keep_if_due(&node, &shard).await;
    }
    keeper.keep_last(&shard).await;
}
