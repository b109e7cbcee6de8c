//! What nodes say to one another, as values; how they lie in frames is [`draw`]'s and [`read`]'s.
//!
//! Guarantees: what is drawn is read back equal; what is read is whole and within the limits, or refused by name.

mod draw;
mod read;
#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset, TopicPartition};
use floe_replication::Member;
use floe_replication::message::{Answer, Append, Ask, Fence, Order, Piece, Pull, Refusal, Renew};
use floe_wire::peer::frame::{BODY_BYTES_MAX, HEAD_BYTES_MAX, PREAMBLE_BYTES};
use floe_wire::peer::{Error, Limits, Preamble, VERSION_MAX};

pub(super) use draw::{Drawn, draw};
pub use read::Undecodable;
pub(super) use read::read;

/// Most entries of a list of fences or leases; longer ones are cut by who sends them.
pub const LIST_MAX: usize = 1_000;
/// Most batches of one append or piece.
pub const BATCHES_MAX: usize = 8_192;
/// A call that was passed on more often than this goes round in circles, and is refused.
pub const HOPS_MAX: u32 = 2;

/// Which connection of a pair carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What must not wait behind megabytes.
    Control,
    /// Batches, and what clients ask and are answered.
    Data,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Control, Self::Data];
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Data => "data",
        })
    }
}

/// The bytes of batches in a row, by reference.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    sizes: Vec<u32>,
    parts: Vec<Bytes>,
}

/// Around bytes that others draw.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller's own number, given back.
    pub correlation: u64,
    /// How often it was passed on before; at most [`HOPS_MAX`].
    pub hops: u32,
    /// How long the caller still waits.
    pub within: Duration,
    /// The bytes, in as many parts as they lie in; one when received.
    pub body: Vec<Bytes>,
}

/// A fence is durable, and so is everything below the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced {
    /// Which partition.
    pub partition: TopicPartition,
    /// The member.
    pub from: Member,
    /// The request.
    pub ask: Ask,
    /// The end of that moment.
    pub end: Offset,
}

/// What was last heard of the other side, given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its number.
    pub number: u64,
    /// For how long it has been held.
    pub held: Duration,
}

/// I am here, and this is what I hear of you.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Rises by one.
    pub number: u64,
    /// The sender's clock.
    pub sent_at: Duration,
    /// The last one heard of the other side; one that stays behind is a cut in one direction.
    pub echo: Option<Echo>,
    /// Age of the oldest write that is not flushed yet: a disk that hangs.
    pub flush_age: Option<Duration>,
}

/// One message.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the values say what they are")]
pub enum Message {
    /// Leader to follower.
    Append {
        partition: TopicPartition,
        append: Append,
        batches: Batches,
    },
    /// Follower to leader.
    Answer {
        partition: TopicPartition,
        answer: Answer,
    },
    /// Controller to members: end your part in these generations.
    Fence(Vec<(TopicPartition, Fence)>),
    /// Members to controller.
    Fenced(Vec<Fenced>),
    /// A member does not do what it was asked.
    Refusal {
        partition: TopicPartition,
        ask: Ask,
        refusal: Refusal,
    },
    /// Controller to a member: copy that from there.
    CopyOrder {
        partition: TopicPartition,
        order: Order,
    },
    /// The copy is whole and durable.
    Copied {
        partition: TopicPartition,
        from: Member,
        ask: Ask,
        epoch: LeaderEpoch,
        end: Offset,
    },
    /// Send me what follows.
    Pull {
        partition: TopicPartition,
        pull: Pull,
    },
    /// What follows.
    Piece {
        partition: TopicPartition,
        piece: Piece,
        batches: Batches,
    },
    /// Leader to member.
    LeaseAsk(Vec<(TopicPartition, Renew)>),
    /// Member to leader.
    LeaseGrant(Vec<(TopicPartition, Renew)>),
    /// Both ways.
    Heartbeat(Heartbeat),
    /// Between voters.
    Consensus(Bytes),
    /// A client's request, for the leader.
    Forward(Call),
    /// Its answer.
    Forwarded(Call),
    /// To the controller.
    ControllerRequest(Call),
    /// From the controller.
    ControllerAnswer(Call),
}

/// Reads a whole frame, as a connection does part by part.
pub fn decode(bytes: &[u8]) -> Result<Message, super::Lost> {
    const LIMITS: Limits = Limits {
        head_bytes: HEAD_BYTES_MAX,
        body_bytes: BODY_BYTES_MAX,
    };
    let (first, rest) = bytes
        .split_first_chunk::<PREAMBLE_BYTES>()
        .ok_or(Error::Checksum("preamble"))?;
    let preamble = Preamble::decode(first, VERSION_MAX, LIMITS)?;
    let (head, body) = rest
        .split_at_checked(preamble.head_bytes)
        .ok_or(Error::Checksum("head"))?;
    preamble.check_head(head)?;
    preamble.check_body(body)?;
    Ok(read(preamble.kind, head, Bytes::copy_from_slice(body))?)
}

impl Message {
    /// Which connection carries it. Messages of one lane stay in order; those of two do not.
    pub fn lane(&self) -> Lane {
        match self {
            Self::Append { .. } | Self::Piece { .. } | Self::Forward(_) | Self::Forwarded(_) => {
                Lane::Data
            }
            _ => Lane::Control,
        }
    }
}

impl Batches {
    /// Batches that lie one by one.
    pub fn of(batches: Vec<Bytes>) -> Self {
        Self {
            sizes: batches.iter().map(|batch| batch.len() as u32).collect(),
            parts: batches,
        }
    }

    /// Batches of these sizes, which lie in these parts. `None` unless each lies in one part and nothing else does.
    pub fn new(sizes: Vec<u32>, parts: Vec<Bytes>) -> Option<Self> {
        let mut left = sizes.iter().map(|size| *size as usize);
        for part in &parts {
            let mut rest = part.len();
            while rest > 0 {
                rest = rest.checked_sub(left.next().filter(|size| *size > 0)?)?;
            }
        }
        left.next().is_none().then_some(Self { sizes, parts })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.sizes.iter().map(|size| *size as usize).sum()
    }

    /// Each, by reference.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        let mut parts = self.parts.iter();
        let mut rest = Bytes::new();
        self.sizes.iter().map(move |size| {
            if rest.is_empty() {
                rest = parts.next().expect("each batch lies in a part").clone();
            }
            rest.split_to(*size as usize)
        })
    }
}
