//! Seal and open, for every partition, at start: a node alone in its replica sets does with itself what a controller does
//! with many. Fences go out together, transitions in entries of up to 1,000.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use floe_cluster::{
    Command, Effect, Partition, RenewedCopy, TRANSITIONS_PER_ENTRY_MAX, Transition,
};
use floe_log::{PartitionLog, Recovered};
use floe_model::{LeaderEpoch, TopicPartition};
use floe_replication::{Leader, Member};
use tokio::sync::mpsc;

use super::{CATALOG, commit, failed};
use crate::StartError;
use crate::controller::{Do, Sealing, Wanted};
use crate::node::Node;
use crate::replica::{Replica, Said, recovered};

/// How often questions that nobody answered are looked at.
const TICK: Duration = Duration::from_millis(50);

/// Seals what was open and opens the next generations, removes what is deleted, reports what nobody names.
pub(super) async fn every_generation(
    node: &Arc<Node>,
    recovered: &Recovered,
    heard: &mut mpsc::Receiver<Said>,
) -> Result<(), StartError> {
    finish_deletions(node).await?;
    report_strangers(node, recovered);
    let logs = bind_missing(node).await?;
    renew_copies(node, &logs).await?;
    hold(node, &logs).await;
    let transitions = seal_all(node, heard).await?;
    for chunk in transitions.chunks(TRANSITIONS_PER_ENTRY_MAX) {
        let applied = commit(node, Command::SealAndOpen(chunk.to_vec())).await?;
        if let Some(refused) = applied.refused.first() {
            return Err(damaged(node, &refused.to_string()));
        }
        let opened = applied
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Opened { .. }));
        assert_eq!(
            opened.count(),
            chunk.len(),
            "each transition opens one generation"
        );
    }
    Ok(())
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

/// Every partition the catalog puts here, with its log; bound anew where the log has lost it.
async fn bind_missing(
    node: &Node,
) -> Result<HashMap<TopicPartition, Arc<PartitionLog>>, StartError> {
    let me = node.settings.node;
    let mut logs = HashMap::new();
    let mut missing = Vec::new();
    for topic in node.catalog.load().topics.values() {
        for partition in &topic.partitions {
            if !partition.replicas.iter().any(|member| member.node == me) {
                continue;
            }
            let address = topic.address(partition.index);
            match node.log.partition(address) {
                Some(log) => drop(logs.insert(address, log)),
                None => missing.push((address, node.log.bind(address))),
            }
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
async fn renew_copies(
    node: &Arc<Node>,
    logs: &HashMap<TopicPartition, Arc<PartitionLog>>,
) -> Result<(), StartError> {
    let catalog = node.catalog.load_full();
    let me = &catalog.nodes[&node.settings.node];
    let (id, incarnation, boot) = (me.id, me.incarnation, me.boot);
    let mut renewed = Vec::new();
    for (address, log) in logs {
        let partition = catalog.partition(*address);
        let known = partition.and_then(|partition| catalog.copy(partition, id));
        let is = log.incarnation();
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
        if let Some(refused) = applied.refused.first() {
            return Err(damaged(node, &refused.to_string()));
        }
    }
    Ok(())
}

/// Takes up the copies that are held here, as the log has them.
async fn hold(node: &Arc<Node>, logs: &HashMap<TopicPartition, Arc<PartitionLog>>) {
    let catalog = node.catalog.load_full();
    let mut replicas = HashMap::with_capacity(logs.len());
    for (address, log) in logs {
        let open = catalog.partition(*address);
        let open = open.map_or(LeaderEpoch(0), |partition| partition.epoch);
        let found = recovered(&node.log, log, open).await;
        let replica = Replica::new(*address, Arc::clone(log), &found, Arc::clone(&node.outside));
        replicas.insert(*address, replica);
    }
    node.replicas.store(Arc::new(replicas));
}

/// Ends every open generation that this node alone can end, and says what is to be opened.
async fn seal_all(
    node: &Arc<Node>,
    heard: &mut mpsc::Receiver<Said>,
) -> Result<Vec<Transition>, StartError> {
    let mut sealing = Sealing::default();
    let mut out = Vec::new();
    let now = || node.world.clock.monotonic();
    for topic in node.catalog.load().topics.values() {
        for partition in &topic.partitions {
            let address = topic.address(partition.index);
            if let Some(replica) = node.replica(address) {
                let quorum = topic.quorum as usize;
                let wanted = wanted(node, address, partition, quorum, replica.member())?;
                sealing
                    .begin(wanted, now(), &mut out)
                    .map_err(|few| damaged(node, &format!("{address}: {few}")))?;
            }
        }
    }
    let mut transitions = Vec::new();
    loop {
        for todo in out.drain(..) {
            match todo {
                Do::Tell(to, address, told) => {
                    debug_assert_eq!(to, node.settings.node, "the sets are of this node alone");
                    if let Some(replica) = node.replica(address) {
                        let opened = replica.step(told);
                        debug_assert!(opened.is_empty(), "a fence opens nothing");
                    }
                }
                Do::Open(transition) => {
                    sealing.is_over(transition.partition);
                    transitions.push(transition);
                }
            }
        }
        if sealing.is_idle() {
            return Ok(transitions);
        }
        tokio::select! {
            biased;
            said = heard.recv() => {
                let said = said.expect("the node holds the other end");
                tracing::debug!(partition = %said.address, what = ?said.what, "a copy answers");
                sealing.heard(&said.what, now(), &mut out);
            }
            () = floe_world::time::sleep(TICK) => {
                if let Some(failure) = node.outside.failure() {
                    return Err(failed(&node.settings, "fencing", failure));
                }
                sealing.tick(now(), &mut out);
            }
        }
    }
}

/// How the open generation of a partition that only this node holds is ended.
fn wanted(
    node: &Node,
    address: TopicPartition,
    partition: &Partition,
    quorum: usize,
    me: Member,
) -> Result<Wanted, StartError> {
    let is_alone = partition
        .replicas
        .iter()
        .all(|member| member.node == me.node);
    if !is_alone {
        return Err(damaged(
            node,
            &format!("{address}: its copies are elsewhere"),
        ));
    }
    let is_same_life = partition.replicas.contains(&me);
    if !is_same_life {
        // The only copy came back damaged, under a new incarnation. Nobody else can be asked: what is held decides the end, and
        // the catalog says for ever that records above it may be lost.
        tracing::error!(
            partition = %address, node = me.node.0, incarnation = me.incarnation.0,
            "the only copy was damaged: acknowledged records may be lost"
        );
    }
    Ok(Wanted {
        partition: address,
        epoch: partition.epoch,
        start: partition.start,
        members: partition.replicas.clone(),
        next: vec![Leader {
            node: me.node,
            incarnation: me.incarnation,
            boot: node.boot,
        }],
        leader: Some(me),
        quorum,
        accept_loss: (!is_same_life).then_some(me),
    })
}

fn damaged(node: &Node, what: &str) -> StartError {
    StartError::Damaged {
        dir: node.settings.data_dir.clone(),
        what: what.to_owned(),
    }
}
