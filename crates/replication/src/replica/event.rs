//! What a replica is told. Values only; past tense.

use floe_model::{LeaderEpoch, Offset};

use crate::message::{Answer, Append, Batch, Checksum, Fence, Order, Piece, Pull, Renew, Session};
use crate::{Leader, Member};

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The catalog opened a generation. May come again after a restart.
    Opened(Opened),
    /// The catalog sealed a generation, and so opened the next.
    Sealed {
        /// Which.
        epoch: LeaderEpoch,
        /// Where it ends.
        end: Offset,
        /// Acknowledged records above the end may be lost, and somebody accepted that.
        lossy: bool,
    },
    /// The catalog let this node forget a generation.
    Forgotten {
        /// Which.
        epoch: LeaderEpoch,
        /// Index of the catalog's entry: a restart may hand in again what was done already.
        index: u64,
    },
    /// The record of a [`Command::Forget`](super::Command::Forget) is on stable storage; no flush of what it dropped will be reported any more.
    ForgetFlushed(LeaderEpoch),
    /// Offsets below this are deleted.
    LogStartAdvanced(Offset),
    /// Everything of the generation below `end` is on stable storage.
    Flushed {
        /// Which generation.
        epoch: LeaderEpoch,
        /// Up to where.
        end: Offset,
    },
    /// The fence record of this number is on stable storage, and so is everything accepted before it.
    FenceFlushed(u64),
    /// A leader sent this.
    AppendArrived(Append),
    /// A controller asks for a fence.
    FenceAsked(Fence),
    /// A controller, or this node's own choice of what to copy next.
    CopyOrdered(Order),
    /// Another member wants a piece of what is held here.
    PullArrived(Pull),
    /// A piece that was asked for, or was once.
    PieceArrived(Piece),
    /// A leader asks for a lease.
    LeaseAsked(Renew),
    /// The node appended a batch to its log in the generation that it leads.
    Appended {
        /// Which.
        epoch: LeaderEpoch,
        /// The batch.
        batch: Batch,
    },
    /// How far a [`Command::Send`](super::Command::Send) came.
    Sent(Sent),
    /// A follower answered.
    Answered(Answer),
    /// A member granted a lease.
    LeaseGranted(Renew),
    /// The lease of an earlier generation is proven ended.
    LeaseEnded(LeaderEpoch),
    /// A member can be reached again, or not any more.
    ConnectionChanged {
        /// Who.
        to: Member,
        /// Whether it can.
        is_connected: bool,
    },
    /// Time has passed.
    Ticked,
}

/// One generation as a restart found it on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Recovered {
    /// Its number.
    pub epoch: LeaderEpoch,
    /// Where it starts.
    pub start: Offset,
    /// Where what is held ends.
    pub end: Offset,
    /// Of the last batch, if there is one; may be left out of a generation that the catalog has sealed here.
    pub last: Option<Checksum>,
    /// As [`Command::Open`](super::Command::Open) said it.
    pub since: u64,
}

/// A generation as the catalog opened it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number.
    pub epoch: LeaderEpoch,
    /// Where it starts.
    pub start: Offset,
    /// Who writes it.
    pub leader: Leader,
    /// Who holds it, leader included.
    pub members: Vec<Member>,
    /// The topic's q.
    pub quorum: usize,
    /// Whether its leader may need a lease.
    pub has_table: bool,
    /// Earlier generations whose leases were not proven ended when this one was opened.
    pub leases: Vec<LeaderEpoch>,
}

/// What came of a [`Send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The follower.
    pub to: Member,
    /// The try.
    pub session: Session,
    /// Where what was sent ends; `base` if nothing was.
    pub end: Offset,
    /// How many bytes it was.
    pub bytes: usize,
}
