//! Log starts as a node keeps them: facts in a catalog stream, durable before a file goes.
//!
//! ```text
//! entry   topic 16 | u32 partition | u64 log start
//! ```
//! The last one of a partition holds; a partition that begins a new life begins at 0 again.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use floe_log::CatalogEntry;
use floe_log::verify::LogStarts;
use floe_model::{Offset, PartitionIndex, TopicId, TopicPartition};

/// Their stream.
pub(crate) const GROUP: u32 = 2;

/// Draws one.
pub(crate) fn encode(partition: TopicPartition, to: u64) -> Bytes {
    let mut data = BytesMut::new();
    data.put_slice(&partition.topic.0);
    data.put_u32_le(partition.partition.0);
    data.put_u64_le(to);
    data.freeze()
}

fn decode(mut data: Bytes) -> (TopicPartition, Offset) {
    let mut topic = [0; 16];
    data.copy_to_slice(&mut topic);
    let partition = TopicPartition {
        topic: TopicId(topic),
        partition: PartitionIndex(data.get_u32_le()),
    };
    (partition, Offset(data.get_u64_le()))
}

/// What entries lead to.
pub(crate) fn fold(entries: &[CatalogEntry]) -> LogStarts {
    let data = entries.iter().map(|entry| entry.data.clone());
    data.map(decode).collect()
}

/// What a disk says.
pub(crate) fn found(streams: &[floe_log::Stream]) -> LogStarts {
    let own = streams.iter().find(|stream| stream.group == GROUP);
    own.map_or_else(LogStarts::new, |stream| fold(&stream.entries))
}
