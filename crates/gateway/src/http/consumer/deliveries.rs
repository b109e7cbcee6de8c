//! Which connection each consumer's last answer went over, as long as that connection lives.
//!
//! Guarantees: an answer counts as lost when its connection broke before the consumer's next poll, whether the
//! connection's end or the next poll is seen first. Bounded by the connections there are: what went over a connection
//! that ended cleanly is forgotten.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use floe_groups::ConsumerId;
use floe_groups::assigned::{Caller, DeliveryToken};
use parking_lot::Mutex;

use crate::listen::{Connection, ConnectionId};

/// See the file's head.
#[derive(Default)]
pub(crate) struct Deliveries(Mutex<Last>);

#[derive(Default)]
struct Last {
    /// Of consumers known by id. One known by its connection goes with it and needs no entry.
    by_consumer: HashMap<ConsumerId, (DeliveryToken, Weak<Connection>)>,
    by_connection: HashMap<ConnectionId, HashSet<ConsumerId>>,
}

impl Last {
    fn forget(
        &mut self,
        consumer: &ConsumerId,
    ) -> Option<(DeliveryToken, Option<Arc<Connection>>)> {
        let (token, connection) = self.by_consumer.remove(consumer)?;
        let connection = connection.upgrade();
        if let Some(id) = connection.as_ref().map(|c| c.id)
            && let Some(consumers) = self.by_connection.get_mut(&id)
        {
            consumers.remove(consumer);
            if consumers.is_empty() {
                self.by_connection.remove(&id);
            }
        }
        Some((token, connection))
    }
}

impl Deliveries {
    /// An answer is about to go out.
    pub(super) fn sent(&self, caller: &Caller, token: DeliveryToken, over: &Arc<Connection>) {
        let Caller::Id(consumer) = caller else { return };
        let mut last = self.0.lock();
        last.forget(consumer);
        last.by_consumer
            .insert(consumer.clone(), (token, Arc::downgrade(over)));
        last.by_connection
            .entry(over.id)
            .or_default()
            .insert(consumer.clone());
    }

    /// The consumer calls again: its last answer, if that has been lost.
    pub(super) fn lost(&self, caller: &Caller) -> Option<DeliveryToken> {
        let Caller::Id(consumer) = caller else {
            return None;
        };
        let (token, connection) = self.0.lock().forget(consumer)?;
        connection.filter(|c| c.is_broken()).map(|_| token)
    }

    /// A connection has ended: what went over it last.
    pub(super) fn ended(&self, connection: &Connection) -> Vec<(Caller, DeliveryToken)> {
        let mut last = self.0.lock();
        let consumers = last
            .by_connection
            .remove(&connection.id)
            .unwrap_or_default();
        let mut all = Vec::with_capacity(consumers.len());
        for consumer in consumers {
            if let Some((token, _)) = last.by_consumer.remove(&consumer) {
                all.push((Caller::Id(consumer), token));
            }
        }
        all
    }
}
