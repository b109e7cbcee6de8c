//! The node as its doors see it. Cheap to clone; the last clone does not stop it, [`Broker::stop`] does.

use std::sync::Arc;

use bytes::Bytes;
use floe_cluster::settings::InForce;
use floe_cluster::{Catalog, EpochEnd, Topic, TopicSettings};
use floe_model::{LeaderEpoch, NodeId, Offset, TopicId, TopicPartition};
use floe_world::tasks;
use tokio::sync::watch;

use crate::groups::Groups;
use crate::metrics::Metrics;
use crate::node::Node;
use crate::{
    CreateTopicError, DeleteTopicError, Fetch, FetchedPart, FoundOffset, Isolation, NewTopic,
    OffsetError, OffsetSpec, Pending, ProduceError, ProduceOptions, ProducerIdentity, Settings,
    StartError, Unavailable, World, start, upkeep,
};

/// A running node.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

struct Inner {
    node: Arc<Node>,
    groups: Groups,
}

/// Gone without [`Broker::stop`]: its tasks end; the next start replays.
impl Drop for Inner {
    fn drop(&mut self) {
        self.node.stopping.send_replace(true);
    }
}

impl Broker {
    /// Opens the data directory, recovers, seals and opens every generation, and is ready. `on_failure` is called
    /// once when a write or flush has failed: nothing is acknowledged from then on, and the process is to end.
    pub async fn start(
        world: World,
        settings: Settings,
        on_failure: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let node = start::start(world, settings, Box::new(on_failure)).await?;
        let groups = Groups::start(Arc::clone(&node)).await?;
        Ok(Self(Arc::new(Inner { node, groups })))
    }

    /// Ends it: what is acknowledged is durable already; this makes the next start short.
    pub async fn stop(&self) {
        let node = Arc::clone(&self.0.node);
        if node.stopping.send_replace(true) {
            return;
        }
        self.0.groups.stop().await;
        let closed = tasks::blocking(move || {
            upkeep::keep_all(&node);
            let closed = node.log.close();
            node.end_waits();
            closed
        });
        if let Err(failure) = closed.await {
            tracing::error!(%failure, "the last checkpoint failed; the next start reads more of the journal");
        }
    }

    /// The outside it lives in.
    pub fn world(&self) -> &World {
        &self.0.node.world
    }

    /// What it was started with.
    pub fn settings(&self) -> &Settings {
        &self.0.node.settings
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.0.node.metrics
    }

    /// What its log counts.
    pub fn log_metrics(&self) -> &floe_log::Metrics {
        self.0.node.log.metrics()
    }

    /// This node's id.
    pub fn node(&self) -> NodeId {
        self.0.node.settings.node
    }

    /// The catalog now; an immutable value.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.node.catalog.load_full()
    }

    /// The catalog now and after every change.
    pub fn catalog_watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.node.changed.subscribe()
    }

    /// Consumer groups.
    pub fn groups(&self) -> &Groups {
        &self.0.groups
    }

    /// The settings in force for a topic.
    pub fn topic_settings(&self, topic: &Topic) -> TopicSettings {
        self.0.node.settings_of(topic)
    }

    /// Every setting of a topic with value, default and origin.
    pub fn describe_settings(&self, topic: &Topic) -> Vec<InForce> {
        self.topic_settings(topic)
            .describe(&self.settings().topic_defaults, &topic.overrides)
    }

    /// Creates a topic; it can be written to when this returns. With `validate_only`, what it would be.
    pub async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, CreateTopicError> {
        self.0.node.create_topic(new).await
    }

    /// Creates one of Floe's own topics (doors do not write it, nobody deletes it, its records do not age); there already is
    /// fine. `compact`: records need keys, and its owner keeps it short with [`Broker::advance_log_start`].
    pub async fn create_internal_topic(
        &self,
        name: &str,
        partitions: u32,
        compact: bool,
    ) -> Result<Arc<Topic>, CreateTopicError> {
        self.0
            .node
            .create_internal_topic(name, partitions, compact)
            .await
    }

    /// The topic of this name; created with defaults if absent, when `auto.create.topics.enable` is on.
    /// `Ok(None)`: absent, and not created.
    pub async fn topic_or_create(
        &self,
        name: &str,
    ) -> Result<Option<Arc<Topic>>, CreateTopicError> {
        self.0.node.topic_or_create(name).await
    }

    /// Deletes a topic: its records, files and positions are gone when this returns.
    pub async fn delete_topic(&self, name: &str) -> Result<(), DeleteTopicError> {
        match self.catalog().topic(name).map(|topic| topic.id) {
            Some(id) => self.delete_topic_by_id(id).await,
            None => Err(DeleteTopicError::Unknown(name.to_owned())),
        }
    }

    /// Deletes one life of a topic.
    pub async fn delete_topic_by_id(&self, id: TopicId) -> Result<(), DeleteTopicError> {
        self.0.node.delete_topic_by_id(id).await?;
        self.0.groups.forget_topic(id).await;
        Ok(())
    }

    /// Appends one batch. Never blocks on I/O: checks, assigns and enqueues; the answer waits in [`Pending`]. Appends made one
    /// after another by one caller keep their order.
    pub fn produce(
        &self,
        partition: TopicPartition,
        batch: &Bytes,
        options: ProduceOptions,
    ) -> Result<Pending, ProduceError> {
        self.0.node.produce(partition, batch, options)
    }

    /// What a caller is told that does not wait for its [`Pending`] any longer.
    pub fn undecided(&self) -> ProduceError {
        ProduceError::Undecided {
            is_disk_full: self.0.node.log.is_disk_full(),
        }
    }

    /// Reads; waits inside until there is enough, or `max_wait` is over. One answer per part, in the order asked.
    pub async fn fetch(&self, fetch: Fetch) -> Vec<FetchedPart> {
        self.0.node.fetch(&fetch).await
    }

    /// Looks up an offset; `Ok(None)` when no record is there for it. Without transactions both isolations see the same.
    pub async fn list_offset(
        &self,
        partition: TopicPartition,
        spec: OffsetSpec,
        _isolation: Isolation,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<FoundOffset>, OffsetError> {
        self.0
            .node
            .list_offset(partition, spec, current_epoch)
            .await
    }

    /// Where an epoch ends, from the chain of generations; `Ok(None)` when the epoch is above all that is known.
    pub fn offset_for_epoch(
        &self,
        partition: TopicPartition,
        epoch: LeaderEpoch,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<EpochEnd>, OffsetError> {
        self.0
            .node
            .offset_for_epoch(partition, epoch, current_epoch)
    }

    /// Raises a partition's log start (never lowers it; at most to the commit offset). Whole segments below it are deleted.
    /// Returns the log start in force.
    pub async fn advance_log_start(
        &self,
        partition: TopicPartition,
        to: Offset,
    ) -> Result<Offset, OffsetError> {
        self.0.node.advance_log_start(partition, to).await
    }

    /// Deletes what retention allows, now; the node does it by itself every `log.retention.check.interval.ms`.
    pub async fn enforce_retention(&self) -> Result<(), Unavailable> {
        self.0.node.enforce_retention().await
    }

    /// A fresh id for an idempotent producer.
    pub async fn init_producer_id(&self) -> Result<ProducerIdentity, Unavailable> {
        self.0.node.init_producer_id().await
    }
}
