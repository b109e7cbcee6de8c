//! Messages there and back.

use std::time::Duration;

use bytes::Bytes;
use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicPartition,
};
use floe_replication::Member;
use floe_replication::message::{
    Answer, Append, Ask, Batch, Checksum, Fence, Order, Outcome, Piece, Pull, Purpose, Refusal,
    Renew, Run, Session, Stamp,
};
use floe_wire::peer::{Kind, head};
use proptest::prelude::*;
use prost::Message as _;

use super::*;

fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicId(*b"0123456789abcdef"),
        partition: PartitionIndex(70_000),
    }
}

fn member(node: u32) -> Member {
    Member {
        node: NodeId(node),
        incarnation: Incarnation(u64::MAX - u64::from(node)),
    }
}

fn run() -> (Run, Batches) {
    let batch = |end, checksum| Batch {
        end: Offset(end),
        checksum: Checksum(checksum),
    };
    let batches = vec![batch(1_000_001, 1), batch(1_000_003, u32::MAX)];
    let run = Run::new(Offset(1_000_000), Some(Checksum(77)), batches);
    let bytes = vec![Bytes::from_static(b"first"), Bytes::from(vec![2; 5_000])];
    (run.unwrap(), Batches::of(bytes))
}

fn answers() -> Vec<Message> {
    let outcomes = [
        Outcome::Durable(Offset(9)),
        Outcome::Durable(Offset::ZERO),
        Outcome::Expected(Offset(10)),
        Outcome::Refused(Refusal::Fenced(LeaderEpoch(11))),
        Outcome::Refused(Refusal::Stranger),
        Outcome::Refused(Refusal::Damaged),
    ];
    let answer = |outcome| Message::Answer {
        partition: partition(),
        answer: Answer {
            from: member(1),
            to: member(2),
            epoch: LeaderEpoch(3),
            session: Session(4),
            stamp: Stamp {
                boot: Boot(5),
                number: 6,
            },
            outcome,
        },
    };
    outcomes.map(answer).to_vec()
}

fn appends() -> Vec<Message> {
    let append = |(run, batches)| Message::Append {
        partition: partition(),
        append: Append {
            from: member(1),
            to: member(2),
            epoch: LeaderEpoch(3),
            start: Offset(4),
            session: Session(5),
            commit: Offset(6),
            run,
        },
        batches,
    };
    let empty = Run::new(Offset(7), None, Vec::new()).unwrap();
    vec![append(run()), append((empty, Batches::default()))]
}

fn copies() -> Vec<Message> {
    let order = |purpose| Message::CopyOrder {
        partition: partition(),
        order: Order {
            to: member(1),
            from: member(2),
            epoch: LeaderEpoch(3),
            start: Offset(4),
            end: Offset(5),
            purpose,
            as_of: 6,
            ask: Ask(7),
        },
    };
    let (run, batches) = run();
    vec![
        order(Purpose::Repair),
        order(Purpose::Backfill),
        Message::Copied {
            partition: partition(),
            from: member(1),
            ask: Ask(2),
            epoch: LeaderEpoch(3),
            end: Offset(4),
        },
        Message::Pull {
            partition: partition(),
            pull: Pull {
                from: member(1),
                to: member(2),
                epoch: LeaderEpoch(3),
                base: Offset(4),
                end: Offset(5),
            },
        },
        Message::Piece {
            partition: partition(),
            piece: Piece {
                from: member(1),
                to: member(2),
                epoch: LeaderEpoch(3),
                run,
            },
            batches,
        },
    ]
}

fn lists(length: usize) -> Vec<Message> {
    let fence = |ask| Fence {
        to: member(1),
        epoch: LeaderEpoch(2),
        start: Offset(3),
        ask: Ask(ask),
    };
    let fenced = |ask| Fenced {
        partition: partition(),
        from: member(1),
        ask: Ask(ask),
        end: Offset(2),
    };
    let renew = |sent_at| Renew {
        from: member(1),
        to: member(2),
        epoch: LeaderEpoch(3),
        sent_at: Duration::from_nanos(sent_at),
    };
    let numbers = || 0..length as u64;
    let leases = || numbers().map(|at| (partition(), renew(at))).collect();
    vec![
        Message::Fence(numbers().map(|ask| (partition(), fence(ask))).collect()),
        Message::Fenced(numbers().map(fenced).collect()),
        Message::LeaseAsk(leases()),
        Message::LeaseGrant(leases()),
    ]
}

fn calls() -> Vec<Message> {
    let call = |hops| Call {
        correlation: 1,
        hops,
        within: Duration::from_millis(1_500),
        body: vec![Bytes::from_static(b"one "), Bytes::from_static(b"body")],
    };
    vec![
        Message::Consensus(Bytes::from_static(b"a vote")),
        Message::Forward(call(HOPS_MAX)),
        Message::Forwarded(call(0)),
        Message::ControllerRequest(call(1)),
        Message::ControllerAnswer(call(0)),
    ]
}

/// At least one of every kind, with every field other than zero in one of them.
pub(in crate::peers) fn all_messages() -> Vec<Message> {
    let refusal = Message::Refusal {
        partition: partition(),
        ask: Ask(1),
        refusal: Refusal::Fenced(LeaderEpoch(2)),
    };
    let beat = |echo, flush_age| {
        Message::Heartbeat(Heartbeat {
            number: 1,
            sent_at: Duration::from_nanos(2),
            echo,
            flush_age,
        })
    };
    let echo = Echo {
        number: 3,
        held: Duration::from_nanos(4),
    };
    let mut all = vec![
        refusal,
        beat(None, None),
        beat(Some(echo), Some(Duration::ZERO)),
    ];
    all.extend(answers());
    all.extend(appends());
    all.extend(copies());
    all.extend(lists(2));
    all.extend(calls());
    all
}

/// All that a message says, however its body lies.
pub(in crate::peers) fn text(message: &Message) -> String {
    let joined = |parts: &[Bytes]| vec![Bytes::from(parts.concat())];
    let mut message = message.clone();
    match &mut message {
        Message::Append { batches, .. } | Message::Piece { batches, .. } => {
            batches.parts = joined(&batches.parts);
        }
        Message::Forward(call)
        | Message::Forwarded(call)
        | Message::ControllerRequest(call)
        | Message::ControllerAnswer(call) => call.body = joined(&call.body),
        _ => {}
    }
    format!("{message:?}")
}

fn again(message: &Message) -> Result<Message, Undecodable> {
    let drawn = draw(message.clone());
    read(drawn.kind, &drawn.head, Bytes::from(drawn.body.concat()))
}

#[test]
fn every_message_is_read_back_as_it_was_drawn() {
    let all = all_messages();
    for message in &all {
        let read = again(message).unwrap();
        assert_eq!(text(&read), text(message));
        assert_eq!(read.lane(), message.lane());
    }
    let mut kinds: Vec<u8> = all
        .into_iter()
        .map(|message| draw(message).kind as u8)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let handshake = 5;
    assert_eq!(
        kinds.len(),
        Kind::ALL.len() - handshake,
        "of every kind one"
    );
}

#[test]
fn batches_come_out_one_by_one_however_they_lie() {
    let (run, apart) = run();
    let joined = Bytes::from(apart.parts.concat());
    let together = Batches::new(apart.sizes.clone(), vec![joined]).unwrap();
    let of = |batches: &Batches| batches.iter().collect::<Vec<_>>();
    assert_eq!(of(&apart), of(&together));
    assert_eq!(of(&apart).len(), run.batches().len());
    assert_eq!((apart.len(), apart.bytes()), (2, 5_005));
    assert!(Batches::default().is_empty());
}

#[test]
fn batches_that_do_not_fit_their_bytes_are_refused() {
    let parts = |sizes: &[usize]| {
        sizes
            .iter()
            .map(|size| Bytes::from(vec![0; *size]))
            .collect()
    };
    for (sizes, lie, fits) in [
        (vec![], vec![], true),
        (vec![3, 4], vec![7], true),
        (vec![3, 4], vec![3, 4], true),
        (vec![3, 4], vec![4, 3], false),
        (vec![3, 4], vec![8], false),
        (vec![3, 4], vec![6], false),
        (vec![3], vec![], false),
        (vec![], vec![3], false),
        (vec![0, 3], vec![3], false),
        (vec![3, 0], vec![3], false),
    ] {
        let batches = Batches::new(sizes.clone(), parts(&lie));
        assert_eq!(batches.is_some(), fits, "{sizes:?} in {lie:?}");
    }
}

#[test]
fn a_list_is_taken_at_its_limit_and_refused_one_past_it() {
    for message in lists(LIST_MAX) {
        assert!(again(&message).is_ok());
    }
    let lease = head::Lease {
        partition: Some(head::Partition::default()),
        from: Some(head::Member::default()),
        to: Some(head::Member::default()),
        ..head::Lease::default()
    };
    let list = vec![lease; LIST_MAX + 1];
    let bytes = head::Leases { list }.encode_to_vec();
    let refused = read(Kind::LeaseAsk, &bytes, Bytes::new()).unwrap_err();
    let expected = Undecodable::Field(Kind::LeaseAsk, "length of its list");
    assert_eq!(refused, expected);
}

#[test]
fn the_longest_list_and_the_longest_run_fit_a_frame() {
    for message in lists(LIST_MAX) {
        assert!(draw(message).head.len() <= floe_wire::peer::frame::HEAD_BYTES_MAX);
    }
    let widest = head::Run {
        base: u64::MAX,
        previous: Some(u32::MAX),
        ends: vec![u64::MAX; BATCHES_MAX],
        checksums: vec![u32::MAX; BATCHES_MAX],
        sizes: vec![u32::MAX; BATCHES_MAX],
    };
    assert!(widest.encoded_len() + 200 <= floe_wire::peer::frame::HEAD_BYTES_MAX);
}

type Change = fn(&mut head::Append);

#[test]
fn what_contradicts_itself_is_refused_by_the_name_of_its_field() {
    let (kind, good) = (Kind::Append, draw(appends().remove(0)));
    let head = head::Append::decode(&good.head[..]).unwrap();
    let body = Bytes::from(good.body.concat());
    let refused = |change: Change, body: &Bytes| {
        let mut head = head.clone();
        change(&mut head);
        let bytes = head.encode_to_vec();
        read(kind, &bytes, body.clone()).unwrap_err()
    };
    let run: [(Change, &str); 6] = [
        (|head| head.partition = None, "partition"),
        (|head| head.to = None, "follower"),
        (|head| head.run = None, "run"),
        (
            |head| head.run.as_mut().unwrap().sizes.truncate(1),
            "count of batches",
        ),
        (
            |head| head.run.as_mut().unwrap().ends.reverse(),
            "ends of batches",
        ),
        (
            |head| head.run.as_mut().unwrap().sizes[0] += 1,
            "sizes of batches",
        ),
    ];
    for (change, field) in run {
        assert_eq!(refused(change, &body), Undecodable::Field(kind, field));
    }
    let expected = Undecodable::Field(kind, "sizes of batches");
    assert_eq!(refused(|_| {}, &body.slice(1..)), expected);
    let beat = draw(Message::LeaseAsk(Vec::new()));
    let expected = Undecodable::Field(Kind::LeaseAsk, "body");
    let refused = read(Kind::LeaseAsk, &beat.head, body.clone()).unwrap_err();
    assert_eq!(refused, expected);
    let late = read(Kind::Hello, &[], Bytes::new()).unwrap_err();
    assert_eq!(late, Undecodable::Late(Kind::Hello));
}

#[test]
fn a_call_that_goes_round_in_circles_is_refused() {
    let call = |hops| {
        let head = head::Call {
            correlation: 1,
            hops,
            within: 1,
        };
        read(Kind::Forward, &head.encode_to_vec(), Bytes::new())
    };
    assert!(call(HOPS_MAX).is_ok());
    assert_eq!(
        call(HOPS_MAX + 1).unwrap_err(),
        Undecodable::Hops(HOPS_MAX + 1)
    );
}

proptest! {
    #[test]
    fn any_head_and_body_are_read_or_refused(kind in 0..Kind::ALL.len(), head: Vec<u8>, body: Vec<u8>) {
        if let Ok(message) = read(Kind::ALL[kind], &head, Bytes::from(body)) {
            prop_assert_eq!(text(&again(&message).unwrap()), text(&message));
        }
    }

    #[test]
    fn a_head_with_changed_bytes_is_read_or_refused(
        which in 0..27_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let all = all_messages();
        let mut drawn = draw(all[which % all.len()].clone());
        for (at, byte) in changes {
            if !drawn.head.is_empty() {
                let at = at.index(drawn.head.len());
                drawn.head[at] = byte;
            }
        }
        let body = Bytes::from(drawn.body.concat());
        if let Ok(message) = read(drawn.kind, &drawn.head, body) {
            prop_assert_eq!(text(&again(&message).unwrap()), text(&message));
        }
    }
}
