//! What every way between nodes keeps, run against both: see the guarantees of [`super`].

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_model::{NodeId, Offset, TopicPartition};
use floe_replication::Member;
use floe_replication::message::{Append, Batch, Checksum, Run, Session};
use parking_lot::Mutex;

use super::message::tests::all_messages;
use super::{
    BATCHES_MAX, Batches, Handler, Heartbeat, Lane, Lost, Message, Peer, Settings, Transport,
    Unsent,
};

/// Keeps all that comes.
#[derive(Default)]
pub(super) struct Recorder {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    messages: Vec<(Peer, Message)>,
    connected: BTreeMap<NodeId, bool>,
    gone: Vec<NodeId>,
    lost: Vec<String>,
}

impl Recorder {
    /// Of the heartbeats that came.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let seen = self.seen.lock();
        let number = |(_, message): &(Peer, Message)| match message {
            Message::Heartbeat(beat) => Some(beat.number),
            _ => None,
        };
        seen.messages.iter().filter_map(number).collect()
    }

    pub(super) fn gone(&self) -> Vec<NodeId> {
        self.seen.lock().gone.clone()
    }

    pub(super) fn is_connected(&self, node: NodeId) -> bool {
        self.seen.lock().connected.get(&node) == Some(&true)
    }

    /// Why connections ended.
    pub(super) fn lost(&self) -> Vec<String> {
        self.seen.lock().lost.clone()
    }

    pub(super) fn count(&self) -> usize {
        self.seen.lock().messages.len()
    }

    pub(super) fn take(&self) -> Vec<(Peer, Message)> {
        std::mem::take(&mut self.seen.lock().messages)
    }
}

impl Handler for Recorder {
    fn connected(&self, peer: Peer) {
        let before = self.seen.lock().connected.insert(peer.node, true);
        assert_ne!(before, Some(true), "connected twice");
    }

    fn received(&self, from: Peer, message: Message) {
        let mut seen = self.seen.lock();
        assert_eq!(seen.connected.get(&from.node), Some(&true), "{message:?}");
        seen.messages.push((from, message));
    }

    fn disconnected(&self, peer: Peer, why: &Lost) {
        let mut seen = self.seen.lock();
        let before = seen.connected.insert(peer.node, false);
        assert_eq!(before, Some(true), "disconnected twice");
        seen.lost.push(why.to_string());
    }

    fn is_gone(&self, node: NodeId) {
        self.seen.lock().gone.push(node);
    }
}

/// Two nodes, 1 and 2, that are to be connected, over some way between them.
pub(super) trait Rig: Sized {
    fn new(settings: Settings) -> impl Future<Output = Self>;
    /// Of node 1 or 2.
    fn end(&self, node: u32) -> Arc<dyn Transport>;
    fn seen(&self, node: u32) -> &Arc<Recorder>;
    /// Lets things happen until that holds.
    fn until(&self, what: &str, holds: impl FnMut() -> bool) -> impl Future<Output = ()>;
    /// The connection of the two ends, and begins again.
    fn interrupt(&self) -> impl Future<Output = ()>;
}

pub(super) const ONE: NodeId = NodeId(1);
pub(super) const TWO: NodeId = NodeId(2);

pub(super) fn heartbeat(number: u64) -> Message {
    Message::Heartbeat(Heartbeat {
        number,
        sent_at: Duration::from_millis(number),
        echo: None,
        flush_age: None,
    })
}

/// An append of one batch of so many bytes, whose end is `number + 1`.
pub(super) fn append(number: u64, bytes: Bytes) -> Message {
    let batch = Batch {
        end: Offset(number + 1),
        checksum: Checksum(number as u32),
    };
    let member = Member {
        node: ONE,
        incarnation: floe_model::Incarnation(1),
    };
    Message::Append {
        partition: TopicPartition {
            topic: floe_model::TopicId([7; 16]),
            partition: floe_model::PartitionIndex(3),
        },
        append: Append {
            from: member,
            to: member,
            epoch: floe_model::LeaderEpoch(1),
            start: Offset::ZERO,
            session: Session(1),
            commit: Offset(number),
            run: Run::new(Offset(number), None, vec![batch]).unwrap(),
        },
        batches: Batches::of(vec![bytes]),
    }
}

pub(super) async fn connected<R: Rig>(rig: &R) {
    rig.until("both are connected", || {
        rig.seen(1).is_connected(TWO) && rig.seen(2).is_connected(ONE)
    })
    .await;
}

pub(super) async fn every_kind_of_message_arrives_as_it_was_sent<R: Rig>() {
    let rig = R::new(Settings::default()).await;
    connected(&rig).await;
    let sender = rig.end(1).peer(TWO).unwrap();
    assert_eq!(sender.node, TWO);
    let messages = all_messages();
    for message in &messages {
        rig.end(1).send(TWO, message.clone()).unwrap();
    }
    rig.until("all arrived", || rig.seen(2).count() == messages.len())
        .await;
    let arrived = rig.seen(2).take();
    let me = rig.end(2).peer(ONE).unwrap();
    assert!(arrived.iter().all(|(from, _)| *from == me));
    for lane in Lane::ALL {
        let texts = |list: Vec<&Message>| -> Vec<String> {
            let of_lane = list.into_iter().filter(|message| message.lane() == lane);
            of_lane.map(super::message::tests::text).collect()
        };
        let sent = texts(messages.iter().collect());
        assert_eq!(texts(arrived.iter().map(|(_, m)| m).collect()), sent);
    }
}

pub(super) async fn both_lanes_keep_their_order_in_both_directions<R: Rig>() {
    const COUNT: u64 = 2_000;
    let rig = R::new(Settings::default()).await;
    connected(&rig).await;
    let body = Bytes::from(vec![5; 700]);
    for number in 0..COUNT {
        for (from, to) in [(1, TWO), (2, ONE)] {
            rig.end(from).send(to, heartbeat(number)).unwrap();
            rig.end(from)
                .send(to, append(number, body.clone()))
                .unwrap();
        }
    }
    for node in [1, 2] {
        let seen = rig.seen(node);
        rig.until("all arrived", || seen.count() == 2 * COUNT as usize)
            .await;
        assert_eq!(seen.numbers(), (0..COUNT).collect::<Vec<_>>());
        let bases = seen
            .take()
            .into_iter()
            .filter_map(|(_, message)| match message {
                Message::Append { append, .. } => Some(append.run.base().0),
                _ => None,
            });
        assert_eq!(bases.collect::<Vec<_>>(), (0..COUNT).collect::<Vec<_>>());
    }
}

pub(super) async fn whom_nobody_knows_and_who_is_not_there_is_refused_by_name<R: Rig>() {
    let rig = R::new(Settings::default()).await;
    connected(&rig).await;
    for node in [ONE, NodeId(9)] {
        let refused = rig.end(1).send(node, heartbeat(1));
        assert_eq!(refused, Err(Unsent::Disconnected(node)));
        assert_eq!(rig.end(1).peer(node), None);
    }
}

pub(super) async fn a_full_queue_refuses_by_name_and_takes_again_once_it_is_empty<R: Rig>() {
    let settings = Settings {
        data_queue_bytes: 300_000,
        ..Settings::default()
    };
    let rig = R::new(settings).await;
    connected(&rig).await;
    let body = Bytes::from(vec![1; 100_000]);
    let mut sent = 0;
    // Nothing is awaited in between: on one thread nobody takes what is queued.
    let refused = loop {
        match rig.end(1).send(TWO, append(sent, body.clone())) {
            Ok(()) => sent += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(sent, 2);
    assert!(
        matches!(
            refused,
            Unsent::Full {
                to: TWO,
                lane: Lane::Data,
                limit: 300_000,
                ..
            }
        ),
        "{refused}"
    );
    rig.end(1).send(TWO, heartbeat(1)).unwrap();
    rig.until("all arrived", || rig.seen(2).count() == 3).await;
    let mut number = sent;
    rig.until("there is room again", || {
        number += 1;
        rig.end(1).send(TWO, append(number, body.clone())).is_ok()
    })
    .await;
}

pub(super) async fn the_largest_message_is_taken_and_one_byte_more_is_refused<R: Rig>() {
    let settings = Settings {
        body_bytes_max: 1 << 20,
        data_queue_bytes: 1 << 10,
        ..Settings::default()
    };
    let rig = R::new(settings).await;
    connected(&rig).await;
    let of = |bytes| append(0, Bytes::from(vec![2; bytes]));
    let limit = 1 << 20;
    let bytes = limit + 1;
    let refused = rig.end(1).send(TWO, of(bytes));
    assert_eq!(refused, Err(Unsent::Large { bytes, limit }));
    rig.end(1).send(TWO, of(limit)).unwrap();
    rig.until("it arrived", || rig.seen(2).count() == 1).await;
    let batches = vec![Bytes::from_static(b"b"); BATCHES_MAX];
    let run = (1..=BATCHES_MAX as u64).map(|end| Batch {
        end: Offset(u64::MAX / 2 + end),
        checksum: Checksum(u32::MAX),
    });
    let Message::Append {
        partition, append, ..
    } = of(1)
    else {
        unreachable!("an append")
    };
    let many = Message::Append {
        partition,
        append: Append {
            run: Run::new(Offset::ZERO, None, run.collect()).unwrap(),
            ..append
        },
        batches: Batches::of(batches),
    };
    rig.until("there is room again", || {
        rig.end(1).send(TWO, many.clone()).is_ok()
    })
    .await;
    rig.until("the most batches arrived", || rig.seen(2).count() == 2)
        .await;
}

pub(super) async fn a_connection_that_ends_is_said_on_both_sides_and_begins_again<R: Rig>() {
    let rig = R::new(Settings::default()).await;
    connected(&rig).await;
    rig.interrupt().await;
    rig.until("both saw it end", || {
        rig.seen(1).lost().len() == 1 && rig.seen(2).lost().len() == 1
    })
    .await;
    connected(&rig).await;
    rig.end(1).send(TWO, heartbeat(7)).unwrap();
    rig.until("it arrived", || rig.seen(2).numbers() == [7])
        .await;
}

/// Runs the suite against a rig.
macro_rules! conforms {
    ($rig:ty: $($case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            $crate::peers::conformance::$case::<$rig>().await;
        }
    )*};
    ($rig:ty) => {
        $crate::peers::conformance::conforms! { $rig:
            every_kind_of_message_arrives_as_it_was_sent,
            both_lanes_keep_their_order_in_both_directions,
            whom_nobody_knows_and_who_is_not_there_is_refused_by_name,
            a_full_queue_refuses_by_name_and_takes_again_once_it_is_empty,
            the_largest_message_is_taken_and_one_byte_more_is_refused,
            a_connection_that_ends_is_said_on_both_sides_and_begins_again,
        }
    };
}
pub(super) use conforms;
