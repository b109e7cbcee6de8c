//! Every byte layout another process can see: Kafka messages, record batches and their codecs, what nodes say to
//! one another. No I/O.
//!
//! Guarantees: nothing here panics on foreign bytes or allocates from a length that was not checked against the
//! bytes at hand and a stated limit. Of topics and partitions only ids pass through here; who asked is not known.

pub mod batch;
pub mod codec;
pub mod frame;
pub mod peer;
pub mod produce;
pub mod varint;

pub use kacrab_protocol::generated::ErrorCode;
