//! Catalog streams: small logs with snapshot and vote, held in memory, journaled entry by entry and written whole into
//! each checkpoint.

use std::collections::BTreeMap;

use crate::{CatalogEntry, Snapshot, Stream, Vote};

/// All streams by group number. Live and replayed records go through the same functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(BTreeMap<u32, Stream>);

impl Streams {
    pub(crate) fn new(streams: Vec<Stream>) -> Self {
        Self(
            streams
                .into_iter()
                .map(|stream| (stream.group, stream))
                .collect(),
        )
    }

    pub(crate) fn all(&self) -> Vec<Stream> {
        self.0.values().cloned().collect()
    }

    fn stream(&mut self, group: u32) -> &mut Stream {
        self.0.entry(group).or_insert_with(|| Stream {
            group,
            ..Stream::default()
        })
    }

    /// Takes the larger term; within a term the first vote stands.
    pub(crate) fn vote(&mut self, group: u32, vote: Vote) {
        let held = &mut self.stream(group).vote;
        let is_first_in_term = vote.term == held.term && (held.node, held.incarnation) == (0, 0);
        if vote.term > held.term || is_first_in_term {
            *held = vote;
        }
    }

    /// An entry at a known index replaces it and all above; one inside the snapshot says nothing new. `false`: there is
    /// a gap below it, so it cannot be placed.
    pub(crate) fn append(&mut self, group: u32, entry: CatalogEntry) -> bool {
        let stream = self.stream(group);
        let covered = stream.snapshot.as_ref().map(|snapshot| snapshot.index);
        if covered.is_some_and(|covered| entry.index <= covered) {
            return true;
        }
        let kept = stream
            .entries
            .partition_point(|held| held.index < entry.index);
        stream.entries.truncate(kept);
        let below = stream.entries.last().map(|held| held.index).or(covered);
        if below.is_some_and(|below| below + 1 != entry.index) {
            return false;
        }
        stream.entries.push(entry);
        true
    }

    /// In place of everything but the vote. Entries that stand above the snapshot's index came from a log that need not agree with
    /// it below, so they go, too.
    pub(crate) fn install(&mut self, group: u32, snapshot: Snapshot) {
        let stream = self.stream(group);
        stream.entries.clear();
        stream.snapshot = Some(snapshot);
    }

    pub(crate) fn compact(&mut self, group: u32, snapshot: Snapshot) {
        let stream = self.stream(group);
        let known = stream.snapshot.as_ref().map_or(0, |held| held.index);
        if stream.snapshot.is_some() && snapshot.index <= known {
            return;
        }
        stream.entries.retain(|entry| entry.index > snapshot.index);
        stream.snapshot = Some(snapshot);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn entry(index: u64, term: u64) -> CatalogEntry {
        CatalogEntry {
            index,
            term,
            data: Bytes::from_static(b"x"),
        }
    }

    #[test]
    fn an_entry_at_a_known_index_replaces_it_and_all_above() {
        let mut streams = Streams::default();
        assert!((1..=3).all(|index| streams.append(7, entry(index, 1))));
        assert!(streams.append(7, entry(2, 2)));
        assert_eq!(streams.all()[0].entries, [entry(1, 1), entry(2, 2)]);
        assert!(!streams.append(7, entry(4, 2)), "a gap");
    }

    #[test]
    fn a_snapshot_takes_the_place_of_the_entries_up_to_it() {
        let mut streams = Streams::default();
        assert!((1..=3).all(|index| streams.append(7, entry(index, 1))));
        let snapshot = Snapshot {
            index: 2,
            term: 1,
            data: Bytes::from_static(b"state"),
        };
        streams.compact(7, snapshot.clone());
        assert_eq!(streams.all()[0].entries, [entry(3, 1)]);
        assert_eq!(streams.all()[0].snapshot, Some(snapshot));
        assert!(
            streams.append(7, entry(1, 1)),
            "replayed from before the snapshot"
        );
        assert_eq!(streams.all()[0].entries, [entry(3, 1)]);
    }

    #[test]
    fn a_vote_of_the_same_term_does_not_change() {
        let mut streams = Streams::default();
        streams.vote(
            1,
            Vote {
                term: 2,
                node: 1,
                incarnation: 1,
            },
        );
        streams.vote(
            1,
            Vote {
                term: 2,
                node: 9,
                incarnation: 9,
            },
        );
        streams.vote(
            1,
            Vote {
                term: 1,
                node: 9,
                incarnation: 9,
            },
        );
        assert_eq!(
            streams.all()[0].vote,
            Vote {
                term: 2,
                node: 1,
                incarnation: 1
            }
        );
    }
}
