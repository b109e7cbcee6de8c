//! Every layout the catalog persists: the command in an entry, the snapshot, the descriptor stored with a generation's data.
//!
//! ```text
//! entry      {index, term} by the log's stream, then nothing (a new leader's first), Record{version 2, one of its commands}
//!            or Recorded{version 2, configuration or committed index}
//! snapshot   Snapshot{version 2, index, nodes, topics, tombstones, ..., configuration}
//! message    Message{version 2, from, to, term, entries, one of its bodies}, between voters
//! call       Asked, Answered{version 2}: a command for the catalog's leader, and its place
//! descriptor Descriptor{version 2, leader, members, since}: lets an offline tool rebuild a lost catalog
//! ```
//! Protocol Buffers (proto3), ids as fixed bytes: fields can be added, and release N reads what N-1 wrote. A version above the one
//! here, an unknown command or an id of another length is [`Undecodable`], never guessed.
//!
//! Version 1 was that of one node: a topic in it has one copy (replication factor 1, q = 1), a table if it is internal; a node in
//! it does not say which life its directory is.

mod call;
mod consensus;
mod messages;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use bytes::Bytes;
use floe_model::{LeaderEpoch, NodeId};
use floe_replication::{Leader, Member};
use prost::Message as _;

use crate::{Catalog, Command, Tombstone};
pub use call::{Answered, decode_answered, decode_asked, encode_answered, encode_asked};
pub use consensus::{
    ENTRIES_PER_MESSAGE_MAX, MESSAGE_BYTES_MAX, decode_configuration, decode_message,
    decode_payload, encode_configuration, encode_message, encode_payload,
};
use read::{id, leader, members, name, node_of, topic_of};
use write::{kind_of, list};

/// Version of every message here.
pub const VERSION: u32 = 2;

/// Bytes that this release cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Not the layout.
    #[error("catalog record is damaged: {0}")]
    Bytes(#[from] prost::DecodeError),
    /// Written by a newer release.
    #[error(
        "catalog record has version {found}; this release reads up to {VERSION}: use a newer release"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// A command this release does not know.
    #[error("catalog record holds a command of a newer release; use a newer release")]
    Command,
    /// A field has a value it cannot have.
    #[error("catalog record: {0} is not valid")]
    Field(&'static str),
}

/// Draws a command.
pub fn encode(command: &Command) -> Bytes {
    let record = messages::Record {
        version: VERSION,
        command: Some(kind_of(command)),
    };
    record.encode_to_vec().into()
}

/// Reads a command.
pub fn decode(bytes: &[u8]) -> Result<Command, Undecodable> {
    let record = messages::Record::decode(bytes)?;
    check(record.version)?;
    read::command(record.command.ok_or(Undecodable::Command)?)
}

/// What is stored with a generation's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Who writes it; none in a copy made later, by whoever need not know.
    pub leader: Option<Leader>,
    /// Who holds it.
    pub members: Vec<Member>,
    /// Index of the catalog that the copy was begun at; 0: it was held as a member.
    pub since: u64,
}

/// Draws a descriptor.
pub fn encode_descriptor(descriptor: &Descriptor) -> Bytes {
    let descriptor = messages::Descriptor {
        version: VERSION,
        leader: descriptor.leader.map(Into::into),
        members: list(&descriptor.members),
        since: descriptor.since,
    };
    descriptor.encode_to_vec().into()
}

/// Reads a descriptor; no bytes say nothing.
pub fn decode_descriptor(bytes: &[u8]) -> Result<Descriptor, Undecodable> {
    if bytes.is_empty() {
        return Ok(Descriptor::default());
    }
    let descriptor = messages::Descriptor::decode(bytes)?;
    check(descriptor.version)?;
    let written_by = descriptor.leader.map(|found| leader(Some(found)));
    Ok(Descriptor {
        leader: written_by.transpose()?,
        members: members(&descriptor.members),
        since: descriptor.since,
    })
}

/// Draws the whole catalog.
pub fn encode_snapshot(catalog: &Catalog) -> Bytes {
    let snapshot = messages::Snapshot {
        version: VERSION,
        index: catalog.index,
        nodes: catalog.nodes.values().map(Into::into).collect(),
        topics: catalog
            .topics
            .values()
            .map(|topic| (&**topic).into())
            .collect(),
        tombstones: catalog
            .tombstones
            .iter()
            .map(|(id, tombstone)| messages::Tombstone {
                id: id.0.to_vec(),
                name: tombstone.name.to_string(),
                partitions: tombstone.partitions,
                waiting: tombstone.waiting.iter().map(|node| node.0).collect(),
            })
            .collect(),
        next_producer_id: catalog.next_producer_id,
        last_epochs: catalog
            .last_epochs
            .iter()
            .map(|(name, epoch)| (name.to_string(), epoch.0))
            .collect(),
        epoch_floor: catalog.epoch_floor.map(|epoch| epoch.0),
        past_lives: catalog
            .past_lives
            .iter()
            .flat_map(|(node, lives)| {
                lives.iter().map(|life| messages::Member {
                    node: node.0,
                    incarnation: life.0,
                })
            })
            .collect(),
        configuration: consensus::recorded(&catalog.configuration),
    };
    snapshot.encode_to_vec().into()
}

/// Reads a whole catalog.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Catalog, Undecodable> {
    let snapshot = messages::Snapshot::decode(bytes)?;
    check(snapshot.version)?;
    let mut catalog = Catalog {
        index: snapshot.index,
        next_producer_id: snapshot.next_producer_id,
        epoch_floor: snapshot.epoch_floor.map(LeaderEpoch),
        configuration: consensus::unrecorded(snapshot.configuration)?,
        ..Catalog::default()
    };
    for node in snapshot.nodes {
        let node = node_of(node)?;
        catalog.nodes.insert(node.id, node);
    }
    for topic in snapshot.topics {
        catalog.insert(topic_of(topic)?);
    }
    for tombstone in snapshot.tombstones {
        let value = Tombstone {
            name: name(&tombstone.name)?,
            partitions: tombstone.partitions,
            waiting: tombstone.waiting.into_iter().map(NodeId).collect(),
        };
        catalog.tombstones.insert(id(&tombstone.id)?, value);
    }
    for past in members(&snapshot.past_lives) {
        let lives = catalog.past_lives.entry(past.node).or_default();
        lives.push(past.incarnation);
    }
    for (text, epoch) in snapshot.last_epochs {
        catalog.last_epochs.insert(name(&text)?, LeaderEpoch(epoch));
    }
    Ok(catalog)
}

fn check(version: u32) -> Result<(), Undecodable> {
    if version == 0 || version > VERSION {
        return Err(Undecodable::Version { found: version });
    }
    Ok(())
}

/// Settings and other small maps of texts.
type Texts = BTreeMap<String, String>;
