//! What a node has to do because of the catalog as it is, whatever it saw of the entries that led there: after a start, and when
//! it learned by snapshot.
//!
//! Guarantees: doing it leads where every entry's [`Effect`]s would have led. Data of topics that the catalog does not know is
//! none of it: only a tombstone deletes.

use std::collections::BTreeMap;

use floe_model::{LeaderEpoch, NodeId, Offset, TopicPartition};

use crate::{Catalog, Effect, Partition, Topic};

/// The generations that a node has something of, by partition.
pub type Holdings = BTreeMap<TopicPartition, Vec<LeaderEpoch>>;

/// What node `me`, which holds that much, has to do, in order.
pub fn duties(catalog: &Catalog, me: NodeId, held: &Holdings) -> Vec<Effect> {
    let mut out = Vec::new();
    for (topic, tombstone) in &catalog.tombstones {
        if tombstone.waiting.contains(&me) {
            out.push(Effect::Deleted {
                topic: *topic,
                partitions: tombstone.partitions,
            });
        }
    }
    for topic in catalog.topics.values() {
        for partition in &topic.partitions {
            let at = topic.address(partition.index);
            let held = held.get(&at).map_or(&[][..], Vec::as_slice);
            of_partition(topic, partition, me, held, &mut out);
        }
    }
    out
}

fn of_partition(
    topic: &Topic,
    partition: &Partition,
    me: NodeId,
    held: &[LeaderEpoch],
    out: &mut Vec<Effect>,
) {
    let is_member = partition.replicas.iter().any(|member| member.node == me);
    if held.is_empty() && !is_member {
        return;
    }
    let at = topic.address(partition.index);
    let mut held = held.to_vec();
    held.sort_unstable();
    for epoch in &held {
        // Also those that left no trace in the chain: what is held of them beyond their end is excess all the same.
        if let Some(end) = partition.end_of(*epoch) {
            let sealed = partition.sealed(*epoch);
            out.push(Effect::Sealed {
                partition: at,
                epoch: *epoch,
                end,
                lossy: sealed.is_some_and(|sealed| sealed.lossy),
            });
        }
    }
    if partition.log_start > Offset::ZERO {
        out.push(Effect::LogStartAdvanced {
            partition: at,
            to: partition.log_start,
        });
    }
    for epoch in held {
        if let Some(index) = partition.let_go(me, epoch) {
            out.push(Effect::Forgotten {
                partition: at,
                node: me,
                epoch,
                index,
            });
        }
    }
    out.push(Effect::Opened {
        partition: at,
        opened: topic.opened(partition),
    });
}
