//! What a replica wants done. Values only; imperative.

use floe_model::{LeaderEpoch, Offset};

use crate::Member;
use crate::message::{Answer, Ask, Pull, Refusal, Renew, Session};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Log: a generation begins here.
    Open {
        /// Its number.
        epoch: LeaderEpoch,
        /// Where it starts.
        start: Offset,
        /// To be kept with it: what the catalog let this node forget up to this index was another copy.
        since: u64,
    },
    /// Log: append the batches of the message or piece just handed in, from number `first` on, as they are.
    Append {
        /// To this generation.
        epoch: LeaderEpoch,
        /// The first batch that is new.
        first: usize,
        /// How many.
        count: usize,
    },
    /// Log: a fence record behind everything above.
    Fence {
        /// No epoch below it.
        fence: LeaderEpoch,
        /// To be given back.
        number: u64,
    },
    /// Log: drop what the generation has at or above `end`.
    Truncate {
        /// Which.
        epoch: LeaderEpoch,
        /// From where.
        end: Offset,
    },
    /// Log: drop the generation's records; the fence stays.
    Forget(LeaderEpoch),
    /// Peer: read and send.
    Send(Send),
    /// Peer: to the leader.
    Answer(Answer),
    /// Peer: to who asked for the fence, which is durable, as is everything below `end`.
    Fenced {
        /// This member.
        from: Member,
        /// The request.
        ask: Ask,
        /// The end of that moment.
        end: Offset,
    },
    /// Peer: to who ordered the copy: the generation is held whole up to `end`, durably.
    Copied {
        /// This member.
        from: Member,
        /// The request.
        ask: Ask,
        /// Which generation.
        epoch: LeaderEpoch,
        /// Up to where.
        end: Offset,
    },
    /// Peer: to who asked or ordered: no.
    Refuse {
        /// The request.
        ask: Ask,
        /// Why not.
        refusal: Refusal,
    },
    /// Peer: to a holder.
    Pull(Pull),
    /// Peer: read from `base` on, at most up to `end`, and send it as a [`Piece`](crate::message::Piece).
    Give(Pull),
    /// Peer: to a member.
    AskLease(Renew),
    /// Peer: to the leader.
    GrantLease(Renew),
    /// Node: the leader's commit offset is this; answer who waits below it.
    Committed {
        /// Of this generation.
        epoch: LeaderEpoch,
        /// Everything below.
        offset: Offset,
    },
    /// Node: the generation led here has ended; who still waits does not learn what became of it.
    Ended {
        /// Which.
        epoch: LeaderEpoch,
    },
    /// Node: ask the controller to end a generation.
    AskForSeal {
        /// Which.
        epoch: LeaderEpoch,
        /// Why.
        why: Why,
    },
    /// Node: this copy differs from another one. Take a new incarnation before anything else is said about the partition
    /// (rule DamageIsNoticed).
    Damaged {
        /// Which generation.
        epoch: LeaderEpoch,
        /// Where.
        at: Offset,
    },
}

/// Send what the log holds from `base` on to a follower: at most `bytes_max` bytes (0: no batch), as one [`Append`](crate::message::Append).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// This member.
    pub from: Member,
    /// The follower.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// Where it starts.
    pub start: Offset,
    /// The try.
    pub session: Session,
    /// Where to begin.
    pub base: Offset,
    /// How much to read.
    pub bytes_max: usize,
    /// The commit offset to say.
    pub commit: Offset,
}

/// Why a generation should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The process that was to lead it is over.
    OtherBoot,
    /// A member has a fence above it.
    Fenced(LeaderEpoch),
    /// A member's copy is damaged.
    Damaged(Member),
    /// A member came back as another life.
    Lost(Member),
}
