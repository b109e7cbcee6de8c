//! Storing, reading and deleting positions.

use std::sync::Arc;

use floe_groups::{
    GROUP_ID_BYTES_MAX, GenerationId, GroupId, Kind, NewPosition, Position, Refusal, classic,
};
use floe_model::{TopicId, TopicPartition};

use super::shard::{Machine, Shard, State};
use super::store::Row;
use super::{CommitRefusal, Error, Groups, Inner, row};

impl Groups {
    /// OffsetCommit: durable when it returns; one result per position, in their order.
    pub async fn commit(
        &self,
        group: &GroupId,
        caller: &classic::Caller,
        positions: Vec<NewPosition>,
    ) -> Result<Vec<Result<(), CommitRefusal>>, Error> {
        let inner = &self.0;
        if group.as_str().len() > GROUP_ID_BYTES_MAX {
            return Err(Refusal::InvalidGroupId.into());
        }
        let shard = inner.shard(group);
        let step = |state: &mut State| {
            state.check_commit(inner, group, caller)?;
            // Who sets the positions of a group without being in it does not make it another kind.
            let mut rows = Rows::of(if state.groups.contains_key(group) {
                Kind::Classic
            } else {
                state.kind_by_positions(group)
            });
            let results = positions
                .iter()
                .map(|new| rows.add(inner, state, group, new))
                .collect();
            Ok((results, state.store(&inner.node, shard, rows.all)?))
        };
        let (results, receipt) = inner.patiently(shard, step).await?;
        receipt.stored().await?;
        Ok(results)
    }

    /// Waits until every commit of the group that was accepted before is visible. To be called before positions are
    /// read for a member that reads on from them: what a member before it committed without waiting counts.
    pub async fn caught_up(&self, group: &GroupId) {
        self.0.shard(group).caught_up().await;
    }

    /// OffsetFetch of one partition.
    pub fn position(&self, group: &GroupId, partition: TopicPartition) -> Option<Position> {
        self.0.shard(group).lock().position(group, partition)
    }

    /// OffsetFetch of everything: all positions of a group in topics that exist, by topic id and partition.
    pub fn positions(&self, group: &GroupId) -> Vec<(TopicPartition, Position)> {
        let catalog = self.0.node.catalog.load_full();
        let prefix = row::prefix(group);
        let state = self.0.shard(group).lock();
        state
            .table
            .prefix(&prefix)
            .filter_map(|(key, value)| Some((row::parse_key(key)?.1, row::parse_value(value)?)))
            .filter(|(partition, _)| catalog.partition(*partition).is_some())
            .collect()
    }

    /// OffsetDelete: one result per partition, in their order ([`Refusal::SubscribedToTopic`] where members read
    /// the topic).
    pub async fn delete_positions(
        &self,
        group: &GroupId,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Result<(), Refusal>>, Error> {
        let inner = &self.0;
        let catalog = inner.node.catalog.load_full();
        let shard = inner.shard(group);
        shard.caught_up().await;
        let step = |state: &mut State| {
            if !state.is_known(group) {
                return Err(Refusal::NotFound(group.clone()).into());
            }
            let results: Vec<_> = partitions
                .iter()
                .map(|partition| {
                    let name = catalog.names.get(&partition.topic);
                    if name.is_some_and(|name| state.is_subscribed(group, name.as_str())) {
                        return Err(Refusal::SubscribedToTopic);
                    }
                    Ok(())
                })
                .collect();
            let rows = partitions
                .iter()
                .zip(&results)
                .filter(|(_, result)| result.is_ok())
                .map(|(partition, _)| (row::key(group, *partition), None))
                .filter(|(key, _)| state.table.get(key).is_some())
                .collect();
            Ok((results, state.store(&inner.node, shard, rows)?))
        };
        let (results, receipt) = inner.patiently(shard, step).await?;
        receipt.stored().await?;
        Ok(results)
    }

    /// DeleteGroups: the group and its positions, if it has no members.
    pub async fn delete_group(&self, group: &GroupId) -> Result<(), Error> {
        let inner = &self.0;
        let shard = inner.shard(group);
        shard.caught_up().await;
        let step = |state: &mut State| {
            if state.has_members(group) {
                return Err(Refusal::NotEmpty.into());
            }
            if !state.is_known(group) {
                return Err(Refusal::NotFound(group.clone()).into());
            }
            let prefix = row::prefix(group);
            let rows = deletions(state.table.prefix(&prefix));
            state.store(&inner.node, shard, rows)
        };
        inner.patiently(shard, step).await?.stored().await
    }

    /// Positions in a topic that was deleted go. What fails here is done by the next start.
    pub(crate) async fn forget_topic(&self, topic: TopicId) {
        self.forget(|id| id == topic).await;
    }

    /// Positions in topics that are not there go.
    pub(super) async fn forget_missing_topics(&self) {
        let catalog = self.0.node.catalog.load_full();
        self.forget(|id| !catalog.names.contains_key(&id)).await;
    }

    async fn forget(&self, is_gone: impl Fn(TopicId) -> bool) {
        for shard in &self.0.shards {
            shard.caught_up().await;
            let step = |state: &mut State| {
                let gone = state.table.rows().filter(|(key, _)| {
                    row::parse_key(key).is_some_and(|(_, partition)| is_gone(partition.topic))
                });
                let rows = deletions(gone);
                state.store(&self.0.node, shard, rows)
            };
            let stored = match self.0.patiently(shard, step).await {
                Ok(receipt) => receipt.stored().await,
                Err(error) => Err(error),
            };
            if let Err(error) = stored {
                tracing::warn!(%error, "positions in a deleted topic are removed with the next start");
            }
        }
    }
}

fn deletions<'a>(rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<Row> {
    rows.map(|(key, _)| (key.to_vec(), None)).collect()
}

/// What one request stores.
pub(super) struct Rows {
    pub(super) all: Vec<Row>,
    kind: Kind,
    /// By how much they make the table larger.
    new_bytes: usize,
}

impl Rows {
    /// None yet, of a group of this kind.
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            all: Vec::new(),
            kind,
            new_bytes: 0,
        }
    }

    /// Adds the row of a new position, if it may be stored.
    pub(super) fn add(
        &mut self,
        inner: &Inner,
        state: &State,
        group: &GroupId,
        new: &NewPosition,
    ) -> Result<(), CommitRefusal> {
        if new.metadata.len() > inner.node.settings.offset_metadata_bytes_max {
            return Err(CommitRefusal::MetadataTooLarge);
        }
        let catalog = inner.node.catalog.load();
        if catalog.partition(new.partition).is_none() {
            return Err(CommitRefusal::UnknownPartition);
        }
        let key = row::key(group, new.partition);
        let value = row::value(&Position {
            offset: new.offset,
            leader_epoch: new.leader_epoch,
            metadata: Arc::clone(&new.metadata),
            committed_at: inner.node.world.clock.now(),
            kind: self.kind,
        });
        let growth = match state.table.get(&key) {
            Some(old) => value.len().saturating_sub(old.len()),
            None => key.len() + value.len(),
        };
        // A position that only moves is never refused for room.
        let bytes = self.new_bytes + growth;
        if growth > 0 && !inner.usage.has_room_for_position(bytes) {
            return Err(CommitRefusal::TooMany);
        }
        self.new_bytes = bytes;
        self.all.push((key, Some(value)));
        Ok(())
    }
}

impl State {
    /// C15: who may commit.
    fn check_commit(
        &mut self,
        inner: &Arc<Inner>,
        group: &GroupId,
        caller: &classic::Caller,
    ) -> Result<(), Refusal> {
        match self.groups.get_mut(group).map(|entry| &mut entry.machine) {
            Some(Machine::Classic(machine)) => machine.check_commit(inner.now(), caller),
            Some(Machine::Assigned(_)) => Err(Refusal::UnknownMember),
            None if caller.generation < GenerationId(0) => Ok(()),
            None => Err(Refusal::IllegalGeneration),
        }
    }

    pub(super) fn position(&self, group: &GroupId, partition: TopicPartition) -> Option<Position> {
        row::parse_value(self.table.get(&row::key(group, partition))?)
    }

    /// Kind of a group without members: the one it was of when a position was stored last.
    pub(super) fn kind_by_positions(&self, group: &GroupId) -> Kind {
        let prefix = row::prefix(group);
        let rows = self.table.prefix(&prefix);
        rows.filter_map(|(_, value)| row::parse_value(value))
            .max_by_key(|position| position.committed_at)
            .map_or(Kind::Classic, |position| position.kind)
    }

    fn has_members(&self, group: &GroupId) -> bool {
        match self.groups.get(group).map(|entry| &entry.machine) {
            Some(Machine::Classic(machine)) => machine.members().next().is_some(),
            Some(Machine::Assigned(machine)) => machine.members().next().is_some(),
            None => false,
        }
    }

    /// Whether the group has members or positions.
    pub(super) fn is_known(&self, group: &GroupId) -> bool {
        self.groups.contains_key(group) || self.table.prefix(&row::prefix(group)).next().is_some()
    }

    fn is_subscribed(&self, group: &GroupId, topic: &str) -> bool {
        match self.groups.get(group).map(|entry| &entry.machine) {
            Some(Machine::Classic(machine)) => machine.is_subscribed(topic),
            Some(Machine::Assigned(machine)) => {
                machine.topics().iter().any(|name| name.as_str() == topic)
            }
            None => false,
        }
    }
}

impl Inner {
    /// Where a group's positions are.
    pub(super) fn shard(&self, group: &GroupId) -> &Arc<Shard> {
        let count = self.shards.len() as u32;
        let place = floe_model::partition_for_key(group.as_str().as_bytes(), count);
        &self.shards[place.0 as usize]
    }
}
