//! What a node does by itself from time to time: retention, and keeping the state of producers so that a start is short.
//!
//! Guarantees: ends with the node. Times between runs come from the runtime, what is old from the node's clock.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use floe_model::{Offset, TopicPartition};
use floe_world::tasks;

use crate::node::Node;
use crate::partition::Partition;

/// How often new batches are looked for.
const PRODUCERS_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes after which the state is kept again: what a start reads of a partition at most, beside what the journal holds.
const PRODUCERS_BYTES: u64 = 16 << 20;

/// Bytes kept after which a checkpoint is asked for: large appends leave the journal, and so its checkpoints, nearly idle.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// Starts the tasks.
pub(crate) fn spawn(node: &Arc<Node>) {
    tasks::spawn(retention(
        Arc::downgrade(node),
        node.settings.retention_check_interval,
    ));
    tasks::spawn(producers(Arc::downgrade(node)));
}

/// Waits for the next run; `None` when the node has ended.
async fn next(node: &Weak<Node>, interval: Duration) -> Option<Arc<Node>> {
    let mut stopping = node.upgrade()?.stopping.subscribe();
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stopping| *stopping) => return None,
        () = floe_world::time::sleep(interval) => {}
    }
    node.upgrade().filter(|node| !node.is_stopping())
}

async fn retention(weak: Weak<Node>, interval: Duration) {
    while let Some(node) = next(&weak, interval).await {
        if let Err(error) = node.enforce_retention().await {
            tracing::warn!(%error, "old data could not be deleted now");
        }
    }
}

async fn producers(weak: Weak<Node>) {
    let mut keeper = Keeper::default();
    while let Some(node) = next(&weak, PRODUCERS_INTERVAL).await {
        keeper.run(&node);
    }
}

/// Snapshots on their way into the log: one is given to it only once everything below it is durable.
#[derive(Default)]
struct Keeper {
    /// How much was appended when the state was drawn last.
    seen: HashMap<TopicPartition, u64>,
    drawn: HashMap<TopicPartition, (Offset, Bytes)>,
    /// Bytes whose producers were kept since a checkpoint was asked for.
    unchecked: u64,
}

impl Keeper {
    fn run(&mut self, node: &Node) {
        let now = node.world.clock.monotonic();
        let partitions = node.all_partitions();
        self.seen
            .retain(|address, _| node.partition(*address).is_some());
        self.drawn
            .retain(|address, _| node.partition(*address).is_some());
        for partition in &partitions {
            self.keep_drawn(node, partition);
            let appended = partition.appended_bytes();
            let seen = self.seen.entry(partition.address).or_default();
            let is_due = appended.saturating_sub(*seen) >= PRODUCERS_BYTES;
            if is_due && !self.drawn.contains_key(&partition.address) {
                self.unchecked += appended - *seen;
                *seen = appended;
                let expiration = node.settings.producer_expiration;
                partition.producers().lock().expire(expiration, now);
                self.drawn.insert(partition.address, draw(partition));
                self.keep_drawn(node, partition);
            }
        }
        if self.unchecked >= CHECKPOINT_BYTES {
            self.unchecked = 0;
            node.log.checkpoint_soon();
        }
    }

    fn keep_drawn(&mut self, node: &Node, partition: &Partition) {
        let is_durable = self
            .drawn
            .get(&partition.address)
            .is_some_and(|(at, _)| *at <= partition.committed());
        if !is_durable {
            return;
        }
        if let Some((at, bytes)) = self.drawn.remove(&partition.address) {
            node.log.keep_producers(&partition.log, at, bytes);
        }
    }
}

/// The state of a partition's producers and the end it belongs to.
fn draw(partition: &Partition) -> (Offset, Bytes) {
    let producers = partition.producers().lock();
    // Idempotent appends hold this lock; others change no sequence, so an end read under it belongs to the state.
    (
        partition.log.end(),
        producers.snapshot(partition.epoch).into(),
    )
}

/// Keeps the state of every partition, at the end of a node's life.
pub(crate) fn keep_all(node: &Node) {
    for partition in node.all_partitions() {
        if partition.appended_bytes() == 0 {
            continue;
        }
        let (at, bytes) = draw(&partition);
        if at <= partition.committed() {
            node.log.keep_producers(&partition.log, at, bytes);
        }
    }
}
