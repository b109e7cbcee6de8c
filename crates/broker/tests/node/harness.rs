//! A broker, the world it lives in, and short words for what the tests do with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use floe_broker::{
    Broker, Fetch, FetchPart, FetchedPart, Isolation, NewTopic, OffsetSpec, Pending, ProduceError,
    ProduceOptions, Produced, Settings, StartError, World,
};
use floe_model::{Offset, PartitionIndex, Timestamp, TopicPartition};
use floe_wire::batch::{Builder, Producer, batches, records};
use floe_wire::codec::{Codec, Scratch};
use floe_world::{Pool, clock, disk, random};

/// Where the clock of every test starts.
pub(crate) const START: i64 = 1_700_000_000_000;

/// The outside of one node, which outlives its processes.
pub(crate) struct Outside {
    pub(crate) disk: disk::Simulated,
    pub(crate) clock: Arc<clock::Manual>,
    random: Arc<random::Seeded>,
    /// What the broker said when a write failed.
    pub(crate) failures: Arc<Mutex<Vec<String>>>,
    pub(crate) settings: Settings,
}

impl Outside {
    pub(crate) fn new() -> Self {
        Self::seeded(7)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        let mut settings = Settings::new(PathBuf::from("/data"));
        settings.log.ring_bytes = 64 << 20;
        Self {
            disk: disk::Simulated::new(seed),
            clock: Arc::new(clock::Manual::at(Timestamp(START))),
            random: Arc::new(random::Seeded::new(seed)),
            failures: Arc::default(),
            settings,
        }
    }

    pub(crate) async fn start(&self) -> Node {
        self.try_start().await.unwrap()
    }

    pub(crate) async fn try_start(&self) -> Result<Node, StartError> {
        let world = World {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::clone(&self.random) as _,
            memory: Pool::new(128 << 20),
        };
        let failures = Arc::clone(&self.failures);
        let told = move |what: &str| failures.lock().unwrap().push(what.to_owned());
        let broker = Broker::start(world, self.settings.clone(), told).await?;
        Ok(Node(broker))
    }
}

/// A running broker.
#[derive(Clone)]
pub(crate) struct Node(pub(crate) Broker);

impl Node {
    /// Creates a topic of so many partitions.
    pub(crate) async fn topic(&self, name: &str, partitions: i32) -> TopicPartition {
        self.topic_with(name, partitions, &[]).await
    }

    pub(crate) async fn topic_with(
        &self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> TopicPartition {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let new = NewTopic {
            name: name.to_owned(),
            partitions: Some(partitions),
            settings: settings.collect(),
            ..NewTopic::default()
        };
        let topic = self.0.create_topic(new).await.unwrap();
        topic.address(PartitionIndex(0))
    }

    /// Names of the topics that are not Floe's own.
    pub(crate) fn names(&self) -> Vec<String> {
        let catalog = self.0.catalog();
        let topics = catalog.topics.values().filter(|topic| !topic.internal);
        topics.map(|topic| topic.name.to_string()).collect()
    }

    /// Partition 0 of a topic that exists.
    pub(crate) fn find(&self, name: &str) -> TopicPartition {
        self.0
            .catalog()
            .topic(name)
            .unwrap()
            .address(PartitionIndex(0))
    }

    pub(crate) fn begin(&self, at: TopicPartition, batch: &Bytes) -> Result<Pending, ProduceError> {
        self.0.produce(at, batch, ProduceOptions::default())
    }

    /// Appends and waits.
    pub(crate) async fn append(
        &self,
        at: TopicPartition,
        batch: &Bytes,
    ) -> Result<Produced, ProduceError> {
        self.begin(at, batch)?.await
    }

    /// Appends one record per value and waits; gives the base offset.
    pub(crate) async fn write(&self, at: TopicPartition, values: &[&str]) -> u64 {
        self.append(at, &batch(values)).await.unwrap().base_offset.0
    }

    /// One fetch of one partition.
    pub(crate) async fn fetch(&self, at: TopicPartition, from: u64, wait: Duration) -> FetchedPart {
        let parts = vec![part(at, from)];
        let fetch = Fetch {
            max_wait: wait,
            ..fetch(parts)
        };
        self.0.fetch(fetch).await.remove(0)
    }

    /// All values from an offset on.
    pub(crate) async fn read(&self, at: TopicPartition, from: u64) -> Vec<String> {
        let mut values = Vec::new();
        let mut next = from;
        loop {
            let fetched = self.fetch(at, next, Duration::ZERO).await;
            assert_eq!(fetched.error, None);
            if fetched.records.is_empty() {
                return values;
            }
            values.extend(
                values_of(&fetched, next)
                    .into_iter()
                    .map(|(_, value)| value),
            );
            next = fetched.next.0;
        }
    }

    pub(crate) async fn offset(&self, at: TopicPartition, spec: OffsetSpec) -> Option<(u64, i64)> {
        let found = self
            .0
            .list_offset(at, spec, Isolation::default(), None)
            .await
            .unwrap();
        found.map(|found| (found.offset.0, found.timestamp.0))
    }

    pub(crate) async fn end(&self, at: TopicPartition) -> u64 {
        self.offset(at, OffsetSpec::Latest).await.unwrap().0
    }

    pub(crate) fn epoch(&self, at: TopicPartition) -> u32 {
        self.0.catalog().partition(at).unwrap().epoch.0
    }
}

/// A request for these parts that answers with what is there.
pub(crate) fn fetch(parts: Vec<FetchPart>) -> Fetch {
    Fetch {
        parts,
        min_bytes: 1,
        max_bytes: 50 << 20,
        max_wait: Duration::ZERO,
        isolation: Isolation::default(),
    }
}

pub(crate) fn part(partition: TopicPartition, from: u64) -> FetchPart {
    FetchPart {
        partition,
        offset: Offset(from),
        max_bytes: 1 << 20,
        current_epoch: None,
    }
}

/// Offsets and values at or above `from`.
pub(crate) fn values_of(fetched: &FetchedPart, from: u64) -> Vec<(u64, String)> {
    let mut scratch = Scratch::default();
    let mut values = Vec::new();
    for bytes in &fetched.records {
        for view in batches(bytes) {
            let view = view.unwrap();
            let base = view.base_offset() as u64;
            for record in records(&view, &mut scratch).unwrap() {
                let record = record.unwrap();
                let offset = base + record.offset_delta as u64;
                let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                if offset >= from {
                    values.push((offset, value));
                }
            }
        }
    }
    values
}

/// One record per value, at the start of time.
pub(crate) fn batch(values: &[&str]) -> Bytes {
    let times: Vec<_> = values.iter().map(|value| (START, *value)).collect();
    timed(&times)
}

pub(crate) fn timed(records: &[(i64, &str)]) -> Bytes {
    build(Builder::new(Codec::None), records)
}

/// A batch of an idempotent producer.
pub(crate) fn sequenced(id: i64, epoch: i16, base_sequence: i32, values: &[&str]) -> Bytes {
    let producer = Producer {
        id,
        epoch,
        base_sequence,
    };
    let times: Vec<_> = values.iter().map(|value| (START, *value)).collect();
    build(Builder::new(Codec::None).producer(producer), &times)
}

pub(crate) fn build(mut builder: Builder, records: &[(i64, &str)]) -> Bytes {
    for (time, value) in records {
        builder
            .record(Timestamp(*time), Some(b"key"), Some(value.as_bytes()), &[])
            .unwrap();
    }
    builder.finish().unwrap().into()
}
