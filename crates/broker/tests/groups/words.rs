//! Short words for what these tests do with groups.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_broker::groups::{Chunk, CommitRefusal, Error, Polled, Registered};
use floe_groups::assigned::{self, OnNewGroup, Received, Registration};
use floe_groups::classic::{Caller, Join, Joined, Sync, Synced};
use floe_groups::{
    ConnectionId, ConsumerId, GenerationId, GroupId, MemberId, NewPosition, Refusal,
};
use floe_model::{Offset, TopicName, TopicPartition};
use floe_wire::batch::{batches, records};
use floe_wire::codec::Scratch;

use floe_world::tasks;
use floe_world::tasks::Handle;

use crate::harness::Node;

/// Most bytes of a poll.
const ROOM: usize = 1 << 20;

pub(crate) fn group(name: &str) -> GroupId {
    GroupId::from(name)
}

/// A client without membership.
pub(crate) fn nobody() -> Caller {
    caller("", -1)
}

pub(crate) fn caller(member: &str, generation: i32) -> Caller {
    Caller {
        member_id: MemberId::from(member),
        instance_id: None,
        generation: GenerationId(generation),
    }
}

pub(crate) fn position(partition: TopicPartition, offset: u64) -> NewPosition {
    NewPosition {
        partition,
        offset: Offset(offset),
        leader_epoch: None,
        metadata: Arc::from("note"),
    }
}

/// A consumer that joins without an id.
pub(crate) fn newcomer() -> Join {
    Join {
        member_id: MemberId::from(""),
        instance_id: None,
        client_id: Arc::from("c"),
        client_host: Arc::from("/127.0.0.1"),
        protocol_type: Arc::from("consumer"),
        protocols: vec![(Arc::from("range"), subscription("t"))],
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: Duration::from_mins(1),
        needs_known_id: false,
        may_skip_assignment: false,
    }
}

fn subscription(topic: &str) -> Bytes {
    let mut bytes = vec![0, 0, 0, 0, 0, 1, 0, topic.len() as u8];
    bytes.extend_from_slice(topic.as_bytes());
    bytes.extend_from_slice(&[0xff; 4]);
    bytes.into()
}

pub(crate) fn sync(joined: &Joined, assignments: &[(&MemberId, &'static str)]) -> Sync {
    Sync {
        caller: caller(joined.member_id.as_str(), joined.generation.0),
        protocol_type: None,
        protocol: None,
        assignments: assignments
            .iter()
            .map(|(member, bytes)| ((*member).clone(), Bytes::from_static(bytes.as_bytes())))
            .collect(),
    }
}

impl Node {
    pub(crate) async fn commit_position(
        &self,
        name: &str,
        partition: TopicPartition,
        offset: u64,
    ) -> Result<Vec<Result<(), CommitRefusal>>, Error> {
        let positions = vec![position(partition, offset)];
        self.0
            .groups()
            .commit(&group(name), &nobody(), positions)
            .await
    }

    pub(crate) fn committed(&self, name: &str, partition: TopicPartition) -> Option<u64> {
        let position = self.0.groups().position(&group(name), partition);
        position.map(|position| position.offset.0)
    }

    /// Ends this life of the node; the next one is started by the caller.
    pub(crate) async fn shut_down(self) {
        self.0.stop().await;
    }

    /// Joins alone and assigns.
    pub(crate) async fn join_alone(&self, name: &str) -> (Joined, Synced) {
        let joined = self
            .0
            .groups()
            .join(&group(name), newcomer())
            .await
            .unwrap();
        let request = sync(&joined, &[(&joined.member_id, "all")]);
        let synced = self.0.groups().sync(&group(name), request).await.unwrap();
        (joined, synced)
    }

    pub(crate) async fn register(
        &self,
        name: &str,
        consumer: &str,
        topics: &[&str],
        on_new_group: OnNewGroup,
    ) -> Result<Registered, Error> {
        self.0
            .groups()
            .register(registration(name, consumer, topics, on_new_group))
            .await
    }

    pub(crate) async fn poll(&self, consumer: &str) -> Result<Polled, Error> {
        self.poll_with(consumer, Received::Unsaid, Duration::ZERO)
            .await
    }

    pub(crate) async fn poll_with(
        &self,
        consumer: &str,
        received: Received,
        wait: Duration,
    ) -> Result<Polled, Error> {
        self.0
            .groups()
            .poll(&stateless(consumer), received, wait, ROOM)
            .await
    }

    /// A poll that waits up to a minute, beside the test.
    pub(crate) fn waiting_poll(&self, consumer: &'static str) -> Handle<Result<Polled, Error>> {
        let node = self.clone();
        let minute = Duration::from_mins(1);
        tasks::spawn(async move { node.poll_with(consumer, Received::Unsaid, minute).await })
    }

    /// Polls, which must bring records: `partition:offset=value` each.
    pub(crate) async fn take(&self, consumer: &str) -> Vec<String> {
        shown(&self.poll(consumer).await.unwrap())
    }
}

pub(crate) fn registration(
    name: &str,
    consumer: &str,
    topics: &[&str],
    on_new_group: OnNewGroup,
) -> Registration {
    Registration {
        group: group(name),
        consumer: ConsumerId::from(consumer),
        topics: topics
            .iter()
            .map(|name| TopicName::parse(name).unwrap())
            .collect(),
        on_new_group,
        idle_timeout: None,
        connection: None,
    }
}

pub(crate) fn stateless(consumer: &str) -> assigned::Caller {
    assigned::Caller::Id(ConsumerId::from(consumer))
}

pub(crate) fn bound(connection: u64) -> assigned::Caller {
    assigned::Caller::Connection(ConnectionId(connection))
}

pub(crate) fn chunks(polled: &Polled) -> &[Chunk] {
    match polled {
        Polled::Records(_, chunks) => chunks,
        Polled::Nothing | Polled::Unassigned => &[],
    }
}

/// `partition:offset=value` of each record, in the order delivered.
pub(crate) fn shown(polled: &Polled) -> Vec<String> {
    let mut shown = Vec::new();
    for chunk in chunks(polled) {
        let mut next = chunk.start.0;
        let mut scratch = Scratch::default();
        for bytes in &chunk.batches {
            for view in batches(bytes) {
                let view = view.unwrap();
                for record in records(&view, &mut scratch).unwrap() {
                    let record = record.unwrap();
                    let offset = view.base_offset() as u64 + record.offset_delta as u64;
                    if offset < chunk.start.0 {
                        continue;
                    }
                    assert_eq!(offset, next, "offsets are dense");
                    next += 1;
                    let value = String::from_utf8_lossy(record.value.unwrap()).into_owned();
                    shown.push(format!("{}:{offset}={value}", chunk.partition.partition));
                }
            }
        }
        assert_eq!(next, chunk.end.0, "a chunk ends where it says");
    }
    shown
}

pub(crate) fn refused<T>(result: Result<T, Error>) -> Refusal {
    match result.map(drop) {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Waits until it holds; the test run's own time-out ends a wait for ever.
pub(crate) async fn eventually(holds: impl Fn() -> bool) {
    while !holds() {
        floe_world::time::sleep(Duration::from_millis(5)).await;
    }
}
