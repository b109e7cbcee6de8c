//! Lives of nodes and of copies: who is taken for whom.

use super::three::{accepted, four, leads, member, registered, sealed, turn};
use super::*;

fn refused_node(catalog: &mut Catalog, command: &Command) -> NotThatNode {
    let before = catalog.nodes.clone();
    let applied = apply(catalog, command);
    assert_eq!(catalog.nodes, before);
    match applied.refused[..] {
        [Refusal::Node { why, .. }] => why,
        ref other => panic!("{other:?}"),
    }
}

fn replace(node: Node, replaces: u64) -> Command {
    Command::ReplaceNode {
        node,
        replaces: Incarnation(replaces),
    }
}

#[test]
fn an_earlier_process_and_another_directory_are_refused_by_name() {
    let mut catalog = four();
    accepted(&mut catalog, &Command::RegisterNode(registered(1, 10, 5)));
    let earlier = Command::RegisterNode(registered(1, 10, 4));
    assert_eq!(
        refused_node(&mut catalog, &earlier),
        NotThatNode::EarlierBoot {
            given: Boot(4),
            known: Boot(5)
        }
    );
    let other = Command::RegisterNode(registered(1, 99, 6));
    assert_eq!(
        refused_node(&mut catalog, &other),
        NotThatNode::OtherLife {
            given: Incarnation(99),
            known: Incarnation(10)
        }
    );
}

#[test]
fn a_lost_node_comes_back_under_its_id_once_and_its_old_disk_never() {
    let mut catalog = four();
    let unasked = replace(registered(2, 21, 1), 19);
    assert!(matches!(
        refused_node(&mut catalog, &unasked),
        NotThatNode::OtherLife { .. }
    ));
    accepted(&mut catalog, &replace(registered(2, 21, 1), 20));
    accepted(&mut catalog, &replace(registered(2, 21, 1), 20));
    for command in [
        Command::RegisterNode(registered(2, 20, 9)),
        replace(registered(2, 20, 9), 21),
    ] {
        assert_eq!(
            refused_node(&mut catalog, &command),
            NotThatNode::Replaced(Incarnation(20))
        );
    }
    let nobody = replace(registered(9, 1, 1), 0);
    assert_eq!(refused_node(&mut catalog, &nobody), NotThatNode::Unknown);
    let read = format::decode_snapshot(&format::encode_snapshot(&catalog)).unwrap();
    assert_eq!(read, catalog);
}

#[test]
fn a_replaced_life_is_neither_member_nor_holder_and_the_new_one_may_be_both() {
    let mut catalog = four();
    sealed(&mut catalog, turn(0, 5, 1));
    accepted(&mut catalog, &replace(registered(2, 21, 1), 20));
    let partition = catalog.partition(at(1, 0)).unwrap();
    assert!(!catalog.is_current(partition, member(2)));
    let holders = catalog.current_holders(partition, &partition.sealed[0]);
    assert_eq!(holders.collect::<Vec<_>>(), [member(1)]);
    assert_eq!(
        partition.replicas.len(),
        3,
        "answers are still counted from three"
    );
    let again = Command::SealAndOpen(vec![turn(1, 8, 1)]);
    assert_eq!(
        why(&apply(&mut catalog, &again)),
        Unfit::NotCurrent(member(2))
    );
    let now = Member {
        node: NodeId(2),
        incarnation: Incarnation(21),
    };
    let named = Transition {
        members: vec![member(1), now, member(3)],
        ..turn(1, 8, 1)
    };
    let too_few = Command::SealAndOpen(vec![named.clone()]);
    assert_eq!(
        why(&apply(&mut catalog, &too_few)),
        Unfit::TooFewHolders {
            holders: 1,
            quorum: 2
        },
        "one of the two that held it is over"
    );
    let repaired = Transition {
        holders: vec![member(1), member(2), now],
        ..named.clone()
    };
    let twice = why(&apply(&mut catalog, &Command::SealAndOpen(vec![repaired])));
    assert_eq!(twice, Unfit::Twice(NodeId(2)));
    let repaired = Transition {
        holders: vec![member(1), now],
        ..named
    };
    sealed(&mut catalog, repaired);
}

#[test]
fn holders_that_are_over_are_struck_off_once_enough_others_are_recorded() {
    let mut catalog = four();
    sealed(&mut catalog, turn(0, 5, 1));
    accepted(&mut catalog, &replace(registered(2, 21, 1), 20));
    let claim = |member| {
        Command::AddHolders(vec![Claim {
            member,
            partition: at(1, 0),
            epoch: LeaderEpoch(0),
            as_of: 0,
        }])
    };
    let late = why(&apply(&mut catalog, &claim(member(2))));
    assert_eq!(late, Unfit::NotCurrent(member(2)));
    let holders = |catalog: &Catalog| {
        catalog.partition(at(1, 0)).unwrap().sealed[0]
            .holders
            .clone()
    };
    assert_eq!(holders(&catalog), [member(1), member(2)]);
    accepted(&mut catalog, &claim(member(3)));
    assert_eq!(holders(&catalog), [member(1), member(3)]);
}

#[test]
fn a_damaged_copy_is_renewed_alone_and_in_order() {
    let mut catalog = four();
    let renew = |was, is| Command::RenewCopies {
        node: NodeId(3),
        incarnation: Incarnation(30),
        boot: Boot(1),
        copies: vec![RenewedCopy {
            partition: at(1, 0),
            was: Incarnation(was),
            is: Incarnation(is),
        }],
    };
    accepted(&mut catalog, &renew(30, 31));
    accepted(&mut catalog, &renew(30, 31));
    accepted(&mut catalog, &renew(31, 32));
    let life = |incarnation| Member {
        node: NodeId(3),
        incarnation: Incarnation(incarnation),
    };
    let late = why(&apply(&mut catalog, &renew(30, 31)));
    assert_eq!(late, Unfit::NotCurrent(life(30)));
    let damaged = catalog.partition(at(1, 0)).unwrap();
    assert_eq!(catalog.copy(damaged, NodeId(3)), Some(life(32)));
    assert!(!catalog.is_current(damaged, member(3)));
    let whole = catalog.partition(at(1, 1)).unwrap();
    assert!(catalog.is_current(whole, member(3)));
    let read = format::decode_snapshot(&format::encode_snapshot(&catalog)).unwrap();
    assert_eq!(read, catalog);
    let of_before = Command::RenewCopies {
        node: NodeId(3),
        incarnation: Incarnation(30),
        boot: Boot(0),
        copies: Vec::new(),
    };
    assert!(matches!(
        refused_node(&mut catalog, &of_before),
        NotThatNode::OtherBoot { .. }
    ));
    accepted(&mut catalog, &replace(registered(3, 33, 1), 30));
    let damaged = catalog.partition(at(1, 0)).unwrap();
    assert_eq!(catalog.copy(damaged, NodeId(3)), Some(life(33)));
}

/// As a release of version 1 wrote it: a node without a life, a topic without factor and q, copies with lives of their own.
#[test]
fn what_one_node_wrote_before_means_one_copy_and_its_copies_keep_their_lives() {
    let register = [0x08, 1, 0x52, 4, 0x08, 1, 0x10, 7];
    let mut catalog = Catalog::default();
    catalog.apply(1, format::decode(&register).unwrap());
    let life = [9, 0, 0, 0, 0, 0, 0, 0];
    let member = [&[0x08, 1, 0x11][..], &life].concat();
    let leader = [&member[..], &[0x18, 7]].concat();
    let partition = [&[0x0a, 13][..], &leader, &[0x12, 11], &member].concat();
    let mut topic = [&[0x0a, 1, b't', 0x12, 16][..], &[5; 16]].concat();
    topic.extend([0x1a, partition.len() as u8]);
    topic.extend(&partition);
    topic.extend([0x28, 1]);
    let create = [&[0x08, 1, 0x5a, topic.len() as u8][..], &topic].concat();
    let applied = catalog.apply(2, format::decode(&create).unwrap());
    assert_eq!(applied.refused, []);
    let topic = catalog.topic("t").unwrap();
    assert_eq!((topic.replication_factor, topic.quorum), (1, 1));
    assert!(topic.internal && topic.has_table);
    let copy = Member {
        node: NodeId(1),
        incarnation: Incarnation(9),
    };
    let is_current = |catalog: &Catalog| {
        let partition = catalog.partition(at(5, 0)).unwrap();
        catalog.is_current(partition, copy)
    };
    assert!(is_current(&catalog));
    catalog.apply(3, Command::RegisterNode(registered(1, 10, 8)));
    assert!(is_current(&catalog), "its directory has a life of its own");
    let seal = Transition {
        partition: at(5, 0),
        holders: vec![copy],
        leader: Leader {
            incarnation: copy.incarnation,
            ..leads(1, 8)
        },
        members: vec![copy],
        ..turn(0, 4, 1)
    };
    assert_eq!(
        catalog.apply(4, Command::SealAndOpen(vec![seal])).refused,
        []
    );
}
