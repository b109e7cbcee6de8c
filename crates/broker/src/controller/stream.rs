//! The catalog's stream as the log keeps it: votes, snapshot and entries, in its values and in ours.

use floe_cluster::consensus::{self, Entry, Vote};
use floe_cluster::{Catalog, Undecodable, format};
use floe_log::{CatalogEntry, Snapshot, Stream};
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

/// The catalog's stream in the journal.
pub(crate) const CATALOG_GROUP: u32 = 0;

/// The catalog that all of a stored stream leads to, be it agreed or not.
pub(crate) fn fold(stream: &Stream) -> Result<Catalog, Undecodable> {
    let mut catalog = base(stream)?;
    for entry in entries(stream)? {
        catalog.apply_entry(entry.index, entry.payload)?;
    }
    Ok(catalog)
}

/// The catalog that the entries build on.
pub(super) fn base(stream: &Stream) -> Result<Catalog, Undecodable> {
    match &stream.snapshot {
        Some(snapshot) => format::decode_snapshot(&snapshot.data),
        None => Ok(Catalog::default()),
    }
}

pub(super) fn entries(stream: &Stream) -> Result<Vec<Entry>, Undecodable> {
    let entries = stream.entries.iter().map(|entry| {
        Ok(Entry {
            index: entry.index,
            term: entry.term,
            payload: format::decode_payload(&entry.data)?,
        })
    });
    entries.collect()
}

pub(super) fn drawn(entry: &Entry) -> CatalogEntry {
    CatalogEntry {
        index: entry.index,
        term: entry.term,
        data: format::encode_payload(&entry.payload),
    }
}

pub(super) fn snapshot(snapshot: consensus::Snapshot) -> Snapshot {
    Snapshot {
        index: snapshot.at.index,
        term: snapshot.at.term,
        data: snapshot.data,
    }
}

pub(super) fn drawn_vote(vote: Vote) -> floe_log::Vote {
    let (NodeId(node), incarnation) = vote
        .voted_for
        .map_or((NodeId(0), 0), |member| (member.node, member.incarnation.0));
    floe_log::Vote {
        term: vote.term,
        node: node.into(),
        incarnation,
    }
}

pub(super) fn vote(stored: floe_log::Vote) -> Vote {
    let member = Member {
        node: NodeId(stored.node as u32),
        incarnation: Incarnation(stored.incarnation),
    };
    Vote {
        term: stored.term,
        voted_for: (stored.incarnation != 0).then_some(member),
    }
}
