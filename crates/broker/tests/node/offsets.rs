//! Looking up offsets by time and by epoch.

use floe_broker::OffsetSpec;
use floe_model::{LeaderEpoch, Timestamp};

use crate::harness::{Node, Outside, START, timed};

async fn at_time(node: &Node, at: floe_model::TopicPartition, time: i64) -> Option<(u64, i64)> {
    node.offset(at, OffsetSpec::Time(Timestamp(time))).await
}

/// C1: the first record at or after the time, with its own time; past the end there is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_gives_the_first_record_at_or_after_it() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    for (time, value) in [(2, "a"), (4, "b"), (6, "c"), (8, "d")] {
        node.append(at, &timed(&[(time, value)])).await.unwrap();
    }
    assert_eq!(at_time(&node, at, 0).await, Some((0, 2)));
    assert_eq!(at_time(&node, at, 3).await, Some((1, 4)));
    assert_eq!(at_time(&node, at, 5).await, Some((2, 6)));
    assert_eq!(at_time(&node, at, 7).await, Some((3, 8)));
    assert_eq!(at_time(&node, at, 9).await, None);
    assert_eq!(at_time(&node, at, START + 3_600_000).await, None);
}

/// C2: inside one batch, times in any order.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_inside_a_batch_gives_its_own_record() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let rising: Vec<_> = (1..=20).map(|time| (time, "v")).collect();
    node.append(at, &timed(&rising)).await.unwrap();
    assert_eq!(at_time(&node, at, 7).await, Some((6, 7)));
    assert_eq!(at_time(&node, at, 20).await, Some((19, 20)));
    let shuffled = [(105, "a"), (101, "b"), (109, "c"), (103, "d")];
    node.append(at, &timed(&shuffled)).await.unwrap();
    assert_eq!(at_time(&node, at, 102).await, Some((20, 105)));
    assert_eq!(at_time(&node, at, 106).await, Some((22, 109)));
    assert_eq!(at_time(&node, at, 110).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_and_the_largest_time_are_found() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    assert_eq!(node.offset(at, OffsetSpec::Earliest).await, Some((0, -1)));
    assert_eq!(node.offset(at, OffsetSpec::Latest).await, Some((0, -1)));
    assert_eq!(node.offset(at, OffsetSpec::MaxTimestamp).await, None);
    node.append(at, &timed(&[(5, "a"), (9, "b"), (7, "c")]))
        .await
        .unwrap();
    assert_eq!(node.offset(at, OffsetSpec::Latest).await, Some((3, -1)));
    assert_eq!(
        node.offset(at, OffsetSpec::EarliestLocal).await,
        Some((0, -1))
    );
    assert_eq!(
        node.offset(at, OffsetSpec::MaxTimestamp).await,
        Some((1, 9))
    );
    assert_eq!(node.offset(at, OffsetSpec::LatestTiered).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_epoch_comes_from_the_chain() {
    let outside = Outside::new();
    let mut ends = Vec::new();
    for _ in 0..3 {
        let node = outside.start().await;
        let topic = node.0.topic_or_create("t").await.unwrap().unwrap();
        let at = topic.address(floe_model::PartitionIndex(0));
        node.write(at, &["a", "b"]).await;
        ends.push((node.epoch(at), node.end(at).await));
        node.0.stop().await;
    }
    let node = outside.start().await;
    let at = node.find("t");
    assert_eq!(ends.len(), 3);
    for (epoch, end) in ends {
        let found = node
            .0
            .offset_for_epoch(at, LeaderEpoch(epoch), None)
            .unwrap()
            .unwrap();
        assert_eq!((found.epoch.0, found.end.0), (epoch, end));
    }
    let unknown = node.0.offset_for_epoch(at, LeaderEpoch(99), None).unwrap();
    assert_eq!(unknown, None);
}

/// A record below the log start is not found, also while its segment is still there.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_never_finds_a_record_below_the_log_start() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.append(at, &timed(&[(10, "a"), (20, "b"), (30, "c")]))
        .await
        .unwrap();
    let start = node
        .0
        .advance_log_start(at, floe_model::Offset(1))
        .await
        .unwrap();
    assert_eq!(start.0, 1);
    assert_eq!(at_time(&node, at, 0).await, Some((1, 20)));
    assert_eq!(node.offset(at, OffsetSpec::Earliest).await, Some((1, -1)));
}
