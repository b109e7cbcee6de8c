//! One HTTP consumer of a group, and what was delivered to it.

use std::time::Duration;

use floe_model::{Offset, TopicName, TopicPartition};

use super::{DeliveryToken, Registration};
use crate::{ConnectionId, ConsumerId, Settings};

/// Consecutive records of one partition, delivered and not yet committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The partition.
    pub partition: TopicPartition,
    /// First offset.
    pub start: Offset,
    /// Offset after the last.
    pub end: Offset,
}

/// What one poll brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub token: DeliveryToken,
    /// At most one range per partition.
    pub ranges: Vec<Range>,
}

/// How much of what a consumer was given last it has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Used {
    /// All of it.
    All,
    /// None of it.
    Nothing,
    /// What is below these offsets; nothing of partitions that are not named.
    UpTo(Vec<(TopicPartition, Offset)>),
}

impl Delivery {
    /// The part of it that was used.
    pub fn used(mut self, used: &Used) -> Option<Self> {
        match used {
            Used::All => {}
            Used::Nothing => self.ranges.clear(),
            Used::UpTo(ends) => self.ranges.retain_mut(|range| {
                let end = ends.iter().find(|(named, _)| *named == range.partition);
                range.end = end.map_or(range.start, |(_, end)| range.end.min(*end));
                range.end > range.start
            }),
        }
        (!self.ranges.is_empty()).then_some(self)
    }
}

/// What the group knows of a consumer.
#[derive(Clone, Debug)]
pub struct Member {
    /// The client's name for it.
    pub id: ConsumerId,
    /// What it reads, as it registered.
    pub topics: Vec<TopicName>,
    /// The connection it is bound to.
    pub connection: Option<ConnectionId>,
    /// Random; tells registrations of one id apart.
    pub registration: u64,
    pub(super) idle_timeout: Duration,
    pub(super) alive_until: Duration,
    /// Number of its newest poll; older ones are no longer answered.
    pub(super) poll: u64,
    /// Number of its newest delivery.
    pub(super) number: u64,
    pub(super) delivered: Option<Delivery>,
    /// The delivery did not reach it.
    pub(super) is_lost: bool,
}

impl Member {
    pub(super) fn new(
        now: Duration,
        settings: &Settings,
        registration: &Registration,
        nonce: u64,
    ) -> Self {
        let idle_timeout = registration
            .idle_timeout
            .unwrap_or(settings.consumer_idle_timeout);
        Self {
            id: registration.consumer.clone(),
            topics: registration.topics.clone(),
            connection: registration.connection,
            registration: nonce,
            idle_timeout,
            alive_until: now + idle_timeout,
            poll: 0,
            number: 0,
            delivered: None,
            is_lost: false,
        }
    }

    pub(super) fn touch(&mut self, now: Duration) {
        self.alive_until = now + self.idle_timeout;
    }

    pub(super) fn held(&self) -> impl Iterator<Item = TopicPartition> {
        self.delivered
            .iter()
            .flat_map(|delivery| delivery.ranges.iter().map(|range| range.partition))
    }
}
