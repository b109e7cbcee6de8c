//! Bringing the groups of a node up: their topic, each table from its snapshot and the log after it, the timer.

use std::sync::Arc;

use floe_model::{Offset, TopicPartition};
use floe_state::{Table, Unusable};
use floe_wire::batch;
use floe_wire::codec::Scratch;
use floe_world::tasks;
use tokio::sync::mpsc;

use super::shard::Shard;
use super::snapshots::{self, Keeper};
use super::usage::Usage;
use super::{Groups, Inner, directory::Directory, row, store, timer};
use crate::node::Node;
use crate::{Fetch, FetchError, FetchPart, Isolation, OffsetSpec, StartError};

const TOPIC: &str = "__group_positions";
/// Partitions of the topic when it is made; a group belongs to one of them for ever.
const PARTITIONS: u32 = 16;
const REPLAY_BYTES: usize = 1024 * 1024;

impl Groups {
    /// Loads what is stored. Needs a node whose partitions are open; done before any door is.
    pub(crate) async fn start(node: Arc<Node>) -> Result<Self, StartError> {
        let topic = node
            .create_internal_topic(TOPIC, PARTITIONS, true)
            .await
            .map_err(|error| failed(&node, "making the topic of group positions", error))?;
        let settings = Arc::new(settings(&node));
        let count = topic.partitions.len();
        let groups_max = settings.groups_max.div_ceil(count);
        let usage = Arc::new(Usage::new(node.world.memory.limit()));
        let mut shards = Vec::new();
        let mut appliers = Vec::new();
        for partition in &topic.partitions {
            let address = topic.address(partition.index);
            let (table, keeper) = load(&node, address).await?;
            let (sender, writes) = mpsc::channel(store::WRITES_MAX);
            usage.positions_changed(0, table.bytes());
            let shard = Arc::new(Shard::new(
                address,
                Arc::clone(&settings),
                Arc::clone(&usage),
                groups_max,
                table,
                sender,
            ));
            shards.push(Arc::clone(&shard));
            let applier =
                store::apply(Arc::clone(&node), shard, Arc::clone(&usage), writes, keeper);
            appliers.push(tasks::spawn(applier));
        }
        let groups = Self(Arc::new(Inner {
            shards,
            usage,
            directory: parking_lot::Mutex::new(Directory::default()),
            appliers: parking_lot::Mutex::new(appliers),
            node,
        }));
        groups.forget_missing_topics().await;
        timer::spawn(&groups);
        Ok(groups)
    }
}

fn settings(node: &Node) -> floe_groups::Settings {
    floe_groups::Settings {
        session_timeout_min: node.settings.group_session_timeout_min,
        session_timeout_max: node.settings.group_session_timeout_max,
        initial_rebalance_delay: node.settings.group_initial_rebalance_delay,
        ..floe_groups::Settings::default()
    }
}

async fn load(node: &Arc<Node>, partition: TopicPartition) -> Result<(Table, Keeper), StartError> {
    let bound = |spec| node.list_offset(partition, spec, None);
    let damaged = |error: FetchError| StartError::Damaged {
        dir: node.settings.data_dir.clone(),
        what: format!("group positions: {error}"),
    };
    let start = bound(OffsetSpec::Earliest).await.map_err(damaged)?;
    let end = bound(OffsetSpec::Latest).await.map_err(damaged)?;
    let offset = |found: Option<crate::FoundOffset>| found.map_or(Offset::ZERO, |f| f.offset);
    let (start, end) = (offset(start), offset(end));
    let mut snapshots = snapshots::of(node, partition);
    let loaded = tasks::blocking(move || {
        let table = snapshots.load(&(start..=end));
        (snapshots, table)
    });
    let (snapshots, table) = loaded.await;
    let mut table = table.map_err(|error| refused(node, error))?;
    let from = table.applied();
    replay(node, partition, &mut table, end).await?;
    check_formats(node, &table)?;
    Ok((table, Keeper::new(snapshots, end.0.saturating_sub(from.0))))
}

/// Applies what the log holds after the snapshot.
async fn replay(
    node: &Node,
    partition: TopicPartition,
    table: &mut Table,
    end: Offset,
) -> Result<(), StartError> {
    let damaged = |what: String| StartError::Damaged {
        dir: node.settings.data_dir.clone(),
        what: format!("group positions: {what}"),
    };
    let mut scratch = Scratch::default();
    let mut from = table.applied();
    while from < end {
        let part = node.fetch(&one(partition, from)).await.pop();
        let part = part.ok_or_else(|| damaged("nothing was read".to_owned()))?;
        match part.error {
            None => {}
            Some(FetchError::Damaged { from: lost, to }) => {
                // Positions in there stay where they were before: their groups read some records again.
                tracing::error!(%partition, from = %lost, %to, "commits of group positions are lost");
                table.skip_to(to);
                from = to;
                continue;
            }
            Some(error) => return Err(damaged(error.to_string())),
        }
        for bytes in &part.records {
            for view in batch::batches(bytes) {
                let view = view.map_err(|error| damaged(error.to_string()))?;
                table
                    .apply(&view, base(&view), &mut scratch)
                    .map_err(|error| damaged(error.to_string()))?;
            }
        }
        if part.next <= from {
            return Err(damaged(format!("offset {from} of {partition} is missing")));
        }
        from = part.next;
    }
    Ok(())
}

/// Never negative in a stored batch: the log has stamped it.
pub(super) fn base(view: &batch::View<'_>) -> Offset {
    Offset(view.base_offset().max(0).cast_unsigned())
}

fn one(partition: TopicPartition, offset: Offset) -> Fetch {
    Fetch {
        parts: vec![FetchPart {
            partition,
            offset,
            max_bytes: REPLAY_BYTES,
            current_epoch: None,
        }],
        min_bytes: 0,
        max_bytes: REPLAY_BYTES,
        max_wait: std::time::Duration::ZERO,
        isolation: Isolation::ReadUncommitted,
    }
}

/// A row of a newer release must not be taken for none.
fn check_formats(node: &Node, table: &Table) -> Result<(), StartError> {
    let newer = table.rows().find_map(|(key, value)| {
        let of = [(key, row::KEY_FORMAT), (value, row::VALUE_FORMAT)];
        of.into_iter().find_map(|(bytes, read)| {
            Some((*bytes.first()?, read)).filter(|(found, _)| *found > read)
        })
    });
    match newer {
        Some((found, supported)) => Err(StartError::NewerFormat {
            path: node.settings.data_dir.join("tables"),
            found: found.into(),
            supported: supported.into(),
        }),
        None => Ok(()),
    }
}

fn refused(node: &Node, error: floe_state::Error) -> StartError {
    match error {
        floe_state::Error::NewerFormat { path, source } => StartError::NewerFormat {
            path,
            found: match source {
                Unusable::NewerFormat(found) => found,
                Unusable::NotWhole | Unusable::OtherPartition => 0,
            },
            supported: 1,
        },
        floe_state::Error::Gap { .. } => StartError::Damaged {
            dir: node.settings.data_dir.clone(),
            what: error.to_string(),
        },
        floe_state::Error::Failed { .. } => failed(node, "reading group positions", error),
    }
}

fn failed(
    node: &Node,
    what: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> StartError {
    StartError::Failed {
        dir: node.settings.data_dir.clone(),
        what: what.to_owned(),
        source: std::io::Error::other(error),
    }
}
