//! Drives the shipped log on a simulated disk, and [whole nodes](nodes), from a seed, and checks every promise.
//!
//! Guarantees: one thread, one seed, no clock and no chance of its own, so a run that breaks a promise prints a seed that
//! breaks it again. After every fall: each acknowledged record is there once, at its offset, offsets dense; fences,
//! votes and catalog entries have not gone back; power loss alone is never called damage; recovering twice, or being
//! cut down while recovering, changes nothing; the offline check agrees.
//!
//! Deliberately models neither: it asks the shipped code only through its public surface.

mod batches;
mod chance;
mod check;
mod disk;
mod flip;
mod log_starts;
mod node;
pub mod nodes;
mod operations;
mod run;
mod torn;
mod truth;

pub use run::{Broken, Fate, Summary, run};
pub use torn::torn;
