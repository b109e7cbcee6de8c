//! Names that clients choose or are given inside groups; cheap to clone.

use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as it came.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether it is the empty string.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// Name of a consumer group.
    GroupId
);
name!(
    /// Id of a member of a classic group; given by the coordinator, empty while not yet known.
    MemberId
);
name!(
    /// `group.instance.id` of a static member (KIP-345).
    InstanceId
);
name!(
    /// Id of an HTTP consumer; chosen by the client.
    ConsumerId
);

/// Number of one connection to a door, unique for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Number of one rebalance of a classic group; rises by one with each. Kafka's generation id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationId(pub i32);

impl GenerationId {
    /// What a client without membership sends.
    pub const NONE: Self = Self(-1);
}
