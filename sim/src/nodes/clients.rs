//! What clients do, each a task of a process of its own: they ask, wait a while, ask again, and tell the truth what they learned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_broker::{
    CreateTopicError, Fetch, FetchPart, FetchedPart, Isolation, NewTopic, ProduceError,
    ProduceOptions,
};
use floe_groups::classic::Caller;
use floe_groups::{GenerationId, GroupId, MemberId, NewPosition};
use floe_model::{Offset, PartitionIndex, Timestamp, TopicPartition};
use floe_wire::batch::{Builder, Producer, batches, records};
use floe_wire::codec::{Codec, Scratch};
use floe_world::time;
use parking_lot::Mutex;

use super::machine::{Machine, START};
use super::truth::Truth;
use crate::chance::Chance;

/// When all records say they are from: below what any wall clock shows.
const WRITTEN: Timestamp = Timestamp(START - 1_000 * 3_600_000);
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What all clients share.
pub(crate) struct Shared {
    pub(crate) machines: Vec<Arc<Machine>>,
    pub(crate) truth: Mutex<Truth>,
    pub(crate) chance: Chance,
    pub(crate) clock: floe_world::tasks::Executor,
    /// Clients that have not done all they will do.
    pub(crate) busy: Mutex<usize>,
    /// Where partitions end, once all is read.
    pub(crate) ends: Mutex<BTreeMap<TopicPartition, u64>>,
}

impl Shared {
    pub(crate) fn note(&self, what: &str) {
        self.truth.lock().note(self.clock.now(), what);
    }

    /// Asks a machine, whichever the client has come by.
    pub(crate) async fn ask<F, R>(
        &self,
        request: impl FnOnce(floe_broker::Broker) -> F,
    ) -> Option<R>
    where
        F: Future<Output = R> + Send + 'static,
        R: Send + 'static,
    {
        let which = self.chance.number(0..self.machines.len() as u64) as usize;
        self.machines[which].call(PATIENCE, request).await
    }

    pub(crate) async fn pause(&self) {
        let pause = Duration::from_millis(self.chance.weighted(&[(6, 1), (3, 20), (1, 200)]));
        time::sleep(pause).await;
    }

    pub(crate) fn done(&self) {
        *self.busy.lock() -= 1;
    }
}

/// Creates a topic, or finds it; its partitions.
pub(crate) async fn topic(shared: &Shared, name: &str, partitions: i32) -> Vec<TopicPartition> {
    loop {
        let named = name.to_owned();
        let made = shared
            .ask(move |broker| async move {
                let new = NewTopic {
                    name: named.clone(),
                    partitions: Some(partitions),
                    ..NewTopic::default()
                };
                match broker.create_topic(new).await {
                    Err(CreateTopicError::Exists(_)) => broker.catalog().topic(&named).cloned(),
                    made => made.ok(),
                }
            })
            .await;
        if let Some(Some(topic)) = made {
            let count = topic.partitions.len() as u32;
            return (0..count)
                .map(|index| topic.address(PartitionIndex(index)))
                .collect();
        }
        shared.pause().await;
    }
}

/// An idempotent producer: each batch until it is acknowledged, in order.
pub(crate) async fn idempotent(shared: Arc<Shared>, name: String, at: TopicPartition, count: u64) {
    let identity = loop {
        let given = shared.ask(|broker| async move { broker.init_producer_id().await });
        match given.await {
            Some(Ok(identity)) => break identity,
            _ => shared.pause().await,
        }
    };
    let mut sequence = 0;
    for n in 0..count {
        let values = values(&shared, &name, n);
        let producer = Producer {
            id: identity.id.0,
            epoch: identity.epoch,
            base_sequence: sequence,
        };
        sequence += values.len() as i32;
        let batch = batch(Builder::new(Codec::None).producer(producer), &values);
        shared.truth.lock().sending(&values, true);
        loop {
            match produce(&shared, at, &batch).await {
                Some(Ok(base)) => {
                    shared.truth.lock().acked(at, Some(base), &values);
                    break;
                }
                Some(Err(ProduceError::DuplicateSequence { .. })) => {
                    shared.truth.lock().acked(at, None, &values);
                    break;
                }
                Some(Err(
                    error @ (ProduceError::OutOfOrderSequence { .. }
                    | ProduceError::StaleProducerEpoch { .. }
                    | ProduceError::Batch { .. }),
                )) => {
                    let what = format!("{name} is refused at sequence {sequence}: {error} (P4)");
                    shared.truth.lock().breaks(what);
                    break;
                }
                Some(Err(_)) | None => shared.pause().await,
            }
        }
        shared.pause().await;
    }
    shared.done();
}

/// A producer that asks once and never again.
pub(crate) async fn plain(shared: Arc<Shared>, name: String, at: TopicPartition, count: u64) {
    for n in 0..count {
        let values = values(&shared, &name, n);
        let batch = batch(Builder::new(Codec::None), &values);
        shared.truth.lock().sending(&values, false);
        if let Some(Ok(base)) = produce(&shared, at, &batch).await {
            shared.truth.lock().acked(at, Some(base), &values);
        }
        shared.pause().await;
    }
    shared.done();
}

async fn produce(
    shared: &Shared,
    at: TopicPartition,
    batch: &Bytes,
) -> Option<Result<u64, ProduceError>> {
    let batch = batch.clone();
    let answer = shared.ask(move |broker| async move {
        let pending = broker.produce(at, &batch, ProduceOptions::default())?;
        pending.await.map(|produced| produced.base_offset.0)
    });
    let answer = answer.await;
    shared.note(&format!("produce {at}: {answer:?}"));
    answer
}

/// A reader: goes on where it is, jumps back now and then, commits how far it is and asks where it was.
pub(crate) async fn reader(shared: Arc<Shared>, name: String, at: TopicPartition, count: u64) {
    let group = GroupId::from(name.as_str());
    let mut next = 0;
    for _ in 0..count {
        match shared.chance.number(0..10) {
            0 => next = shared.chance.number(0..next + 1),
            1..3 => commit(&shared, &name, &group, at, next).await,
            3 => position(&shared, &name, &group, at).await,
            _ => {
                let part = fetch(&shared, at, next, Duration::from_millis(100)).await;
                shared.truth.lock().operations += 1;
                if let Some(part) = part.filter(|part| part.error.is_none()) {
                    for (offset, value) in values_of(&part, next) {
                        shared.truth.lock().saw(at, offset, &value);
                    }
                    next = next.max(part.next.0);
                }
            }
        }
        shared.pause().await;
    }
    shared.done();
}

async fn commit(shared: &Shared, name: &str, group: &GroupId, at: TopicPartition, offset: u64) {
    // A client without membership may set a position back; these do not, so that one read back can be judged.
    let offset = offset.max(shared.truth.lock().least_position(name, at));
    shared.truth.lock().committing(name, at, offset);
    let (group, caller) = (group.clone(), nobody());
    let position = NewPosition {
        partition: at,
        offset: Offset(offset),
        leader_epoch: None,
        metadata: Arc::from(""),
    };
    let answer = shared
        .ask(move |broker| async move {
            let committed = broker.groups().commit(&group, &caller, vec![position]);
            matches!(committed.await.as_deref(), Ok([Ok(())]))
        })
        .await;
    shared.note(&format!("commit {name} {at} {offset}: {answer:?}"));
    if answer == Some(true) {
        shared.truth.lock().committed(name, at, offset);
    }
}

pub(crate) async fn position(shared: &Shared, name: &str, group: &GroupId, at: TopicPartition) {
    let least = shared.truth.lock().least_position(name, at);
    let group = group.clone();
    let found = shared
        .ask(move |broker| async move {
            broker.groups().caught_up(&group).await;
            let position = broker.groups().position(&group, at);
            position.map_or(0, |position| position.offset.0)
        })
        .await;
    shared.note(&format!("position {name} {at}: {found:?}"));
    if let Some(found) = found {
        shared.truth.lock().position(name, at, least, found);
    }
}

/// All records of a partition.
pub(crate) async fn everything(shared: &Shared, at: TopicPartition) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    loop {
        let next = all.last().map_or(0, |(offset, _)| offset + 1);
        let part = fetch(shared, at, next, Duration::ZERO).await;
        let Some(part) = part.filter(|part| part.error.is_none()) else {
            shared.pause().await;
            continue;
        };
        let values = values_of(&part, next);
        if values.is_empty() {
            return all;
        }
        all.extend(values);
    }
}

async fn fetch(
    shared: &Shared,
    at: TopicPartition,
    from: u64,
    wait: Duration,
) -> Option<FetchedPart> {
    let fetch = Fetch {
        parts: vec![FetchPart {
            partition: at,
            offset: Offset(from),
            max_bytes: 16 << 10,
            current_epoch: None,
        }],
        min_bytes: 1,
        max_bytes: 16 << 10,
        max_wait: wait,
        isolation: Isolation::default(),
    };
    let parts = shared.ask(move |broker| async move { broker.fetch(fetch).await });
    let part = parts.await.and_then(|mut parts| parts.pop());
    let said = part.as_ref().map(|part| (part.next.0, &part.error));
    shared.note(&format!("fetch {at} from {from}: {said:?}"));
    part
}

fn nobody() -> Caller {
    Caller {
        member_id: MemberId::from(""),
        instance_id: None,
        generation: GenerationId(-1),
    }
}

/// What nobody else sends, of very different lengths.
fn values(shared: &Shared, name: &str, n: u64) -> Vec<String> {
    let chance = &shared.chance;
    let count = chance.weighted(&[(6, 1), (3, 5), (1, 20)]);
    let fill = "x".repeat(chance.weighted(&[(6, 10), (3, 300), (1, 2_500)]));
    (0..count)
        .map(|i| format!("{name}.{n}.{i}.{fill}"))
        .collect()
}

fn batch(mut builder: Builder, values: &[String]) -> Bytes {
    for value in values {
        builder
            .record(WRITTEN, Some(b"key"), Some(value.as_bytes()), &[])
            .expect("a small record");
    }
    builder.finish().expect("a small batch").into()
}

/// One record that nobody looks for.
pub(crate) fn single(value: &str) -> Bytes {
    batch(Builder::new(Codec::None), &[value.to_owned()])
}

fn values_of(part: &FetchedPart, from: u64) -> Vec<(u64, String)> {
    values_in(&part.records, from)
}

/// Offsets and values at or above `from`.
pub(crate) fn values_in(parts: &[Bytes], from: u64) -> Vec<(u64, String)> {
    let mut scratch = Scratch::default();
    let mut values = Vec::new();
    for bytes in parts {
        for view in batches(bytes) {
            let view = view.expect("what is served is whole");
            let base = view.base_offset() as u64;
            for record in records(&view, &mut scratch).expect("what was taken can be read") {
                let record = record.expect("what was taken can be read");
                let offset = base + record.offset_delta as u64;
                let value = record.value.unwrap_or_default().to_vec();
                let value = String::from_utf8(value).expect("values are text");
                if offset >= from {
                    values.push((offset, value));
                }
            }
        }
    }
    values
}
