//! Seal and open, for every partition, at start: a node alone in its replica sets does with itself what a controller does
//! with many. Fences go out together, transitions in entries of up to 1,000.

use std::collections::HashMap;
use std::sync::Arc;

use floe_cluster::{Command, Effect, TRANSITIONS_PER_ENTRY_MAX, Transition};
use floe_log::{PartitionLog, Receipt, Recovered};
use floe_model::{Incarnation, LeaderEpoch, NodeId, Offset, TopicPartition};
use floe_replication::seal::{Command as Ask, Event};
use floe_replication::{Leader, Member, Opening, Seal, quorum};

use super::{CATALOG, commit, failed};
use crate::StartError;
use crate::controller::Machine;
use crate::node::Node;

/// A partition on its way into its next generation.
struct Turn {
    address: TopicPartition,
    epoch: LeaderEpoch,
    start: Offset,
    members: Vec<Member>,
    /// Whether the data is still the life the catalog names.
    is_same_life: bool,
    me: Member,
    fenced: Receipt<Offset>,
}

/// Seals what was open and opens the next generations, removes what is deleted, reports what nobody names.
pub(super) async fn every_generation(
    node: &Arc<Node>,
    machine: &mut Machine,
    recovered: &Recovered,
) -> Result<(), StartError> {
    finish_deletions(node, machine).await?;
    report_strangers(node, machine, recovered);
    let logs = bind_missing(node, machine).await?;
    let turns = fence_all(node, machine, &logs);
    let mut transitions = Vec::with_capacity(turns.len());
    for turn in turns {
        transitions.push(decide(node, turn).await?);
    }
    for chunk in transitions.chunks(TRANSITIONS_PER_ENTRY_MAX) {
        let applied = commit(node, machine, Command::SealAndOpen(chunk.to_vec())).await?;
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
async fn finish_deletions(node: &Arc<Node>, machine: &mut Machine) -> Result<(), StartError> {
    let me = node.settings.node;
    let waiting: Vec<_> = machine
        .catalog()
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
    commit(node, machine, confirm).await.map(drop)
}

/// Data of topics the catalog does not know is kept and named, never deleted: only a tombstone deletes.
fn report_strangers(node: &Node, machine: &Machine, recovered: &Recovered) {
    for partition in &recovered.partitions {
        let is_known = partition.partition == CATALOG
            || machine.catalog().partition(partition.partition).is_some();
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
    machine: &Machine,
) -> Result<HashMap<TopicPartition, Arc<PartitionLog>>, StartError> {
    let me = node.settings.node;
    let mut logs = HashMap::new();
    let mut missing = Vec::new();
    for topic in machine.catalog().topics.values() {
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

fn fence_all(
    node: &Node,
    machine: &Machine,
    logs: &HashMap<TopicPartition, Arc<PartitionLog>>,
) -> Vec<Turn> {
    let mut turns = Vec::with_capacity(logs.len());
    for topic in machine.catalog().topics.values() {
        for partition in &topic.partitions {
            let address = topic.address(partition.index);
            let Some(log) = logs.get(&address) else {
                continue;
            };
            let me = Member {
                node: node.settings.node,
                incarnation: log.incarnation(),
            };
            turns.push(Turn {
                address,
                epoch: partition.epoch,
                start: partition.start,
                members: partition.replicas.clone(),
                is_same_life: partition.replicas.contains(&me),
                me,
                fenced: node.log.fence(log, partition.epoch.next()),
            });
        }
    }
    turns
}

/// Runs the seal of one partition to its decision.
async fn decide(node: &Node, turn: Turn) -> Result<Transition, StartError> {
    let next = vec![turn.me];
    let needed = quorum(turn.members.len());
    let (mut seal, asked) = Seal::begin(turn.members, next.clone(), needed)
        .map_err(|too_few| damaged(node, &format!("{}: {too_few}", turn.address)))?;
    let answered = turn
        .fenced
        .await
        .map_err(|failure| failed(&node.settings, "fencing", &failure))?;
    // A crash may lie between the catalog's open and the log's: then this life of the generation is empty.
    let end = answered.max(turn.start);
    let fences_me = asked.contains(&Ask::Fence(turn.me));
    let commands = if turn.is_same_life && fences_me {
        seal.step(Event::Fenced(turn.me, end))
    } else {
        // The only copy came back damaged, under a new incarnation. Nobody else can be asked: what is held decides the end, and
        // the catalog says for ever that records above it may be lost.
        let Member {
            node: NodeId(id),
            incarnation: Incarnation(life),
        } = turn.me;
        tracing::error!(
            partition = %turn.address, end = end.0, node = id, incarnation = life,
            "the only copy was damaged: acknowledged records from this offset on may be lost"
        );
        seal.step(Event::LossAccepted(turn.me, end))
    };
    let [
        Ask::Open(Opening {
            end,
            lossy,
            holders,
            ..
        }),
    ] = &commands[..]
    else {
        return Err(damaged(
            node,
            &format!("{}: its copies are elsewhere", turn.address),
        ));
    };
    Ok(Transition {
        partition: turn.address,
        epoch: turn.epoch,
        end: *end,
        lossy: *lossy,
        holders: holders.clone(),
        leader: Leader {
            node: turn.me.node,
            incarnation: turn.me.incarnation,
            boot: node.boot,
        },
        members: next,
    })
}

fn damaged(node: &Node, what: &str) -> StartError {
    StartError::Damaged {
        dir: node.settings.data_dir.clone(),
        what: what.to_owned(),
    }
}
