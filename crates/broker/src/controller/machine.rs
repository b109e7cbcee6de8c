//! The catalog's state machine over the log's stream: propose, store, apply, carry out, publish.

use std::sync::Arc;

use floe_cluster::{
    Applied, Catalog, Command, Consensus, Entry, OneVoter, Undecodable, Vote, format,
};
use floe_log::{CatalogEntry, Failure, Snapshot, Stream};
use floe_model::NodeId;
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

/// The catalog that a stored stream leads to.
pub(crate) fn fold(stream: &Stream) -> Result<Catalog, Undecodable> {
    let mut catalog = match &stream.snapshot {
        Some(snapshot) => format::decode_snapshot(&snapshot.data)?,
        None => Catalog::default(),
    };
    for entry in &stream.entries {
        catalog.apply(entry.index, format::decode(&entry.data)?);
    }
    Ok(catalog)
}

/// See the module.
pub(crate) struct Machine {
    voter: Box<dyn Consensus>,
    catalog: Catalog,
    /// What was stored since the last snapshot.
    entries: usize,
    entry_bytes: usize,
    last_term: u64,
    node: Option<Arc<Node>>,
}

impl Machine {
    /// Takes up what the log kept.
    pub(crate) fn resume(me: Member, stream: &Stream) -> Result<Self, Undecodable> {
        let snapshot = stream.snapshot.as_ref();
        let entries: Vec<_> = stream
            .entries
            .iter()
            .map(|entry| Entry {
                index: entry.index,
                term: entry.term,
                command: entry.data.clone(),
            })
            .collect();
        let vote = Vote {
            term: stream
                .vote
                .term
                .max(snapshot.map_or(0, |snapshot| snapshot.term)),
            voted_for: None,
        };
        Ok(Self {
            entries: entries.len(),
            entry_bytes: entries.iter().map(|entry| entry.command.len()).sum(),
            last_term: vote.term,
            voter: Box::new(OneVoter::resume(
                me,
                vote,
                snapshot.map_or(0, |snapshot| snapshot.index),
                entries,
            )),
            // What was stored was applied in an earlier life; its effects are taken from the catalog, at start.
            catalog: fold(stream)?,
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
        for command in commands {
            let index = self.voter.propose(format::encode(command));
            assert!(index.is_some(), "a group of one voter always has a leader");
        }
        let mut applied = Vec::with_capacity(commands.len());
        loop {
            let ready = self.voter.ready();
            if let Some(vote) = ready.vote {
                node.log.vote(CATALOG_GROUP, stored_vote(vote)).await?;
            }
            let last = ready.append.last().map(|entry| (entry.index, entry.term));
            if let Some((index, term)) = last {
                self.store(&node, ready.append).await?;
                self.last_term = term;
                self.voter.stored(index);
            }
            let is_idle = last.is_none() && ready.committed.is_empty();
            for entry in ready.committed {
                if entry.index > self.catalog.index {
                    let command = format::decode(&entry.command)
                        .expect("an entry proposed by this process decodes");
                    applied.push(self.catalog.apply(entry.index, command));
                }
            }
            if is_idle {
                break;
            }
        }
        self.carry_out(&node, &applied).await?;
        self.shorten(&node);
        Ok(applied)
    }

    async fn store(&mut self, node: &Node, entries: Vec<Entry>) -> Result<(), Failure> {
        self.entries += entries.len();
        self.entry_bytes += entries
            .iter()
            .map(|entry| entry.command.len())
            .sum::<usize>();
        let mut receipts = Vec::new();
        let mut chunk = Vec::new();
        let mut chunk_bytes = 0;
        for entry in entries {
            if chunk_bytes + entry.command.len() > APPEND_BYTES_MAX && !chunk.is_empty() {
                receipts.push(
                    node.log
                        .catalog_append(CATALOG_GROUP, std::mem::take(&mut chunk)),
                );
                chunk_bytes = 0;
            }
            chunk_bytes += entry.command.len();
            chunk.push(CatalogEntry {
                index: entry.index,
                term: entry.term,
                data: entry.command,
            });
        }
        receipts.push(node.log.catalog_append(CATALOG_GROUP, chunk));
        for receipt in receipts {
            receipt.await?;
        }
        Ok(())
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
        let snapshot = Snapshot {
            index: self.catalog.index,
            term: self.last_term,
            data: format::encode_snapshot(&self.catalog),
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
