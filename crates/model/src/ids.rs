//! Ids and positions, one type each, so that none can stand in for another.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Stable numeric id of a node; on Kubernetes the StatefulSet ordinal. Kafka's broker id.
    NodeId(u32)
);
number!(
    /// One life of one node's data for one partition; random, never 0 when known.
    Incarnation(u64)
);
number!(
    /// One life of a process over one data directory; rises by at least one with each start.
    Boot(u32)
);
number!(
    /// Number of a generation of a partition; Kafka's leader epoch. The first is 0.
    LeaderEpoch(u32)
);
number!(
    /// Number of a partition inside its topic, from 0.
    PartitionIndex(u32)
);
number!(
    /// Id of an idempotent producer (KIP-98).
    ProducerId(i64)
);
number!(
    /// Place of a record in its partition, from 0; never negative.
    Offset(u64)
);
number!(
    /// Milliseconds since the Unix epoch, as Kafka counts them; -1 means none.
    Timestamp(i64)
);

impl Offset {
    /// The first offset of a new partition.
    pub const ZERO: Self = Self(0);

    /// The offset `count` records further on.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl LeaderEpoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Timestamp {
    /// What a record without a time carries.
    pub const NONE: Self = Self(-1);
}

/// Identity of one life of a topic: 128 random bits (KIP-516). A re-created topic has another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// Kafka's "no id".
    pub const ZERO: Self = Self([0; 16]);
}

impl fmt::Display for TopicId {
    /// As 32 hexadecimal digits: safe in paths on every file system.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One partition of one life of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's life.
    pub topic: TopicId,
    /// The partition inside it.
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}
