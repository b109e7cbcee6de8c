//! Classic Kafka groups: members join, one of them leads and assigns, all sync (KIP-62, 345, 394, 559).
//!
//! ```text
//!            first join                 all joined, or the rebalance time-out
//!   Empty ───────────────▶ Preparing ─────────────────────────────────────────▶ Completing
//!     ▲                     ▲  ▲  │ nobody left                                   │    │
//!     └─────────────────────┼──┼──┘                     the leader has assigned   │    │
//!                           │  └─────────────────────── a member joins, goes ─────┼────┘
//!                           │                           or does not sync          ▼
//!                           └──────── a member goes, or joins with other ◀──── Stable
//!                                     metadata, or the leader joins again
//! ```
//!
//! Guarantees: members of one generation agree on it, on its protocol and its leader; whoever is not of the current
//! generation is told so and changes nothing; a member is waited for at most its own time-outs. One answer per
//! ticket. Does not read assignments, and metadata only of `consumer` members' topic names.

mod fence;
mod join;
mod leave;
mod member;
mod rebalance;
mod requests;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{GenerationId, InstanceId, MemberId, Settings};

pub use member::Member;
pub use requests::{Answer, Caller, Join, Joined, JoinedMember, Leaving, Sync, Synced, Ticket};
pub use subscription::topics as subscribed_topics;

/// Where a group stands. Times are the driver's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No members.
    Empty,
    /// Members are to join again.
    Preparing {
        /// Who has not joined by then is out.
        deadline: Duration,
        /// The first rebalance of an empty group waits this long for more members.
        gather_until: Option<Duration>,
    },
    /// Members have joined; the leader is to assign.
    Completing,
    /// Everybody has, or can fetch, its assignment.
    Stable,
}

/// One classic group.
#[derive(Clone, Debug)]
pub struct Group {
    settings: Arc<Settings>,
    state: State,
    generation: GenerationId,
    protocol_type: Option<Arc<str>>,
    protocol: Option<Arc<str>>,
    leader: Option<MemberId>,
    members: BTreeMap<MemberId, Member>,
    statics: BTreeMap<InstanceId, MemberId>,
    /// Ids given out and not yet used, with the time they lapse.
    pending: BTreeMap<MemberId, Duration>,
    /// Who has not synced in this generation by then is out.
    sync_deadline: Option<Duration>,
    answers: Vec<Answer>,
}

impl Group {
    /// A group without members.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            state: State::Empty,
            generation: GenerationId(0),
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            statics: BTreeMap::new(),
            pending: BTreeMap::new(),
            sync_deadline: None,
            answers: Vec::new(),
        }
    }

    /// What is to be sent since the last call.
    pub fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it has no members and nobody is about to become one: it can be forgotten.
    pub fn is_vacant(&self) -> bool {
        self.members.is_empty() && self.pending.is_empty()
    }

    /// The current generation.
    pub fn generation(&self) -> GenerationId {
        self.generation
    }

    /// `consumer`, `connect`, …; none without members.
    pub fn protocol_type(&self) -> Option<&Arc<str>> {
        self.protocol_type.as_ref()
    }

    /// The protocol chosen for this generation.
    pub fn protocol(&self) -> Option<&Arc<str>> {
        self.protocol.as_ref()
    }

    /// Everybody in it, by id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let members: usize = self.members().map(Member::bytes).sum();
        let pending = self.pending.keys().map(|id| id.as_str().len());
        members + pending.map(|id| crate::MEMBER_BYTES + id).sum::<usize>()
    }

    /// Whether a member of protocol type `consumer` reads this topic; metadata that cannot be understood counts as yes.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
            && self.members().any(|member| member.reads(topic))
    }
}
