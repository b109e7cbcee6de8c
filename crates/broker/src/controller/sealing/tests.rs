//! Scenarios of a controller: what it tells members, what it makes of their answers.

use floe_cluster::plan::Cause;
use floe_model::{Incarnation, LeaderEpoch, Offset, PartitionIndex, TopicId};
use floe_replication::message::Refusal;

use super::*;

const AT: TopicPartition = TopicPartition {
    topic: TopicId([7; 16]),
    partition: PartitionIndex(0),
};

fn member(node: u32) -> Member {
    Member {
        node: NodeId(node),
        incarnation: Incarnation(1),
    }
}

fn turn(members: &[u32], quorum: usize) -> Turn {
    let members: Vec<_> = members.iter().copied().map(member).collect();
    Turn {
        partition: AT,
        cause: Cause::LeaderGone,
        epoch: LeaderEpoch(4),
        start: Offset(100),
        log_start: Offset(120),
        next: members.clone(),
        wished: members[0],
        members,
        quorum,
        leases: Vec::new(),
        accept_loss: None,
    }
}

/// Begins one seal.
fn begun(turn: Turn) -> (Sealing, Vec<(u32, Ask)>) {
    let mut sealing = Sealing::new(0);
    let mut out = Vec::new();
    sealing.begin(turn, Duration::ZERO, &mut out).unwrap();
    (sealing, fences(&out))
}

fn fences(out: &[Do]) -> Vec<(u32, Ask)> {
    let fences = out.iter().filter_map(|todo| match todo {
        Do::Tell(node, AT, Told::FenceAsked(fence)) => Some((node.0, fence.ask)),
        _ => None,
    });
    fences.collect()
}

fn fenced(node: u32, ask: Ask, end: u64) -> Said {
    Said::Fenced {
        from: member(node),
        ask,
        end: Offset(end),
    }
}

fn heard(sealing: &mut Sealing, said: &Said, at_ms: u64) -> Vec<Do> {
    let mut out = Vec::new();
    sealing.heard(said, Duration::from_millis(at_ms), &mut out);
    out
}

fn ticked(sealing: &mut Sealing, at_ms: u64) -> Vec<Do> {
    let mut out = Vec::new();
    sealing.tick(Duration::from_millis(at_ms), &mut out);
    out
}

#[test]
fn three_members_are_fenced_the_lagging_one_is_repaired_and_a_proven_holder_leads() {
    let (mut sealing, asked) = begun(turn(&[1, 2, 3], 2));
    assert_eq!(
        asked.iter().map(|(node, _)| *node).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(heard(&mut sealing, &fenced(1, asked[0].1, 140), 1).is_empty());
    assert!(
        heard(&mut sealing, &fenced(2, asked[1].1, 150), 2).is_empty(),
        "it waits for the third"
    );
    assert!(ticked(&mut sealing, 40).is_empty());
    let out = ticked(&mut sealing, 52);
    let order = out.iter().find_map(|todo| match todo {
        Do::Tell(NodeId(1), AT, Told::CopyOrdered(order)) => Some(*order),
        _ => None,
    });
    let order = order.expect("the lagging witness is told to copy");
    assert_eq!(
        (order.from, order.start, order.end, order.epoch),
        (member(2), Offset(120), Offset(150), LeaderEpoch(4)),
        "what retention has left of it"
    );
    let copied = Said::Copied {
        from: member(1),
        ask: order.ask,
        epoch: LeaderEpoch(4),
        end: Offset(150),
    };
    let out = heard(&mut sealing, &copied, 60);
    let [Do::Open(AT, opening)] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!(opening.end, Offset(150));
    assert_eq!(opening.holders, [member(2), member(1)]);
    assert!(!opening.lossy);
}

#[test]
fn who_does_not_answer_is_asked_again_and_a_late_answer_of_another_seal_counts_nothing() {
    let (mut sealing, asked) = begun(turn(&[1, 2, 3], 2));
    heard(&mut sealing, &fenced(1, asked[0].1, 140), 1);
    assert!(fences(&ticked(&mut sealing, 499)).is_empty());
    let again = fences(&ticked(&mut sealing, 501));
    assert_eq!(
        again.iter().map(|(node, _)| *node).collect::<Vec<_>>(),
        [2, 3]
    );
    sealing.is_over(AT);
    assert!(sealing.is_idle());
    assert!(heard(&mut sealing, &fenced(2, again[0].1, 150), 502).is_empty());
    let mut out = Vec::new();
    sealing
        .begin(turn(&[1, 2, 3], 2), Duration::ZERO, &mut out)
        .unwrap();
    assert!(heard(&mut sealing, &fenced(2, again[0].1, 150), 503).is_empty());
}

#[test]
fn one_partition_is_sealed_once_at_a_time_and_never_for_fewer_members_than_its_quorum() {
    let (mut sealing, _) = begun(turn(&[1, 2, 3], 2));
    let mut out = Vec::new();
    sealing
        .begin(turn(&[1, 2, 3], 2), Duration::ZERO, &mut out)
        .unwrap();
    assert!(out.is_empty());
    let mut few = turn(&[1, 2, 3], 2);
    few.next.truncate(1);
    assert!(
        Sealing::new(0)
            .begin(few, Duration::ZERO, &mut out)
            .is_err()
    );
}

#[test]
fn a_refusal_is_no_answer() {
    let (mut sealing, asked) = begun(turn(&[1], 1));
    let refusal = Said::Refuse {
        ask: asked[0].1,
        refusal: Refusal::Stranger,
    };
    assert!(heard(&mut sealing, &refusal, 1).is_empty());
    let again = fences(&ticked(&mut sealing, 501));
    assert_eq!(again.len(), 1);
    let out = heard(&mut sealing, &fenced(1, again[0].1, 120), 502);
    assert!(matches!(&out[..], [Do::Open(AT, _)]), "{out:?}");
}

#[test]
fn the_copy_whose_loss_was_accepted_decides_alone_and_that_is_recorded() {
    let other_life = Member {
        incarnation: Incarnation(2),
        ..member(1)
    };
    let mut lost = turn(&[1], 1);
    lost.accept_loss = Some(other_life);
    lost.next = vec![other_life];
    let (mut sealing, asked) = begun(lost);
    let said = Said::Fenced {
        from: other_life,
        ask: asked[1].1,
        end: Offset(110),
    };
    let out = heard(&mut sealing, &said, 1);
    let [Do::Open(AT, opening)] = &out[..] else {
        panic!("{out:?}");
    };
    assert!(opening.lossy);
    assert_eq!(opening.end, Offset(110));
}
