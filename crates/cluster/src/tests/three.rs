//! Three nodes: what may open, who holds, who forgets, whose lease runs.

use super::*;

/// Node `node` in its first life and process.
pub(super) fn member(node: u32) -> Member {
    Member {
        node: NodeId(node),
        incarnation: Incarnation(u64::from(node) * 10),
    }
}

pub(super) fn leads(node: u32, boot: u32) -> Leader {
    Leader {
        node: NodeId(node),
        incarnation: member(node).incarnation,
        boot: Boot(boot),
    }
}

pub(super) fn registered(node: u32, incarnation: u64, boot: u32) -> Node {
    Node {
        id: NodeId(node),
        incarnation: Incarnation(incarnation),
        boot: Boot(boot),
        endpoints: Vec::new(),
        protocol: 1,
    }
}

pub(super) fn topic(id: u8, members: &[u32], has_table: bool) -> NewTopic {
    let partition = NewPartition {
        leader: leads(members[0], 1),
        members: members.iter().copied().map(member).collect(),
    };
    NewTopic {
        name: TopicName::parse(&format!("t{id}")).unwrap(),
        id: TopicId([id; 16]),
        replication_factor: 3,
        quorum: 2,
        has_table,
        partitions: vec![partition; 2],
        overrides: BTreeMap::new(),
        internal: false,
    }
}

pub(super) fn accepted(catalog: &mut Catalog, command: &Command) -> Vec<Effect> {
    let applied = apply(catalog, command);
    assert_eq!(applied.refused, [], "{command:?}");
    applied.effects
}

/// Four registered nodes, a topic with tables on the first three.
pub(super) fn four() -> Catalog {
    let mut catalog = Catalog::default();
    for node in 1..=4 {
        let node = registered(node, u64::from(node) * 10, 1);
        accepted(&mut catalog, &Command::RegisterNode(node));
    }
    let topic = topic(1, &[1, 2, 3], true);
    accepted(&mut catalog, &Command::CreateTopic(topic));
    catalog
}

/// A seal of partition 0 that is fit.
pub(super) fn turn(epoch: u32, end: u64, leader: u32) -> Transition {
    Transition {
        partition: at(1, 0),
        epoch: LeaderEpoch(epoch),
        end: Offset(end),
        lossy: false,
        holders: vec![member(1), member(2)],
        times: None,
        leases: Vec::new(),
        leader: leads(leader, 1),
        members: [1, 2, 3].map(member).to_vec(),
    }
}

pub(super) fn sealed(catalog: &mut Catalog, transition: Transition) -> Vec<Effect> {
    accepted(catalog, &Command::SealAndOpen(vec![transition]))
}

fn unfit(catalog: &mut Catalog, transition: Transition) -> Unfit {
    let before = catalog.clone();
    let applied = apply(catalog, &Command::SealAndOpen(vec![transition]));
    assert_eq!(catalog.topics, before.topics);
    assert_eq!(applied.effects, []);
    why(&applied)
}

#[test]
fn nothing_opens_with_fewer_members_or_holders_than_q_however_small_the_set() {
    let mut catalog = four();
    let one = Transition {
        members: vec![member(1)],
        ..turn(0, 5, 1)
    };
    let too_few = Unfit::TooFewMembers {
        members: 1,
        quorum: 2,
    };
    assert_eq!(unfit(&mut catalog, one), too_few);
    let held_by_one = Transition {
        holders: vec![member(1)],
        members: vec![member(1), member(2)],
        ..turn(0, 5, 1)
    };
    let too_few = Unfit::TooFewHolders {
        holders: 1,
        quorum: 2,
    };
    assert_eq!(unfit(&mut catalog, held_by_one), too_few);
    let mut alone = topic(2, &[1], false);
    alone.partitions.truncate(1);
    let refused = why(&apply(&mut catalog, &Command::CreateTopic(alone)));
    assert_eq!(
        refused,
        Unfit::TooFewMembers {
            members: 1,
            quorum: 2
        }
    );
}

#[test]
fn a_node_counts_once_and_the_leader_is_a_member_and_the_process_that_runs() {
    let mut catalog = four();
    let twice = Transition {
        members: vec![member(1), member(1)],
        ..turn(0, 5, 1)
    };
    assert_eq!(unfit(&mut catalog, twice), Unfit::Twice(NodeId(1)));
    let twice = Transition {
        holders: vec![member(2), member(2)],
        ..turn(0, 5, 1)
    };
    assert_eq!(unfit(&mut catalog, twice), Unfit::Twice(NodeId(2)));
    assert_eq!(unfit(&mut catalog, turn(0, 5, 4)), Unfit::LeaderNotMember);
    let restarted = Command::RegisterNode(registered(1, 10, 2));
    accepted(&mut catalog, &restarted);
    assert_eq!(
        unfit(&mut catalog, turn(0, 5, 1)),
        Unfit::NotRunning(leads(1, 1))
    );
    let again = Transition {
        leader: leads(1, 2),
        ..turn(0, 5, 1)
    };
    sealed(&mut catalog, again);
}

#[test]
fn the_open_carries_every_earlier_lease_until_it_is_proven_ended() {
    let mut catalog = four();
    let lease = |epoch: u32, node| (LeaderEpoch(epoch), member(node));
    let first = Transition {
        leases: vec![lease(0, 1), lease(7, 3)],
        ..turn(0, 5, 2)
    };
    let opened = |effects: &[Effect]| match effects {
        [Effect::Sealed { .. }, Effect::Opened { opened, .. }] => opened.leases.clone(),
        other => panic!("{other:?}"),
    };
    let effects = sealed(&mut catalog, first);
    assert_eq!(
        opened(&effects),
        [LeaderEpoch(0)],
        "and none that nobody ever had"
    );
    let second = Transition {
        leases: vec![lease(0, 1), lease(1, 2)],
        ..turn(1, 5, 3)
    };
    let effects = sealed(&mut catalog, second);
    assert_eq!(opened(&effects), [0, 1].map(LeaderEpoch));
    let ended = Command::EndLeases(vec![(at(1, 0), LeaderEpoch(0))]);
    let effects = accepted(&mut catalog, &ended);
    assert_eq!(
        effects,
        [Effect::LeaseEnded {
            partition: at(1, 0),
            epoch: LeaderEpoch(0)
        }]
    );
    assert_eq!(accepted(&mut catalog, &ended), [], "once");
    let third = Transition {
        leases: vec![lease(0, 1), lease(1, 2), lease(2, 3)],
        ..turn(2, 5, 1)
    };
    let effects = sealed(&mut catalog, third);
    assert_eq!(opened(&effects), [1, 2].map(LeaderEpoch));
}

#[test]
fn a_topic_without_tables_has_no_leases() {
    let mut catalog = four();
    let plain = topic(2, &[1, 2, 3], false);
    accepted(&mut catalog, &Command::CreateTopic(plain));
    let transition = Transition {
        partition: at(2, 0),
        leases: vec![(LeaderEpoch(0), member(1))],
        ..turn(0, 5, 2)
    };
    sealed(&mut catalog, transition);
    assert_eq!(catalog.partition(at(2, 0)).unwrap().leases, []);
}

fn forget(node: u32, epoch: u32) -> Command {
    Command::Forget(vec![Forgetting {
        node: NodeId(node),
        partition: at(1, 0),
        epoch: LeaderEpoch(epoch),
    }])
}

fn claim(member: Member, epoch: u32, as_of: u64) -> Command {
    Command::AddHolders(vec![Claim {
        member,
        partition: at(1, 0),
        epoch: LeaderEpoch(epoch),
        as_of,
    }])
}

/// Generation 0 is held by 1 and 2; the open one is 2's, 3's and 4's.
fn moved() -> Catalog {
    let mut catalog = four();
    let transition = Transition {
        members: [2, 3, 4].map(member).to_vec(),
        ..turn(0, 5, 2)
    };
    sealed(&mut catalog, transition);
    catalog
}

#[test]
fn a_node_forgets_when_q_others_hold_and_it_is_no_member() {
    let mut catalog = moved();
    let refused = why(&apply(&mut catalog, &forget(1, 0)));
    assert_eq!(
        refused,
        Unfit::StillNeeded {
            others: 1,
            quorum: 2
        }
    );
    let as_of = catalog.index;
    accepted(&mut catalog, &claim(member(3), 0, as_of));
    let refused = why(&apply(&mut catalog, &forget(2, 0)));
    assert_eq!(refused, Unfit::StillMember(NodeId(2)));
    let effects = accepted(&mut catalog, &forget(1, 0));
    assert_eq!(
        effects,
        [Effect::Forgotten {
            partition: at(1, 0),
            node: NodeId(1),
            epoch: LeaderEpoch(0),
            index: catalog.index
        }]
    );
    let holders = &catalog.partition(at(1, 0)).unwrap().sealed[0].holders;
    assert_eq!(*holders, [member(2), member(3)]);
    let gone = why(&apply(&mut catalog, &forget(1, 7)));
    assert_eq!(gone, Unfit::NotSealed(LeaderEpoch(7)));
}

#[test]
fn a_claim_from_before_the_node_was_allowed_to_forget_is_void() {
    let mut catalog = moved();
    let ordered = catalog.index;
    accepted(&mut catalog, &claim(member(3), 0, ordered));
    accepted(&mut catalog, &forget(1, 0));
    let let_go = catalog.index;
    let refused = why(&apply(&mut catalog, &claim(member(1), 0, ordered)));
    assert_eq!(refused, Unfit::LetGo(let_go));
    accepted(&mut catalog, &claim(member(1), 0, let_go));
}

#[test]
fn a_seal_says_between_which_times_its_records_lie() {
    let mut catalog = four();
    let times = Times {
        min: floe_model::Timestamp(-1),
        max: floe_model::Timestamp(77),
    };
    let transition = Transition {
        times: Some(times),
        ..turn(0, 5, 1)
    };
    sealed(&mut catalog, transition);
    sealed(&mut catalog, turn(1, 9, 1));
    let partition = catalog.partition(at(1, 0)).unwrap();
    assert_eq!(partition.times(LeaderEpoch(0)), Some(times));
    assert_eq!(partition.times(LeaderEpoch(1)), None);
    let read = format::decode_snapshot(&format::encode_snapshot(&catalog)).unwrap();
    assert_eq!(read, catalog);
    let past = Command::AdvanceLogStart(vec![(at(1, 0), Offset(5))]);
    accepted(&mut catalog, &past);
    let partition = catalog.partition(at(1, 0)).unwrap();
    assert_eq!(partition.times(LeaderEpoch(0)), None, "with its records");
}

#[test]
fn a_tombstone_waits_for_every_node_that_was_registered() {
    let mut catalog = four();
    let topic = TopicId([1; 16]);
    accepted(&mut catalog, &Command::DeleteTopic(topic));
    for node in 1..=4 {
        let held = Holdings::new();
        let due = duties(&catalog, NodeId(node), &held);
        assert_eq!(
            due,
            [Effect::Deleted {
                topic,
                partitions: 2
            }]
        );
        let confirmed = Command::ConfirmDeleted {
            node: NodeId(node),
            topics: vec![topic],
        };
        accepted(&mut catalog, &confirmed);
        assert_eq!(duties(&catalog, NodeId(node), &held), []);
    }
    assert!(catalog.tombstones.is_empty());
}

#[test]
fn what_is_held_of_a_generation_without_records_is_excess() {
    let mut catalog = four();
    sealed(&mut catalog, turn(0, 0, 2));
    sealed(&mut catalog, turn(1, 6, 3));
    let held = Holdings::from([(at(1, 0), vec![LeaderEpoch(1), LeaderEpoch(0)])]);
    let due = duties(&catalog, NodeId(1), &held);
    let ends: Vec<_> = due
        .iter()
        .filter_map(|effect| match effect {
            Effect::Sealed { epoch, end, .. } => Some((epoch.0, end.0)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(0, 0), (1, 6)]);
}
