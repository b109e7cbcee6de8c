//! Applying commands: the state machine. The only place where a catalog changes.
//!
//! Guarantees: deterministic; a refused command changes nothing (of a list, nothing for the refused one). What a node must do
//! because of a command is given back as [`Effect`]s; nothing is done here.

use std::sync::Arc;

use floe_model::{LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName, TopicPartition};
use floe_replication::{Leader, Member, Sealed, quorum};

use crate::PRODUCER_IDS_PER_BLOCK;
use crate::catalog::{Catalog, Partition, Tombstone, Topic};
use crate::command::{Command, NewPartition, Transition};

/// Deleted names remembered one by one.
const LAST_EPOCHS_MAX: usize = 10_000;

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// What nodes must do, in order.
    pub effects: Vec<Effect>,
    /// What was refused: the whole command, or members of its list.
    pub refused: Vec<Refusal>,
}

/// Something to do, for the nodes it concerns.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A generation is open: its members open it in their logs.
    Opened {
        /// Which partition.
        partition: TopicPartition,
        /// The generation.
        epoch: LeaderEpoch,
        /// Where it starts.
        start: Offset,
        /// Who writes.
        leader: Leader,
        /// Who holds.
        members: Vec<Member>,
    },
    /// A generation has ended here: members that hold more drop the excess.
    Sealed {
        /// Which partition.
        partition: TopicPartition,
        /// The generation.
        epoch: LeaderEpoch,
        /// Its end.
        end: Offset,
    },
    /// A topic is gone: nodes remove its data and positions, then confirm.
    Deleted {
        /// Which life.
        topic: TopicId,
        /// How many partitions it had.
        partitions: u32,
    },
    /// Offsets below this are not readable any more and may be removed.
    LogStartAdvanced {
        /// Which partition.
        partition: TopicPartition,
        /// The new log start.
        to: Offset,
    },
    /// A block of producer ids belongs to the node.
    ProducerIdsReserved {
        /// Which node.
        node: NodeId,
        /// The first one.
        first: u64,
        /// How many.
        count: u64,
    },
}

/// Why a command, or one of its list, changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is taken.
    #[error("topic '{0}' exists")]
    TopicExists(TopicName),
    /// A name that differs in `.` and `_` only is taken.
    #[error("topic name collides with '{0}'")]
    Collides(TopicName),
    /// No such topic or partition.
    #[error("unknown topic {0}")]
    UnknownTopic(TopicId),
    /// Another generation is open by now.
    #[error("{partition}: epoch {epoch} is not open; {open} is")]
    NotOpen {
        /// Which partition.
        partition: TopicPartition,
        /// Named by the command.
        epoch: LeaderEpoch,
        /// What is open.
        open: LeaderEpoch,
    },
    /// The end lies below the start of the generation, or too few hold it.
    #[error("{0}: the transition does not fit the open generation")]
    Unfit(TopicPartition),
}

impl Catalog {
    /// Applies the command of the entry at `index`.
    pub fn apply(&mut self, index: u64, command: Command) -> Applied {
        self.index = index;
        let mut applied = Applied::default();
        match command {
            Command::RegisterNode(node) => {
                self.nodes.insert(node.id, node);
            }
            Command::CreateTopic {
                name,
                id,
                partitions,
                overrides,
                internal,
            } => {
                let topic = Topic {
                    name,
                    id,
                    partitions: Vec::new(),
                    overrides,
                    internal,
                };
                self.create(topic, &partitions, &mut applied);
            }
            Command::SealAndOpen(transitions) => {
                for transition in transitions {
                    self.transit(transition, &mut applied);
                }
            }
            Command::DeleteTopic(id) => self.delete(id, &mut applied),
            Command::ConfirmDeleted { node, topics } => self.confirm(node, &topics),
            Command::AdvanceLogStart(starts) => {
                for (partition, to) in starts {
                    self.advance(partition, to, &mut applied);
                }
            }
            Command::ReserveProducerIds(node) => {
                let first = self.next_producer_id;
                self.next_producer_id += PRODUCER_IDS_PER_BLOCK;
                applied.effects.push(Effect::ProducerIdsReserved {
                    node,
                    first,
                    count: PRODUCER_IDS_PER_BLOCK,
                });
            }
        }
        applied
    }

    fn create(&mut self, mut topic: Topic, partitions: &[NewPartition], applied: &mut Applied) {
        if self.topics.contains_key(&topic.name) {
            applied.refused.push(Refusal::TopicExists(topic.name));
            return;
        }
        if let Some(existing) = self.collision(&topic.name) {
            applied.refused.push(Refusal::Collides(existing.clone()));
            return;
        }
        let epoch = self
            .last_epochs
            .remove(&topic.name)
            .or(self.epoch_floor)
            .map_or(LeaderEpoch(0), LeaderEpoch::next);
        let partitions = partitions.iter().enumerate().map(|(place, new)| Partition {
            index: PartitionIndex(place as u32),
            epoch,
            start: Offset::ZERO,
            leader: new.leader,
            replicas: new.members.clone(),
            log_start: Offset::ZERO,
            sealed: Vec::new(),
        });
        topic.partitions = partitions.collect();
        for partition in &topic.partitions {
            applied.effects.push(opened(&topic, partition));
        }
        self.insert(topic);
    }

    /// Adds a topic to all the ways it is found by.
    pub(crate) fn insert(&mut self, topic: Topic) {
        if topic.name.as_str().contains(['.', '_']) {
            let key = topic.name.collision_key();
            self.collisions.insert(key, topic.name.clone());
        }
        self.names.insert(topic.id, topic.name.clone());
        self.topics.insert(topic.name.clone(), Arc::new(topic));
    }

    /// A topic whose name differs from this one in `.` and `_` only.
    pub fn collision(&self, name: &TopicName) -> Option<&TopicName> {
        self.collisions
            .get(&name.collision_key())
            .filter(|existing| *existing != name)
    }

    fn transit(&mut self, transition: Transition, applied: &mut Applied) {
        let at = transition.partition;
        let Some(partition) = self.partition_mut(at) else {
            applied.refused.push(Refusal::UnknownTopic(at.topic));
            return;
        };
        if partition.epoch != transition.epoch {
            applied.refused.push(Refusal::NotOpen {
                partition: at,
                epoch: transition.epoch,
                open: partition.epoch,
            });
            return;
        }
        let needed = quorum(partition.replicas.len());
        let is_fit = transition.end >= partition.start
            && transition.holders.len() >= needed
            && transition.members.len() >= needed;
        if !is_fit {
            applied.refused.push(Refusal::Unfit(at));
            return;
        }
        let sealed = Sealed {
            epoch: partition.epoch,
            start: partition.start,
            end: transition.end,
            lossy: transition.lossy,
            holders: transition.holders,
        };
        applied.effects.push(Effect::Sealed {
            partition: at,
            epoch: sealed.epoch,
            end: sealed.end,
        });
        partition.epoch = sealed.epoch.next();
        partition.start = sealed.end;
        partition.leader = transition.leader;
        partition.replicas = transition.members;
        // An empty generation changes no answer of the chain, unless it says that something may be lost.
        if sealed.start < sealed.end || sealed.lossy {
            partition.sealed.push(sealed);
        }
        let (epoch, start) = (partition.epoch, partition.start);
        applied.effects.push(Effect::Opened {
            partition: at,
            epoch,
            start,
            leader: partition.leader,
            members: partition.replicas.clone(),
        });
    }

    fn delete(&mut self, id: TopicId, applied: &mut Applied) {
        let topic = self
            .names
            .remove(&id)
            .and_then(|name| self.topics.remove(&name));
        let Some(topic) = topic else {
            applied.refused.push(Refusal::UnknownTopic(id));
            return;
        };
        self.collisions.retain(|_, name| *name != topic.name);
        if let Some(epoch) = topic
            .partitions
            .iter()
            .map(|partition| partition.epoch)
            .max()
        {
            self.remember_epoch(topic.name.clone(), epoch);
        }
        let partitions = topic.partitions.len() as u32;
        self.tombstones.insert(
            id,
            Tombstone {
                name: topic.name.clone(),
                partitions,
                waiting: self.nodes.keys().copied().collect(),
            },
        );
        applied.effects.push(Effect::Deleted {
            topic: id,
            partitions,
        });
    }

    fn remember_epoch(&mut self, name: TopicName, epoch: LeaderEpoch) {
        let epoch = self
            .last_epochs
            .get(&name)
            .map_or(epoch, |known| epoch.max(*known));
        self.last_epochs.insert(name, epoch);
        if self.last_epochs.len() > LAST_EPOCHS_MAX {
            let largest = self.last_epochs.values().copied().max();
            self.epoch_floor = self.epoch_floor.max(largest);
            self.last_epochs.clear();
        }
    }

    fn confirm(&mut self, node: NodeId, topics: &[TopicId]) {
        for id in topics {
            if let Some(tombstone) = self.tombstones.get_mut(id) {
                tombstone.waiting.retain(|waiting| *waiting != node);
                if tombstone.waiting.is_empty() {
                    self.tombstones.remove(id);
                }
            }
        }
    }

    fn advance(&mut self, at: TopicPartition, to: Offset, applied: &mut Applied) {
        let Some(partition) = self.partition_mut(at) else {
            applied.refused.push(Refusal::UnknownTopic(at.topic));
            return;
        };
        if to <= partition.log_start {
            return;
        }
        partition.log_start = to;
        partition.sealed.retain(|sealed| sealed.end > to);
        applied
            .effects
            .push(Effect::LogStartAdvanced { partition: at, to });
    }

    fn partition_mut(&mut self, at: TopicPartition) -> Option<&mut Partition> {
        let topic = self.topics.get_mut(self.names.get(&at.topic)?)?;
        // Cheap: looked up before the topic is copied, so a refusal copies nothing.
        topic.partition(at.partition)?;
        Arc::make_mut(topic)
            .partitions
            .get_mut(at.partition.0 as usize)
    }
}

fn opened(topic: &Topic, partition: &Partition) -> Effect {
    Effect::Opened {
        partition: topic.address(partition.index),
        epoch: partition.epoch,
        start: partition.start,
        leader: partition.leader,
        members: partition.replicas.clone(),
    }
}
