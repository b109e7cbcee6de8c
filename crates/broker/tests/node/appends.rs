//! Appending: offsets, limits, times, idempotence.

use floe_broker::ProduceError;
use floe_model::Timestamp;
use floe_wire::batch::{Builder, Class};
use floe_wire::codec::Codec;

use crate::harness::{Outside, START, batch, build, sequenced, timed};

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_dense_over_batches_of_any_codec() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let mut expected = 0;
    let mut values = Vec::new();
    for codec in Codec::ALL {
        let records: Vec<_> = (0..20).map(|n| (START, format!("{codec:?}-{n}"))).collect();
        let records: Vec<_> = records
            .iter()
            .map(|(at, value)| (*at, value.as_str()))
            .collect();
        let produced = node
            .append(at, &build(Builder::new(codec), &records))
            .await
            .unwrap();
        assert_eq!(produced.base_offset.0, expected);
        expected += 20;
        values.extend(records.iter().map(|(_, value)| (*value).to_owned()));
    }
    assert_eq!(node.read(at, 0).await, values);
    assert_eq!(node.end(at).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_appends_in_flight_keep_their_order() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let values: Vec<_> = (0..2_000).map(|n| n.to_string()).collect();
    let pending: Vec<_> = values
        .iter()
        .map(|value| node.begin(at, &batch(&[value])).unwrap())
        .collect();
    for (n, pending) in pending.into_iter().enumerate() {
        assert_eq!(pending.await.unwrap().base_offset.0, n as u64);
    }
    assert_eq!(node.read(at, 0).await, values);
}

/// C26: the limit holds for the stored batch, to the byte.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    let node = Outside::new().start().await;
    let exact = batch(&["x".repeat(700).as_str()]);
    let limit = exact.len().to_string();
    let at = node
        .topic_with("t", 1, &[("max.message.bytes", &limit)])
        .await;
    assert_eq!(node.append(at, &exact).await.unwrap().base_offset.0, 0);
    let over = batch(&["x".repeat(701).as_str()]);
    let refused = node.append(at, &over).await.unwrap_err();
    assert!(
        matches!(
            refused,
            ProduceError::Batch {
                class: Class::TooLarge,
                ..
            }
        ),
        "{refused}"
    );
    // Ten times larger before compression: what is stored counts.
    let large = "y".repeat(7_000);
    let compressed = build(Builder::new(Codec::Zstd), &[(START, &large)]);
    assert_eq!(node.append(at, &compressed).await.unwrap().base_offset.0, 1);
    assert_eq!(node.end(at).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_exactly_the_decompressed_limit_is_taken_and_one_byte_more_is_not() {
    let plain = |value: &str| batch(&[value]).len() - floe_wire::batch::HEADER_BYTES;
    let packed = |value: &str| build(Builder::new(Codec::Gzip), &[(START, value)]);
    let (exact, over) = ("x".repeat(70_000), "x".repeat(70_001));
    let mut outside = Outside::new();
    outside.settings.log.decompressed_bytes_max = plain(&exact);
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    assert_eq!(
        node.append(at, &packed(&exact))
            .await
            .unwrap()
            .base_offset
            .0,
        0
    );
    let refused = node.append(at, &packed(&over)).await.unwrap_err();
    let ProduceError::Batch { class, reason, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(class, Class::TooLarge);
    assert!(
        reason.contains("message.decompressed.max.bytes"),
        "{reason}"
    );
    // Records that are not compressed take no room of their own.
    assert_eq!(
        node.append(at, &batch(&[&over]))
            .await
            .unwrap()
            .base_offset
            .0,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_a_flipped_bit_is_refused_and_nothing_is_appended() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let mut bytes = batch(&["value"]).to_vec();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    let refused = node.append(at, &bytes.into()).await.unwrap_err();
    assert!(
        matches!(
            refused,
            ProduceError::Batch {
                class: Class::Corrupt,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(node.end(at).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_append_time_replaces_the_producers_times() {
    let outside = Outside::new();
    let node = outside.start().await;
    let settings = [("message.timestamp.type", "LogAppendTime")];
    let at = node.topic_with("t", 1, &settings).await;
    let produced = node
        .append(at, &timed(&[(5, "a"), (9, "b")]))
        .await
        .unwrap();
    assert_eq!(produced.log_append_time, Some(Timestamp(START)));
    let found = node
        .offset(at, floe_broker::OffsetSpec::Time(Timestamp(10)))
        .await;
    assert_eq!(found, Some((0, START)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_too_far_ahead_is_refused_by_record() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let late = timed(&[(START, "a"), (START + 3_600_001, "b")]);
    let refused = node.append(at, &late).await.unwrap_err();
    let ProduceError::Batch { class, record, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!((class, record), (Class::Timestamp, Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_batch_is_answered_with_its_first_offset_once_committed() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let first = sequenced(9, 0, 0, &["a", "b"]);
    let original = node.begin(at, &first).unwrap();
    let duplicate = node.begin(at, &first).unwrap();
    assert_eq!(original.assigned(), duplicate.assigned());
    assert_eq!(duplicate.await.unwrap().base_offset.0, 0);
    // Committed for one is committed for the other.
    assert_eq!(original.await.unwrap().base_offset.0, 0);
    assert_eq!(
        node.append(at, &sequenced(9, 0, 2, &["c"]))
            .await
            .unwrap()
            .base_offset
            .0,
        2
    );
    let gap = node
        .append(at, &sequenced(9, 0, 4, &["e"]))
        .await
        .unwrap_err();
    assert!(
        matches!(gap, ProduceError::OutOfOrderSequence { expected: 3, .. }),
        "{gap}"
    );
    assert_eq!(node.read(at, 0).await, ["a", "b", "c"]);
}

/// C28: 2 messages, idle for longer than any expiration, 2 more.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_producer_goes_on_where_it_was() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.append(at, &sequenced(9, 0, 0, &["a", "b"]))
        .await
        .unwrap();
    outside
        .clock
        .advance(std::time::Duration::from_hours(24 * 8));
    let produced = node
        .append(at, &sequenced(9, 0, 2, &["c", "d"]))
        .await
        .unwrap();
    assert_eq!(produced.base_offset.0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn producer_ids_are_never_given_twice_also_over_a_restart() {
    let outside = Outside::new();
    let node = outside.start().await;
    let mut ids = Vec::new();
    for _ in 0..1_500 {
        ids.push(node.0.init_producer_id().await.unwrap().id);
    }
    node.0.stop().await;
    let node = outside.start().await;
    for _ in 0..10 {
        ids.push(node.0.init_producer_id().await.unwrap().id);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_floes_own_topics_is_written_only_from_inside_and_never_deleted() {
    let node = Outside::new().start().await;
    let topic = node
        .0
        .create_internal_topic("__own", 1, true)
        .await
        .unwrap();
    let again = node
        .0
        .create_internal_topic("__own", 1, true)
        .await
        .unwrap();
    assert_eq!(topic.id, again.id);
    let at = node.find("__own");
    let refused = node.append(at, &batch(&["a"])).await.unwrap_err();
    assert!(refused.to_string().contains("'__own'"), "{refused}");
    let options = floe_broker::ProduceOptions { internal: true };
    node.0
        .produce(at, &batch(&["a"]), options)
        .unwrap()
        .await
        .unwrap();
    let refused = node.0.delete_topic("__own").await.unwrap_err();
    assert!(
        matches!(refused, floe_broker::DeleteTopicError::Internal(_)),
        "{refused}"
    );
}

/// Each partition's share of newcomers is another: room is made by the whole node.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_producer_is_taken_however_many_came_before_and_one_that_made_room_goes_on() {
    let outside = Outside::new();
    let node = outside.start().await;
    let many = node.topic("many", 1).await;
    let quiet = node.topic("quiet", 1).await;
    node.append(many, &sequenced(0, 0, 0, &["a"]))
        .await
        .unwrap();
    for id in 1..=100_000 {
        outside.clock.advance(std::time::Duration::from_millis(1));
        let pending = node.begin(many, &sequenced(id, 0, 0, &["v"])).unwrap();
        if id % 500 == 0 {
            pending.await.unwrap();
        }
    }
    let newcomer = sequenced(200_000, 0, 0, &["first"]);
    assert_eq!(
        node.append(quiet, &newcomer).await.unwrap().base_offset.0,
        0
    );
    let retried = node.append(quiet, &newcomer).await.unwrap();
    assert_eq!(retried.base_offset.0, 0, "the newcomer is known");
    // The oldest was forgotten and goes on, as a producer nobody knows may; one of the youngest is held to its sequence.
    node.append(many, &sequenced(0, 0, 1, &["b"]))
        .await
        .unwrap();
    let gap = sequenced(99_999, 0, 5, &["gap"]);
    let refused = node.append(many, &gap).await.unwrap_err();
    assert!(
        matches!(refused, ProduceError::OutOfOrderSequence { .. }),
        "{refused}"
    );
}

/// R16, for the batch that met the full disk: nobody can say yet, so its caller is told just that.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_meets_a_full_disk_is_undecided_until_there_is_room() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    let used = outside.disk.files().iter().map(|(_, len)| len).sum();
    outside.disk.set_capacity(used);
    let large = batch(&[&"x".repeat(300_000)]);
    let mut undecided = Vec::new();
    let refused = loop {
        match node.begin(at, &large) {
            Ok(pending) => undecided.push(pending),
            Err(error) => break error,
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        refused,
        ProduceError::Unavailable(floe_broker::Unavailable::DiskFull)
    );
    let told = node.0.undecided();
    assert_eq!(told, ProduceError::Undecided { is_disk_full: true });
    outside.disk.set_capacity(1 << 40);
    for (offset, pending) in undecided.into_iter().enumerate() {
        assert_eq!(pending.await.unwrap().base_offset.0, offset as u64);
    }
}
