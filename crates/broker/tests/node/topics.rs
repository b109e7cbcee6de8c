//! Topics: names, settings, deletion, retention.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use floe_broker::{CreateTopicError, DeleteTopicError, FetchError, NewTopic, ProduceError};
use floe_model::Offset;
use floe_world::OpenOptions;
use floe_world::disk::Disk as _;

use crate::harness::{Outside, START, batch, timed};

fn new(name: &str) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        ..NewTopic::default()
    }
}

/// C20: collisions and illegal names.
#[tokio::test(flavor = "multi_thread")]
async fn illegal_names_and_collisions_are_refused_over_every_way() {
    let node = Outside::new().start().await;
    node.topic("a.b", 1).await;
    for name in ["a_b", ".", "..", "", "a*b", "../x", &"x".repeat(250)] {
        let refused = node.0.create_topic(new(name)).await.unwrap_err();
        let is_right = matches!(
            refused,
            CreateTopicError::Collision { .. } | CreateTopicError::Name(_)
        );
        assert!(is_right, "{name}: {refused}");
        assert!(node.0.topic_or_create(name).await.is_err(), "{name}");
    }
    node.topic(&"x".repeat(249), 1).await;
    let exists = node.0.create_topic(new("a.b")).await.unwrap_err();
    assert!(matches!(exists, CreateTopicError::Exists(_)), "{exists}");
    assert_eq!(node.names().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_honoured_is_refused_by_name() {
    let node = Outside::new().start().await;
    let refused_with = [
        ("durability", "replicated"),
        ("cleanup.policy", "compact"),
        ("compression.type", "zstd"),
        ("no.such.setting", "1"),
        ("max.message.bytes", "2000000000"),
    ];
    for (name, value) in refused_with {
        let mut topic = new("t");
        topic.settings = vec![(name.to_owned(), value.to_owned())];
        let refused = node.0.create_topic(topic).await.unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    let mut copies = new("t");
    copies.replication_factor = Some(3);
    let refused = node.0.create_topic(copies).await.unwrap_err();
    assert!(
        matches!(refused, CreateTopicError::ReplicationFactor { .. }),
        "{refused}"
    );
    for partitions in [0, -5, 10_001] {
        let mut wrong = new("t");
        wrong.partitions = Some(partitions);
        let refused = node.0.create_topic(wrong).await.unwrap_err();
        assert!(
            matches!(refused, CreateTopicError::Partitions { .. }),
            "{refused}"
        );
    }
    assert_eq!(node.names().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_only_creates_nothing() {
    let node = Outside::new().start().await;
    let mut topic = new("t");
    topic.validate_only = true;
    let preview = node.0.create_topic(topic).await.unwrap();
    assert_eq!(preview.partitions.len(), 4);
    assert_eq!(node.names().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn first_use_by_many_at_once_creates_one_topic() {
    let node = Outside::new().start().await;
    let mut found = Vec::new();
    let wishes: Vec<_> = (0..20).map(|_| node.0.topic_or_create("t")).collect();
    for wish in wishes {
        found.push(wish.await.unwrap().unwrap().id);
    }
    found.dedup();
    assert_eq!(found.len(), 1);
}

/// R26 and C17 (its log half): nothing of an old life appears in the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_created_again_has_another_id_and_nothing_of_its_old_life() {
    let outside = Outside::new();
    let node = outside.start().await;
    let old = node.topic("t", 1).await;
    for _ in 0..10 {
        node.write(old, &["old"]).await;
    }
    let waiting = node.fetch(old, 10, Duration::from_secs(30));
    let (fetched, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        node.0.delete_topic("t").await.unwrap();
    });
    assert_eq!(fetched.error, Some(FetchError::UnknownPartition(old)));
    let new = node.topic("t", 1).await;
    assert_ne!(old.topic, new.topic);
    assert_eq!(node.end(new).await, 0);
    node.write(new, &["1", "2", "3", "4", "5"]).await;
    let refused = node.append(old, &batch(&["late"])).await.unwrap_err();
    assert_eq!(refused, ProduceError::UnknownPartition(old));
    assert_eq!(node.read(new, 0).await, ["1", "2", "3", "4", "5"]);
    assert!(
        node.epoch(new) > 0,
        "the next life starts above the last epoch"
    );
    node.0.stop().await;
    let node = outside.start().await;
    assert_eq!(node.read(new, 0).await.len(), 5);
}

/// C22: all at once; the node stays up and the files go.
#[tokio::test(flavor = "multi_thread")]
async fn all_topics_deleted_at_once_leave_no_files() {
    let outside = Outside::new();
    let node = outside.start().await;
    let large = "x".repeat(200_000);
    for n in 0..30 {
        let at = node.topic(&format!("t{n}"), 3).await;
        node.write(at, &[&large]).await;
    }
    let names = node.names();
    let mut deletions = tokio::task::JoinSet::new();
    for name in names {
        let broker = node.0.clone();
        deletions.spawn(async move { broker.delete_topic(&name).await });
    }
    while let Some(deleted) = deletions.join_next().await {
        deleted.unwrap().unwrap();
    }
    assert_eq!(node.names().len(), 0);
    assert_eq!(node.0.catalog().tombstones.len(), 0);
    let has_segments = || {
        let files = outside.disk.files();
        files
            .iter()
            .any(|(path, _)| path.extension().is_some_and(|kind| kind == "seg"))
    };
    // The files go right behind the answer.
    while has_segments() {
        tokio::task::yield_now().await;
    }
    let unknown = node.0.delete_topic("t0").await.unwrap_err();
    assert!(matches!(unknown, DeleteTopicError::Unknown(_)), "{unknown}");
    let at = node.topic("after", 1).await;
    assert_eq!(node.write(at, &["a"]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_by_size_deletes_whole_segments_and_moves_the_log_start() {
    let outside = Outside::new();
    let node = outside.start().await;
    let settings = [("retention.bytes", "2000000"), ("segment.bytes", "1048576")];
    let at = node.topic_with("t", 1, &settings).await;
    let large = "x".repeat(100_000);
    for _ in 0..60 {
        node.write(at, &[&large]).await;
    }
    node.0.enforce_retention().await.unwrap();
    let start = node.fetch(at, 60, Duration::ZERO).await.log_start.0;
    assert!((10..=45).contains(&start), "{start}");
    let gone = node.fetch(at, start - 1, Duration::ZERO).await;
    assert!(
        matches!(gone.error, Some(FetchError::OutOfRange { .. })),
        "{gone:?}"
    );
    assert_eq!(node.read(at, start).await.len() as u64, 60 - start);
    node.0.stop().await;
    let node = outside.start().await;
    assert_eq!(node.fetch(at, 60, Duration::ZERO).await.log_start.0, start);
    assert_eq!(node.read(at, start).await.len() as u64, 60 - start);
}

/// Every segment file with its bytes.
fn segments(outside: &Outside) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = outside.disk.files().into_iter();
    let segments = files.filter(|(path, _)| path.extension().is_some_and(|kind| kind == "seg"));
    let read = |(path, len): (PathBuf, u64)| {
        let mut bytes = vec![0; len as usize];
        let file = outside.disk.open(&path, OpenOptions::default()).ok()?;
        file.read_at(&mut bytes, 0).ok()?;
        Some((path, bytes))
    };
    segments.filter_map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_below_the_log_start_that_a_crash_has_left_go_at_the_next_start() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node
        .topic_with("t", 1, &[("segment.bytes", "1048576")])
        .await;
    let large = "x".repeat(100_000);
    for _ in 0..30 {
        node.write(at, &[&large]).await;
    }
    let before = segments(&outside);
    node.0.advance_log_start(at, Offset(25)).await.unwrap();
    // The files go right behind the answer.
    while before.keys().all(|path| outside.disk.exists(path)) {
        tokio::task::yield_now().await;
    }
    node.0.stop().await;
    let gone = |path: &&PathBuf| !outside.disk.exists(path);
    let gone: Vec<_> = before.keys().filter(gone).collect();
    for path in &gone {
        let options = OpenOptions {
            write: true,
            create_new: true,
            ..OpenOptions::default()
        };
        let file = outside.disk.open(path, options).unwrap();
        file.write_at(&before[*path], 0).unwrap();
    }
    let node = outside.start().await;
    while gone.iter().any(|path| outside.disk.exists(path)) {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.read(at, 25).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_by_time_follows_the_nodes_clock() {
    let outside = Outside::new();
    let node = outside.start().await;
    let settings = [("retention.ms", "60000"), ("segment.bytes", "1048576")];
    let at = node.topic_with("t", 1, &settings).await;
    let large = "x".repeat(300_000);
    for _ in 0..8 {
        node.append(at, &timed(&[(START, &large)])).await.unwrap();
    }
    node.0.enforce_retention().await.unwrap();
    assert_eq!(node.fetch(at, 8, Duration::ZERO).await.log_start.0, 0);
    outside.clock.advance(Duration::from_mins(2));
    node.append(at, &timed(&[(START + 120_000, &large)]))
        .await
        .unwrap();
    node.0.enforce_retention().await.unwrap();
    let start = node.fetch(at, 9, Duration::ZERO).await.log_start.0;
    assert!((3..=8).contains(&start), "{start}");
}
