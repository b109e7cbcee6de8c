//! Which APIs are spoken, in which versions: one coherent release level, so that clients that infer features from
//! the table infer right. What is absent here is absent: a client that asks for it is disconnected, as Kafka does.

/// The release whose versions these are.
pub const RELEASE: &str = "4.3";

/// One API.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Api {
    /// Its number on the wire.
    pub(super) key: Key,
    /// Kafka's name.
    pub(super) name: &'static str,
    /// Lowest version taken.
    pub(super) min: i16,
    /// Highest version taken.
    pub(super) max: i16,
    /// First version with compact fields and tagged fields (KIP-482).
    flexible_from: i16,
}

macro_rules! apis {
    ($($name:ident $key:literal $min:literal $max:literal $flexible:expr;)*) => {
        /// The number of an API that is spoken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Key { $($name = $key),* }

        /// All of them, by number.
        pub(super) static APIS: &[Api] = &[$(Api {
            key: Key::$name, name: stringify!($name), min: $min, max: $max, flexible_from: $flexible,
        }),*];
    };
}

const NEVER: i16 = i16::MAX;

apis! {
    Produce 0 3 13 9;
    Fetch 1 4 18 12;
    ListOffsets 2 1 11 6;
    Metadata 3 0 13 9;
    OffsetCommit 8 2 10 8;
    OffsetFetch 9 1 10 6;
    FindCoordinator 10 0 6 3;
    JoinGroup 11 0 9 6;
    Heartbeat 12 0 4 4;
    LeaveGroup 13 0 5 4;
    SyncGroup 14 0 5 4;
    DescribeGroups 15 0 6 5;
    ListGroups 16 0 5 3;
    ApiVersions 18 0 4 3;
    CreateTopics 19 2 7 5;
    DeleteTopics 20 1 6 4;
    InitProducerId 22 0 5 2;
    OffsetForLeaderEpoch 23 2 4 4;
    DescribeConfigs 32 1 4 4;
    DeleteGroups 42 0 2 2;
    OffsetDelete 47 0 0 NEVER;
    DescribeCluster 60 0 2 0;
}

impl Api {
    /// The API of this number, if it is spoken.
    pub(super) fn find(key: i16) -> Option<&'static Self> {
        APIS.iter().find(|api| api.key as i16 == key)
    }

    /// Its place in [`APIS`].
    pub(super) fn place(&self) -> usize {
        APIS.iter().position(|api| api == self).unwrap_or_default()
    }

    /// Whether this version is taken.
    pub(super) fn takes(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// Whether messages of this version have tagged fields.
    pub(super) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// The lowest version that is advertised. Produce says 0 although 3 is the lowest taken: older librdkafka turns
    /// compression off otherwise (KAFKA-18659).
    pub(super) fn advertised_min(&self) -> i16 {
        match self.key {
            Key::Produce => 0,
            _ => self.min,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kacrab_protocol::version::{request_header_version, response_header_version};

    #[test]
    fn flexible_versions_are_those_of_the_message_definitions() {
        for api in APIS {
            for version in api.min..=api.max {
                let flexible = request_header_version(api.key as i16, version) == 2;
                assert_eq!(api.is_flexible(version), flexible, "{api:?} {version}");
                let answer = response_header_version(api.key as i16, version) == 1;
                let expected = flexible && api.key != Key::ApiVersions;
                assert_eq!(answer, expected, "{api:?} {version}");
            }
        }
    }
}
