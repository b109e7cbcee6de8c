//! What this node does because of applied commands: opens generations in its log, drops deleted topics, deletes below log starts.
//!
//! Guarantees: when this returns, everything is durable and in effect; partitions are found (or not found any more) accordingly.

use std::sync::Arc;

use floe_cluster::{Catalog, Effect, format};
use floe_log::{Failure, Receipt};
use floe_model::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};
use floe_replication::{Leader, Member};

use crate::node::{Node, Partitions};
use crate::partition::{Ended, Opened, Partition, Producers};

/// Carries out effects; gives back the deleted topics that are gone from here.
pub(super) async fn carry_out<'a>(
    node: &Arc<Node>,
    catalog: &Catalog,
    effects: impl Iterator<Item = &'a Effect>,
) -> Result<Vec<TopicId>, Failure> {
    let mut work = Work::new(node, catalog);
    for effect in effects {
        match effect {
            Effect::Opened {
                partition,
                epoch,
                start,
                leader,
                members,
            } => work.open(*partition, *epoch, *start, *leader, members),
            // The end was this node's own: there is no excess to drop.
            Effect::Sealed { .. } | Effect::ProducerIdsReserved { .. } => {}
            Effect::Deleted { topic, partitions } => work.delete(*topic, *partitions),
            Effect::LogStartAdvanced { partition, to } => work.advance(*partition, *to),
        }
    }
    work.finish().await
}

struct Work<'a> {
    node: &'a Arc<Node>,
    catalog: &'a Catalog,
    receipts: Vec<Receipt>,
    opened: Vec<Arc<Partition>>,
    deleted: Vec<TopicId>,
    removed: Vec<TopicPartition>,
}

impl<'a> Work<'a> {
    fn new(node: &'a Arc<Node>, catalog: &'a Catalog) -> Self {
        Self {
            node,
            catalog,
            receipts: Vec::new(),
            opened: Vec::new(),
            deleted: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn open(
        &mut self,
        address: TopicPartition,
        epoch: LeaderEpoch,
        start: Offset,
        leader: Leader,
        members: &[Member],
    ) {
        let node = self.node;
        // Deleted by a later command of the same flush: nothing to open.
        let Some((topic, known)) = self
            .catalog
            .topic_by_id(address.topic)
            .and_then(|topic| Some((topic, topic.partition(address.partition)?)))
        else {
            return;
        };
        let log = node
            .log
            .partition(address)
            .expect("a partition is bound before a command names its incarnation");
        let member = Member {
            node: node.settings.node,
            incarnation: log.incarnation(),
        };
        if !leader.is(member, node.boot) {
            return;
        }
        let descriptor = format::encode_descriptor(leader, members);
        self.receipts
            .push(node.log.open_generation(&log, epoch, start, descriptor));
        // Known to be durable; a crash may have come before the files went.
        node.log.delete_below(&log, known.log_start);
        let settings = node.settings_of(topic);
        log.set_roll(Some(settings.segment_bytes), Some(settings.segment_ms));
        let opened = Opened {
            address,
            epoch,
            start,
            log_start: known.log_start,
            member,
            members: members.to_vec(),
            settings,
            internal: topic.internal.then(|| topic.name.clone()),
            log,
            decompressed_bytes_max: node.settings.log.decompressed_bytes_max,
        };
        let producers = Producers::default().counted_in(node.producers.clone());
        self.opened
            .push(Arc::new(Partition::open(opened, producers)));
    }

    fn delete(&mut self, topic: TopicId, partitions: u32) {
        for partition in (0..partitions).map(PartitionIndex) {
            let address = TopicPartition { topic, partition };
            if let Some(known) = self.node.partition(address) {
                known.progress.end(Ended::Deleted);
            }
            self.removed.push(address);
        }
        self.deleted.push(topic);
    }

    fn advance(&mut self, address: TopicPartition, to: Offset) {
        if let Some(partition) = self.node.partition(address) {
            partition.advance_log_start(to);
            self.node.log.delete_below(&partition.log, to);
        }
    }

    async fn finish(mut self) -> Result<Vec<TopicId>, Failure> {
        for receipt in self.receipts.drain(..) {
            receipt.await?;
        }
        if !self.opened.is_empty() || !self.removed.is_empty() {
            let mut partitions: Partitions = (**self.node.partitions.load()).clone();
            for opened in self.opened {
                partitions.insert(opened.address, opened);
            }
            for removed in &self.removed {
                partitions.remove(removed);
            }
            self.node.metrics.partitions(partitions.len());
            self.node.partitions.store(Arc::new(partitions));
        }
        // Nobody finds them any more; now their files go.
        let forgotten: Vec<_> = self
            .removed
            .iter()
            .map(|address| self.node.log.forget(*address))
            .collect();
        for receipt in forgotten {
            receipt.await?;
        }
        Ok(self.deleted)
    }
}
