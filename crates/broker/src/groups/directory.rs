//! Which group an HTTP consumer is in: its later calls name only itself, or only its connection.
//!
//! Guarantees: an entry is a hint that its shard confirms or refuses; a stale one does no harm.

use std::collections::HashMap;

use floe_groups::assigned::Caller;
use floe_groups::{ConnectionId, ConsumerId, GroupId, Refusal};

/// Most HTTP consumers of a node.
const CONSUMERS_MAX: usize = 100_000;

/// Where a consumer is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: GroupId,
    pub(super) consumer: ConsumerId,
    pub(super) registration: u64,
}

/// The HTTP consumers of a node.
#[derive(Debug, Default)]
pub(super) struct Directory {
    stateless: HashMap<ConsumerId, Place>,
    bound: HashMap<ConnectionId, Place>,
}

impl Directory {
    pub(super) fn find(&self, caller: &Caller) -> Result<Place, Refusal> {
        let place = match caller {
            Caller::Id(consumer) => {
                let absent = || Refusal::NotRegistered(consumer.clone());
                self.stateless.get(consumer).ok_or_else(absent)
            }
            Caller::Connection(connection) => self.bound.get(connection).ok_or(Refusal::NoConsumer),
        };
        place.cloned()
    }

    pub(super) fn insert(
        &mut self,
        connection: Option<ConnectionId>,
        place: Place,
    ) -> Result<(), Refusal> {
        if self.stateless.len() + self.bound.len() >= CONSUMERS_MAX {
            return Err(Refusal::Full);
        }
        match connection {
            None => self.stateless.insert(place.consumer.clone(), place),
            Some(connection) => self.bound.insert(connection, place),
        };
        Ok(())
    }

    /// Removes a stateless consumer's entry, unless it has registered again since.
    pub(super) fn remove(&mut self, consumer: &ConsumerId, registration: u64) {
        if self
            .stateless
            .get(consumer)
            .is_some_and(|place| place.registration == registration)
        {
            self.stateless.remove(consumer);
        }
        self.bound
            .retain(|_, place| place.registration != registration);
    }

    /// Removes the entry of a connection that is gone.
    pub(super) fn take_connection(&mut self, connection: ConnectionId) -> Option<Place> {
        self.bound.remove(&connection)
    }
}
