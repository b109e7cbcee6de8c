//! Listening: what every door shares between `accept` and its own protocol.
//!
//! Guarantees: connections are counted and bounded, every wait for a caller ends, and a stop is heard by all of them
//! at once. Knows no resource and no message.

mod accept;
mod activity;
mod connection;
mod fixed;
mod limits;
mod metrics;
mod protocol;
mod request;
mod socket;
mod stop;
#[cfg(test)]
mod tests;

pub use accept::{Accepted, Gate, Serve};
pub use activity::{Activity, Overdue};
pub use connection::{Connection, ConnectionId};
pub(crate) use fixed::fixed;
pub use limits::{Full, Limits};
pub use metrics::Metrics;
pub use protocol::Http;
pub use stop::{Phase, Stop, Stopper};
