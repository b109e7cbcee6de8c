//! When a shard's table is written to disk, and what of its log may go then.

use std::sync::Arc;

use floe_state::{Error, Snapshots, Table};
use floe_world::tasks;
use floe_world::tasks::Handle;

use super::shard::Shard;
use crate::node::Node;

/// Records applied after which the table is written again.
const RECORDS_BETWEEN: u64 = 50_000;

/// Writes the snapshots of one shard, one at a time, beside the shard's work.
pub(super) struct Keeper {
    /// `None` while a write is under way.
    snapshots: Option<Snapshots>,
    writing: Option<Handle<(Snapshots, Result<(), Error>)>>,
    since: u64,
}

impl Keeper {
    /// `replayed` records were applied since the newest snapshot.
    pub(super) fn new(snapshots: Snapshots, replayed: u64) -> Self {
        Self {
            snapshots: Some(snapshots),
            writing: None,
            since: replayed,
        }
    }

    pub(super) fn applied(&mut self, records: u64) {
        self.since += records;
    }

    /// Starts a write if enough has been applied since the last; never waits for it.
    pub(super) async fn keep_if_due(&mut self, node: &Node, shard: &Shard) {
        if self.writing.as_ref().is_some_and(Handle::is_finished) {
            self.finish().await;
            self.compact(node, shard).await;
        }
        if self.since >= RECORDS_BETWEEN && self.snapshots.is_some() {
            self.start(shard.lock().table.clone());
        }
    }

    /// Writes what has changed since the last snapshot, so that the next start replays nothing.
    pub(super) async fn keep_last(&mut self, shard: &Shard) {
        self.finish().await;
        if self.since > 0 {
            self.start(shard.lock().table.clone());
            self.finish().await;
        }
    }

    fn start(&mut self, table: Table) {
        let Some(mut snapshots) = self.snapshots.take() else {
            return;
        };
        self.since = 0;
        self.writing = Some(tasks::blocking(move || {
            let written = snapshots.write(&table);
            (snapshots, written)
        }));
    }

    async fn finish(&mut self) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        let (snapshots, written) = writing.await;
        if let Err(error) = written {
            tracing::warn!(%error, "positions are safe in their log; their table will be written again later");
        }
        self.snapshots = Some(snapshots);
    }

    /// The table's log loses what two snapshots hold.
    async fn compact(&self, node: &Node, shard: &Shard) {
        let Some(below) = self.snapshots.as_ref().and_then(Snapshots::deletable_below) else {
            return;
        };
        if let Err(error) = node.advance_log_start(shard.partition, below).await {
            tracing::warn!(%error, partition = %shard.partition, "the log of positions was not shortened");
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

/// The snapshots of a shard's table.
pub(super) fn of(node: &Arc<Node>, partition: floe_model::TopicPartition) -> Snapshots {
    let name = format!("{}-{}", partition.topic, partition.partition);
    let dir = node.settings.data_dir.join("tables").join(name);
    Snapshots::new(Arc::clone(&node.world.disk), dir, partition)
}
