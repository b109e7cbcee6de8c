//! Defaults of the limits that users can set, each with its unit in its name.

/// `max.message.bytes`: largest stored record batch (Kafka: 1 MiB plus a batch's overhead of 12).
pub const BATCH_BYTES_MAX: usize = 1_048_588;
/// `socket.request.max.bytes`: largest Kafka frame.
pub const FRAME_BYTES_MAX: usize = 100 * 1024 * 1024;
/// `num.partitions`: partitions of a topic created on first use.
pub const PARTITIONS_DEFAULT: u32 = 4;
/// Most partitions of one topic.
pub const PARTITIONS_PER_TOPIC_MAX: u32 = 10_000;
/// `log.retention.hours`.
pub const RETENTION_HOURS: u64 = 168;
/// `offset.metadata.max.bytes`.
pub const OFFSET_METADATA_BYTES_MAX: usize = 4096;
