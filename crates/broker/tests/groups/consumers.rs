//! HTTP consumers through the driver: what is read, committed, redelivered and handed over.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_broker::groups::{Polled, Registered};
use floe_groups::assigned::{DeliveryToken, OnNewGroup, Received, Used};
use floe_groups::{ConnectionId, Refusal};
use floe_model::{Offset, PartitionIndex, TopicPartition};

use crate::harness::{Node, Outside};
use crate::words::{bound, chunks, eventually, refused, registration, shown, stateless};

fn token(polled: &Polled) -> DeliveryToken {
    match polled {
        Polled::Records(token, _) => *token,
        other => panic!("{other:?}"),
    }
}

/// C30.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_poll_of_a_new_consumer_brings_records() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a", "b"]).await;
    let registered = node.register("g", "c", &["t"], OnNewGroup::Earliest).await;
    assert_eq!(registered, Ok(Registered::New));
    assert_eq!(node.take("c").await, ["0:0=a", "0:1=b"]);
    assert!(matches!(node.poll("c").await, Ok(Polled::Nothing)));
}

/// C12, over HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_poll_commits_and_a_restart_reads_on_exactly_there() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a"]).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    assert_eq!(node.take("c").await, ["0:0=a"]);
    assert_eq!(node.committed("g", at), None);
    assert!(node.take("c").await.is_empty());
    assert_eq!(node.committed("g", at), Some(1));
    node.write(at, &["b"]).await;
    assert_eq!(node.take("c").await, ["0:1=b"]);
    outside.disk.cut_power();
    outside.disk = outside.disk.after_power_cut();

    let node = outside.start().await;
    assert_eq!(
        refused(node.poll("c").await),
        Refusal::NotRegistered("c".into())
    );
    node.register("g", "c", &["t"], OnNewGroup::Latest)
        .await
        .unwrap();
    assert_eq!(node.take("c").await, ["0:1=b"]);
    node.0
        .groups()
        .commit_delivered(&stateless("c"))
        .await
        .unwrap();
    assert_eq!(node.committed("g", at), Some(2));
    node.0
        .groups()
        .goodbye(&stateless("c"), &Used::All)
        .await
        .unwrap();
    assert_eq!(
        refused(node.poll("c").await),
        Refusal::NotRegistered("c".into())
    );
}

/// Scenario 8.
#[tokio::test(flavor = "multi_thread")]
async fn earliest_gets_everything_and_latest_what_comes_after_the_registration() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["old"]).await;
    node.register("g1", "c1", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    node.register("g2", "c2", &["t"], OnNewGroup::Latest)
        .await
        .unwrap();
    node.write(at, &["new"]).await;
    assert_eq!(node.take("c1").await, ["0:0=old", "0:1=new"]);
    // Fixed at registration, not at the first poll, and durable with it.
    outside.disk.cut_power();
    outside.disk = outside.disk.after_power_cut();
    let node = outside.start().await;
    node.register("g2", "c2", &["t"], OnNewGroup::Latest)
        .await
        .unwrap();
    assert_eq!(node.take("c2").await, ["0:1=new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_created_after_the_registration_is_read_from_its_start() {
    let node = Outside::new().start().await;
    node.register("g", "c", &["t"], OnNewGroup::Latest)
        .await
        .unwrap();
    assert!(matches!(node.poll("c").await, Ok(Polled::Unassigned)));
    let waiting = node.waiting_poll("c");
    let at = node.topic("t", 1).await;
    node.write(at, &["first"]).await;
    assert_eq!(shown(&waiting.await.unwrap()), ["0:0=first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_poll_ends_with_the_record_that_comes() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let waiting = node.waiting_poll("c");
    node.write(at, &["a"]).await;
    assert_eq!(shown(&waiting.await.unwrap()), ["0:0=a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_waits_in_vain_ends_by_the_nodes_clock() {
    let outside = Outside::new();
    let node = outside.start().await;
    node.topic("t", 1).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let waiting = node.waiting_poll("c");
    while !waiting.is_finished() {
        // Slowly: the waiting poll is the consumer's sign of life, once in a while.
        outside.clock.advance(Duration::from_secs(1));
        floe_world::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(matches!(waiting.await, Ok(Polled::Nothing)));
}

/// 10.3 m.
#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_whose_answer_was_lost_comes_again_to_the_byte() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 2).await;
    let other = TopicPartition {
        partition: PartitionIndex(1),
        ..at
    };
    node.write(at, &["a", "b"]).await;
    node.write(other, &["c"]).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let first = node.poll("c").await.unwrap();
    // More has come since: it is not part of what was delivered.
    node.write(at, &["d"]).await;
    node.0
        .groups()
        .delivery_lost(&stateless("c"), token(&first));
    let again = node.poll("c").await.unwrap();
    assert_eq!(token(&again), token(&first));
    let bytes = |polled: &Polled| -> Vec<Vec<u8>> {
        chunks(polled)
            .iter()
            .map(|chunk| chunk.batches.concat())
            .collect()
    };
    assert_eq!(bytes(&again), bytes(&first));
    assert_eq!(shown(&again), shown(&first));
    assert_eq!(node.take("c").await, ["0:2=d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_makes_redelivery_exact_also_where_nobody_saw_the_loss() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a"]).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let poll = |received| node.poll_with("c", received, Duration::ZERO);
    let first = poll(Received::Nothing).await.unwrap();
    node.write(at, &["b"]).await;
    let again = poll(Received::Nothing).await.unwrap();
    assert_eq!(
        (token(&again), shown(&again)),
        (token(&first), shown(&first))
    );
    let second = poll(Received::UpTo(token(&first))).await.unwrap();
    assert_eq!(shown(&second), ["0:1=b"]);
    let again = poll(Received::UpTo(token(&first))).await.unwrap();
    assert_eq!(shown(&again), ["0:1=b"]);
    assert_eq!(node.committed("g", at), Some(1));
    poll(Received::UpTo(token(&second))).await.unwrap();
    assert_eq!(node.committed("g", at), Some(2));
    let unknown = DeliveryToken {
        number: 99,
        ..token(&second)
    };
    assert_eq!(
        refused(poll(Received::UpTo(unknown)).await),
        Refusal::UnknownDelivery
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_shared_and_taken_over_when_a_consumer_goes() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 4).await;
    for partition in 0..4 {
        let one = TopicPartition {
            partition: PartitionIndex(partition),
            ..at
        };
        node.write(one, &["v"]).await;
    }
    node.register("g", "a", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    node.register("g", "b", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let (mut a, b) = (node.take("a").await, node.take("b").await);
    a.sort();
    assert_eq!((a.len(), b.len()), (2, 2));
    // Without a commit its records go to the other, and a waiting poll sees it at once.
    assert!(node.take("b").await.is_empty());
    let waiting = node.waiting_poll("b");
    node.0
        .groups()
        .goodbye(&stateless("a"), &Used::Nothing)
        .await
        .unwrap();
    let mut taken_over = shown(&waiting.await.unwrap());
    taken_over.sort();
    assert_eq!(taken_over, a);
}

/// 10.3 l: also a consumer that just stops calling.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_consumer_is_replaced_after_its_idle_time() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["v"]).await;
    let mut short = registration("g", "a", &["t"], OnNewGroup::Earliest);
    short.idle_timeout = Some(Duration::from_secs(5));
    node.0.groups().register(short).await.unwrap();
    assert_eq!(node.take("a").await, ["0:0=v"]);
    node.register("g", "b", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    assert!(matches!(node.poll("b").await, Ok(Polled::Unassigned)));
    let waiting = node.waiting_poll("b");
    outside.clock.advance(Duration::from_secs(5));
    assert_eq!(shown(&waiting.await.unwrap()), ["0:0=v"]);
    assert_eq!(
        refused(node.poll("a").await),
        Refusal::NotRegistered("a".into())
    );
    // The default is two minutes.
    outside.clock.advance(Duration::from_secs(119));
    floe_world::time::sleep(Duration::from_millis(250)).await;
    assert!(
        node.0
            .groups()
            .describe(&crate::words::group("g"))
            .is_some()
    );
    outside.clock.advance(Duration::from_secs(1));
    eventually(|| {
        let described = node.0.groups().describe(&crate::words::group("g"));
        described.is_none_or(|described| described.members.is_empty())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_consumer_goes_with_its_connection() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["v"]).await;
    let groups = node.0.groups();
    let mut over = registration("g", "a", &["t"], OnNewGroup::Earliest);
    over.connection = Some(ConnectionId(1));
    groups.register(over.clone()).await.unwrap();
    let first = bound(1);
    let polled = groups
        .poll(&first, Received::Unsaid, Duration::ZERO, 1 << 20)
        .await;
    assert_eq!(shown(&polled.unwrap()), ["0:0=v"]);
    // Its next life comes over another connection before the old one is noticed.
    over.connection = Some(ConnectionId(2));
    assert_eq!(groups.register(over).await, Ok(Registered::New));
    groups.connection_closed(ConnectionId(1));
    let gone = groups
        .poll(&first, Received::Unsaid, Duration::ZERO, 1 << 20)
        .await;
    assert_eq!(refused(gone), Refusal::NoConsumer);
    let second = bound(2);
    let polled = groups
        .poll(&second, Received::Unsaid, Duration::ZERO, 1 << 20)
        .await;
    assert_eq!(shown(&polled.unwrap()), ["0:0=v"]);
    groups.connection_closed(ConnectionId(2));
    assert!(groups.list().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_registered_in_one_group_with_one_list_of_topics() {
    let node = Outside::new().start().await;
    node.topic("t", 1).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let again = node.register("g", "c", &["t"], OnNewGroup::Latest).await;
    assert_eq!(again, Ok(Registered::Already));
    for (group, topics) in [("g", vec!["t", "u"]), ("other", vec!["t"])] {
        let refusal = node
            .register(group, "c", &topics, OnNewGroup::Earliest)
            .await;
        assert_eq!(refused(refusal), Refusal::RegisteredDifferently);
    }
    assert_eq!(node.0.groups().list().len(), 1);
}

/// C32 and P5: what retention took is named, never skipped in silence.
#[tokio::test(flavor = "multi_thread")]
async fn reading_begins_at_the_log_start_and_says_what_is_gone() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    for value in ["a", "b", "c", "d"] {
        node.write(at, &[value]).await;
    }
    node.commit_position("old", at, 1).await.unwrap();
    node.0.advance_log_start(at, Offset(2)).await.unwrap();
    node.register("new", "n", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let polled = node.poll("n").await.unwrap();
    assert_eq!(shown(&polled), ["0:2=c", "0:3=d"]);
    assert_eq!(chunks(&polled)[0].gone, None);
    node.register("old", "o", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let polled = node.poll("o").await.unwrap();
    assert_eq!(shown(&polled), ["0:2=c", "0:3=d"]);
    assert_eq!(chunks(&polled)[0].gone, Some(Offset(1)..Offset(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_poll_of_a_consumer_ends_the_older_one() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.register("g", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let older = node.waiting_poll("c");
    while !older.is_finished() {
        assert!(node.take("c").await.is_empty());
        floe_world::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(refused(older.await), Refusal::Superseded);
    node.write(at, &["v"]).await;
    assert_eq!(node.take("c").await, ["0:0=v"]);
}

/// R22 and P5: consumers come, go, lose answers and the node loses power; every record arrives, in order per
/// partition, and no position goes back.
#[tokio::test(flavor = "multi_thread")]
async fn every_record_arrives_through_any_coming_and_going() {
    let mut outside = Outside::new();
    let mut node = outside.start().await;
    let at = node.topic("t", 3).await;
    let part = |partition: u32| TopicPartition {
        partition: PartitionIndex(partition),
        ..at
    };
    let mut seed = 0x5eed_u64;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let mut written = [0_u64; 3];
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut committed = [0_u64; 3];
    for step in 0..400 {
        let consumer = ["a", "b", "c"][below(3) as usize];
        match below(20) {
            0..=5 if step < 300 => {
                let to = below(3) as usize;
                node.write(part(to as u32), &[&format!("v{}", written[to])])
                    .await;
                written[to] += 1;
            }
            6 => {
                let leaving = node
                    .0
                    .groups()
                    .goodbye(
                        &stateless(consumer),
                        &if below(2) == 0 {
                            Used::All
                        } else {
                            Used::Nothing
                        },
                    )
                    .await;
                assert!(matches!(leaving, Ok(()) | Err(_)));
            }
            7 if step % 3 == 0 => {
                outside.disk.cut_power();
                outside.disk = outside.disk.after_power_cut();
                node = outside.start().await;
            }
            _ => {
                let registered = node
                    .register("g", consumer, &["t"], OnNewGroup::Earliest)
                    .await;
                registered.unwrap();
                let polled = node.poll(consumer).await.unwrap();
                if below(4) == 0 {
                    if let Polled::Records(token, _) = polled {
                        node.0.groups().delivery_lost(&stateless(consumer), token);
                    }
                    continue;
                }
                for record in shown(&polled) {
                    *seen.entry(record).or_default() += 1;
                }
            }
        }
        for partition in 0..3 {
            let now = node.committed("g", part(partition)).unwrap_or(0);
            let before = &mut committed[partition as usize];
            assert!(now >= *before, "a position went back");
            *before = now;
        }
    }
    drain(&node, &mut seen).await;
    let expected: usize = written.iter().map(|count| *count as usize).sum();
    assert_eq!(seen.len(), expected, "{written:?}");
}

async fn drain(node: &Node, seen: &mut BTreeMap<String, u64>) {
    for consumer in ["b", "c"] {
        drop(
            node.0
                .groups()
                .goodbye(&stateless(consumer), &Used::All)
                .await,
        );
    }
    node.register("g", "a", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    loop {
        let records = node.take("a").await;
        if records.is_empty() {
            return;
        }
        for record in records {
            *seen.entry(record).or_default() += 1;
        }
    }
}
