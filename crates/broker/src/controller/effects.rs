//! What this node does because of applied commands: opens generations in its log, drops deleted topics, deletes below log starts.
//!
//! Guarantees: when this returns, everything is durable and in effect; partitions are found (or not found any more) accordingly.

use std::sync::Arc;

use floe_cluster::{Catalog, Effect};
use floe_log::{Failure, Generation, Receipt};
use floe_model::{Offset, PartitionIndex, TopicId, TopicPartition};
use floe_replication::replica::{Event, Opened};

use crate::node::{Node, Replicas};
use crate::partition::{Partition, Producers};
use crate::replica::Replica;

/// Carries out effects; gives back the deleted topics that are gone from here.
pub(super) async fn carry_out(
    node: &Arc<Node>,
    catalog: &Catalog,
    effects: &[Effect],
) -> Result<Vec<TopicId>, Failure> {
    bind_new(node, effects).await?;
    let mut work = Work::new(node, catalog);
    for effect in effects {
        match effect {
            Effect::Opened { partition, opened } => work.open(*partition, opened),
            Effect::Sealed {
                partition,
                epoch,
                end,
                lossy,
            } => work.step(
                *partition,
                Event::Sealed {
                    epoch: *epoch,
                    end: *end,
                    lossy: *lossy,
                },
            ),
            Effect::Forgotten {
                partition,
                node: whose,
                epoch,
                index,
            } => {
                if *whose == node.settings.node {
                    let (epoch, index) = (*epoch, *index);
                    work.step(*partition, Event::Forgotten { epoch, index });
                }
            }
            Effect::LeaseEnded { partition, epoch } => {
                work.step(*partition, Event::LeaseEnded(*epoch));
            }
            Effect::ProducerIdsReserved { .. } => {}
            Effect::Deleted { topic, partitions } => work.delete(*topic, *partitions),
            Effect::LogStartAdvanced { partition, to } => work.advance(*partition, *to),
        }
    }
    work.finish().await
}

/// Copies that the catalog puts here and that were never here, each under the life it is named by.
async fn bind_new(node: &Arc<Node>, effects: &[Effect]) -> Result<(), Failure> {
    let mut bound = Vec::new();
    for effect in effects {
        let Effect::Opened { partition, opened } = effect else {
            continue;
        };
        let mut members = opened.members.iter();
        let me = members.find(|member| member.node == node.settings.node);
        if let Some(me) = me
            && node.log.partition(*partition).is_none()
        {
            bound.push(node.log.bind_as(*partition, me.incarnation));
        }
    }
    for receipt in bound {
        receipt.await?;
    }
    Ok(())
}

struct Work<'a> {
    node: &'a Arc<Node>,
    catalog: &'a Catalog,
    receipts: Vec<Receipt>,
    /// Copies that are new here.
    bound: Vec<Arc<Replica>>,
    opened: Vec<(Arc<Replica>, Arc<Partition>)>,
    deleted: Vec<TopicId>,
    removed: Vec<TopicPartition>,
}

impl<'a> Work<'a> {
    fn new(node: &'a Arc<Node>, catalog: &'a Catalog) -> Self {
        Self {
            node,
            catalog,
            receipts: Vec::new(),
            bound: Vec::new(),
            opened: Vec::new(),
            deleted: Vec::new(),
            removed: Vec::new(),
        }
    }

    fn open(&mut self, address: TopicPartition, opened: &Opened) {
        let node = self.node;
        let (epoch, start) = (opened.epoch, opened.start);
        // Deleted by a later command of the same flush: nothing to open.
        let Some((topic, known)) = self
            .catalog
            .topic_by_id(address.topic)
            .and_then(|topic| Some((topic, topic.partition(address.partition)?)))
        else {
            return;
        };
        let mut nodes = opened.members.iter().map(|member| member.node);
        if !nodes.any(|member| member == node.settings.node) {
            return;
        }
        let replica = self.replica(address);
        self.receipts.extend(replica.opened(Opened {
            // Leases come with the tables of users.
            has_table: false,
            leases: Vec::new(),
            ..opened.clone()
        }));
        // Sealed where it starts, so that nobody can copy into it any more: it goes.
        let is_sealed_empty = |held: &Generation| {
            held.epoch < epoch
                && held.start == held.end
                && known.sealed.iter().all(|sealed| sealed.epoch != held.epoch)
        };
        let held = replica.log.generations();
        for empty in held.into_iter().filter(is_sealed_empty) {
            let forgotten = node.log.forget_generation(&replica.log, empty.epoch);
            self.receipts.push(forgotten);
        }
        // Known to be durable; a crash may have come before the files went.
        node.log.delete_below(&replica.log, known.log_start);
        if replica.leads() != Some(epoch) {
            return;
        }
        let settings = node.settings_of(topic);
        let log = &replica.log;
        log.set_roll(Some(settings.segment_bytes), Some(settings.segment_ms));
        let opened = crate::partition::Opened {
            replica: Arc::clone(&replica),
            epoch,
            start,
            log_start: known.log_start,
            settings,
            internal: topic.internal.then(|| topic.name.clone()),
            decompressed_bytes_max: node.settings.log.decompressed_bytes_max,
        };
        let producers = Producers::default().counted_in(node.producers.clone());
        let partition = Arc::new(Partition::open(opened, producers));
        self.opened.push((replica, partition));
    }

    /// The copy held here; a new one if there is none yet.
    fn replica(&mut self, address: TopicPartition) -> Arc<Replica> {
        let known = self.node.replica(address);
        let fresh = || self.bound.iter().find(|fresh| fresh.address == address);
        if let Some(replica) = known.or_else(|| fresh().cloned()) {
            return replica;
        }
        let log = self
            .node
            .log
            .partition(address)
            .expect("a partition is bound before its generations open");
        let replica = Replica::new(address, log, &[], Arc::clone(&self.node.outside));
        self.bound.push(Arc::clone(&replica));
        replica
    }

    fn step(&mut self, address: TopicPartition, event: Event) {
        if let Some(replica) = self.node.replica(address) {
            self.receipts.extend(replica.step(event));
        }
    }

    fn delete(&mut self, topic: TopicId, partitions: u32) {
        for partition in (0..partitions).map(PartitionIndex) {
            let address = TopicPartition { topic, partition };
            if let Some(known) = self.node.replica(address) {
                known.delete();
            }
            self.removed.push(address);
        }
        self.deleted.push(topic);
    }

    fn advance(&mut self, address: TopicPartition, to: Offset) {
        let Some(replica) = self.node.replica(address) else {
            return;
        };
        if let Some(partition) = replica.led() {
            partition.advance_log_start(to);
        }
        self.receipts
            .extend(replica.step(Event::LogStartAdvanced(to)));
        self.node.log.delete_below(&replica.log, to);
    }

    async fn finish(mut self) -> Result<Vec<TopicId>, Failure> {
        for receipt in self.receipts.drain(..) {
            receipt.await?;
        }
        for (replica, partition) in self.opened {
            replica.lead(partition);
        }
        if !self.bound.is_empty() || !self.removed.is_empty() {
            let mut replicas: Replicas = (**self.node.replicas.load()).clone();
            for fresh in self.bound {
                replicas.insert(fresh.address, fresh);
            }
            for removed in &self.removed {
                replicas.remove(removed);
            }
            self.node.replicas.store(Arc::new(replicas));
        }
        self.node.count_partitions();
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
