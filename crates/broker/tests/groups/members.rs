//! Classic groups through the driver: waiting, time-outs by the node's clock, one kind per group.

use std::time::Duration;

use floe_broker::groups::{Listed, State};
use floe_groups::assigned::{OnNewGroup, Used};
use floe_groups::classic::Leaving;
use floe_groups::{GroupId, Kind, MemberId, Refusal};

use crate::harness::{Node, Outside};
use crate::words::{
    caller, eventually, group, newcomer, nobody, position, refused, stateless, sync,
};

fn state(node: &Node, name: &str) -> Option<State> {
    node.0
        .groups()
        .describe(&group(name))
        .map(|described| described.listed.state)
}

async fn outside_without_delay() -> (Outside, Node) {
    let mut outside = Outside::new();
    outside.settings.group_initial_rebalance_delay = Duration::ZERO;
    let node = outside.start().await;
    (outside, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_share_a_group_until_one_leaves() {
    let (_outside, node) = outside_without_delay().await;
    let groups = node.0.groups();
    let (first, synced) = node.join_alone("g").await;
    assert_eq!(&synced.assignment[..], b"all");
    let name = group("g");
    let (second, first) = tokio::join!(groups.join(&name, newcomer()), async {
        eventually(|| state(&node, "g") == Some(State::PreparingRebalance)).await;
        let mut again = newcomer();
        again.member_id = first.member_id.clone();
        groups.join(&name, again).await
    });
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.generation, second.generation);
    assert_eq!(first.leader, first.member_id);
    assert_eq!(first.members.len(), 2);
    let parts = [(&first.member_id, "a"), (&second.member_id, "b")];
    let (follower, leader) = tokio::join!(
        groups.sync(&name, sync(&second, &[])),
        groups.sync(&name, sync(&first, &parts))
    );
    assert_eq!(&follower.unwrap().assignment[..], b"b");
    assert_eq!(&leader.unwrap().assignment[..], b"a");
    assert_eq!(state(&node, "g"), Some(State::Stable));

    let described = groups.describe(&name).unwrap();
    assert_eq!(&*described.listed.protocol_type, "consumer");
    assert_eq!(&*described.protocol, "range");
    assert_eq!(described.members.len(), 2);

    let one = Leaving {
        member_id: first.member_id.clone(),
        instance_id: None,
    };
    assert_eq!(
        groups.leave(&name, &[one.clone(), one]),
        [Ok(()), Err(Refusal::UnknownMember)]
    );
    let second = caller(second.member_id.as_str(), second.generation.0);
    assert_eq!(
        groups.heartbeat(&name, &second),
        Err(Refusal::RebalanceInProgress)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_member_is_gone_after_its_session_by_the_nodes_clock() {
    let (outside, node) = outside_without_delay().await;
    node.join_alone("g").await;
    outside.clock.advance(Duration::from_millis(9_900));
    floe_world::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(state(&node, "g"), Some(State::Stable));
    outside.clock.advance(Duration::from_millis(100));
    eventually(|| state(&node, "g").is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_stops_waiting_does_not_hold_the_group_up() {
    let (outside, node) = outside_without_delay().await;
    let (first, _) = node.join_alone("g").await;
    let groups = node.0.groups();
    let name = group("g");
    tokio::select! {
        _ = groups.join(&name, newcomer()) => panic!("the first member has not joined again"),
        () = eventually(|| state(&node, "g") == Some(State::PreparingRebalance)) => {}
    }
    let mut again = newcomer();
    again.member_id = first.member_id.clone();
    let mut again = Box::pin(groups.join(&name, again));
    let waits = floe_world::time::timeout(Duration::from_millis(50), &mut again).await;
    assert!(waits.is_err(), "the other may still come back");
    outside.clock.advance(Duration::from_secs(10));
    let joined = again.await.unwrap();
    assert_eq!(joined.members.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_an_earlier_life_are_told_to_join_again() {
    let (outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    let (joined, _) = node.join_alone("g").await;
    let member = caller(joined.member_id.as_str(), joined.generation.0);
    let commit = |node: &Node, offset| {
        let groups = node.0.groups().clone();
        let member = member.clone();
        async move {
            groups
                .commit(&group("g"), &member, vec![position(at, offset)])
                .await
        }
    };
    assert_eq!(commit(&node, 7).await.unwrap(), [Ok(())]);
    node.shut_down().await;
    let node = outside.start().await;
    assert_eq!(refused(commit(&node, 8).await), Refusal::IllegalGeneration);
    assert_eq!(
        node.0.groups().heartbeat(&group("g"), &member),
        Err(Refusal::UnknownMember)
    );
    let mut again = newcomer();
    again.member_id = joined.member_id.clone();
    let refused = node.0.groups().join(&group("g"), again).await;
    assert_eq!(refused, Err(Refusal::UnknownMember));
    node.join_alone("g").await;
    assert_eq!(node.committed("g", at), Some(7));
}

/// C15.
#[tokio::test(flavor = "multi_thread")]
async fn commits_without_membership_are_taken_only_while_there_are_no_members() {
    let (_outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    assert_eq!(node.commit_position("g", at, 1).await.unwrap(), [Ok(())]);
    let (joined, _) = node.join_alone("g").await;
    assert_eq!(
        refused(node.commit_position("g", at, 2).await),
        Refusal::UnknownMember
    );
    let groups = node.0.groups();
    let by = |member: &MemberId, generation: i32| {
        let caller = caller(member.as_str(), generation);
        async move {
            groups
                .commit(&group("g"), &caller, vec![position(at, 3)])
                .await
        }
    };
    let current = joined.generation.0;
    let stale = by(&joined.member_id, current - 1).await;
    assert_eq!(refused(stale), Refusal::IllegalGeneration);
    let unknown = by(&MemberId::from("unknown"), current).await;
    assert_eq!(refused(unknown), Refusal::UnknownMember);
    assert_eq!(by(&joined.member_id, current).await.unwrap(), [Ok(())]);
    assert_eq!(node.committed("g", at), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_members_and_topics_they_read_are_not_deleted() {
    let (_outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    let other = node.topic("u", 1).await;
    node.commit_position("g", at, 1).await.unwrap();
    node.commit_position("g", other, 1).await.unwrap();
    node.join_alone("g").await;
    let groups = node.0.groups();
    assert_eq!(
        refused(groups.delete_group(&group("g")).await),
        Refusal::NotEmpty
    );
    let deleted = groups
        .delete_positions(&group("g"), &[at, other])
        .await
        .unwrap();
    assert_eq!(deleted, [Err(Refusal::SubscribedToTopic), Ok(())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_group_is_of_one_kind_as_long_as_it_has_members() {
    let (_outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    let (joined, _) = node.join_alone("kafka").await;
    let http = node
        .register("kafka", "c", &["t"], OnNewGroup::Earliest)
        .await;
    assert_eq!(refused(http), Refusal::InconsistentProtocol);

    node.register("http", "c", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
    let groups = node.0.groups();
    let kafka = groups.join(&group("http"), newcomer()).await;
    assert_eq!(kafka, Err(Refusal::InconsistentProtocol));
    assert_eq!(
        refused(node.commit_position("http", at, 1).await),
        Refusal::UnknownMember
    );
    let described = groups.describe(&group("http")).unwrap();
    assert_eq!(
        (described.listed.kind, described.members.len()),
        (Kind::Assigned, 1)
    );

    let one = Leaving {
        member_id: joined.member_id,
        instance_id: None,
    };
    assert_eq!(groups.leave(&group("kafka"), &[one]), [Ok(())]);
    node.register("kafka", "d", &["t"], OnNewGroup::Earliest)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_whose_members_are_gone_stays_of_their_kind_also_after_a_restart() {
    let (outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    node.register("http", "c", &["t"], OnNewGroup::Latest)
        .await
        .unwrap();
    let groups = node.0.groups();
    let goodbye = groups.goodbye(&stateless("c"), &Used::All).await;
    goodbye.unwrap();
    node.commit_position("kafka", at, 1).await.unwrap();
    let kinds = |node: &Node| {
        let listed = node.0.groups().list();
        let one = |listed: &Listed| (listed.kind, listed.state, listed.protocol_type.to_string());
        listed.iter().map(one).collect::<Vec<_>>()
    };
    let expected = [
        (Kind::Assigned, State::Empty, "consumer".to_owned()),
        (Kind::Classic, State::Empty, String::new()),
    ];
    assert_eq!(kinds(&node), expected);
    // A tool sets its position: that makes it no other kind.
    node.commit_position("http", at, 0).await.unwrap();
    assert_eq!(kinds(&node), expected);
    node.shut_down().await;
    let node = outside.start().await;
    assert_eq!(kinds(&node), expected);

    // Kafka's own members do.
    let (joined, _) = node.join_alone("http").await;
    let member = caller(joined.member_id.as_str(), joined.generation.0);
    let (name, new) = (group("http"), vec![position(at, 1)]);
    let committed = node.0.groups().commit(&name, &member, new).await;
    assert_eq!(committed.unwrap(), [Ok(())]);
    let one = Leaving {
        member_id: joined.member_id,
        instance_id: None,
    };
    assert_eq!(node.0.groups().leave(&group("http"), &[one]), [Ok(())]);
    assert_eq!(kinds(&node)[0].0, Kind::Classic);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_groups_have_bounds() {
    let (_outside, node) = outside_without_delay().await;
    let groups = node.0.groups();
    for name in [String::new(), "g".repeat(4097)] {
        let joined = groups.join(&GroupId::from(name), newcomer()).await;
        assert_eq!(joined, Err(Refusal::InvalidGroupId));
    }
    let long = GroupId::from("g".repeat(4097));
    let committed = groups.commit(&long, &nobody(), Vec::new()).await;
    assert_eq!(refused(committed), Refusal::InvalidGroupId);
}

#[tokio::test(flavor = "multi_thread")]
async fn lag_members_and_positions_are_counted() {
    let (_outside, node) = outside_without_delay().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a", "b", "c"]).await;
    node.commit_position("g", at, 1).await.unwrap();
    node.join_alone("k").await;
    let mut registry = prometheus_client::registry::Registry::default();
    node.0.groups().register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "group_positions 1",
        "groups{kind=\"classic\"} 1",
        "groups{kind=\"assigned\"} 0",
        "group_members{kind=\"classic\"} 1",
        "group_lag_records{group=\"g\",topic=\"t\"} 2",
        "group_lag_omitted 0",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} not in\n{text}"
        );
    }
}
