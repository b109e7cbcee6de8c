//! The outside: clock, chance, disk, memory, tasks, waiting for time; one real, one simulated.
//!
//! Guarantees: nothing else in Floe asks the machine for the time, for chance, for a file, a thread or a large
//! buffer, so a test decides all of them. Decides nothing itself, but how often the log is told the same.

pub mod clock;
mod complaints;
pub mod disk;
pub mod memory;
pub mod random;
pub mod tasks;
pub mod time;

pub use clock::Clock;
pub use complaints::Complaints;
pub use disk::{Disk, File, OpenOptions};
pub use memory::{Buffer, Pool};
pub use random::Random;
