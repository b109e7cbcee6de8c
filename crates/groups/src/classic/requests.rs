//! What members of a classic group ask and are told, in the words of KIP-62, KIP-345 and KIP-394.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{GenerationId, InstanceId, MemberId};

/// A member asks to take part in the next generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Empty on the first attempt.
    pub member_id: MemberId,
    /// `group.instance.id`; makes it a static member.
    pub instance_id: Option<InstanceId>,
    /// The client's `client.id`.
    pub client_id: Arc<str>,
    /// Address it came from, for people.
    pub client_host: Arc<str>,
    /// `consumer`, `connect`, …
    pub protocol_type: Arc<str>,
    /// What it can do, best first: name and opaque metadata.
    pub protocols: Vec<(Arc<str>, Bytes)>,
    /// Without a sign of life for this long it is gone.
    pub session_timeout: Duration,
    /// How long a rebalance waits for it to join again.
    pub rebalance_timeout: Duration,
    /// Whether a new dynamic member must come back with the id it is given (JoinGroup v4 and later).
    pub needs_known_id: bool,
    /// Whether the client understands "you lead, but need not assign" (JoinGroup v9 and later).
    pub may_skip_assignment: bool,
}

impl Join {
    /// What the member will take in memory, about.
    pub fn bytes(&self) -> usize {
        let protocols = self.protocols.iter();
        let protocols: usize = protocols
            .map(|(name, bytes)| name.len() + bytes.len())
            .sum();
        protocols + self.client_id.len() + self.client_host.len()
    }
}

/// The answer to [`Join`]: the generation, and for the leader everybody's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The new generation.
    pub generation: GenerationId,
    /// As the members named it.
    pub protocol_type: Arc<str>,
    /// The protocol all members have in common and most like best.
    pub protocol: Arc<str>,
    /// Who assigns.
    pub leader: MemberId,
    /// The member that asked.
    pub member_id: MemberId,
    /// Whether the leader need not assign: what was assigned stays.
    pub skip_assignment: bool,
    /// Everybody, for the leader; empty for the others.
    pub members: Vec<JoinedMember>,
}

/// One member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member_id: MemberId,
    /// Its `group.instance.id`.
    pub instance_id: Option<InstanceId>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// Who asks, in which generation: the fence of everything a member does after it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its id; empty for a client without membership.
    pub member_id: MemberId,
    /// Its `group.instance.id`.
    pub instance_id: Option<InstanceId>,
    /// The generation it believes in; [`GenerationId::NONE`] for a client without membership.
    pub generation: GenerationId,
}

/// A member asks for its assignment; the leader brings everybody's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Who asks.
    pub caller: Caller,
    /// Must be the group's, where given (KIP-559).
    pub protocol_type: Option<Arc<str>>,
    /// Must be the group's, where given (KIP-559).
    pub protocol: Option<Arc<str>>,
    /// From the leader: member and opaque assignment.
    pub assignments: Vec<(MemberId, Bytes)>,
}

impl Sync {
    /// What the assignment will take in memory.
    pub fn bytes(&self) -> usize {
        self.assignments.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// The answer to [`Sync`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// The group's protocol type.
    pub protocol_type: Arc<str>,
    /// The chosen protocol.
    pub protocol: Arc<str>,
    /// What the leader assigned to the member.
    pub assignment: Bytes,
}

/// One member that goes, by its own will or an operator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its id; may be empty when the instance id is given.
    pub member_id: MemberId,
    /// Its `group.instance.id`.
    pub instance_id: Option<InstanceId>,
}

/// Names one pending [`Join`] or [`Sync`]; chosen by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the machine tells the driver to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a [`Join`].
    Joined(Ticket, Result<Joined, crate::Refusal>),
    /// To a [`Sync`].
    Synced(Ticket, Result<Synced, crate::Refusal>),
}
