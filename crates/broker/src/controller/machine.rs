//! The catalog's state machine over the log's stream: propose, store, apply, carry out, publish.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use floe_cluster::consensus::{Configuration, Position, Refusal, Stored, Voter};
use floe_cluster::{
    Applied, Catalog, Command, Consensus, Entry, Ready, Undecodable, Vote, consensus, format,
};
use floe_log::{CatalogEntry, Failure, Snapshot, Stream};
use floe_model::{Incarnation, NodeId};
use floe_replication::Member;

use crate::node::Node;

/// The catalog's stream in the journal.
pub(crate) const CATALOG_GROUP: u32 = 0;
/// Entries after which a snapshot takes their place.
const ENTRIES_MAX: usize = 512;
/// Bytes of entries after which a snapshot takes their place.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Bytes of entries that go into the log at a time: well below its largest group.
const APPEND_BYTES_MAX: usize = 1 << 20;

/// The catalog that all of a stored stream leads to, be it agreed or not.
pub(crate) fn fold(stream: &Stream) -> Result<Catalog, Undecodable> {
    let mut catalog = base(stream)?;
    for entry in entries(stream)? {
        catalog.apply_entry(entry.index, entry.payload)?;
    }
    Ok(catalog)
}

/// The catalog that the entries build on.
fn base(stream: &Stream) -> Result<Catalog, Undecodable> {
    match &stream.snapshot {
        Some(snapshot) => format::decode_snapshot(&snapshot.data),
        None => Ok(Catalog::default()),
    }
}

fn entries(stream: &Stream) -> Result<Vec<Entry>, Undecodable> {
    let entries = stream.entries.iter().map(|entry| {
        Ok(Entry {
            index: entry.index,
            term: entry.term,
            payload: format::decode_payload(&entry.data)?,
        })
    });
    entries.collect()
}

/// See the module.
pub(crate) struct Machine {
    voter: Box<dyn Consensus>,
    catalog: Catalog,
    /// What was stored since the last snapshot.
    entries: usize,
    entry_bytes: usize,
    node: Option<Arc<Node>>,
}

impl Machine {
    /// Takes up what the log kept. `seed` spreads election timeouts.
    pub(crate) fn resume(me: Member, stream: &Stream, seed: u64) -> Result<Self, Undecodable> {
        let mut catalog = base(stream)?;
        let stored = Stored {
            vote: vote(stream.vote),
            snapshot: stream
                .snapshot
                .as_ref()
                .map(|snapshot| consensus::Snapshot {
                    at: Position {
                        index: snapshot.index,
                        term: snapshot.term,
                    },
                    configuration: catalog.configuration.clone(),
                    data: snapshot.data.clone(),
                }),
            entries: entries(stream)?,
        };
        let mut voter = Voter::resume(me, Configuration::alone(me), stored, seed);
        // What is known to be agreed was applied in an earlier life; its effects are taken from the catalog, at start.
        for entry in voter.ready().committed {
            catalog.apply_entry(entry.index, entry.payload)?;
        }
        voter.campaign();
        let sizes = stream.entries.iter().map(|entry| entry.data.len());
        Ok(Self {
            entries: stream.entries.len(),
            entry_bytes: sizes.sum(),
            voter: Box::new(voter),
            catalog,
            node: None,
        })
    }

    /// The catalog as of the last entry.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// From now on changes are published and carried out on this node.
    pub(crate) fn attach(&mut self, node: Arc<Node>, cluster: floe_cluster::ClusterId) {
        self.catalog.cluster = cluster;
        self.catalog.controller = Some(node.settings.node);
        self.node = Some(node);
    }

    /// Has commands agreed, stored, applied and carried out; one answer each.
    pub(crate) async fn commit(&mut self, commands: &[Command]) -> Result<Vec<Applied>, Failure> {
        let node = self.node();
        let mut waiting: VecDeque<Bytes> = commands.iter().map(format::encode).collect();
        let mut applied = Vec::with_capacity(commands.len());
        loop {
            self.propose(&mut waiting);
            let ready = self.voter.ready();
            if ready.is_idle() {
                break;
            }
            let number = ready.number;
            let committed = self.store(&node, ready).await?;
            self.voter.stored(number);
            for entry in committed {
                let result = self.catalog.apply_entry(entry.index, entry.payload);
                applied.extend(result.expect("an entry proposed by this process decodes"));
            }
        }
        self.carry_out(&node, &applied).await?;
        self.shorten(&node);
        Ok(applied)
    }

    fn propose(&mut self, waiting: &mut VecDeque<Bytes>) {
        while let Some(command) = waiting.pop_front() {
            match self.voter.propose(command.clone()) {
                Ok(_) => {}
                Err(Refusal::Busy) => return waiting.push_front(command),
                Err(refusal) => panic!("a voter that is alone takes every command: {refusal}"),
            }
        }
    }

    /// Stores what is to be stored, in one flush if the log has it so; the entries to apply.
    async fn store(&mut self, node: &Node, ready: Ready) -> Result<Vec<Entry>, Failure> {
        let mut receipts = Vec::new();
        if let Some(vote) = ready.vote {
            receipts.push(node.log.vote(CATALOG_GROUP, stored_vote(vote)));
        }
        let mut chunk = Vec::new();
        let mut chunk_bytes = 0;
        for entry in ready.append {
            let data = format::encode_payload(&entry.payload);
            if chunk_bytes + data.len() > APPEND_BYTES_MAX && !chunk.is_empty() {
                let full = std::mem::take(&mut chunk);
                receipts.push(node.log.catalog_append(CATALOG_GROUP, full));
                chunk_bytes = 0;
            }
            chunk_bytes += data.len();
            self.entries += 1;
            self.entry_bytes += data.len();
            chunk.push(CatalogEntry {
                index: entry.index,
                term: entry.term,
                data,
            });
        }
        if !chunk.is_empty() {
            receipts.push(node.log.catalog_append(CATALOG_GROUP, chunk));
        }
        for receipt in receipts {
            receipt.await?;
        }
        Ok(ready.committed)
    }

    /// Has this node do what the commands mean for it, then publishes the catalog.
    async fn carry_out(&mut self, node: &Arc<Node>, applied: &[Applied]) -> Result<(), Failure> {
        let effects = applied.iter().flat_map(|applied| &applied.effects);
        let deleted = super::effects::carry_out(node, &self.catalog, effects).await?;
        node.publish(&Arc::new(self.catalog.clone()));
        if deleted.is_empty() {
            return Ok(());
        }
        let confirm = Command::ConfirmDeleted {
            node: node.settings.node,
            topics: deleted,
        };
        Box::pin(self.commit(&[confirm])).await.map(drop)
    }

    /// Replaces entries by a snapshot when they have become many.
    fn shorten(&mut self, node: &Node) {
        if self.entries < ENTRIES_MAX && self.entry_bytes < ENTRY_BYTES_MAX {
            return;
        }
        self.entries = 0;
        self.entry_bytes = 0;
        let snapshot = self.voter.compact(format::encode_snapshot(&self.catalog));
        let snapshot = Snapshot {
            index: snapshot.at.index,
            term: snapshot.at.term,
            data: snapshot.data,
        };
        node.log.compact(CATALOG_GROUP, snapshot);
    }

    fn node(&self) -> Arc<Node> {
        let node = self
            .node
            .as_ref()
            .expect("attached before the first command");
        Arc::clone(node)
    }
}

fn stored_vote(vote: Vote) -> floe_log::Vote {
    let (NodeId(node), incarnation) = vote
        .voted_for
        .map_or((NodeId(0), 0), |member| (member.node, member.incarnation.0));
    floe_log::Vote {
        term: vote.term,
        node: node.into(),
        incarnation,
    }
}

fn vote(stored: floe_log::Vote) -> Vote {
    let member = Member {
        node: NodeId(stored.node as u32),
        incarnation: Incarnation(stored.incarnation),
    };
    Vote {
        term: stored.term,
        voted_for: (stored.incarnation != 0).then_some(member),
    }
}
