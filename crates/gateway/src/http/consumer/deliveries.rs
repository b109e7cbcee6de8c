//! Which connection each consumer's last answer went over, as long as that connection lives.
//!
//! Guarantees: an answer counts as lost when its connection broke before the consumer's next poll, whether the
//! connection's end or the next poll is seen first, and also when the two polls run at the same time. Bounded by the
//! connections there are: what went over a connection that ended cleanly is forgotten.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Weak};

use floe_broker::Groups;
use floe_broker::groups::{Error, Polled};
use floe_groups::ConsumerId;
use floe_groups::assigned::{Caller, DeliveryToken};
use parking_lot::Mutex;

use crate::listen::{Connection, ConnectionId};

/// Parts by consumer, so that one's poll rarely meets another's.
const PARTS: usize = 32;

/// See the file's head.
pub(crate) struct Deliveries {
    hasher: RandomState,
    /// Order: a part's lock is taken before the locks of groups, never after one of them.
    parts: [Mutex<Last>; PARTS],
}

/// The last deliveries of the consumers of one part that are known by id. One known by its connection goes with it and
/// needs no entry.
#[derive(Default)]
struct Last {
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

    fn take_back(&mut self, consumer: &ConsumerId, groups: &Groups) {
        if let Some((token, Some(connection))) = self.forget(consumer)
            && connection.is_broken()
        {
            groups.delivery_lost(&Caller::Id(consumer.clone()), token);
        }
    }
}

impl Default for Deliveries {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Deliveries {
    fn part(&self, consumer: &ConsumerId) -> &Mutex<Last> {
        &self.parts[self.hasher.hash_one(consumer) as usize % PARTS]
    }

    /// Waits until it can be told whether the consumer's last answer has arrived.
    async fn settle(&self, consumer: &ConsumerId) {
        let connection = {
            let last = self.part(consumer).lock();
            let last = last.by_consumer.get(consumer);
            last.and_then(|(_, connection)| connection.upgrade())
        };
        if let Some(connection) = connection {
            connection.settled().await;
        }
    }

    /// Runs a poll of a consumer over a connection. The last answer is taken back first if it was lost.
    ///
    /// Each step of `work` is done under the lock of the consumer's part: a poll that hands records out and one that
    /// takes the handing-out for received cannot pass each other unseen.
    pub(super) async fn poll(
        &self,
        groups: &Groups,
        caller: &Caller,
        over: &Arc<Connection>,
        work: impl Future<Output = Result<Polled, Error>>,
    ) -> Result<Polled, Error> {
        let Caller::Id(consumer) = caller else {
            return work.await;
        };
        self.settle(consumer).await;
        let mut work = pin!(work);
        let mut has_begun = false;
        poll_fn(|cx| {
            let mut last = self.part(consumer).lock();
            if !has_begun {
                has_begun = true;
                last.take_back(consumer, groups);
            }
            let polled = std::task::ready!(work.as_mut().poll(cx));
            if let Ok(Polled::Records(token, _)) = &polled {
                last.forget(consumer);
                last.by_consumer
                    .insert(consumer.clone(), (*token, Arc::downgrade(over)));
                let beside = last.by_connection.entry(over.id).or_default();
                beside.insert(consumer.clone());
            }
            std::task::Poll::Ready(polled)
        })
        .await
    }

    /// A chunk whose answer was lost is not one the consumer has had.
    pub(super) async fn take_back(&self, groups: &Groups, caller: &Caller) {
        if let Caller::Id(consumer) = caller {
            self.settle(consumer).await;
            self.part(consumer).lock().take_back(consumer, groups);
        }
    }

    /// A connection has ended: what went over it last is taken back if it may not have arrived.
    pub(super) fn ended(&self, groups: &Groups, connection: &Connection) {
        let is_broken = connection.is_broken();
        for part in &self.parts {
            let mut last = part.lock();
            let consumers = last.by_connection.remove(&connection.id);
            for consumer in consumers.into_iter().flatten() {
                if let Some((token, _)) = last.by_consumer.remove(&consumer)
                    && is_broken
                {
                    groups.delivery_lost(&Caller::Id(consumer), token);
                }
            }
        }
    }
}
