//! The HTTP door over a real broker on a simulated disk, called over real sockets on ports the system chose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is a failure with its place"
)]

mod bodies;
mod consume;
mod harness;
mod produce;
mod read;
mod resources;
