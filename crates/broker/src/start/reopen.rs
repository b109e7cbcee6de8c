//! Taking up the copies that are held here, and telling the catalog what it does not know of them. Their generations are ended and
//! opened by whoever leads the catalog: it sees that another process runs here now (`LeaderDoesNotResume`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use floe_cluster::{Command, RenewedCopy, TRANSITIONS_PER_ENTRY_MAX};
use floe_log::{PartitionLog, Recovered};
use floe_model::{Incarnation, LeaderEpoch, TopicPartition};
use floe_world::time;

use super::{CATALOG, commit, failed};
use crate::StartError;
use crate::node::Node;
use crate::replica::Replica;

/// How often it is looked whether the log has failed, while the catalog's leader is waited for.
const TICK: Duration = Duration::from_millis(50);

/// Takes up every copy, as log and catalog have it; what the log has lost of those that the catalog puts here is bound anew.
pub(super) async fn hold(
    node: &Arc<Node>,
    recovered: &Recovered,
    life: Incarnation,
) -> Result<(), StartError> {
    let mut logs = bind_missing(node, life).await?;
    let is_held = |found: &&floe_log::RecoveredPartition| {
        found.partition != CATALOG && !found.generations.is_empty()
    };
    // Entries that are not known to be agreed yet may name more than the catalog does now.
    for found in recovered.partitions.iter().filter(is_held) {
        if let Some(log) = node.log.partition(found.partition) {
            logs.insert(found.partition, log);
        }
    }
    let catalog = node.catalog.load_full();
    let mut replicas = HashMap::with_capacity(logs.len());
    for (address, log) in logs {
        let open = catalog.partition(address);
        let open = open.map_or(LeaderEpoch(0), |partition| partition.epoch);
        let found = crate::replica::recovered(&node.log, &log, open).await;
        let replica = Replica::new(address, log, &found, Arc::clone(&node.outside));
        replicas.insert(address, replica);
    }
    node.replicas.store(Arc::new(replicas));
    Ok(())
}

/// Tells the catalog what it does not know of this node: deletions that are finished, copies that have another life.
pub(super) async fn tell(node: &Arc<Node>, recovered: &Recovered) -> Result<(), StartError> {
    finish_deletions(node).await?;
    report_strangers(node, recovered);
    renew_copies(node).await
}

/// Waits until everything that this node led before is led by this process.
pub(super) async fn led(node: &Arc<Node>) -> Result<(), StartError> {
    let me = node.settings.node;
    let mut changed = node.changed.subscribe();
    loop {
        let catalog = changed.borrow_and_update().clone();
        let mut partitions = catalog.topics.values().flat_map(|topic| &topic.partitions);
        let is_over =
            |leader: &floe_replication::Leader| leader.node == me && leader.boot != node.boot;
        if !partitions.any(|partition| is_over(&partition.leader)) {
            return Ok(());
        }
        tokio::select! {
            biased;
            changed = changed.changed() => changed.expect("the node holds the other end"),
            () = time::sleep(TICK) => {
                let failure = node.outside.failure().or_else(|| node.proposals.failure());
                if let Some(failure) = failure {
                    return Err(failed(&node.settings, "fencing", failure));
                }
            }
        }
    }
}

/// A crash may lie between a tombstone and its files.
async fn finish_deletions(node: &Arc<Node>) -> Result<(), StartError> {
    let me = node.settings.node;
    let waiting: Vec<_> = node
        .catalog
        .load()
        .tombstones
        .iter()
        .filter(|(_, tombstone)| tombstone.waiting.contains(&me))
        .map(|(id, tombstone)| (*id, tombstone.partitions))
        .collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let mut receipts = Vec::new();
    for (topic, partitions) in &waiting {
        for partition in (0..*partitions).map(floe_model::PartitionIndex) {
            let address = TopicPartition {
                topic: *topic,
                partition,
            };
            receipts.push(node.log.forget(address));
        }
    }
    for receipt in receipts {
        receipt
            .await
            .map_err(|failure| failed(&node.settings, "removing deleted topics", &failure))?;
    }
    let mut replicas = (**node.replicas.load()).clone();
    let is_waiting = |topic| waiting.iter().any(|(id, _)| *id == topic);
    replicas.retain(|address, _| !is_waiting(address.topic));
    node.replicas.store(Arc::new(replicas));
    let confirm = Command::ConfirmDeleted {
        node: me,
        topics: waiting.into_iter().map(|(topic, _)| topic).collect(),
    };
    commit(node, confirm).await.map(drop)
}

/// Data of topics the catalog does not know is kept and named, never deleted: only a tombstone deletes.
fn report_strangers(node: &Node, recovered: &Recovered) {
    for partition in &recovered.partitions {
        let is_known = partition.partition == CATALOG
            || node.catalog.load().partition(partition.partition).is_some();
        if is_known {
            continue;
        }
        if partition.generations.is_empty() {
            // Bound by a creation that a crash cut before the catalog knew it, or forgotten: nothing was ever in it.
            tracing::debug!(partition = %partition.partition, "an unused partition is bound");
        } else {
            tracing::warn!(
                partition = %partition.partition,
                dir = %node.settings.data_dir.display(),
                "data of a topic the catalog does not know is kept but not served"
            );
        }
    }
}

/// Every partition the catalog puts here, with its log; bound anew where the log has none. `life`: of the directory. While that is the
/// one the catalog knows, damage has taken nothing (it would have ended it): such a copy never came to be, and begins as it is named.
async fn bind_missing(
    node: &Node,
    life: Incarnation,
) -> Result<HashMap<TopicPartition, Arc<PartitionLog>>, StartError> {
    let me = node.settings.node;
    let mut logs = HashMap::new();
    let mut missing = Vec::new();
    let catalog = node.catalog.load_full();
    let is_known = catalog.nodes.get(&me).map(|node| node.incarnation) == Some(life);
    for topic in catalog.topics.values() {
        for partition in &topic.partitions {
            if !partition.replicas.iter().any(|member| member.node == me) {
                continue;
            }
            let address = topic.address(partition.index);
            if let Some(log) = node.log.partition(address) {
                logs.insert(address, log);
                continue;
            }
            let named = catalog.copy(partition, me).map(|copy| copy.incarnation);
            let bound = if is_known && named == Some(life) {
                node.log.bind_as(address, life)
            } else {
                node.log.bind(address)
            };
            missing.push((address, bound));
        }
    }
    for (address, receipt) in missing {
        receipt
            .await
            .map_err(|failure| failed(&node.settings, "binding partitions", &failure))?;
        let log = node.log.partition(address);
        logs.insert(address, log.expect("a bound partition has a log"));
    }
    Ok(logs)
}

/// Tells the catalog of copies whose life is not the known one: damage has ended that.
async fn renew_copies(node: &Arc<Node>) -> Result<(), StartError> {
    let catalog = node.catalog.load_full();
    let me = &catalog.nodes[&node.settings.node];
    let (id, incarnation, boot) = (me.id, me.incarnation, me.boot);
    let mut renewed = Vec::new();
    let replicas = node.replicas.load_full();
    for (address, replica) in &*replicas {
        let partition = catalog.partition(*address);
        let known = partition.and_then(|partition| catalog.copy(partition, id));
        let is = replica.member().incarnation;
        if let Some(was) = known.filter(|known| known.incarnation != is) {
            renewed.push(RenewedCopy {
                partition: *address,
                was: was.incarnation,
                is,
            });
        }
    }
    renewed.sort_unstable_by_key(|copy| copy.partition);
    for chunk in renewed.chunks(TRANSITIONS_PER_ENTRY_MAX) {
        let command = Command::RenewCopies {
            node: id,
            incarnation,
            boot,
            copies: chunk.to_vec(),
        };
        let applied = commit(node, command).await?;
        for refused in applied.refused {
            // What has changed since is not known of any more.
            tracing::debug!(%refused, "the life of a copy is not taken");
        }
    }
    Ok(())
}
