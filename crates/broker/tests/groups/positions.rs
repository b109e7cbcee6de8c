//! Positions: durable before they are answered, exact after any restart, gone with their topic.

use std::sync::Arc;

use floe_broker::groups::{CommitRefusal, State};
use floe_groups::{NewPosition, Refusal};
use floe_model::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};

use floe_world::tasks;

use crate::harness::Outside;
use crate::words::{group, nobody, position, refused};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_is_there_after_a_stop_and_after_a_power_cut() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    assert_eq!(node.committed("g", at), None);
    let whole = NewPosition {
        leader_epoch: Some(LeaderEpoch(3)),
        ..position(at, 41)
    };
    let results = node
        .0
        .groups()
        .commit(&group("g"), &nobody(), vec![whole])
        .await;
    assert_eq!(results.unwrap(), [Ok(())]);
    node.shut_down().await;

    let node = outside.start().await;
    let position = node.0.groups().position(&group("g"), at).unwrap();
    assert_eq!(
        (position.offset, position.leader_epoch),
        (Offset(41), Some(LeaderEpoch(3)))
    );
    assert_eq!(&*position.metadata, "note");
    for offset in 42..=60 {
        node.commit_position("g", at, offset).await.unwrap();
    }
    outside.disk.cut_power();
    drop(node);
    outside.disk = outside.disk.after_power_cut();

    let node = outside.start().await;
    assert_eq!(node.committed("g", at), Some(60));
    let listed = node.0.groups().list();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].group.as_str(), listed[0].state),
        ("g", State::Empty)
    );
}

/// C12: position 0 is a position, not "none".
#[tokio::test(flavor = "multi_thread")]
async fn position_0_means_the_first_record() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    node.commit_position("g", at, 0).await.unwrap();
    assert_eq!(node.committed("g", at), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_commits_at_a_time_end_with_the_last_one_asked_for() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    let groups = node.0.groups().clone();
    let name = group("g");
    let caller = nobody();
    let commits: Vec<_> = (0..500)
        .map(|offset| Box::pin(groups.commit(&name, &caller, vec![position(at, offset)])))
        .collect();
    for commit in commits {
        assert_eq!(commit.await.unwrap(), [Ok(())]);
    }
    assert_eq!(node.committed("g", at), Some(499));
    drop(groups);
    node.shut_down().await;
    assert_eq!(outside.start().await.committed("g", at), Some(499));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_wait_has_its_commit_stored_all_the_same() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let (name, caller) = (group("g"), nobody());
    {
        let mut commit = Box::pin(
            node.0
                .groups()
                .commit(&name, &caller, vec![position(at, 5)]),
        );
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        assert!(std::future::Future::poll(commit.as_mut(), &mut context).is_pending());
    }
    crate::words::eventually(|| node.committed("g", at) == Some(5)).await;
}

/// C17.
#[tokio::test(flavor = "multi_thread")]
async fn positions_go_with_their_topic_and_a_new_one_of_the_name_has_none() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 2).await;
    node.commit_position("g", at, 10).await.unwrap();
    node.0.delete_topic("t").await.unwrap();
    assert_eq!(node.committed("g", at), None);
    assert!(node.0.groups().list().is_empty());
    let again = node.topic("t", 2).await;
    assert_eq!(node.committed("g", again), None);
    assert!(node.0.groups().positions(&group("g")).is_empty());
    let stale = node.commit_position("g", at, 11).await.unwrap();
    assert_eq!(stale, [Err(CommitRefusal::UnknownPartition)]);
    node.shut_down().await;
    let node = outside.start().await;
    assert_eq!(node.committed("g", at), None);
    assert_eq!(node.committed("g", again), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_position_of_a_commit_is_taken_or_refused_by_itself() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let unknown = TopicPartition {
        topic: TopicId([9; 16]),
        ..at
    };
    let beyond = TopicPartition {
        partition: PartitionIndex(1),
        ..at
    };
    let noted = |len: usize| NewPosition {
        metadata: Arc::from("n".repeat(len)),
        ..position(at, 1)
    };
    let all = vec![
        noted(4097),
        position(unknown, 1),
        position(beyond, 1),
        noted(4096),
    ];
    let results = node
        .0
        .groups()
        .commit(&group("g"), &nobody(), all)
        .await
        .unwrap();
    assert_eq!(
        results,
        [
            Err(CommitRefusal::MetadataTooLarge),
            Err(CommitRefusal::UnknownPartition),
            Err(CommitRefusal::UnknownPartition),
            Ok(())
        ]
    );
    let stored = node.0.groups().positions(&group("g"));
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].1.metadata.len(), 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_group_is_gone_for_good_and_others_stay() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    for name in ["g", "gg", ""] {
        node.commit_position(name, at, 1).await.unwrap();
    }
    let groups = node.0.groups();
    groups.delete_group(&group("g")).await.unwrap();
    assert_eq!(
        refused(groups.delete_group(&group("g")).await),
        Refusal::NotFound(group("g"))
    );
    assert_eq!(groups.describe(&group("g")), None);
    node.shut_down().await;
    let node = outside.start().await;
    assert_eq!(node.committed("g", at), None);
    assert_eq!(node.committed("gg", at), Some(1));
    assert_eq!(node.committed("", at), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn single_positions_are_deleted_by_partition() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let other = node.topic("u", 1).await;
    node.commit_position("g", at, 1).await.unwrap();
    node.commit_position("g", other, 1).await.unwrap();
    let groups = node.0.groups();
    let deleted = groups.delete_positions(&group("g"), &[at]).await.unwrap();
    assert_eq!(deleted, [Ok(())]);
    assert_eq!(node.committed("g", at), None);
    assert_eq!(node.committed("g", other), Some(1));
    let none = groups.delete_positions(&group("none"), &[at]).await;
    assert_eq!(refused(none), Refusal::NotFound(group("none")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_snapshotted_twice_shortens_its_log_and_restores_exactly() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 300).await;
    let all = |offset| -> Vec<_> {
        (0..300)
            .map(|partition| TopicPartition {
                partition: PartitionIndex(partition),
                ..at
            })
            .map(|partition| position(partition, offset))
            .collect()
    };
    let groups = node.0.groups().clone();
    for offset in 0..400 {
        let results = groups
            .commit(&group("g"), &nobody(), all(offset))
            .await
            .unwrap();
        assert!(results.iter().all(Result::is_ok));
    }
    let topic = node
        .0
        .catalog()
        .topic("__group_positions")
        .cloned()
        .unwrap();
    let starts = || {
        let catalog = node.0.catalog();
        let topic = catalog.topic_by_id(topic.id).cloned().unwrap();
        topic
            .partitions
            .iter()
            .map(|partition| partition.log_start.0)
            .max()
            .unwrap()
    };
    // Each later commit looks whether a snapshot has been finished.
    while starts() == 0 {
        groups
            .commit(&group("g"), &nobody(), all(400))
            .await
            .unwrap();
    }
    outside.disk.cut_power();
    outside.disk = outside.disk.after_power_cut();
    let node = outside.start().await;
    let positions = node.0.groups().positions(&group("g"));
    assert_eq!(positions.len(), 300);
    assert!(
        positions
            .iter()
            .all(|(_, position)| position.offset.0 >= 399)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_may_write_does_not_bound_what_groups_may_store() {
    let mut outside = Outside::new();
    outside.settings.topic_defaults.max_message_bytes = 100;
    outside.settings.topic_defaults.log_append_time = true;
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    assert_eq!(node.commit_position("g", at, 7).await.unwrap(), [Ok(())]);
    node.shut_down().await;
    assert_eq!(outside.start().await.committed("g", at), Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_commits_than_may_be_on_their_way_wait_for_their_turn() {
    let node = Outside::new().start().await;
    let at = node.topic("t", 1).await;
    let commits: Vec<_> = (0..6_000)
        .map(|offset| {
            let groups = node.0.groups().clone();
            tasks::spawn(async move {
                let positions = vec![position(at, offset)];
                groups.commit(&group("g"), &nobody(), positions).await
            })
        })
        .collect();
    for commit in commits {
        assert_eq!(commit.await.unwrap(), [Ok(())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_were_answered_before_a_stop_are_kept() {
    let outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    let committing = {
        let groups = node.0.groups().clone();
        tasks::spawn(async move {
            let mut last = 0;
            loop {
                let positions = vec![position(at, last + 1)];
                match groups.commit(&group("g"), &nobody(), positions).await {
                    Ok(results) => assert_eq!(results, [Ok(())]),
                    Err(_) => return last,
                }
                last += 1;
            }
        })
    };
    while node.committed("g", at) < Some(50) {
        tokio::task::yield_now().await;
    }
    node.shut_down().await;
    let last = committing.await;
    let restored = outside.start().await.committed("g", at).unwrap();
    assert!(
        restored == last || restored == last + 1,
        "{restored} {last}"
    );
}

/// P8.
#[tokio::test(flavor = "multi_thread")]
async fn positions_beyond_the_memory_budget_are_refused_and_known_ones_move_on() {
    // A sixteenth of 128 MiB, which one group fills.
    let node = Outside::new().start().await;
    let at = node.topic("t", 2_000).await;
    let note = "n".repeat(4096);
    let full = |offset| -> Vec<_> {
        (0..2_000)
            .map(|partition| NewPosition {
                metadata: Arc::from(note.as_str()),
                ..position(
                    TopicPartition {
                        partition: PartitionIndex(partition),
                        ..at
                    },
                    offset,
                )
            })
            .collect()
    };
    let groups = node.0.groups();
    let first = groups
        .commit(&group("a"), &nobody(), full(1))
        .await
        .unwrap();
    assert_eq!(first[0], Ok(()));
    let second = groups
        .commit(&group("b"), &nobody(), full(1))
        .await
        .unwrap();
    assert!(second.contains(&Err(CommitRefusal::TooMany)));
    let again = groups
        .commit(&group("a"), &nobody(), full(2))
        .await
        .unwrap();
    assert!(again.iter().all(Result::is_ok));
    groups.delete_group(&group("a")).await.unwrap();
    let other = node.commit_position("c", at, 1).await.unwrap();
    assert_eq!(other, [Ok(())]);
}
