//! How entries of the catalog become agreed: a small trait, stepped without clock, threads or disk.
//!
//! ```text
//! propose ──► ready().append ──(caller stores)──► stored(index) ──► ready().committed ──(caller applies)
//! ```
//!
//! Guarantees: committed entries come out once, in order of index, and only after they are stored. One implementation so far:
//! [`OneVoter`], which agrees with itself; entries {index, term, command} are those that several voters will use.

use std::collections::VecDeque;

use bytes::Bytes;
use floe_replication::Member;

/// One entry of the catalog's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place; rises by one.
    pub index: u64,
    /// The term it was proposed in.
    pub term: u64,
    /// The command, as [`format`](crate::format) draws it.
    pub command: Bytes,
}

/// A voter's term and whom it voted for in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// The term.
    pub term: u64,
    /// The voter it voted for.
    pub voted_for: Option<Member>,
}

/// What the caller has to do before it calls again, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Make durable before anything else is sent or stored.
    pub vote: Option<Vote>,
    /// Make durable, then report with [`Consensus::stored`].
    pub append: Vec<Entry>,
    /// Apply.
    pub committed: Vec<Entry>,
}

/// A voter of the catalog.
pub trait Consensus: Send {
    /// Proposes a command; the index it will have, or `None` when this voter does not lead.
    fn propose(&mut self, command: Bytes) -> Option<u64>;
    /// Entries up to this index are durable here.
    fn stored(&mut self, index: u64);
    /// What there is to do.
    fn ready(&mut self) -> Ready;
}

/// The only voter of its group.
#[derive(Debug)]
pub struct OneVoter {
    term: u64,
    last_index: u64,
    stored: u64,
    vote: Option<Vote>,
    append: Vec<Entry>,
    uncommitted: VecDeque<Entry>,
}

impl OneVoter {
    /// Takes up a stored log: `entries` follow `snapshot_index`. Begins a new term, whose vote is the first thing to store.
    pub fn resume(me: Member, last_vote: Vote, snapshot_index: u64, entries: Vec<Entry>) -> Self {
        let last_index = entries.last().map_or(snapshot_index, |entry| entry.index);
        let last_term = entries.last().map_or(0, |entry| entry.term);
        let term = last_vote.term.max(last_term) + 1;
        Self {
            term,
            last_index,
            stored: last_index,
            vote: Some(Vote {
                term,
                voted_for: Some(me),
            }),
            append: Vec::new(),
            uncommitted: entries.into(),
        }
    }
}

impl Consensus for OneVoter {
    fn propose(&mut self, command: Bytes) -> Option<u64> {
        self.last_index += 1;
        let entry = Entry {
            index: self.last_index,
            term: self.term,
            command,
        };
        self.append.push(entry.clone());
        self.uncommitted.push_back(entry);
        Some(self.last_index)
    }

    fn stored(&mut self, index: u64) {
        self.stored = self.stored.max(index);
    }

    fn ready(&mut self) -> Ready {
        let committed = self
            .uncommitted
            .iter()
            .take_while(|entry| entry.index <= self.stored)
            .count();
        Ready {
            vote: self.vote.take(),
            append: std::mem::take(&mut self.append),
            committed: self.uncommitted.drain(..committed).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    const ME: Member = Member {
        node: NodeId(0),
        incarnation: Incarnation(1),
    };

    #[test]
    fn one_voter_commits_what_it_has_stored_in_order_and_once() {
        let mut voter = OneVoter::resume(ME, Vote::default(), 0, Vec::new());
        assert_eq!(voter.ready().vote.map(|vote| vote.term), Some(1));
        assert_eq!(voter.propose(Bytes::from_static(b"a")), Some(1));
        assert_eq!(voter.propose(Bytes::from_static(b"b")), Some(2));
        let ready = voter.ready();
        assert_eq!(ready.append.len(), 2);
        assert_eq!(ready.committed, []);
        voter.stored(1);
        assert_eq!(voter.ready().committed, ready.append[..1]);
        voter.stored(2);
        assert_eq!(voter.ready().committed, ready.append[1..]);
        assert_eq!(voter.ready(), Ready::default());
    }

    #[test]
    fn a_resumed_voter_applies_the_stored_entries_and_goes_on_in_a_higher_term() {
        let entries = vec![
            Entry {
                index: 8,
                term: 3,
                command: Bytes::new(),
            },
            Entry {
                index: 9,
                term: 4,
                command: Bytes::new(),
            },
        ];
        let vote = Vote {
            term: 4,
            voted_for: Some(ME),
        };
        let mut voter = OneVoter::resume(ME, vote, 7, entries.clone());
        let ready = voter.ready();
        assert_eq!(ready.committed, entries);
        assert_eq!(ready.vote.map(|vote| vote.term), Some(5));
        assert_eq!(voter.propose(Bytes::new()), Some(10));
        assert_eq!(voter.ready().append[0].term, 5);
    }
}
