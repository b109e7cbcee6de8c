//! The nouns: ids, offsets, epochs, topics, limits; values only.
//!
//! Guarantees: every value that crosses a crate border in a public signature has a type of its own here, and a
//! value that exists is valid (a [`TopicName`] cannot be `..`). Does no I/O and knows no protocol.

mod ids;
mod key;
pub mod limits;
mod topic;

pub use ids::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, ProducerId, Timestamp, TopicId,
    TopicPartition,
};
pub use key::{murmur2, partition_for_key};
pub use topic::{InvalidTopicName, TopicName};
