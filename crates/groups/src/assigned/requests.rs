//! What HTTP consumers ask.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use floe_model::TopicName;

use crate::{ConnectionId, ConsumerId, GroupId};

/// Where a group begins in a partition it has no position in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNewGroup {
    /// At the end as it is at registration; `startFromLatest`, 0.
    #[default]
    Latest,
    /// At the first record there is; `startFromEarliest`, 1.
    Earliest,
}

/// A consumer asks to take part in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The group.
    pub group: GroupId,
    /// The client's name for the consumer.
    pub consumer: ConsumerId,
    /// What it reads, in the order given; all members read the union. Need not exist yet.
    pub topics: Vec<TopicName>,
    /// Where to begin.
    pub on_new_group: OnNewGroup,
    /// Without a call for this long it is gone; `None` is the setting's.
    pub idle_timeout: Option<Duration>,
    /// For a connection-bound consumer: it lives as long as this connection.
    pub connection: Option<ConnectionId>,
}

/// Which consumer calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A stateless one, by its id.
    Id(ConsumerId),
    /// A connection-bound one, by its connection.
    Connection(ConnectionId),
}

/// Names one delivered chunk: of which registration, and the how manyeth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryToken {
    /// Random, one per registration.
    pub registration: u64,
    /// From 1, rising by one.
    pub number: u64,
}

impl fmt::Display for DeliveryToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.registration, self.number)
    }
}

impl FromStr for DeliveryToken {
    type Err = crate::Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || crate::Refusal::UnknownDelivery;
        let (registration, number) = text.split_once('-').ok_or_else(refused)?;
        Ok(Self {
            registration: u64::from_str_radix(registration, 16).map_err(|_| refused())?,
            number: number.parse().map_err(|_| refused())?,
        })
    }
}

/// What a poll says about the chunk delivered before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Received {
    /// Nothing said: it counts as received unless the door saw its delivery fail.
    #[default]
    Unsaid,
    /// `none`: nothing has been received under this registration.
    Nothing,
    /// The newest chunk received.
    UpTo(DeliveryToken),
}
