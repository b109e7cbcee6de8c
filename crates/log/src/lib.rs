//! One node's partitions on one disk: journal, segments, indexes, recovery, retention.
//!
//! Guarantees: what was reported durable ([`Events::durable`], a kept [`Receipt`]) is there after any crash or power
//! cut, or damage to the disk is seen and named ([`Verdict`], [`ReadError::Lost`]). Appends never wait for the disk.
//!
//! Deliberately does not: agree with other nodes, validate what clients send, decide what may be deleted.
//!
//! Everything that decides is a step over a [`floe_world::Disk`] (`Log::step_*`); the threads of [`Log::start`]
//! only loop over the steps, and the simulator calls them in one thread.

mod admission;
mod api;
mod append;
mod checkpoint;
mod config;
mod control;
mod engine;
mod error;
mod files;
mod fill;
pub mod format;
mod generation;
mod journal;
mod log;
pub mod metrics;
mod partition;
mod read;
mod receipt;
mod recovery;
mod removal;
mod retention;
mod ring;
mod run;
mod segment;
mod slots;
mod streams;
mod threads;
pub mod verify;

pub use admission::Admission;
pub use api::{
    CatalogEntry, ColdRead, Durable, Events, Generation, LostRange, Outcome, Recovered,
    RecoveredPartition, SegmentInfo, Slices, Snapshot, Stream, TimeLookup, Verdict, Vote,
};
pub use append::Origin;
pub use config::{Config, Setup};
pub use error::{AppendError, Failure, Full, OpenError, ReadError};
pub use journal::Step;
pub use log::Log;
pub use metrics::Metrics;
pub use partition::PartitionLog;
pub use receipt::Receipt;
