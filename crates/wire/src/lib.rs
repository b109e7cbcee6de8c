//! Every byte layout another process can see: Kafka messages, record batches and their codecs. No I/O.
//!
//! Guarantees: nothing here panics on foreign bytes or allocates from a length that was not checked against the
//! bytes at hand and a stated limit. Does not know topics, partitions or who asked.

pub mod batch;
pub mod codec;
pub mod frame;
pub mod produce;
pub mod varint;

pub use kacrab_protocol::generated::ErrorCode;
