//! What travels between the copies of one partition. Values only; the layouts on the wire are drawn elsewhere, and which
//! partition is spoken of is the driver's to say.
//!
//! Guarantees: every message names the member it is for, life included, so that a node that came back empty is never taken for
//! who it was. Ends and commit offsets always come with their epoch.

use std::time::Duration;

use floe_model::{Boot, LeaderEpoch, Offset};

use crate::Member;

/// Checksum of one batch as its leader wrote it: the one that is stored with it, so that equal means the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum(pub u32);

/// A batch: where it ends and what is in it. It begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The offset after its last record.
    pub end: Offset,
    /// Of its bytes.
    pub checksum: Checksum,
}

/// What a run follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It begins where its generation does.
    Nothing,
    /// A batch with this checksum.
    Batch(Checksum),
    /// That is not remembered, and is to be read.
    Forgotten,
}

/// Batches in a row, and what they follow. The bytes themselves stay with the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    base: Offset,
    previous: Option<Checksum>,
    batches: Vec<Batch>,
}

impl Run {
    /// `previous` is the batch that ends at `base`; none at the start of a generation. `None` if an end does not rise.
    pub fn new(base: Offset, previous: Option<Checksum>, batches: Vec<Batch>) -> Option<Self> {
        let ends = || std::iter::once(base).chain(batches.iter().map(|batch| batch.end));
        let is_dense = ends().zip(ends().skip(1)).all(|(before, end)| before < end);
        is_dense.then_some(Self {
            base,
            previous,
            batches,
        })
    }

    /// Where it begins.
    pub fn base(&self) -> Offset {
        self.base
    }

    /// Where it ends.
    pub fn end(&self) -> Offset {
        self.batches.last().map_or(self.base, |last| last.end)
    }

    /// Checksum of the batch before it.
    pub fn previous(&self) -> Option<Checksum> {
        self.previous
    }

    /// Its batches; may be none.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }
}

/// One try of a leader to feed one follower in order; rises with every new try. 0: none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

/// Orders what one member says, across restarts of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The life of the process that says it.
    pub boot: Boot,
    /// Rises with everything it says.
    pub number: u64,
}

/// Leader to follower: batches, or none and just the commit offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The leader.
    pub from: Member,
    /// The follower.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// Where the generation starts.
    pub start: Offset,
    /// The leader's try.
    pub session: Session,
    /// The commit offset of this generation.
    pub commit: Offset,
    /// What to append.
    pub run: Run,
}

/// Follower to leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whom the leader spoke to.
    pub from: Member,
    /// The leader.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// The leader's try that is answered.
    pub session: Session,
    /// Which of two answers is the later one.
    pub stamp: Stamp,
    /// What is answered.
    pub outcome: Outcome,
}

/// What came of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything below this is on the follower's stable storage.
    Durable(Offset),
    /// There is a gap: go on from here, in a new session.
    Expected(Offset),
    /// Nothing was taken, and nothing is said about ends.
    Refused(Refusal),
}

/// Why a member does not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It takes nothing of generations below this one.
    Fenced(LeaderEpoch),
    /// It is another life than the one spoken to.
    Stranger,
    /// Its copy of the generation differs from what it was told before.
    Damaged,
}

/// The requester's own name for a request, given back with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask(pub u64);

/// Controller to member: end your part in this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The member.
    pub to: Member,
    /// The generation to end; its successor's number is the fence.
    pub epoch: LeaderEpoch,
    /// Where it starts.
    pub start: Offset,
    /// Given back.
    pub ask: Ask,
}

/// To a member that lacks records of a generation: get them from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Who is to copy.
    pub to: Member,
    /// A member that holds the generation up to `end`.
    pub from: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// Where the copy starts: the generation's start, or what retention has left of it.
    pub start: Offset,
    /// Up to where.
    pub end: Offset,
    /// What for.
    pub purpose: Purpose,
    /// Index of the catalog as of which it was ordered; a claim to hold the copy is void if the catalog let the node forget
    /// the generation later than that (rule ForgetVoidsClaim).
    pub as_of: u64,
    /// Given back.
    pub ask: Ask,
}

/// What a copy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// So that the generation can be sealed at `end`. Carries the fence.
    Repair,
    /// The generation is sealed at `end`; a member of a later one lacks it.
    Backfill,
}

/// From a member that copies to the one it copies from: send what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Who copies.
    pub from: Member,
    /// Who has it.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// Where to begin.
    pub base: Offset,
    /// Up to where.
    pub end: Offset,
}

/// The answer to a pull: its own message, never an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Who has it.
    pub from: Member,
    /// Who copies.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// The batches.
    pub run: Run,
}

/// Leader to member: let me answer reads for a while from when I sent this. The same value comes back as the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renew {
    /// The leader.
    pub from: Member,
    /// The member.
    pub to: Member,
    /// The generation.
    pub epoch: LeaderEpoch,
    /// The leader's clock when it was sent.
    pub sent_at: Duration,
}
