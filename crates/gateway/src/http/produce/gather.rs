//! Small records of many callers share batches: while the last append of a partition is under way, what arrives for it
//! waits, and goes as one batch when that append is durable.
//!
//! Guarantees: nobody waits for a clock; an idle partition appends at once. A batch that is refused for one of its
//! records is appended record by record, so that each caller hears of its own record only. What waits is bounded by the
//! memory that the callers' bodies were charged for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_broker::{Broker, ProduceError, ProduceOptions, Unavailable};
use floe_model::{Offset, TopicPartition};
use floe_wire::batch::Builder;
use floe_world::tasks;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::Api;
use super::super::metrics::Metrics;
use super::Record;
use super::batches::too_large;

/// Largest batch made here: beyond this, sharing gains nothing.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// See the file's head.
#[derive(Clone, Default)]
pub(crate) struct Gatherer(Arc<Mutex<HashMap<TopicPartition, Vec<Waiting>>>>);

struct Waiting {
    record: Record,
    /// The topic's `max.message.bytes`.
    limit: usize,
    answer: oneshot::Sender<Result<Offset, ProduceError>>,
}

impl Gatherer {
    /// Appends one record; answers when it is durable.
    pub(super) async fn append(
        &self,
        api: &Api,
        partition: TopicPartition,
        limit: usize,
        record: Record,
    ) -> Result<Offset, ProduceError> {
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting {
            record,
            limit,
            answer: sender,
        };
        if let Some(first) = self.join(partition, waiting) {
            let round = Round {
                gatherer: self.clone(),
                broker: api.broker.clone(),
                metrics: api.metrics.clone(),
                partition,
                patience: api.gate.limits.durable,
                is_over: false,
            };
            drop(tasks::spawn(round.run(first)));
        }
        // The other end goes without an answer only when the runtime is shut down.
        receiver.await.unwrap_or(Err(Unavailable::Stopping.into()))
    }

    /// Waits with others, or is given back to begin a round.
    fn join(&self, partition: TopicPartition, waiting: Waiting) -> Option<Waiting> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get_mut(&partition) {
            queue.push(waiting);
            return None;
        }
        queues.insert(partition, Vec::new());
        Some(waiting)
    }

    /// What has gathered; the round ends when there is nothing.
    fn next(&self, partition: TopicPartition) -> Vec<Waiting> {
        let mut queues = self.0.lock();
        let gathered = queues
            .get_mut(&partition)
            .map(std::mem::take)
            .unwrap_or_default();
        if gathered.is_empty() {
            queues.remove(&partition);
        }
        gathered
    }
}

/// Appends of one partition, one after another, as long as there are some.
struct Round {
    gatherer: Gatherer,
    broker: Broker,
    metrics: Metrics,
    partition: TopicPartition,
    /// No caller waits longer, so a round does not either: those behind it have their turn.
    patience: Duration,
    is_over: bool,
}

impl Round {
    async fn run(mut self, first: Waiting) {
        let mut gathered = vec![first];
        while !gathered.is_empty() {
            // Who does not wait any more was told so and may have sent it again.
            gathered.retain(|waiting| !waiting.answer.is_closed());
            for batch in split(gathered) {
                self.append(batch).await;
            }
            gathered = self.gatherer.next(self.partition);
        }
        self.is_over = true;
    }

    async fn append(&self, batch: Vec<Waiting>) {
        match self.produce(&batch).await {
            Ok(base) => {
                let count = batch.len() as u64;
                self.metrics.batch_records.observe(count as f64);
                self.metrics.produce_records.inc_by(count);
                for (place, waiting) in batch.into_iter().enumerate() {
                    // A caller that is gone needs no answer.
                    drop(waiting.answer.send(Ok(base.plus(place as u64))));
                }
            }
            Err(error) if batch.len() > 1 && matches!(error, ProduceError::Batch { .. }) => {
                for waiting in batch {
                    Box::pin(self.append(vec![waiting])).await;
                }
            }
            Err(error) => {
                for waiting in batch {
                    drop(waiting.answer.send(Err(error.clone())));
                }
            }
        }
    }

    async fn produce(&self, batch: &[Waiting]) -> Result<Offset, ProduceError> {
        let mut builder = Builder::default();
        let (mut limit, mut payload) = (usize::MAX, 0);
        for Waiting {
            record, limit: own, ..
        } in batch
        {
            limit = limit.min(*own);
            let value = record.value.as_deref();
            builder
                .record(record.timestamp, record.key.as_deref(), value, &[])
                .map_err(|_| too_large(i32::MAX as usize, payload, *own))?;
            payload += record.key.as_ref().map_or(0, Bytes::len) + value.map_or(0, <[u8]>::len);
        }
        let bytes = builder.bytes_len();
        if bytes > limit {
            return Err(too_large(bytes, payload, limit));
        }
        let bytes = builder
            .finish()
            .expect("a round's batch holds one record at least");
        let options = ProduceOptions::default();
        let pending = self
            .broker
            .produce(self.partition, &Bytes::from(bytes), options)?;
        let longest = self.patience;
        let produced = timeout(longest, pending).await;
        let produced = produced.unwrap_or_else(|_| Err(self.broker.undecided()))?;
        Ok(produced.base_offset)
    }
}

impl Drop for Round {
    /// Whatever cuts a round short, nobody is left waiting on it.
    fn drop(&mut self) {
        if !self.is_over {
            self.gatherer.0.lock().remove(&self.partition);
        }
    }
}

/// In order, into groups of which each makes one batch.
fn split(gathered: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let mut groups: Vec<Vec<Waiting>> = Vec::new();
    let mut bytes = usize::MAX;
    for waiting in gathered {
        let record = &waiting.record;
        let more = Builder::record_bytes(record.key.as_deref(), record.value.as_deref(), &[]);
        let most = BATCH_BYTES_MAX.min(waiting.limit);
        if bytes.saturating_add(more) > most {
            groups.push(Vec::new());
            bytes = floe_wire::batch::HEADER_BYTES;
        }
        bytes += more;
        if let Some(group) = groups.last_mut() {
            group.push(waiting);
        }
    }
    groups
}
