//! Messages into frames: the head drawn, the body by reference.
//!
//! Guarantees: draws every message; lists longer than [`LIST_MAX`] and runs longer than [`BATCHES_MAX`] are bugs of who made
//! them, and asserted.

use std::time::Duration;

use bytes::Bytes;
use floe_model::TopicPartition;
use floe_replication::Member;
use floe_replication::message::{
    Answer, Append, Fence, Order, Outcome, Piece, Pull, Purpose, Refusal, Renew, Run,
};
use floe_wire::peer::{Kind, head};
use prost::Message as _;

use super::{BATCHES_MAX, Batches, Call, Fenced, HOPS_MAX, Heartbeat, LIST_MAX, Message};

/// A frame whose preamble is not drawn yet.
#[derive(Debug)]
pub(in crate::peers) struct Drawn {
    pub(in crate::peers) kind: Kind,
    pub(in crate::peers) head: Vec<u8>,
    pub(in crate::peers) body: Vec<Bytes>,
    pub(in crate::peers) body_bytes: usize,
}

/// Draws a message.
pub(in crate::peers) fn draw(message: Message) -> Drawn {
    let (kind, head, body) = parts(message);
    let body_bytes = body.iter().map(Bytes::len).sum();
    Drawn {
        kind,
        head,
        body,
        body_bytes,
    }
}

fn parts(message: Message) -> (Kind, Vec<u8>, Vec<Bytes>) {
    let bare = |kind, head| (kind, head, Vec::new());
    match message {
        Message::Append {
            partition,
            append,
            batches,
        } => {
            let head = append_head(partition, &append, &batches).encode_to_vec();
            (Kind::Append, head, batches.parts)
        }
        Message::Piece {
            partition,
            piece,
            batches,
        } => {
            let head = piece_head(partition, &piece, &batches).encode_to_vec();
            (Kind::Piece, head, batches.parts)
        }
        Message::Answer { partition, answer } => bare(
            Kind::Answer,
            answer_head(partition, &answer).encode_to_vec(),
        ),
        Message::Fence(list) => bare(Kind::Fence, fences(&list).encode_to_vec()),
        Message::Fenced(list) => bare(Kind::Fenced, fenced(&list).encode_to_vec()),
        Message::Refusal {
            partition: address,
            ask,
            refusal,
        } => {
            let no = head::No {
                partition: partition(address),
                ask: ask.0,
                refusal: Some(refusal_head(refusal)),
            };
            bare(Kind::Refusal, no.encode_to_vec())
        }
        Message::CopyOrder { partition, order } => bare(
            Kind::CopyOrder,
            order_head(partition, &order).encode_to_vec(),
        ),
        Message::Copied {
            partition: address,
            from,
            ask,
            epoch,
            end,
        } => {
            let copied = head::Copied {
                partition: partition(address),
                from: member(from),
                ask: ask.0,
                epoch: epoch.0,
                end: end.0,
            };
            bare(Kind::Copied, copied.encode_to_vec())
        }
        Message::Pull { partition, pull } => {
            bare(Kind::Pull, pull_head(partition, &pull).encode_to_vec())
        }
        Message::LeaseAsk(list) => bare(Kind::LeaseAsk, leases(&list).encode_to_vec()),
        Message::LeaseGrant(list) => bare(Kind::LeaseGrant, leases(&list).encode_to_vec()),
        Message::Heartbeat(beat) => bare(Kind::Heartbeat, heartbeat(&beat).encode_to_vec()),
        Message::Consensus(bytes) => (Kind::Consensus, Vec::new(), vec![bytes]),
        Message::Forward(call) => around(Kind::Forward, call),
        Message::Forwarded(call) => around(Kind::Forwarded, call),
        Message::ControllerRequest(call) => around(Kind::ControllerRequest, call),
        Message::ControllerAnswer(call) => around(Kind::ControllerAnswer, call),
    }
}

fn around(kind: Kind, call: Call) -> (Kind, Vec<u8>, Vec<Bytes>) {
    assert!(call.hops <= HOPS_MAX, "a call that goes round in circles");
    let head = head::Call {
        correlation: call.correlation,
        hops: call.hops,
        within: nanos(call.within),
    };
    (kind, head.encode_to_vec(), call.body)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "what the fields of messages are made of"
)]
fn partition(address: TopicPartition) -> Option<head::Partition> {
    let [first, last] = [0, 8].map(|at| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&address.topic.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    });
    Some(head::Partition {
        topic_first: first,
        topic_last: last,
        index: address.partition.0,
    })
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "what the fields of messages are made of"
)]
fn member(member: Member) -> Option<head::Member> {
    Some(head::Member {
        node: member.node.0,
        incarnation: member.incarnation.0,
    })
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "what the fields of messages are made of"
)]
fn run(run: &Run, batches: &Batches) -> Option<head::Run> {
    assert_eq!(
        run.batches().len(),
        batches.len(),
        "a run and its bytes are of the same batches"
    );
    assert!(
        batches.len() <= BATCHES_MAX,
        "a run is cut before it is sent"
    );
    Some(head::Run {
        base: run.base().0,
        previous: run.previous().map(|checksum| checksum.0),
        ends: run.batches().iter().map(|batch| batch.end.0).collect(),
        checksums: run.batches().iter().map(|batch| batch.checksum.0).collect(),
        sizes: batches.sizes.clone(),
    })
}

fn append_head(address: TopicPartition, append: &Append, batches: &Batches) -> head::Append {
    head::Append {
        partition: partition(address),
        from: member(append.from),
        to: member(append.to),
        epoch: append.epoch.0,
        start: append.start.0,
        session: append.session.0,
        commit: append.commit.0,
        run: run(&append.run, batches),
    }
}

fn piece_head(address: TopicPartition, piece: &Piece, batches: &Batches) -> head::Piece {
    head::Piece {
        partition: partition(address),
        from: member(piece.from),
        to: member(piece.to),
        epoch: piece.epoch.0,
        run: run(&piece.run, batches),
    }
}

fn answer_head(address: TopicPartition, answer: &Answer) -> head::Answer {
    let (mut durable, mut expected, mut refusal) = (None, None, None);
    match answer.outcome {
        Outcome::Durable(end) => durable = Some(end.0),
        Outcome::Expected(end) => expected = Some(end.0),
        Outcome::Refused(why) => refusal = Some(refusal_head(why)),
    }
    head::Answer {
        partition: partition(address),
        from: member(answer.from),
        to: member(answer.to),
        epoch: answer.epoch.0,
        session: answer.session.0,
        boot: answer.stamp.boot.0,
        number: answer.stamp.number,
        durable,
        expected,
        refusal,
    }
}

fn refusal_head(refusal: Refusal) -> head::Refusal {
    let (why, fence) = match refusal {
        Refusal::Fenced(fence) => (1, fence.0),
        Refusal::Stranger => (2, 0),
        Refusal::Damaged => (3, 0),
    };
    head::Refusal { why, fence }
}

fn fences(list: &[(TopicPartition, Fence)]) -> head::Fences {
    assert!(list.len() <= LIST_MAX, "a list is cut before it is sent");
    let fence = |(address, fence): &(TopicPartition, Fence)| head::Fence {
        partition: partition(*address),
        to: member(fence.to),
        epoch: fence.epoch.0,
        start: fence.start.0,
        ask: fence.ask.0,
    };
    head::Fences {
        list: list.iter().map(fence).collect(),
    }
}

fn fenced(list: &[Fenced]) -> head::FencedList {
    assert!(list.len() <= LIST_MAX, "a list is cut before it is sent");
    let fenced = |fenced: &Fenced| head::Fenced {
        partition: partition(fenced.partition),
        from: member(fenced.from),
        ask: fenced.ask.0,
        end: fenced.end.0,
    };
    head::FencedList {
        list: list.iter().map(fenced).collect(),
    }
}

fn order_head(address: TopicPartition, order: &Order) -> head::CopyOrder {
    head::CopyOrder {
        partition: partition(address),
        to: member(order.to),
        from: member(order.from),
        epoch: order.epoch.0,
        start: order.start.0,
        end: order.end.0,
        purpose: match order.purpose {
            Purpose::Repair => 1,
            Purpose::Backfill => 2,
        },
        as_of: order.as_of,
        ask: order.ask.0,
    }
}

fn pull_head(address: TopicPartition, pull: &Pull) -> head::Pull {
    head::Pull {
        partition: partition(address),
        from: member(pull.from),
        to: member(pull.to),
        epoch: pull.epoch.0,
        base: pull.base.0,
        end: pull.end.0,
    }
}

fn leases(list: &[(TopicPartition, Renew)]) -> head::Leases {
    assert!(list.len() <= LIST_MAX, "a list is cut before it is sent");
    let lease = |(address, renew): &(TopicPartition, Renew)| head::Lease {
        partition: partition(*address),
        from: member(renew.from),
        to: member(renew.to),
        epoch: renew.epoch.0,
        sent_at: nanos(renew.sent_at),
    };
    head::Leases {
        list: list.iter().map(lease).collect(),
    }
}

fn heartbeat(beat: &Heartbeat) -> head::Heartbeat {
    head::Heartbeat {
        number: beat.number,
        sent_at: nanos(beat.sent_at),
        echo_number: beat.echo.map(|echo| echo.number),
        echo_held: beat.echo.map_or(0, |echo| nanos(echo.held)),
        flush_age: beat.flush_age.map(nanos),
    }
}
