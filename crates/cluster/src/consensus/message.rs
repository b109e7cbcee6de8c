//! What voters say to one another: our own values, whatever library decides.

use bytes::Bytes;
use floe_replication::Member;

use super::{Entry, Position, Snapshot};

/// One message from one voter to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub from: Member,
    /// To whom; another life of that node does not listen.
    pub to: Member,
    /// The sender's term; of a pre-vote the term it would stand in; of a read 0.
    pub term: u64,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Vote for me.
    Stand {
        /// Only asks whether it would be granted; nothing is stored and no term begins.
        is_pre_vote: bool,
        /// The leader has asked for this election: grant it although a leader is known.
        is_transfer: bool,
        /// The end of the sender's log.
        last: Position,
        /// What it knows committed.
        commit: Position,
    },
    /// The answer.
    Voted {
        /// Of a pre-vote.
        is_pre_vote: bool,
        /// Whether it is granted.
        is_granted: bool,
        /// What the voter knows committed, of a refusal.
        commit: Position,
    },
    /// Entries of the leader's log.
    Append {
        /// The entry before the first.
        after: Position,
        /// Entries, in order without gaps.
        entries: Vec<Entry>,
        /// The leader's commit index.
        commit: u64,
    },
    /// Everything up to `stored` is durable and agrees with the leader's log.
    Appended {
        /// Index.
        stored: u64,
        /// The follower's commit index.
        commit: u64,
    },
    /// The entry before the first of an append is not in the follower's log.
    Rejected {
        /// That entry's index.
        after: u64,
        /// Where the leader should look next.
        hint: Position,
        /// The follower's commit index.
        commit: u64,
    },
    /// The leader is there.
    Heartbeat {
        /// Committed and, as the leader knows, stored by the follower.
        commit: u64,
        /// A read that waits for the answer, or nothing.
        context: Bytes,
    },
    /// The follower is there.
    Alive {
        /// The follower's commit index.
        commit: u64,
        /// As in the heartbeat.
        context: Bytes,
    },
    /// A snapshot in place of entries the leader has no more.
    Install(Snapshot),
    /// The follower is up to date and is to stand for election now.
    StandNow,
    /// A follower asks for an index to read at.
    Read {
        /// Which read.
        context: Bytes,
    },
    /// The index.
    ReadAt {
        /// Which read.
        context: Bytes,
        /// Everything up to here must be applied.
        index: u64,
    },
}

impl Message {
    /// What a message of this form must keep whatever sent it; the library relies on it.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.term == 0 && !matches!(self.body, Body::Read { .. }) {
            return Err("a term is above 0");
        }
        match &self.body {
            Body::Append { after, entries, .. } => {
                let mut before = *after;
                for entry in entries {
                    if entry.index != before.index.saturating_add(1) || entry.term < before.term {
                        return Err("entries follow one another");
                    }
                    before = entry.position();
                }
                if before.term > self.term {
                    return Err("no entry is of a later term than its sender");
                }
                Ok(())
            }
            Body::Install(snapshot) => {
                if snapshot.at.index == 0 || snapshot.at.term > self.term {
                    return Err("a snapshot is of an entry");
                }
                snapshot.configuration.check()
            }
            _ => Ok(()),
        }
    }

    /// Members named in it.
    pub(super) fn configurations(&self) -> impl Iterator<Item = &super::Configuration> {
        let (installed, entries) = match &self.body {
            Body::Install(snapshot) => (Some(&snapshot.configuration), None),
            Body::Append { entries, .. } => (None, Some(entries)),
            _ => (None, None),
        };
        let entries = entries.into_iter().flatten();
        installed
            .into_iter()
            .chain(entries.filter_map(|entry| match &entry.payload {
                super::Payload::Configuration(configuration) => Some(configuration),
                _ => None,
            }))
    }
}
