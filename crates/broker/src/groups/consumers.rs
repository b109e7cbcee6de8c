//! HTTP consumers come and go, and commit what was delivered to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use floe_cluster::{Catalog, Topic};
use floe_groups::assigned::{
    self, Caller, Delivery, DeliveryToken, OnNewGroup, Registration, Used,
};
use floe_groups::{ConnectionId, GroupId, Kind, NewPosition, Refusal};
use floe_model::{Offset, TopicPartition};

use super::commits::Rows;
use super::directory::Place;
use super::shard::{Entry, Machine, Shard, State};
use super::store::{NotDone, Receipt, unavailable};
use super::{CommitRefusal, Error, Groups, Inner, Registered, membership, row};
use crate::OffsetSpec;

impl Groups {
    /// Registers an HTTP consumer. Its topics need not exist yet. With [`OnNewGroup::Latest`], where a group that has
    /// never read a topic begins is stored here, so that nothing written from now on is missed.
    pub async fn register(&self, registration: Registration) -> Result<Registered, Error> {
        membership::check_name(&registration.group)?;
        let inner = &self.0;
        let shard = inner.shard(&registration.group);
        let _alone = shard.registering.lock().await;
        inner.check_elsewhere(&registration)?;
        let is_there = {
            let mut state = shard.lock();
            state.check_register(&registration)?
        };
        if !is_there && registration.on_new_group == OnNewGroup::Latest {
            inner.fix_positions(shard, &registration).await?;
        }
        let nonce = inner.node.world.random.next_u64();
        let (is_there, nonce) = {
            let mut state = shard.lock();
            let machine = state.assigned_or_new(&registration.group)?;
            let result = machine.register(inner.now(), &registration, nonce);
            let member = machine.member(&registration.consumer);
            let nonce = member.map_or(nonce, |member| member.registration);
            state.see_catalog(&inner.node.catalog.load(), &registration.group, true);
            state.settle(&registration.group);
            (result?, nonce)
        };
        let place = Place {
            group: registration.group.clone(),
            consumer: registration.consumer.clone(),
            registration: nonce,
        };
        let entered = inner
            .directory
            .lock()
            .insert(registration.connection, place.clone());
        if let Err(refusal) = entered {
            inner.leave(&place);
            return Err(refusal.into());
        }
        Ok(if is_there {
            Registered::Already
        } else {
            Registered::New
        })
    }

    /// Commits what the consumer got last; durable when it returns.
    pub async fn commit_delivered(&self, caller: &Caller) -> Result<(), Error> {
        let place = self.0.directory.lock().find(caller)?;
        self.0
            .commit_delivery(&place, |machine, now| {
                machine.begin_commit(now, &place.consumer)
            })
            .await
    }

    /// Ends a consumer; what it has used of what it got last is committed first.
    pub async fn goodbye(&self, caller: &Caller, used: &Used) -> Result<(), Error> {
        let inner = &self.0;
        let place = inner.directory.lock().find(caller)?;
        let begin = |machine: &mut assigned::Group, now| {
            let delivery = machine.begin_commit(now, &place.consumer)?;
            Ok(delivery.and_then(|delivery| delivery.used(used)))
        };
        inner.commit_delivery(&place, begin).await?;
        inner.leave(&place);
        Ok(())
    }

    /// Tells that an answer could not be written, or that the connection it went over was reset before the next
    /// poll: the chunk will be delivered again. Without effect once a newer poll has begun.
    pub fn delivery_lost(&self, caller: &Caller, delivery: DeliveryToken) {
        let Ok(place) = self.0.directory.lock().find(caller) else {
            return;
        };
        let mut state = self.0.shard(&place.group).lock();
        if let Ok(machine) = state.assigned(&place.group, &place.consumer, place.registration) {
            machine.lost(&place.consumer, delivery);
        }
    }

    /// Tells that a connection is gone: a consumer bound to it leaves at once.
    pub fn connection_closed(&self, connection: ConnectionId) {
        let place = self.0.directory.lock().take_connection(connection);
        if let Some(place) = place {
            self.0.leave(&place);
        }
    }
}

impl Inner {
    /// A stateless consumer's id names it on the whole node, a connection has one consumer.
    fn check_elsewhere(&self, registration: &Registration) -> Result<(), Refusal> {
        let caller = match registration.connection {
            None => Caller::Id(registration.consumer.clone()),
            Some(connection) => Caller::Connection(connection),
        };
        let Ok(place) = self.directory.lock().find(&caller) else {
            return Ok(());
        };
        let is_same = place.group == registration.group && place.consumer == registration.consumer;
        let mut state = self.shard(&place.group).lock();
        let is_live = state
            .assigned(&place.group, &place.consumer, place.registration)
            .is_ok();
        if is_live && !is_same {
            return Err(Refusal::RegisteredDifferently);
        }
        Ok(())
    }

    /// Stores the present ends of topics that the group has never read.
    async fn fix_positions(&self, shard: &Shard, registration: &Registration) -> Result<(), Error> {
        let group = &registration.group;
        let catalog = self.node.catalog.load_full();
        let fresh: Vec<Arc<Topic>> = {
            let state = shard.lock();
            let topics = registration.topics.iter();
            topics
                .filter_map(|name| catalog.topics.get(name))
                .filter(|topic| !state.has_read(group, topic))
                .cloned()
                .collect()
        };
        let mut ends = Vec::new();
        for topic in fresh {
            for partition in &topic.partitions {
                let address = topic.address(partition.index);
                let found = self
                    .node
                    .list_offset(address, OffsetSpec::Latest, None)
                    .await;
                let found = found.map_err(|error| unavailable(&error))?;
                ends.push((address, found.map_or(Offset::ZERO, |found| found.offset)));
            }
        }
        let step = |state: &mut State| self.store_positions(shard, state, group, &ends);
        self.patiently(shard, step).await?.stored().await
    }

    /// Appends positions of a group of HTTP consumers; those in topics that have just been deleted are left out.
    pub(super) fn store_positions(
        &self,
        shard: &Shard,
        state: &mut State,
        group: &GroupId,
        ends: &[(TopicPartition, Offset)],
    ) -> Result<Receipt, NotDone> {
        let mut rows = Rows::of(Kind::Assigned);
        for (partition, offset) in ends {
            let new = NewPosition {
                partition: *partition,
                offset: *offset,
                leader_epoch: None,
                metadata: Arc::default(),
            };
            match rows.add(self, state, group, &new) {
                Ok(()) | Err(CommitRefusal::UnknownPartition) => {}
                Err(refusal) => return Err(unavailable(&refusal).into()),
            }
        }
        state.store(&self.node, shard, rows.all)
    }

    /// Stores what `begin` gives out, and tells the group when it is durable.
    pub(super) async fn commit_delivery(
        &self,
        place: &Place,
        begin: impl Fn(&mut assigned::Group, std::time::Duration) -> Result<Option<Delivery>, Refusal>,
    ) -> Result<(), Error> {
        let shard = self.shard(&place.group);
        let step = |state: &mut State| {
            let machine = state.assigned(&place.group, &place.consumer, place.registration)?;
            let Some(delivery) = begin(machine, self.now())? else {
                return Ok(None);
            };
            let receipt = self.store_positions(shard, state, &place.group, &ends(&delivery))?;
            Ok(Some((delivery, receipt)))
        };
        if let Some((delivery, receipt)) = self.patiently(shard, step).await? {
            receipt.stored().await?;
            self.committed(place, &delivery);
        }
        Ok(())
    }

    pub(super) fn committed(&self, place: &Place, delivery: &Delivery) {
        let mut state = self.shard(&place.group).lock();
        if let Ok(machine) = state.assigned(&place.group, &place.consumer, place.registration) {
            machine.committed(&place.consumer, delivery.token);
            state.settle(&place.group);
        }
    }

    fn leave(&self, place: &Place) {
        {
            let mut state = self.shard(&place.group).lock();
            if let Ok(machine) = state.assigned(&place.group, &place.consumer, place.registration) {
                machine.leave(&place.consumer);
                state.settle(&place.group);
            }
        }
        self.directory
            .lock()
            .remove(&place.consumer, place.registration);
    }
}

/// What a delivery's commit stores.
pub(super) fn ends(delivery: &Delivery) -> Vec<(TopicPartition, Offset)> {
    delivery
        .ranges
        .iter()
        .map(|range| (range.partition, range.end))
        .collect()
}

impl State {
    fn check_register(&mut self, registration: &Registration) -> Result<bool, Refusal> {
        let topics = registration.topics.iter();
        self.check_room(topics.map(|topic| topic.as_str().len()).sum())?;
        let result = self
            .assigned_or_new(&registration.group)
            .and_then(|machine| machine.check_register(registration));
        self.settle(&registration.group);
        result
    }

    /// Whether the group is reading the topic, or has positions in it.
    fn has_read(&self, group: &GroupId, topic: &Topic) -> bool {
        let is_reading = match self.groups.get(group).map(|entry| &entry.machine) {
            Some(Machine::Assigned(machine)) => machine.topics().contains(&topic.name),
            Some(Machine::Classic(_)) | None => false,
        };
        let mut prefix = row::prefix(group);
        prefix.extend_from_slice(&topic.id.0);
        is_reading || self.table.prefix(&prefix).next().is_some()
    }

    /// Tells a group which partitions there are, if the catalog has changed or its topics may have.
    pub(super) fn see_catalog(&mut self, catalog: &Catalog, group: &GroupId, has_changed: bool) {
        let Some(Entry {
            machine: Machine::Assigned(machine),
            seen,
            ..
        }) = self.groups.get_mut(group)
        else {
            return;
        };
        if *seen == Some(catalog.index) && !has_changed {
            return;
        }
        *seen = Some(catalog.index);
        let partitions: BTreeSet<_> = machine
            .topics()
            .into_iter()
            .filter_map(|name| catalog.topics.get(name))
            .flat_map(|topic| topic.partitions.iter().map(|p| topic.address(p.index)))
            .collect();
        machine.set_partitions(partitions);
    }
}
