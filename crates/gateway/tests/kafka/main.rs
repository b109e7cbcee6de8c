//! The Kafka door over a real broker on a simulated disk: what goes over the socket, good and hostile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it fails"
)]

mod client;
mod door;
mod everyday;
mod hostile;
mod node;
