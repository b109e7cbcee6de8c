//! What a running node shares between its parts: the log, the partitions led here, the catalog as published.
//!
//! Guarantees: finding a partition and reading the catalog take no lock. Changes of both come from the controller alone.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use floe_cluster::{Catalog, Command, Holdings, Topic, TopicSettings};
use floe_log::Log;
use floe_model::{Boot, TopicPartition};
use tokio::sync::watch;

use crate::controller::Proposals;
use crate::metrics::Metrics;
use crate::partition::{Ended, Now, Partition, Tally};
use crate::producer_ids::ProducerIds;
use crate::replica::{Outside, Replica};
use crate::{Pending, ProduceError, ProduceOptions, Settings, Unavailable, World};

/// Copies held here.
pub(crate) type Replicas = HashMap<TopicPartition, Arc<Replica>>;

/// See the module.
pub(crate) struct Node {
    pub(crate) world: World,
    pub(crate) settings: Settings,
    pub(crate) boot: Boot,
    pub(crate) log: Log,
    pub(crate) replicas: Arc<ArcSwap<Replicas>>,
    pub(crate) outside: Arc<Outside>,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) changed: watch::Sender<Arc<Catalog>>,
    pub(crate) proposals: Proposals,
    pub(crate) producer_ids: ProducerIds,
    pub(crate) producers: Tally,
    pub(crate) metrics: Arc<Metrics>,
    /// Set once, when the node stops.
    pub(crate) stopping: watch::Sender<bool>,
}

impl Node {
    /// The copy held here.
    pub(crate) fn replica(&self, address: TopicPartition) -> Option<Arc<Replica>> {
        self.replicas.load().get(&address).cloned()
    }

    /// The partition, if it is led here.
    pub(crate) fn partition(&self, address: TopicPartition) -> Option<Arc<Partition>> {
        self.replicas.load().get(&address)?.led()
    }

    /// Whether another node leads this partition.
    pub(crate) fn is_elsewhere(&self, address: TopicPartition) -> bool {
        let catalog = self.catalog.load();
        let known = catalog.partition(address);
        known.is_some_and(|partition| partition.leader.node != self.settings.node)
    }

    /// Partitions led here, in a stable order.
    pub(crate) fn all_partitions(&self) -> Vec<Arc<Partition>> {
        let replicas = self.replicas.load();
        let mut all: Vec<_> = replicas.values().filter_map(|held| held.led()).collect();
        all.sort_unstable_by_key(|partition| partition.address);
        all
    }

    /// See [`Broker::produce`](crate::Broker::produce).
    pub(crate) fn produce(
        &self,
        address: TopicPartition,
        batch: &Bytes,
        options: ProduceOptions,
    ) -> Result<Pending, ProduceError> {
        let partition = self.partition(address).ok_or_else(|| {
            if self.is_elsewhere(address) {
                ProduceError::NotLeader(address)
            } else {
                ProduceError::UnknownPartition(address)
            }
        })?;
        let appended = partition.append(batch, options, self.now());
        match &appended {
            Ok(_) => self.metrics.produced(batch.len()),
            Err(_) => self.metrics.refused(),
        }
        self.make_room_for_producers();
        appended
    }

    /// Keeps the number of idempotent producers known here within its bound.
    pub(crate) fn make_room_for_producers(&self) {
        if !self.producers.is_full() {
            return;
        }
        let led = self.all_partitions();
        let all = led.iter().map(|partition| partition.producers());
        let now = self.world.clock.monotonic();
        self.metrics
            .forgot_producers(self.producers.make_room(all, now));
    }

    /// Both clocks.
    pub(crate) fn now(&self) -> Now {
        Now {
            wall: self.world.clock.now(),
            monotonic: self.world.clock.monotonic(),
        }
    }

    /// Says how many partitions are led here.
    pub(crate) fn count_partitions(&self) {
        let replicas = self.replicas.load();
        let led = replicas.values().filter(|held| held.led().is_some());
        self.metrics.partitions(led.count());
    }

    /// The settings in force for a topic.
    pub(crate) fn settings_of(&self, topic: &Topic) -> TopicSettings {
        settings_of(&self.settings, topic)
    }

    /// Has a command committed and applied, here too.
    pub(crate) async fn propose(
        &self,
        command: Command,
    ) -> Result<floe_cluster::Applied, Unavailable> {
        self.proposals.propose(command).await
    }

    /// The generations that this node has something of.
    pub(crate) fn holdings(&self) -> Holdings {
        let replicas = self.replicas.load();
        let held = replicas.iter().map(|(address, replica)| {
            let generations = replica.log.generations();
            let epochs = generations.iter().map(|held| held.epoch);
            (*address, epochs.collect())
        });
        held.collect()
    }

    /// Publishes a change of the catalog.
    pub(crate) fn publish(&self, catalog: &Arc<Catalog>) {
        self.catalog.store(Arc::clone(catalog));
        self.changed.send_replace(Arc::clone(catalog));
    }

    /// Whether the node is on its way down.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Answers everyone who waits: nothing more comes.
    pub(crate) fn end_waits(&self) {
        for replica in self.replicas.load().values() {
            replica.end(Ended::Stopping);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for replica in self.replicas.load().values() {
            replica.let_go();
        }
    }
}

/// The settings in force for a topic on a node with these settings. What was accepted when the topic was created stays
/// readable: a value this release does not know falls back to the default.
pub(crate) fn settings_of(settings: &Settings, topic: &Topic) -> TopicSettings {
    let mut resolved = settings.topic_defaults.clone();
    for (name, value) in &topic.overrides {
        if topic.internal && name == "cleanup.policy" {
            resolved.compact = value == "compact";
        } else if let Err(error) = resolved.set(name, value) {
            tracing::warn!(topic = %topic.name, %error, "a stored topic setting is not understood; its default holds");
        }
    }
    if topic.internal {
        resolved.retention_ms = None;
        resolved.retention_bytes = None;
        resolved.timestamp_after_max_ms = i64::MAX as u64;
        // What Floe writes itself must not depend on what users may write.
        resolved.max_message_bytes = floe_model::limits::BATCH_BYTES_MAX as u32;
    }
    resolved
}
