//! Topics: they begin, lose what is old, end.
//!
//! Guarantees: a name is taken once, and its next life starts above its last epoch. No generation opens with fewer than q members.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_model::{
    Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName, TopicPartition,
};
use floe_replication::{Leader, Member};

use crate::catalog::{Catalog, Partition, Tombstone, Topic};
use crate::command::{NewPartition, NewTopic};
use crate::rule::{Rule, keeps};
use crate::{Effect, Refusal, Unfit};

/// Deleted names remembered one by one.
const LAST_EPOCHS_MAX: usize = 10_000;

impl Catalog {
    pub(super) fn create(&mut self, new: NewTopic, out: &mut Vec<Effect>) -> Result<(), Refusal> {
        if self.topics.contains_key(&new.name) {
            return Err(Refusal::TopicExists(new.name));
        }
        if let Some(existing) = self.collision(&new.name) {
            return Err(Refusal::Collides(existing.clone()));
        }
        if self.names.contains_key(&new.id) || self.tombstones.contains_key(&new.id) {
            return Err(Refusal::IdTaken(new.id));
        }
        for (place, partition) in new.partitions.iter().enumerate() {
            self.fits(&new, partition).map_err(|why| Refusal::Unfit {
                partition: TopicPartition {
                    topic: new.id,
                    partition: PartitionIndex(place as u32),
                },
                why,
            })?;
        }
        let epoch = self
            .last_epochs
            .remove(&new.name)
            .or(self.epoch_floor)
            .map_or(LeaderEpoch(0), LeaderEpoch::next);
        let partitions = new.partitions.into_iter().zip(0..).map(|(new, place)| {
            let mut partition =
                Partition::first(PartitionIndex(place), epoch, new.leader, new.members);
            partition.copies = self.own_lives(&partition.replicas);
            partition
        });
        let topic = Topic {
            partitions: partitions.collect(),
            name: new.name,
            id: new.id,
            replication_factor: new.replication_factor,
            quorum: new.quorum,
            has_table: new.has_table,
            overrides: new.overrides,
            internal: new.internal,
        };
        out.extend(topic.partitions.iter().map(|partition| Effect::Opened {
            partition: topic.address(partition.index),
            opened: topic.opened(partition),
        }));
        self.insert(topic);
        Ok(())
    }

    fn fits(&self, topic: &NewTopic, partition: &NewPartition) -> Result<(), Unfit> {
        let (quorum, replication_factor) = (topic.quorum, topic.replication_factor);
        if quorum == 0 || quorum > replication_factor {
            return Err(Unfit::Quorum {
                quorum,
                replication_factor,
            });
        }
        self.may_open(&partition.members, partition.leader, quorum as usize)?;
        for member in &partition.members {
            let known = self.nodes.get(&member.node).map(|node| node.incarnation);
            // A copy that was never there before has its node's life, or one that the log just chose: not one that is over.
            let is_over = || {
                let past = self.past_lives.get(&member.node);
                past.is_some_and(|past| past.contains(&member.incarnation))
            };
            if (known.is_none() || is_over()) && keeps(Rule::WipedIsNoFollower) {
                return Err(Unfit::NotCurrent(*member));
            }
        }
        Ok(())
    }

    /// What any generation needs that is to open.
    pub(super) fn may_open(
        &self,
        members: &[Member],
        leader: Leader,
        quorum: usize,
    ) -> Result<(), Unfit> {
        if let Some(node) = twice(members) {
            return Err(Unfit::Twice(node));
        }
        if members.len() < quorum && keeps(Rule::NeverBelowQ) {
            return Err(Unfit::TooFewMembers {
                members: members.len(),
                quorum,
            });
        }
        if !members.contains(&leader.member()) {
            return Err(Unfit::LeaderNotMember);
        }
        // Rule LeaderDoesNotResume: leadership belongs to one boot, that of the process that is registered.
        if !self.is_running(leader) {
            return Err(Unfit::NotRunning(leader));
        }
        Ok(())
    }

    fn own_lives(&self, members: &[Member]) -> BTreeMap<NodeId, Incarnation> {
        let is_own = |member: &&Member| {
            let known = self.nodes.get(&member.node).map(|node| node.incarnation);
            known.is_some_and(|known| known != Incarnation(0) && known != member.incarnation)
        };
        let own = members.iter().filter(is_own);
        own.map(|member| (member.node, member.incarnation))
            .collect()
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

    pub(super) fn delete(&mut self, id: TopicId, out: &mut Vec<Effect>) -> Result<(), Refusal> {
        let topic = self
            .names
            .remove(&id)
            .and_then(|name| self.topics.remove(&name))
            .ok_or(Refusal::UnknownTopic(id))?;
        self.collisions.retain(|_, name| *name != topic.name);
        let epochs = topic.partitions.iter().map(|partition| partition.epoch);
        if let Some(epoch) = epochs.max() {
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
        out.push(Effect::Deleted {
            topic: id,
            partitions,
        });
        Ok(())
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

    /// Rule TombstoneWaitsForAll: a node that was away must still find it.
    pub(super) fn confirm(&mut self, node: NodeId, topics: &[TopicId]) {
        for id in topics {
            if let Some(tombstone) = self.tombstones.get_mut(id) {
                tombstone.waiting.retain(|waiting| *waiting != node);
                if tombstone.waiting.is_empty() || !keeps(Rule::TombstoneWaitsForAll) {
                    self.tombstones.remove(id);
                }
            }
        }
    }

    pub(super) fn advance(
        &mut self,
        at: TopicPartition,
        to: Offset,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let known = self.partition(at).ok_or(Refusal::UnknownTopic(at.topic))?;
        if to <= known.log_start {
            return Ok(());
        }
        let partition = self.partition_mut(at).expect("found above");
        partition.log_start = to;
        partition.sealed.retain(|sealed| sealed.end > to);
        let sealed = &partition.sealed;
        let is_kept = |epoch: &LeaderEpoch| sealed.iter().any(|sealed| sealed.epoch == *epoch);
        partition.facts.retain(|epoch, _| is_kept(epoch));
        out.push(Effect::LogStartAdvanced { partition: at, to });
        Ok(())
    }
}

/// A node that is named more than once.
pub(super) fn twice(members: &[Member]) -> Option<NodeId> {
    let is_again = |(place, member): (usize, &Member)| {
        let before = &members[..place];
        before.iter().any(|earlier| earlier.node == member.node)
    };
    let mut again = members.iter().enumerate().filter(|entry| is_again(*entry));
    again.next().map(|(_, member)| member.node)
}
