//! Polls, deliveries and commits of one consumer.

use std::time::Duration;

use super::member::{Delivery, Member, Range};
use super::{DeliveryToken, Group, Received};
use crate::{ConsumerId, Refusal};

/// What a poll is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The poll's number, for [`Group::deliver`].
    pub poll: u64,
    /// Commit this first, then tell [`Group::committed`].
    pub commit: Option<Delivery>,
    /// What to send.
    pub reading: Reading,
}

/// What a poll sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Exactly this again, then tell [`Group::redelivered`].
    Again(Delivery),
    /// What follows the group's positions in [`Group::readable`], then tell [`Group::deliver`].
    Next,
}

impl Group {
    /// A poll begins; older polls of the consumer are no longer answered.
    pub fn begin_poll(
        &mut self,
        now: Duration,
        id: &ConsumerId,
        received: Received,
    ) -> Result<Plan, Refusal> {
        let member = self
            .members
            .get_mut(id)
            .ok_or_else(|| Refusal::NotRegistered(id.clone()))?;
        let has_received = match received {
            Received::Unsaid => !member.is_lost,
            Received::Nothing => false,
            // A token of an earlier registration says nothing about this one.
            Received::UpTo(token) if token.registration != member.registration => false,
            Received::UpTo(token) if token.number > member.number => {
                return Err(Refusal::UnknownDelivery);
            }
            Received::UpTo(token) => token.number == member.number,
        };
        member.touch(now);
        member.poll += 1;
        let out = member.delivered.clone();
        let (commit, reading) = match out {
            Some(delivery) if has_received => (Some(delivery), Reading::Next),
            Some(delivery) if !delivery.ranges.is_empty() => (None, Reading::Again(delivery)),
            Some(_) | None => (None, Reading::Next),
        };
        Ok(Plan {
            poll: member.poll,
            commit,
            reading,
        })
    }

    /// A waiting poll is still wanted; a sign of life.
    pub fn keep_waiting(
        &mut self,
        now: Duration,
        id: &ConsumerId,
        poll: u64,
    ) -> Result<(), Refusal> {
        self.newest_poll(id, poll)?.touch(now);
        Ok(())
    }

    /// The consumer is to get these ranges, read from the positions. Those of partitions that are no longer its own
    /// are taken out; with none left there is no delivery.
    pub fn deliver(
        &mut self,
        now: Duration,
        id: &ConsumerId,
        poll: u64,
        mut ranges: Vec<Range>,
    ) -> Result<Option<Delivery>, Refusal> {
        self.newest_poll(id, poll)?;
        let readable = self.readable(id);
        ranges.retain(|range| readable.binary_search(&range.partition).is_ok());
        let member = self.newest_poll(id, poll)?;
        member.touch(now);
        if ranges.is_empty() {
            return Ok(None);
        }
        member.number += 1;
        let delivery = Delivery {
            token: DeliveryToken {
                registration: member.registration,
                number: member.number,
            },
            ranges,
        };
        member.delivered = Some(delivery.clone());
        member.is_lost = false;
        Ok(Some(delivery))
    }

    /// The consumer is to get again what it got last.
    pub fn redelivered(
        &mut self,
        now: Duration,
        id: &ConsumerId,
        poll: u64,
    ) -> Result<(), Refusal> {
        let member = self.newest_poll(id, poll)?;
        member.touch(now);
        member.is_lost = false;
        Ok(())
    }

    /// What a commit by the consumer itself is to store, then tell [`committed`](Self::committed). What is known not to
    /// have reached it is not committed: it comes again.
    pub fn begin_commit(
        &mut self,
        now: Duration,
        id: &ConsumerId,
    ) -> Result<Option<Delivery>, Refusal> {
        let member = self
            .members
            .get_mut(id)
            .ok_or_else(|| Refusal::NotRegistered(id.clone()))?;
        member.touch(now);
        Ok(member.delivered.clone().filter(|_| !member.is_lost))
    }

    /// A delivery's positions are durable: its partitions may change hands.
    pub fn committed(&mut self, id: &ConsumerId, token: DeliveryToken) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        if member.delivered.as_ref().is_some_and(|d| d.token == token) {
            member.delivered = None;
            member.is_lost = false;
            self.has_changed = true;
        }
    }

    /// A delivery did not reach the consumer: a poll that does not say otherwise gets it again.
    pub fn lost(&mut self, id: &ConsumerId, token: DeliveryToken) {
        if let Some(member) = self.members.get_mut(id)
            && member.delivered.as_ref().is_some_and(|d| d.token == token)
        {
            member.is_lost = true;
        }
    }

    fn newest_poll(&mut self, id: &ConsumerId, poll: u64) -> Result<&mut Member, Refusal> {
        let member = self
            .members
            .get_mut(id)
            .ok_or_else(|| Refusal::NotRegistered(id.clone()))?;
        if member.poll == poll {
            Ok(member)
        } else {
            Err(Refusal::Superseded)
        }
    }
}
