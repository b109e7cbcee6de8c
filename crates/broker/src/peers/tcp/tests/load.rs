//! Much at once, beside a node that takes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use floe_model::NodeId;

use super::{bind, dial, list, start, until};
use crate::peers::conformance::{ONE, TWO, append, heartbeat};
use crate::peers::handshake::tests::me;
use crate::peers::tcp::Tcp;
use crate::peers::{Handler, Lost, Message, Peer, Settings, Transport, Unsent};

const THREE: NodeId = NodeId(3);
const MESSAGES: u64 = 100_000;
const BATCHES: u64 = 16_384;
const BATCH_BYTES: usize = 64 << 10;

/// Counts what comes, and that it comes in order.
#[derive(Default)]
struct Count {
    messages: AtomicU64,
    batches: AtomicU64,
}

impl Handler for Count {
    fn connected(&self, _: Peer) {}

    fn received(&self, _: Peer, message: Message) {
        match message {
            Message::Heartbeat(beat) => {
                assert_eq!(beat.number, self.messages.fetch_add(1, Relaxed));
            }
            Message::Append {
                append, batches, ..
            } => {
                let number = self.batches.fetch_add(1, Relaxed);
                assert_eq!(append.run.base().0, number);
                let batch = batches.iter().next().unwrap();
                assert_eq!((batch.len(), batch[0]), (BATCH_BYTES, number as u8));
            }
            other => panic!("{other:?}"),
        }
    }

    fn disconnected(&self, _: Peer, why: &Lost) {
        panic!("{why}");
    }

    fn is_gone(&self, _: NodeId) {}
}

/// Sends all to node 3 and tries the same to node 1; gives how often that was refused.
async fn send_all(tcp: &Tcp, bodies: &[Bytes]) -> u64 {
    let (mut messages, mut batches, mut refused) = (0, 0, 0);
    while messages < MESSAGES || batches < BATCHES {
        let mut is_full = true;
        if messages < MESSAGES && tcp.send(THREE, heartbeat(messages)).is_ok() {
            messages += 1;
            is_full = false;
        }
        if batches < BATCHES {
            let body = &bodies[batches as usize % bodies.len()];
            let sent = tcp.send(ONE, append(batches, body.clone()));
            refused += u64::from(matches!(sent, Err(Unsent::Full { .. })));
            if tcp.send(THREE, append(batches, body.clone())).is_ok() {
                batches += 1;
                is_full = false;
            }
        }
        if is_full {
            tokio::task::yield_now().await;
        }
    }
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_and_a_hundred_thousand_messages_arrive_in_order_beside_a_node_that_never_reads()
{
    let (nobody, at_one) = bind().await;
    let (two, at_two) = bind().await;
    let (three, at_three) = bind().await;
    drop(nobody);
    let list = list(&[(1, at_one), (2, at_two), (3, at_three)]);
    // Nobody answers here, and the dead node is to stay.
    let settings = Settings {
        silence_max: Duration::from_hours(1),
        stall_max: Duration::from_hours(1),
        ..Settings::default()
    };
    let two = start(me(2), two, list.clone(), settings.clone());
    let count = Arc::new(Count::default());
    let receiver = super::setup(me(3), list, settings, count.clone());
    let three = Tcp::start(three, receiver);
    let _dead = dial(&me(1), 2, at_two).await.unwrap();
    until("both are connected", || {
        two.seen.is_connected(ONE) && two.seen.is_connected(THREE)
    })
    .await;
    let bodies = (0..=255).map(|byte| Bytes::from(vec![byte; BATCH_BYTES]));
    let refused = send_all(&two.tcp, &bodies.collect::<Vec<_>>()).await;
    until("all arrived", || {
        let arrived = (count.messages.load(Relaxed), count.batches.load(Relaxed));
        arrived == (MESSAGES, BATCHES)
    })
    .await;
    assert!(refused > 0, "the dead node's queue was full");
    assert_eq!(three.peer(TWO).map(|peer| peer.node), Some(TWO));
    let gathered = two.metrics.frames_out.get() as f64 / two.metrics.writes.get() as f64;
    assert!(gathered > 1.0, "{gathered} frames a write");
    three.stop().await;
}
