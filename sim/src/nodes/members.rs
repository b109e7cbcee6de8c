//! Consumers of a group that the node assigns, and a client that creates and deletes topics.

use std::sync::Arc;
use std::time::Duration;

use floe_broker::groups::{Chunk, Error, Polled};
use floe_broker::{CreateTopicError, DeleteTopicError, NewTopic, ProduceOptions};
use floe_groups::assigned::{Caller, OnNewGroup, Received, Registration};
use floe_groups::{ConsumerId, GroupId};
use floe_model::{PartitionIndex, TopicName};

use super::clients::{Shared, single, values_in};

/// What the members' group is called.
const GROUP: &str = "members";
/// Most bytes of one answer.
const ROOM: usize = 32 << 10;

/// One member: takes what comes, and names what it got with its next poll. Ends after so many polls, or with `None` once the
/// group has read all that is there.
pub(crate) async fn member(shared: Arc<Shared>, name: String, topic: String, polls: Option<u64>) {
    let caller = Caller::Id(ConsumerId::from(name.as_str()));
    let mut received = Received::Nothing;
    let mut is_registered = false;
    let mut left = polls;
    while left != Some(0) {
        left = left.map(|left| left - 1);
        shared.truth.lock().operations += 1;
        if !is_registered {
            is_registered = register(&shared, &name, &topic).await;
            received = Received::Nothing;
            shared.pause().await;
            continue;
        }
        let (who, wait) = (caller.clone(), Duration::from_millis(50));
        let polled = shared
            .ask(
                move |broker| async move { broker.groups().poll(&who, received, wait, ROOM).await },
            )
            .await;
        match polled {
            Some(Ok(Polled::Records(token, chunks))) => {
                for chunk in &chunks {
                    given(&shared, &name, chunk);
                }
                received = Received::UpTo(token);
            }
            Some(Ok(Polled::Nothing)) if polls.is_none() => break,
            Some(Err(Error::Refused(why))) => {
                shared.note(&format!("{name} is refused: {why}"));
                is_registered = false;
            }
            Some(Ok(Polled::Nothing | Polled::Unassigned) | Err(Error::Unavailable(_))) | None => {}
        }
        shared.pause().await;
    }
    if polls.is_some() {
        shared.done();
    }
}

fn given(shared: &Shared, name: &str, chunk: &Chunk) {
    let (at, start, end) = (chunk.partition, chunk.start.0, chunk.end.0);
    shared.note(&format!("{name} is given {at} {start}..{end}"));
    let mut truth = shared.truth.lock();
    for (offset, value) in values_in(&chunk.batches, start) {
        truth.saw(at, offset, &value);
    }
    truth.delivered(at, start, end);
}

async fn register(shared: &Shared, name: &str, topic: &str) -> bool {
    let registration = Registration {
        group: GroupId::from(GROUP),
        consumer: ConsumerId::from(name),
        topics: vec![TopicName::parse(topic).expect("a good name")],
        on_new_group: OnNewGroup::Earliest,
        idle_timeout: Some(Duration::from_secs(2)),
        connection: None,
    };
    let registered = shared
        .ask(move |broker| async move { broker.groups().register(registration).await })
        .await;
    shared.note(&format!("{name} registers: {registered:?}"));
    matches!(registered, Some(Ok(_)))
}

/// Where the members' group is.
pub(crate) async fn positions(shared: &Shared) {
    loop {
        let found = shared.ask(|broker| async move {
            let group = GroupId::from(GROUP);
            broker.groups().caught_up(&group).await;
            broker.groups().positions(&group)
        });
        if let Some(found) = found.await {
            let mut truth = shared.truth.lock();
            for (at, position) in found {
                truth.group_is_at(at, position.offset.0);
            }
            return;
        }
        shared.pause().await;
    }
}

/// Topics that come and go: one that was created is there until it is deleted, and not after.
pub(crate) async fn churn(shared: Arc<Shared>, count: u64) {
    for n in 0..count {
        let name = format!("churn-{n}");
        shared.truth.lock().operations += 1;
        create(&shared, &name).await;
        exists(&shared, &name, true).await;
        write(&shared, &name).await;
        shared.pause().await;
        delete(&shared, &name).await;
        exists(&shared, &name, false).await;
    }
    shared.done();
}

async fn create(shared: &Shared, name: &str) {
    loop {
        let new = NewTopic {
            name: name.to_owned(),
            partitions: Some(2),
            ..NewTopic::default()
        };
        let made = shared.ask(move |broker| async move { broker.create_topic(new).await });
        if let Some(Ok(_) | Err(CreateTopicError::Exists(_))) = made.await {
            return shared.note(&format!("{name} is created"));
        }
        shared.pause().await;
    }
}

async fn write(shared: &Shared, name: &str) {
    let (named, batch) = (name.to_owned(), single(name));
    let written = shared.ask(move |broker| async move {
        let at = broker.catalog().topic(&named)?.address(PartitionIndex(0));
        let pending = broker.produce(at, &batch, ProduceOptions::default());
        pending.ok()?.await.ok()
    });
    shared.note(&format!("{name} is written: {:?}", written.await));
}

async fn delete(shared: &Shared, name: &str) {
    loop {
        let named = name.to_owned();
        let gone = shared.ask(move |broker| async move { broker.delete_topic(&named).await });
        if let Some(Ok(()) | Err(DeleteTopicError::Unknown(_))) = gone.await {
            return shared.note(&format!("{name} is deleted"));
        }
        shared.pause().await;
    }
}

async fn exists(shared: &Shared, name: &str, should: bool) {
    let named = name.to_owned();
    let found = shared.ask(move |broker| async move { broker.catalog().topic(&named).is_some() });
    if let Some(is) = found.await {
        let mut truth = shared.truth.lock();
        truth.compared.topics += 1;
        if is != should {
            truth.breaks(format!(
                "topic {name} is there: {is}; it should be: {should}"
            ));
        }
    }
}
