//! The state machine and its layouts, driven by commands.

use std::collections::BTreeMap;

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName,
    TopicPartition,
};

use super::*;

mod lives;
mod plans;
mod random;
mod three;

const NODE: NodeId = NodeId(3);

fn leader(boot: u32) -> Leader {
    Leader {
        node: NODE,
        incarnation: Incarnation(9),
        boot: Boot(boot),
    }
}

fn create(name: &str, id: u8, partitions: usize) -> Command {
    let partition = NewPartition {
        leader: leader(1),
        members: vec![leader(1).member()],
    };
    Command::CreateTopic(NewTopic {
        name: TopicName::parse(name).unwrap(),
        id: TopicId([id; 16]),
        replication_factor: 1,
        quorum: 1,
        has_table: false,
        partitions: vec![partition; partitions],
        overrides: BTreeMap::from([("retention.ms".to_owned(), "5".to_owned())]),
        internal: false,
    })
}

fn at(id: u8, partition: u32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([id; 16]),
        partition: PartitionIndex(partition),
    }
}

fn seal(partition: TopicPartition, epoch: u32, end: u64) -> Transition {
    Transition {
        partition,
        epoch: LeaderEpoch(epoch),
        end: Offset(end),
        lossy: false,
        holders: vec![leader(1).member()],
        times: None,
        leases: Vec::new(),
        leader: leader(1),
        members: vec![leader(1).member()],
    }
}

fn node() -> Command {
    Command::RegisterNode(Node {
        id: NODE,
        incarnation: Incarnation(9),
        boot: Boot(1),
        protocol: 1,
        endpoints: vec![Endpoint {
            door: "kafka".into(),
            host: "127.0.0.1".into(),
            port: 9092,
        }],
    })
}

/// A catalog that knows the node.
fn alone() -> Catalog {
    let mut catalog = Catalog::default();
    assert_eq!(apply(&mut catalog, &node()), Applied::default());
    catalog
}

/// The one reason why one partition was refused.
fn why(applied: &Applied) -> Unfit {
    match applied.refused[..] {
        [Refusal::Unfit { why, .. }] => why,
        ref other => panic!("{other:?}"),
    }
}

/// Applies commands as entries would: through their layout.
fn apply(catalog: &mut Catalog, command: &Command) -> Applied {
    let command = format::decode(&format::encode(command)).unwrap();
    catalog.apply(catalog.index + 1, command)
}

#[test]
fn a_name_is_taken_once_and_dot_and_underscore_collide() {
    let mut catalog = alone();
    assert_eq!(apply(&mut catalog, &create("a.b", 1, 2)).effects.len(), 2);
    let exists = apply(&mut catalog, &create("a.b", 2, 1));
    assert!(matches!(exists.refused[..], [Refusal::TopicExists(_)]));
    let collides = apply(&mut catalog, &create("a_b", 2, 1));
    assert!(matches!(collides.refused[..], [Refusal::Collides(_)]));
    assert_eq!(catalog.topics.len(), 1);
    apply(&mut catalog, &Command::DeleteTopic(TopicId([1; 16])));
    assert_eq!(apply(&mut catalog, &create("a_b", 2, 1)).refused, []);
}

#[test]
fn transitions_of_one_entry_fail_alone_and_raise_the_epoch_once() {
    let mut catalog = alone();
    apply(&mut catalog, &create("t", 1, 2));
    let command = Command::SealAndOpen(vec![
        seal(at(1, 0), 0, 10),
        seal(at(1, 0), 0, 12),
        seal(at(1, 1), 0, 0),
        seal(at(7, 0), 0, 0),
    ]);
    let applied = apply(&mut catalog, &command);
    assert_eq!(applied.refused.len(), 2);
    let first = catalog.partition(at(1, 0)).unwrap();
    assert_eq!((first.epoch, first.start), (LeaderEpoch(1), Offset(10)));
    assert_eq!(first.sealed.len(), 1);
    let second = catalog.partition(at(1, 1)).unwrap();
    assert_eq!((second.epoch, second.start), (LeaderEpoch(1), Offset(0)));
    assert!(second.sealed.is_empty(), "an empty generation is left out");
}

#[test]
fn a_transition_below_the_start_or_without_holders_is_refused() {
    let mut catalog = alone();
    apply(&mut catalog, &create("t", 1, 1));
    apply(
        &mut catalog,
        &Command::SealAndOpen(vec![seal(at(1, 0), 0, 10)]),
    );
    let below = Command::SealAndOpen(vec![seal(at(1, 0), 1, 9)]);
    assert_eq!(
        why(&apply(&mut catalog, &below)),
        Unfit::EndBelowStart {
            end: Offset(9),
            start: Offset(10)
        }
    );
    let mut without = seal(at(1, 0), 1, 11);
    without.holders.clear();
    let without = Command::SealAndOpen(vec![without]);
    assert_eq!(
        why(&apply(&mut catalog, &without)),
        Unfit::TooFewHolders {
            holders: 0,
            quorum: 1
        }
    );
}

#[test]
fn the_next_life_of_a_name_starts_above_its_last_epoch() {
    let mut catalog = alone();
    apply(&mut catalog, &create("t", 1, 1));
    apply(
        &mut catalog,
        &Command::SealAndOpen(vec![seal(at(1, 0), 0, 10)]),
    );
    apply(&mut catalog, &Command::DeleteTopic(TopicId([1; 16])));
    assert_eq!(catalog.tombstones[&TopicId([1; 16])].waiting, [NODE]);
    assert!(catalog.topic_by_id(TopicId([1; 16])).is_none());
    apply(&mut catalog, &create("t", 2, 1));
    assert_eq!(catalog.partition(at(2, 0)).unwrap().epoch, LeaderEpoch(2));
    let confirmed = Command::ConfirmDeleted {
        node: NODE,
        topics: vec![TopicId([1; 16])],
    };
    apply(&mut catalog, &confirmed);
    assert!(catalog.tombstones.is_empty());
}

#[test]
fn log_start_only_rises_and_drops_generations_below_it() {
    let mut catalog = alone();
    apply(&mut catalog, &create("t", 1, 1));
    apply(
        &mut catalog,
        &Command::SealAndOpen(vec![seal(at(1, 0), 0, 10)]),
    );
    let advance = |to| Command::AdvanceLogStart(vec![(at(1, 0), Offset(to))]);
    assert_eq!(apply(&mut catalog, &advance(7)).effects.len(), 1);
    assert_eq!(apply(&mut catalog, &advance(5)).effects, []);
    assert_eq!(catalog.partition(at(1, 0)).unwrap().log_start, Offset(7));
    apply(&mut catalog, &advance(10));
    assert!(catalog.partition(at(1, 0)).unwrap().sealed.is_empty());
}

#[test]
fn producer_ids_come_in_blocks_that_never_overlap() {
    let mut catalog = alone();
    let reserve = Command::ReserveProducerIds(NODE);
    let firsts = [(); 3].map(|()| match apply(&mut catalog, &reserve).effects[..] {
        [Effect::ProducerIdsReserved { first, count, .. }] => (first, count),
        ref other => panic!("{other:?}"),
    });
    assert_eq!(firsts, [(0, 1_000), (1_000, 1_000), (2_000, 1_000)]);
}

#[test]
fn a_snapshot_reads_back_equal() {
    let mut catalog = alone();
    let commands = [
        create("a.b", 1, 3),
        create("c", 2, 1),
        Command::SealAndOpen(vec![seal(at(1, 2), 0, 10)]),
        Command::AdvanceLogStart(vec![(at(1, 2), Offset(4))]),
        Command::DeleteTopic(TopicId([2; 16])),
        Command::ReserveProducerIds(NODE),
    ];
    for command in &commands {
        assert_eq!(apply(&mut catalog, command).refused, []);
    }
    let read = format::decode_snapshot(&format::encode_snapshot(&catalog)).unwrap();
    assert_eq!(read, catalog);
}

#[test]
fn a_descriptor_reads_back_equal() {
    let whole = format::Descriptor {
        leader: Some(leader(1)),
        members: vec![leader(1).member()],
        since: 0,
    };
    let copied = format::Descriptor {
        since: 77,
        ..format::Descriptor::default()
    };
    for descriptor in [whole, copied] {
        let bytes = format::encode_descriptor(&descriptor);
        assert_eq!(format::decode_descriptor(&bytes), Ok(descriptor));
    }
    assert_eq!(
        format::decode_descriptor(&[]),
        Ok(format::Descriptor::default())
    );
}

#[test]
fn layouts_are_the_documented_bytes() {
    let bytes = format::encode(&Command::DeleteTopic(TopicId([7; 16])));
    let mut expected = vec![0x08, 2, 0x6a, 18, 0x0a, 16];
    expected.extend([7; 16]);
    assert_eq!(bytes, expected);
}

#[test]
fn newer_versions_unknown_commands_and_foreign_bytes_are_refused() {
    assert_eq!(
        format::decode(&[0x08, 3]),
        Err(Undecodable::Version { found: 3 })
    );
    // Field 99 as a command.
    assert_eq!(
        format::decode(&[0x08, 1, 0x9a, 0x06, 0]),
        Err(Undecodable::Command)
    );
    assert!(matches!(
        format::decode(&[0xff; 9]),
        Err(Undecodable::Bytes(_))
    ));
    let short_id = [0x08, 1, 0x6a, 3, 0x0a, 1, 7];
    assert_eq!(
        format::decode(&short_id),
        Err(Undecodable::Field("topic id"))
    );
    assert!(format::decode_snapshot(&[]).is_err());
}
