//! How entries of the catalog become agreed among voters: a trait, stepped without clock, threads or disk, and its one
//! implementation over a library.
//!
//! ```text
//! propose, change ─┐                                  ┌► messages        at once
//! step(message)   ─┼─► ready() ──(one after another)──┼► vote, install, append: store ─► messages_after ─► stored(number)
//! tick()          ─┘                                  └► committed       apply
//! ```
//! Guarantees: committed entries come out once per life, in order of index, only when a majority has stored them and this
//! voter has, too; a vote is stored before anybody hears of it; a voter is (node, incarnation), so one that lost its data is
//! another one (rule VoterIdentity). Decides nothing about who should be a voter: the controller asks for each change.
//!
//! Which library, compared before the first line (December 2026, built with this compiler on 2 cores):
//!
//! | | raft 0.7 (TiKV) | openraft 0.10.0-alpha.37 |
//! |---|---|---|
//! | shape | a struct that is stepped: ticks and messages in, stores and messages out | tasks, channels and a runtime trait; the engine that decides is private |
//! | stepping by a seed | yes; its one use of chance, the election timeout, is set from outside | by a simulated runtime |
//! | flush | asynchronous, several under way | asynchronous |
//! | pre-vote, transfer, snapshots, learners, read index | yes | yes, leases too |
//! | ids | u64: we map (node, incarnation) | any type |
//! | cost | 21 packages that we did not have, 75 s of CPU for it and all below | 116 packages, 95 s of CPU, chrono and clap among them |
//! | upkeep | in production for years, no release since 2023; links protobuf 2.28 (RUSTSEC-2024-0437) | active, alpha: no stable format or interface |
//!
//! raft it is: its shape is that of our pure crates, so that one thread and one seed run a whole group. Its age we bear,
//! since nothing of it leaves this module: messages and entries are our own values in our own encoding
//! ([`crate::format`]), and its protobuf parser never sees a peer's bytes. Openraft 0.9 has neither pre-vote nor transfer.

mod configuration;
mod convert;
mod message;
mod recovered;
mod store;
mod voter;

use bytes::Bytes;
use floe_replication::Member;

pub use configuration::{Change, Configuration};
pub use message::{Body, Message};
pub use recovered::Stored;
pub use voter::Voter;

/// What one [`Consensus::tick`] stands for.
pub const TICK: std::time::Duration = std::time::Duration::from_millis(25);
/// Ticks between a leader's heartbeats: 100 ms.
pub const HEARTBEAT_TICKS: u32 = 4;
/// Ticks without a leader after which a voter stands for election, at least: 300 ms; at most just under twice as many.
pub const ELECTION_TICKS: u32 = 12;
/// Bytes of one command.
pub const COMMAND_BYTES_MAX: usize = 3 << 20;
/// Bytes of commands that a leader has appended and not committed; more are refused.
pub const UNCOMMITTED_BYTES_MAX: usize = 16 << 20;

/// A place in the log, and the term of what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Place; 0 is before the first entry.
    pub index: u64,
    /// Term.
    pub term: u64,
}

/// One entry of the catalog's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place; rises by one.
    pub index: u64,
    /// The term it was proposed in.
    pub term: u64,
    /// What it says.
    pub payload: Payload,
}

impl Entry {
    /// Where it stands.
    pub fn position(&self) -> Position {
        Position {
            index: self.index,
            term: self.term,
        }
    }
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing: a new leader's first entry, which commits those before it.
    Blank,
    /// A command, as [`format`](crate::format) draws it.
    Command(Bytes),
    /// From here on these are the voters and learners.
    Configuration(Configuration),
    /// Everything up to this index is committed: what a leader adds behind a change of configuration, so that those who start
    /// again know from their logs that it holds.
    Known(u64),
}

/// A voter's term and whom it voted for in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// The term.
    pub term: u64,
    /// The voter it voted for.
    pub voted_for: Option<Member>,
}

/// The catalog as of one entry: stands for all entries up to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry in it.
    pub at: Position,
    /// Voters and learners as of it.
    pub configuration: Configuration,
    /// The catalog, as [`format`](crate::format) draws it.
    pub data: Bytes,
}

/// What the caller has to do; the fields in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// For [`Consensus::stored`]; rises. 0: nothing to report.
    pub number: u64,
    /// To be sent at once.
    pub messages: Vec<Message>,
    /// To be stored.
    pub vote: Option<Vote>,
    /// To be stored in place of everything the log holds, entries too; then to be taken for the catalog.
    pub install: Option<Snapshot>,
    /// To be stored; whatever the log holds from the first one's index on is replaced.
    pub append: Vec<Entry>,
    /// Durable: to be sent when all of the above is stored, and all that earlier ones asked for.
    pub messages_after: Vec<Message>,
    /// To be applied. Needs no waiting for the stores above: these are stored here already.
    pub committed: Vec<Entry>,
    /// Reads that may be answered once the catalog has applied the index: (token, index).
    pub reads: Vec<(u64, u64)>,
    /// Leader, term or role have changed.
    pub leadership: Option<Leadership>,
    /// A peer can only go on from a newer snapshot: [`Consensus::compact`] is to be called soon.
    pub wants_snapshot: bool,
}

impl Ready {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something has to be stored before [`Consensus::stored`] and `messages_after`.
    pub fn has_stores(&self) -> bool {
        self.vote.is_some() || self.install.is_some() || !self.append.is_empty()
    }
}

/// What a voter is in its term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Follows, or waits for a leader. Learners and those outside the configuration are this.
    #[default]
    Follower,
    /// Stands for election, or asks whether it should.
    Candidate,
    /// Leads. What was committed before its term is known to it only when its first entry is.
    Leader,
}

/// Who leads, as far as this voter knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    /// The term.
    pub term: u64,
    /// What this voter is in it.
    pub role: Role,
    /// The leader, if known.
    pub leader: Option<Member>,
}

/// How far another member is, as its leader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Who.
    pub member: Member,
    /// It has stored everything up to here.
    pub stored: u64,
    /// Whether it was heard of in the last election timeout.
    pub is_active: bool,
}

/// Why something asked of a voter is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another voter leads, or nobody.
    #[error("this node does not lead the catalog")]
    NotLeader {
        /// Who does, if known.
        leader: Option<Member>,
    },
    /// Too much waits to be committed, or leadership is being transferred: try again.
    #[error("the catalog takes no commands at the moment")]
    Busy,
    /// The command is larger than [`COMMAND_BYTES_MAX`].
    #[error("a command of {0} bytes is larger than {COMMAND_BYTES_MAX}")]
    TooLarge(usize),
    /// The configuration cannot be changed in this way.
    #[error("the voters cannot be changed: {0}")]
    Change(&'static str),
    /// The message is for another life of this node, from itself, or of nobody.
    #[error("the message is not for this voter")]
    NotForMe,
    /// The message contradicts itself or what is known of its sender; nothing was taken from it.
    #[error("the message makes no sense: {0}")]
    Message(&'static str),
    /// A leader was told that more is stored here than is: what was durable is gone, so this voter must not go on under its
    /// incarnation (rule DamageIsNoticed).
    #[error("this node held entries up to {expected} and holds them up to {found} only")]
    Lost {
        /// What the leader relies on.
        expected: u64,
        /// What is here.
        found: u64,
    },
}

/// A voter of the catalog, or one that may become one. See the module for the cycle.
///
/// Order: every [`Ready`] is carried out before the stores of the next one begin; stores may be under way while ticks and
/// messages go on.
pub trait Consensus: Send + Sync {
    /// [`TICK`] has passed.
    fn tick(&mut self);
    /// A message has come. What is refused changes nothing.
    fn step(&mut self, message: Message) -> Result<(), Refusal>;
    /// Proposes a command. Its place; it is committed when an entry of this term is at it, and lost when another one is.
    fn propose(&mut self, command: Bytes) -> Result<Position, Refusal>;
    /// Proposes one change of the configuration. One at a time, by the leader.
    fn change(&mut self, change: Change) -> Result<Position, Refusal>;
    /// Stands for election now. A voter that is alone leads when this returns.
    fn campaign(&mut self);
    /// Hands leadership to another voter; given up after an election timeout.
    fn transfer(&mut self, to: Member) -> Result<(), Refusal>;
    /// Asks for an index that a read must wait for to see everything committed before now (linearizable), also on a follower.
    /// It comes with [`Ready::reads`]; after a change of leader it may never come: ask again with another token.
    fn read(&mut self, token: u64) -> Result<(), Refusal>;
    /// What there is to do.
    fn ready(&mut self) -> Ready;
    /// What the [`Ready`] of this number, and all before, asked to store is durable and its messages are sent. To be called for
    /// each one, at once where nothing was to be stored.
    fn stored(&mut self, number: u64);
    /// Puts the catalog, as of the last entry handed out, in place of the entries up to it; what is to be stored of it.
    fn compact(&mut self, catalog: Bytes) -> Snapshot;
    /// The connection to a peer has broken: what was sent last may be lost.
    fn unreachable(&mut self, peer: Member);
    /// Who this is.
    fn me(&self) -> Member;
    /// Who leads.
    fn leadership(&self) -> Leadership;
    /// Voters and learners as of the last entry handed out.
    fn configuration(&self) -> &Configuration;
    /// How far the others are; empty unless this one leads.
    fn progress(&self) -> Vec<Progress>;
}
