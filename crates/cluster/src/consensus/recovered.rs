//! From what the log kept to where a voter goes on: which of the stored entries are known to be committed.
//!
//! The commit index is not stored. Of a voter that is alone everything stored is committed. Of others, what an entry of the log
//! says ([`Payload::Known`]), and the change of configuration before the last one in the log: a leader proposes a change when it
//! has applied the one before. That much must be known at start: a voter that counts majorities of an older configuration
//! than its log proves could elect two leaders, or wait for a voter that was replaced.

use floe_replication::Member;

use super::{Configuration, Entry, Payload, Position, Snapshot, Vote};

/// What the log kept of a voter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its vote.
    pub vote: Vote,
    /// What the entries follow.
    pub snapshot: Option<Snapshot>,
    /// Entries, dense.
    pub entries: Vec<Entry>,
}

impl Stored {
    /// The entry before the first.
    pub(super) fn base(&self) -> Position {
        self.snapshot.as_ref().map_or_else(
            || {
                // A log without snapshot begins at 1, or wherever an earlier release let it begin.
                let first = self.entries.first();
                Position {
                    index: first.map_or(0, |first| first.index - 1),
                    term: 0,
                }
            },
            |snapshot| snapshot.at,
        )
    }
}

/// Where a voter goes on.
pub(super) struct Start {
    /// As of `committed`.
    pub(super) configuration: Configuration,
    pub(super) committed: u64,
}

/// `unrecorded`: the configuration of a log in which none is recorded.
pub(super) fn start(me: Member, unrecorded: Configuration, stored: &Stored) -> Start {
    let recorded = stored
        .snapshot
        .as_ref()
        .map(|snapshot| &snapshot.configuration)
        .filter(|configuration| !configuration.is_empty());
    let mut start = Start {
        configuration: recorded.cloned().unwrap_or(unrecorded),
        committed: stored.base().index,
    };
    start.take_over(me);
    let mut last_change: Option<(u64, &Configuration)> = None;
    for entry in &stored.entries {
        if let Payload::Configuration(next) = &entry.payload
            && let Some((index, known)) = last_change.replace((entry.index, next))
        {
            start.adopt(me, index, known);
        }
        if let Payload::Known(committed) = entry.payload {
            if let Some((index, known)) = last_change.take_if(|(index, _)| *index <= committed) {
                start.adopt(me, index, known);
            }
            start.committed = start.committed.max(committed);
        }
        if start.configuration.is_alone(me) {
            if let Some((index, known)) = last_change.take() {
                start.adopt(me, index, known);
            }
            start.committed = entry.index;
        }
    }
    start
}

impl Start {
    fn adopt(&mut self, me: Member, index: u64, configuration: &Configuration) {
        self.configuration = configuration.clone();
        self.committed = index;
        self.take_over(me);
    }

    /// The only voter was an earlier life of this node, whose data was damaged: there is nobody else to decide.
    fn take_over(&mut self, me: Member) {
        if let [voter] = self.configuration.voters[..]
            && voter.node == me.node
            && voter != me
        {
            self.configuration.voters = vec![me];
        }
    }
}
