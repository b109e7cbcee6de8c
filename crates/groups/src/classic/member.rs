//! A member of a classic group.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::subscription;
use super::{Join, Ticket};
use crate::{InstanceId, MemberId};

/// What the group knows of a member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its `group.instance.id`.
    pub instance_id: Option<InstanceId>,
    /// Its `client.id`.
    pub client_id: Arc<str>,
    /// Where it came from.
    pub client_host: Arc<str>,
    /// What the leader assigned to it in this generation.
    pub assignment: Bytes,
    pub(super) protocols: Vec<(Arc<str>, Bytes)>,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// It is gone when this passes, unless it waits for an answer.
    pub(super) alive_until: Duration,
    /// Its join, while the generation has not begun.
    pub(super) joining: Option<Ticket>,
    /// Its sync, while the leader has not assigned.
    pub(super) syncing: Option<Ticket>,
    /// It has asked for its assignment in this generation.
    pub(super) has_synced: bool,
}

impl Member {
    pub(super) fn new(id: MemberId, now: Duration, join: &Join) -> Self {
        let mut member = Self {
            id,
            instance_id: join.instance_id.clone(),
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            assignment: Bytes::new(),
            protocols: Vec::new(),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            alive_until: now,
            joining: None,
            syncing: None,
            has_synced: false,
        };
        member.update(now, join);
        member
    }

    /// Takes over what a new join says.
    pub(super) fn update(&mut self, now: Duration, join: &Join) {
        self.client_id = join.client_id.clone();
        self.client_host = join.client_host.clone();
        self.protocols.clone_from(&join.protocols);
        self.session_timeout = join.session_timeout;
        self.rebalance_timeout = join.rebalance_timeout;
        self.touch(now);
    }

    /// A sign of life.
    pub(super) fn touch(&mut self, now: Duration) {
        self.alive_until = now + self.session_timeout;
    }

    /// Whether its session is over. One that waits for the group's answer cannot send a sign of life.
    pub(super) fn is_expired(&self, now: Duration) -> bool {
        self.joining.is_none() && self.syncing.is_none() && self.alive_until <= now
    }

    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let names = [self.id.as_str(), &self.client_id, &self.client_host];
        let names: usize = names.iter().map(|name| name.len()).sum();
        let protocols = self.protocols.iter();
        let protocols: usize = protocols
            .map(|(name, bytes)| name.len() + bytes.len())
            .sum();
        crate::MEMBER_BYTES + names + protocols + self.assignment.len()
    }

    pub(super) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| &**name == protocol)
    }

    /// Its metadata for a protocol; empty if it does not know it.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols
            .iter()
            .find(|(name, _)| &**name == protocol)
            .map(|(_, metadata)| metadata.clone())
            .unwrap_or_default()
    }

    pub(super) fn reads(&self, topic: &str) -> bool {
        self.protocols.iter().any(|(_, metadata)| {
            subscription::topics(metadata)
                .is_none_or(|topics| topics.iter().any(|name| name == topic))
        })
    }

    /// Whether a static member that came back still wants the same topics. Other metadata (what it owned before,
    /// say) may differ without need for a rebalance; for protocols that are not understood only equality counts.
    pub(super) fn wants_the_same(&self, join: &Join) -> bool {
        self.protocols.len() == join.protocols.len()
            && self
                .protocols
                .iter()
                .zip(&join.protocols)
                .all(|((name, mine), (other, theirs))| {
                    let topics = |bytes| {
                        subscription::topics(bytes).map(|mut names| {
                            names.sort();
                            names
                        })
                    };
                    name == other
                        && (mine == theirs || {
                            let mine = topics(mine);
                            mine.is_some() && mine == topics(theirs)
                        })
                })
    }
}
