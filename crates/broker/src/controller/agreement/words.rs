//! What an [`Agreement`](super::Agreement) is told, and what it says is to be done. Values only.

use std::sync::Arc;

use bytes::Bytes;
use floe_cluster::consensus::{self, Leadership, Refusal};
use floe_cluster::format::Undecodable;
use floe_cluster::{Catalog, Effect, Entry, Vote};
use floe_model::NodeId;

use crate::controller::asks::{Outcome, Ticket};
use crate::exchange::Heard;
use crate::peers;

/// What happened.
pub(crate) enum Event {
    /// Time has passed.
    Ticked,
    /// Somebody on this node wants a command agreed.
    Proposed(Ticket, Bytes),
    /// The [`Store`] of this number, and all before, are durable, and what was to be sent after them is handed over.
    Stored(u64),
    /// From the other nodes.
    Heard(Heard),
    /// A message of this node did not leave.
    Unsent(NodeId, peers::Message),
}

/// What to do, in order.
pub(crate) enum Do {
    /// Hand over at once.
    Send(NodeId, peers::Message),
    /// Make durable, after all stores before.
    Store(Store),
    /// Have this node do what follows from entries.
    Carry(Carry),
    /// Durable already: in place of the entries up to it.
    Shorten(consensus::Snapshot),
    /// Somebody else leads, or in another term.
    Led(Leadership),
}

/// What has to be durable. Empty ones pass when it is their turn.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) number: u64,
    pub(crate) vote: Option<Vote>,
    pub(crate) install: Option<consensus::Snapshot>,
    pub(crate) append: Vec<Entry>,
    /// Durable: sent when all of it is.
    pub(crate) after: Vec<(NodeId, peers::Message)>,
}

/// What follows from entries, for this node.
#[derive(Default)]
pub(crate) struct Carry {
    /// As of the last of them.
    pub(crate) catalog: Arc<Catalog>,
    /// Nothing if `leapt`.
    pub(crate) effects: Vec<Effect>,
    /// Entries were skipped: what is to be done follows from the catalog and from what is held.
    pub(crate) leapt: bool,
    /// To be given when the rest is done.
    pub(crate) answers: Vec<Outcome>,
}

impl Carry {
    /// Takes in what follows it.
    pub(crate) fn add(&mut self, next: Self) {
        self.catalog = next.catalog;
        self.leapt |= next.leapt;
        self.effects.extend(next.effects);
        self.answers.extend(next.answers);
    }
}

/// Why this node cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Over {
    /// The cluster has agreed on something that this release does not know.
    #[error("{0}")]
    Undecodable(#[from] Undecodable),
    /// What was durable is gone (rule DamageIsNoticed).
    #[error(
        "{0}; its data directory is damaged or was put back: give it an empty one with `floe node replace`"
    )]
    Lost(Refusal),
}
