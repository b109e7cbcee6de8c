//! Server-assigned groups: HTTP consumers register, the server deals partitions to them, they poll.
//!
//! ```text
//!                     poll: read                    deliver
//!   nothing out ────────────────────▶ reading ───────────────▶ delivered ─┐ lost, or the client
//!        ▲                               ▲                        │  ▲    │ names an older token
//!        │ committed                     │ committed              │  └────┘ deliver the same again
//!        └──────── commit, goodbye ◀─────┴──── the next poll ◀────┘
//! ```
//!
//! Guarantees: a partition is read by one consumer at a time, and changes hands only when nothing of it is delivered
//! and uncommitted, so records of one key are worked on in order, also while consumers come and go. A consumer that
//! is gone gives everything up at once, and what it had not committed is delivered again. Of two polls of one
//! consumer at a time only the newer is answered. Stores no positions and reads no records: the driver does.

mod assignment;
mod member;
mod poll;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use floe_model::{TopicName, TopicPartition};

use crate::{ConnectionId, ConsumerId, Refusal, Settings};

pub use member::{Delivery, Member, Range, Used};
pub use poll::{Plan, Reading};
pub use requests::{Caller, DeliveryToken, OnNewGroup, Received, Registration};

/// One group of HTTP consumers.
#[derive(Clone, Debug)]
pub struct Group {
    settings: Arc<Settings>,
    members: BTreeMap<ConsumerId, Member>,
    /// All partitions of all topics that members read and that exist.
    partitions: BTreeSet<TopicPartition>,
    owners: BTreeMap<TopicPartition, ConsumerId>,
    has_changed: bool,
}

impl Group {
    /// A group without consumers.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            members: BTreeMap::new(),
            partitions: BTreeSet::new(),
            owners: BTreeMap::new(),
            has_changed: false,
        }
    }

    /// Everybody in it, by id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// One of them.
    pub fn member(&self, id: &ConsumerId) -> Option<&Member> {
        self.members.get(id)
    }

    /// Whether nobody is in it: it can be forgotten.
    pub fn is_vacant(&self) -> bool {
        self.members.is_empty()
    }

    /// The topics read: the union of what members registered.
    pub fn topics(&self) -> BTreeSet<&TopicName> {
        self.members().flat_map(|member| &member.topics).collect()
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let members = self.members().map(|member| {
            let topics: usize = member.topics.iter().map(|topic| topic.as_str().len()).sum();
            crate::MEMBER_BYTES + member.id.as_str().len() + topics
        });
        members.sum()
    }

    /// Whether somebody may read other partitions than at the last call: waiting polls are to look again.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Whether this registration could be taken: `Ok(true)` if the consumer is there already, the same.
    pub fn check_register(&self, registration: &Registration) -> Result<bool, Refusal> {
        let Some(member) = self.members.get(&registration.consumer) else {
            let has_room = self.members.len() < self.settings.members_max;
            return if has_room {
                Ok(false)
            } else {
                Err(Refusal::Full)
            };
        };
        let is_bound = |connection: Option<ConnectionId>| connection.is_some();
        if member.topics != registration.topics
            || is_bound(member.connection) != is_bound(registration.connection)
        {
            return Err(Refusal::RegisteredDifferently);
        }
        // The same id over a new connection: the old connection is given up, and with it what it got.
        Ok(member.connection == registration.connection)
    }

    /// A consumer comes, or says again that it is there (`Ok(true)`). `nonce` is random. The driver is to tell the
    /// partitions of [`topics`](Self::topics) next.
    pub fn register(
        &mut self,
        now: Duration,
        registration: &Registration,
        nonce: u64,
    ) -> Result<bool, Refusal> {
        let is_there = self.check_register(registration)?;
        if is_there {
            let member = self
                .members
                .get_mut(&registration.consumer)
                .expect("it was found there");
            member.idle_timeout = registration.idle_timeout.unwrap_or(member.idle_timeout);
            member.touch(now);
        } else {
            let member = Member::new(now, &self.settings, registration, nonce);
            self.members.insert(member.id.clone(), member);
            self.balance();
        }
        Ok(is_there)
    }

    /// The partitions there are now of the topics read.
    pub fn set_partitions(&mut self, partitions: BTreeSet<TopicPartition>) {
        if partitions == self.partitions {
            return;
        }
        for member in self.members.values_mut() {
            if let Some(delivery) = &mut member.delivered {
                let exists = |range: &Range| partitions.contains(&range.partition);
                delivery.ranges.retain(exists);
            }
        }
        self.partitions = partitions;
        self.balance();
    }

    /// A consumer goes; returns whether it was there.
    pub fn leave(&mut self, id: &ConsumerId) -> bool {
        let was_there = self.members.remove(id).is_some();
        if was_there {
            self.balance();
        }
        was_there
    }

    /// Time has come to `now`: consumers that were idle too long go. They are returned.
    pub fn tick(&mut self, now: Duration) -> Vec<Member> {
        let expired: Vec<_> = self
            .members
            .extract_if(.., |_, member| member.alive_until <= now)
            .map(|(_, member)| member)
            .collect();
        if !expired.is_empty() {
            self.balance();
        }
        expired
    }

    /// When [`tick`](Self::tick) has something to do next.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.members().map(|member| member.alive_until).min()
    }

    /// What a consumer may read now: what is dealt to it and nobody else is still at work on.
    pub fn readable(&self, id: &ConsumerId) -> Vec<TopicPartition> {
        let held: BTreeSet<_> = self
            .members()
            .filter(|member| member.id != *id)
            .flat_map(Member::held)
            .collect();
        self.assigned(id)
            .filter(|partition| !held.contains(partition))
            .collect()
    }

    /// What is dealt to a consumer.
    pub fn assigned<'a>(&'a self, id: &'a ConsumerId) -> impl Iterator<Item = TopicPartition> + 'a {
        self.owners
            .iter()
            .filter(move |(_, owner)| *owner == id)
            .map(|(partition, _)| *partition)
    }

    fn balance(&mut self) {
        let held = self.members().flat_map(Member::held).collect();
        self.owners =
            assignment::assign(&self.partitions, self.members.keys(), &self.owners, &held);
        self.has_changed = true;
    }
}
