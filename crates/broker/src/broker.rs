//! The node as its doors see it. Cheap to clone; the last clone does not stop it, [`Broker::stop`] does.

use std::sync::Arc;

use bytes::Bytes;
use floe_cluster::settings::InForce;
use floe_cluster::{Catalog, Topic, TopicSettings};
use floe_model::{LeaderEpoch, NodeId, Offset, TopicId, TopicPartition};
use tokio::sync::watch;

use crate::groups::Groups;
use crate::{
    CreateTopicError, DeleteTopicError, EpochEnd, Fetch, FetchedPart, FoundOffset, Isolation,
    NewTopic, OffsetError, OffsetSpec, Pending, ProduceError, ProduceOptions, ProducerIdentity,
    Settings, StartError, Unavailable, World,
};

/// A running node.
#[derive(Clone)]
pub struct Broker(Arc<Inner>);

struct Inner {
    world: World,
    settings: Settings,
    catalog: watch::Sender<Arc<Catalog>>,
    groups: Groups,
}

#[expect(
    clippy::unused_async,
    reason = "the surface first; what is behind it follows"
)]
impl Broker {
    /// Opens the data directory, recovers, seals and opens every generation, and is ready. `on_failure` is called
    /// once when a write or flush has failed: nothing is acknowledged from then on, and the process is to end.
    pub async fn start(
        world: World,
        settings: Settings,
        on_failure: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        drop(on_failure);
        unreachable!("{} {}", settings.data_dir.display(), world.clock.now())
    }

    /// Ends it: what is acknowledged is durable already; this makes the next start short.
    pub async fn stop(&self) {
        unreachable!()
    }

    /// The outside it lives in.
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// What it was started with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// This node's id.
    pub fn node(&self) -> NodeId {
        self.0.settings.node
    }

    /// The catalog now; an immutable value.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.borrow().clone()
    }

    /// The catalog now and after every change.
    pub fn catalog_watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.catalog.subscribe()
    }

    /// Consumer groups.
    pub fn groups(&self) -> &Groups {
        &self.0.groups
    }

    /// The settings in force for a topic.
    pub fn topic_settings(&self, topic: &Topic) -> TopicSettings {
        unreachable!("{}", topic.name)
    }

    /// Every setting of a topic with value, default and origin.
    pub fn describe_settings(&self, topic: &Topic) -> Vec<InForce> {
        self.topic_settings(topic)
            .describe(&self.0.settings.topic_defaults, &topic.overrides)
    }

    /// Creates a topic; it can be written to when this returns. With `validate_only`, what it would be.
    pub async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, CreateTopicError> {
        unreachable!("{}", new.name)
    }

    /// Creates one of Floe's own topics (name begins with `__`), compacted if asked; there already is fine.
    pub async fn create_internal_topic(
        &self,
        name: &str,
        partitions: u32,
        compact: bool,
    ) -> Result<Arc<Topic>, CreateTopicError> {
        unreachable!("{name} {partitions} {compact}")
    }

    /// The topic of this name; created with defaults if absent, when `auto.create.topics.enable` is on.
    /// `Ok(None)`: absent, and not created.
    pub async fn topic_or_create(
        &self,
        name: &str,
    ) -> Result<Option<Arc<Topic>>, CreateTopicError> {
        unreachable!("{name}")
    }

    /// Deletes a topic: its records, positions and files are gone when this returns.
    pub async fn delete_topic(&self, name: &str) -> Result<(), DeleteTopicError> {
        unreachable!("{name}")
    }

    /// Deletes one life of a topic.
    pub async fn delete_topic_by_id(&self, id: TopicId) -> Result<(), DeleteTopicError> {
        unreachable!("{id}")
    }

    /// Appends one batch. Never blocks on I/O: checks, assigns and enqueues; the answer waits in [`Pending`]. Appends made one
    /// after another by one caller keep their order.
    pub fn produce(
        &self,
        partition: TopicPartition,
        batch: &Bytes,
        options: ProduceOptions,
    ) -> Result<Pending, ProduceError> {
        unreachable!("{partition} {} {options:?}", batch.len())
    }

    /// Reads; waits inside until there is enough, or `max_wait` is over. One answer per part, in the order asked.
    pub async fn fetch(&self, fetch: Fetch) -> Vec<FetchedPart> {
        unreachable!("{fetch:?}")
    }

    /// Looks up an offset; `Ok(None)` when no record is there for it.
    pub async fn list_offset(
        &self,
        partition: TopicPartition,
        spec: OffsetSpec,
        isolation: Isolation,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<FoundOffset>, OffsetError> {
        unreachable!("{partition} {spec:?} {isolation:?} {current_epoch:?}")
    }

    /// Where an epoch ends, from the chain of generations; `Ok(None)` when the epoch is below or above all that is known.
    pub fn offset_for_epoch(
        &self,
        partition: TopicPartition,
        epoch: LeaderEpoch,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<EpochEnd>, OffsetError> {
        unreachable!("{partition} {epoch} {current_epoch:?}")
    }

    /// Raises a partition's log start (never lowers it; at most to the commit offset). Whole segments below it are deleted.
    /// Returns the log start in force.
    pub async fn advance_log_start(
        &self,
        partition: TopicPartition,
        to: Offset,
    ) -> Result<Offset, OffsetError> {
        unreachable!("{partition} {to}")
    }

    /// A fresh id for an idempotent producer.
    pub async fn init_producer_id(&self) -> Result<ProducerIdentity, Unavailable> {
        unreachable!()
    }
}
