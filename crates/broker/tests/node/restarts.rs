//! Restarts: what was acknowledged is there, under a higher epoch; foreign directories are refused.

use floe_broker::{ClusterId, ProduceError, StartError};
use floe_model::NodeId;

use crate::harness::{Outside, batch, sequenced};

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_records_and_raises_the_leader_epoch() {
    let outside = Outside::new();
    let mut last = None;
    for round in 0..4_u64 {
        let node = outside.start().await;
        if round == 0 {
            node.topic("t", 2).await;
        }
        let at = node.find("t");
        assert!(last < Some(node.epoch(at)));
        last = Some(node.epoch(at));
        assert_eq!(node.end(at).await, round * 2);
        assert_eq!(node.write(at, &["a", "b"]).await, round * 2);
        assert_eq!(node.read(at, 0).await.len() as u64, round * 2 + 2);
        node.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_keeps_what_was_acknowledged() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    let values: Vec<_> = (0..100).map(|n| n.to_string()).collect();
    for value in &values {
        node.append(at, &batch(&[value])).await.unwrap();
    }
    outside.disk.cut_power();
    drop(node);
    outside.disk = outside.disk.after_power_cut();
    let node = outside.start().await;
    assert_eq!(node.read(node.find("t"), 0).await, values);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_producers_is_exact_after_a_stop_and_after_a_crash() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    for n in 0..7 {
        node.append(at, &sequenced(1, 0, n, &["v"])).await.unwrap();
    }
    node.0.stop().await;
    let node = outside.start().await;
    let at = node.find("t");
    let again = node.append(at, &sequenced(1, 0, 4, &["v"])).await.unwrap();
    assert_eq!(again.base_offset.0, 4);
    for n in 7..9 {
        let produced = node.append(at, &sequenced(1, 0, n, &["v"])).await.unwrap();
        assert_eq!(produced.base_offset.0, n as u64);
    }
    outside.disk.cut_power();
    drop(node);
    outside.disk = outside.disk.after_power_cut();
    let node = outside.start().await;
    let at = node.find("t");
    for n in 4..9 {
        let again = node.append(at, &sequenced(1, 0, n, &["v"])).await.unwrap();
        assert_eq!(again.base_offset.0, n as u64);
    }
    let gap = node
        .append(at, &sequenced(1, 0, 10, &["v"]))
        .await
        .unwrap_err();
    assert!(
        matches!(gap, ProduceError::OutOfOrderSequence { expected: 9, .. }),
        "{gap}"
    );
    assert_eq!(node.end(at).await, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_directory_is_refused() {
    let outside = Outside::new();
    let _node = outside.start().await;
    let refused = outside.try_start().await.map(drop).unwrap_err();
    assert!(matches!(refused, StartError::Locked(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_cluster_or_node_is_refused() {
    let mut outside = Outside::new();
    outside.settings.cluster = Some(ClusterId([1; 16]));
    outside.start().await.0.stop().await;
    outside.settings.cluster = Some(ClusterId([2; 16]));
    let refused = outside.try_start().await.map(drop).unwrap_err();
    assert!(
        matches!(refused, StartError::OtherIdentity { .. }),
        "{refused}"
    );
    outside.settings.cluster = None;
    outside.settings.node = NodeId(5);
    let refused = outside.try_start().await.map(drop).unwrap_err();
    assert!(
        matches!(refused, StartError::OtherIdentity { .. }),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_partitions_open_in_several_entries() {
    let outside = Outside::new();
    let node = outside.start().await;
    node.topic("wide", 2_500).await;
    node.0.stop().await;
    let node = outside.start().await;
    let topic = node.0.catalog().topic("wide").cloned().unwrap();
    assert!(
        topic
            .partitions
            .iter()
            .all(|partition| partition.epoch.0 == 1)
    );
    assert_eq!(topic.partitions.len(), 2_500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_catalog_is_shortened_and_read_back_equal() {
    let outside = Outside::new();
    let node = outside.start().await;
    for round in 0..400 {
        node.topic(&format!("topic-{round}"), 1).await;
        if round % 2 == 0 {
            node.0
                .delete_topic(&format!("topic-{round}"))
                .await
                .unwrap();
        }
    }
    let before = node.0.catalog();
    node.0.stop().await;
    let node = outside.start().await;
    assert_eq!(before.names, node.0.catalog().names);
    assert_eq!(node.names().len(), 200);
}
