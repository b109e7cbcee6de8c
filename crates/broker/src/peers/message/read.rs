//! Frames into messages.
//!
//! Guarantees: takes bytes of any origin without a panic; what it gives fits together: counts, sizes, rising ends.

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
use prost::Message as _;

use super::{BATCHES_MAX, Batches, Call, Echo, Fenced, HOPS_MAX, Heartbeat, LIST_MAX, Message};

/// Why a frame is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Not the layout.
    #[error("the head of a frame is damaged: {0}")]
    Head(#[from] prost::DecodeError),
    /// A field has a value it cannot have.
    #[error("a frame of kind {0:?} has no valid {1}")]
    Field(Kind, &'static str),
    /// A frame of the handshake, after it.
    #[error("a frame of kind {0:?} came after the handshake")]
    Late(Kind),
    /// A call that goes round in circles.
    #[error("a call was passed on {0} times; nodes disagree on who leads")]
    Hops(u32),
}

/// Reads a message.
pub(in crate::peers) fn read(kind: Kind, head: &[u8], body: Bytes) -> Result<Message, Undecodable> {
    let field = |name| Undecodable::Field(kind, name);
    let has_body = matches!(
        kind,
        Kind::Append
            | Kind::Piece
            | Kind::Consensus
            | Kind::Forward
            | Kind::Forwarded
            | Kind::ControllerRequest
            | Kind::ControllerAnswer
    );
    if !has_body && !body.is_empty() {
        return Err(field("body"));
    }
    let read = match kind {
        Kind::Append => append(head::Append::decode(head)?, body),
        Kind::Piece => piece(head::Piece::decode(head)?, body),
        Kind::Answer => answer(&head::Answer::decode(head)?),
        Kind::Fence => list(&head::Fences::decode(head)?.list, fence).map(Message::Fence),
        Kind::Fenced => list(&head::FencedList::decode(head)?.list, fenced).map(Message::Fenced),
        Kind::Refusal => no(&head::No::decode(head)?),
        Kind::CopyOrder => order(&head::CopyOrder::decode(head)?),
        Kind::Copied => copied(&head::Copied::decode(head)?),
        Kind::Pull => pull(&head::Pull::decode(head)?),
        Kind::LeaseAsk => list(&head::Leases::decode(head)?.list, lease).map(Message::LeaseAsk),
        Kind::LeaseGrant => list(&head::Leases::decode(head)?.list, lease).map(Message::LeaseGrant),
        Kind::Heartbeat => Ok(heartbeat(&head::Heartbeat::decode(head)?)),
        Kind::Consensus => Ok(Message::Consensus(body)),
        Kind::Forward => Ok(Message::Forward(call(head, body)?)),
        Kind::Forwarded => Ok(Message::Forwarded(call(head, body)?)),
        Kind::ControllerRequest => Ok(Message::ControllerRequest(call(head, body)?)),
        Kind::ControllerAnswer => Ok(Message::ControllerAnswer(call(head, body)?)),
        Kind::Hello | Kind::Challenge | Kind::Proof | Kind::Welcome | Kind::Refused => {
            return Err(Undecodable::Late(kind));
        }
    };
    read.map_err(field)
}

/// The name of the field that is not valid.
type Invalid = &'static str;

fn call(head: &[u8], body: Bytes) -> Result<Call, Undecodable> {
    let call = head::Call::decode(head)?;
    if call.hops > HOPS_MAX {
        return Err(Undecodable::Hops(call.hops));
    }
    Ok(Call {
        correlation: call.correlation,
        hops: call.hops,
        within: Duration::from_nanos(call.within),
        body: vec![body],
    })
}

fn list<H, T>(heads: &[H], one: impl Fn(&H) -> Result<T, Invalid>) -> Result<Vec<T>, Invalid> {
    if heads.len() > LIST_MAX {
        return Err("length of its list");
    }
    heads.iter().map(one).collect()
}

fn partition(address: Option<&head::Partition>) -> Result<TopicPartition, Invalid> {
    let address = address.ok_or("partition")?;
    let mut topic = [0; 16];
    topic[..8].copy_from_slice(&address.topic_first.to_le_bytes());
    topic[8..].copy_from_slice(&address.topic_last.to_le_bytes());
    Ok(TopicPartition {
        topic: TopicId(topic),
        partition: PartitionIndex(address.index),
    })
}

fn member(member: Option<&head::Member>, name: Invalid) -> Result<Member, Invalid> {
    let member = member.ok_or(name)?;
    Ok(Member {
        node: NodeId(member.node),
        incarnation: Incarnation(member.incarnation),
    })
}

fn run(run: Option<head::Run>, body: Bytes) -> Result<(Run, Batches), Invalid> {
    let run = run.ok_or("run")?;
    let count = run.ends.len();
    if count > BATCHES_MAX || run.checksums.len() != count || run.sizes.len() != count {
        return Err("count of batches");
    }
    let batches = run.ends.iter().zip(&run.checksums);
    let batches = batches.map(|(end, checksum)| Batch {
        end: Offset(*end),
        checksum: Checksum(*checksum),
    });
    let previous = run.previous.map(Checksum);
    let rising =
        Run::new(Offset(run.base), previous, batches.collect()).ok_or("ends of batches")?;
    let parts = if body.is_empty() {
        Vec::new()
    } else {
        vec![body]
    };
    let batches = Batches::new(run.sizes, parts).ok_or("sizes of batches")?;
    Ok((rising, batches))
}

fn append(head: head::Append, body: Bytes) -> Result<Message, Invalid> {
    let (run, batches) = run(head.run, body)?;
    Ok(Message::Append {
        partition: partition(head.partition.as_ref())?,
        append: Append {
            from: member(head.from.as_ref(), "leader")?,
            to: member(head.to.as_ref(), "follower")?,
            epoch: LeaderEpoch(head.epoch),
            start: Offset(head.start),
            session: Session(head.session),
            commit: Offset(head.commit),
            run,
        },
        batches,
    })
}

fn piece(head: head::Piece, body: Bytes) -> Result<Message, Invalid> {
    let (run, batches) = run(head.run, body)?;
    Ok(Message::Piece {
        partition: partition(head.partition.as_ref())?,
        piece: Piece {
            from: member(head.from.as_ref(), "holder")?,
            to: member(head.to.as_ref(), "member that copies")?,
            epoch: LeaderEpoch(head.epoch),
            run,
        },
        batches,
    })
}

fn answer(head: &head::Answer) -> Result<Message, Invalid> {
    let outcome = match (head.durable, head.expected, &head.refusal) {
        (Some(end), None, None) => Outcome::Durable(Offset(end)),
        (None, Some(end), None) => Outcome::Expected(Offset(end)),
        (None, None, Some(why)) => Outcome::Refused(refusal(why)?),
        _ => return Err("outcome"),
    };
    Ok(Message::Answer {
        partition: partition(head.partition.as_ref())?,
        answer: Answer {
            from: member(head.from.as_ref(), "follower")?,
            to: member(head.to.as_ref(), "leader")?,
            epoch: LeaderEpoch(head.epoch),
            session: Session(head.session),
            stamp: Stamp {
                boot: Boot(head.boot),
                number: head.number,
            },
            outcome,
        },
    })
}

fn refusal(head: &head::Refusal) -> Result<Refusal, Invalid> {
    match head.why {
        1 => Ok(Refusal::Fenced(LeaderEpoch(head.fence))),
        2 => Ok(Refusal::Stranger),
        3 => Ok(Refusal::Damaged),
        _ => Err("reason"),
    }
}

fn no(head: &head::No) -> Result<Message, Invalid> {
    Ok(Message::Refusal {
        partition: partition(head.partition.as_ref())?,
        ask: Ask(head.ask),
        refusal: refusal(head.refusal.as_ref().ok_or("reason")?)?,
    })
}

fn fence(head: &head::Fence) -> Result<(TopicPartition, Fence), Invalid> {
    let fence = Fence {
        to: member(head.to.as_ref(), "member")?,
        epoch: LeaderEpoch(head.epoch),
        start: Offset(head.start),
        ask: Ask(head.ask),
    };
    Ok((partition(head.partition.as_ref())?, fence))
}

fn fenced(head: &head::Fenced) -> Result<Fenced, Invalid> {
    Ok(Fenced {
        partition: partition(head.partition.as_ref())?,
        from: member(head.from.as_ref(), "member")?,
        ask: Ask(head.ask),
        end: Offset(head.end),
    })
}

fn order(head: &head::CopyOrder) -> Result<Message, Invalid> {
    Ok(Message::CopyOrder {
        partition: partition(head.partition.as_ref())?,
        order: Order {
            to: member(head.to.as_ref(), "member that copies")?,
            from: member(head.from.as_ref(), "holder")?,
            epoch: LeaderEpoch(head.epoch),
            start: Offset(head.start),
            end: Offset(head.end),
            purpose: match head.purpose {
                1 => Purpose::Repair,
                2 => Purpose::Backfill,
                _ => return Err("purpose"),
            },
            as_of: head.as_of,
            ask: Ask(head.ask),
        },
    })
}

fn copied(head: &head::Copied) -> Result<Message, Invalid> {
    Ok(Message::Copied {
        partition: partition(head.partition.as_ref())?,
        from: member(head.from.as_ref(), "member")?,
        ask: Ask(head.ask),
        epoch: LeaderEpoch(head.epoch),
        end: Offset(head.end),
    })
}

fn pull(head: &head::Pull) -> Result<Message, Invalid> {
    Ok(Message::Pull {
        partition: partition(head.partition.as_ref())?,
        pull: Pull {
            from: member(head.from.as_ref(), "member that copies")?,
            to: member(head.to.as_ref(), "holder")?,
            epoch: LeaderEpoch(head.epoch),
            base: Offset(head.base),
            end: Offset(head.end),
        },
    })
}

fn lease(head: &head::Lease) -> Result<(TopicPartition, Renew), Invalid> {
    let renew = Renew {
        from: member(head.from.as_ref(), "leader")?,
        to: member(head.to.as_ref(), "member")?,
        epoch: LeaderEpoch(head.epoch),
        sent_at: Duration::from_nanos(head.sent_at),
    };
    Ok((partition(head.partition.as_ref())?, renew))
}

fn heartbeat(head: &head::Heartbeat) -> Message {
    let echo = head.echo_number.map(|number| Echo {
        number,
        held: Duration::from_nanos(head.echo_held),
    });
    Message::Heartbeat(Heartbeat {
        number: head.number,
        sent_at: Duration::from_nanos(head.sent_at),
        echo,
        flush_age: head.flush_age.map(Duration::from_nanos),
    })
}
