//! Fetching: whole batches, budgets, long polls.

use std::time::{Duration, Instant};

use floe_broker::{Fetch, FetchError, FetchPart};
use floe_model::{LeaderEpoch, Offset};

use crate::harness::{Outside, batch, fetch, part, values_of};

const LONG: Duration = Duration::from_secs(30);

/// How long `work` takes.
#[allow(
    clippy::disallowed_methods,
    reason = "a test of real waiting measures real time"
)]
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let done = work.await;
    (done, begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offset_inside_a_batch_gives_that_whole_batch() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a", "b"]).await;
    node.write(at, &["c", "d", "e"]).await;
    let fetched = node.fetch(at, 3, Duration::ZERO).await;
    let all: Vec<_> = values_of(&fetched, 0)
        .into_iter()
        .map(|(offset, _)| offset)
        .collect();
    assert_eq!(all, [2, 3, 4]);
    assert_eq!(fetched.next, Offset(5));
    assert_eq!(fetched.high_watermark, Offset(5));
}

/// C9: an idle topic answers after `max_wait`, not at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_of_an_idle_partition_waits_for_max_wait() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let (fetched, took) = timed(node.fetch(at, 0, Duration::from_millis(300))).await;
    assert!(fetched.records.is_empty());
    assert_eq!(fetched.error, None);
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

/// C9: or at once when a record arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_is_answered_when_a_record_arrives() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 2).await;
    let waiting = tokio::join!(node.fetch(at, 0, LONG), async {
        tokio::task::yield_now().await;
        node.write(at, &["a"]).await
    });
    assert_eq!(values_of(&waiting.0, 0), [(0, "a".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_waits_for_min_bytes_over_several_batches() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let one = batch(&["a"]);
    let request = Fetch {
        min_bytes: one.len() * 3,
        max_wait: LONG,
        ..fetch(vec![part(at, 0)])
    };
    let (fetched, ()) = tokio::join!(node.0.fetch(request), async {
        for _ in 0..3 {
            node.append(at, &one).await.unwrap();
        }
    });
    assert_eq!(fetched[0].bytes(), one.len() * 3);
}

/// KIP-74: one whole batch from the first partition that has one, then what fits.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_batch_comes_whole_and_the_rest_within_the_budget() {
    let node = Outside::new().start().await;
    let first = node.topic("a", 1).await;
    let second = node.topic("b", 1).await;
    let one = batch(&["x".repeat(1_000).as_str()]);
    for at in [first, second] {
        for _ in 0..3 {
            node.append(at, &one).await.unwrap();
        }
    }
    let small = Fetch {
        max_bytes: 10,
        ..fetch(vec![part(first, 0), part(second, 0)])
    };
    let fetched = node.0.fetch(small).await;
    assert_eq!([fetched[0].bytes(), fetched[1].bytes()], [one.len(), 0]);
    let narrow = FetchPart {
        max_bytes: one.len() * 2 + 1,
        ..part(first, 0)
    };
    let fetched = node.0.fetch(fetch(vec![narrow, part(second, 0)])).await;
    assert_eq!(
        [fetched[0].bytes(), fetched[1].bytes()],
        [one.len() * 2, one.len() * 3]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_range_says_what_is_there() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a", "b"]).await;
    assert_eq!(node.fetch(at, 2, Duration::ZERO).await.error, None);
    let fetched = node.fetch(at, 3, LONG).await;
    let expected = FetchError::OutOfRange {
        offset: Offset(3),
        log_start: Offset(0),
        end: Offset(2),
    };
    assert_eq!(fetched.error, Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_an_older_or_newer_epoch_is_told() {
    let outside = Outside::new();
    let node = outside.start().await;
    node.topic("t", 1).await;
    node.0.stop().await;
    let node = outside.start().await;
    let at = node.find("t");
    let current = LeaderEpoch(node.epoch(at));
    let ask = |epoch| {
        let part = FetchPart {
            current_epoch: Some(LeaderEpoch(epoch)),
            ..part(at, 0)
        };
        node.0.fetch(fetch(vec![part]))
    };
    let given = LeaderEpoch(current.0 - 1);
    let fenced = ask(given.0).await.remove(0).error;
    assert_eq!(fenced, Some(FetchError::FencedEpoch { given, current }));
    let given = LeaderEpoch(current.0 + 1);
    let unknown = ask(given.0).await.remove(0).error;
    assert_eq!(unknown, Some(FetchError::UnknownEpoch { given, current }));
    assert_eq!(ask(current.0).await.remove(0).error, None);
}
