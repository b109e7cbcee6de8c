//! What the black-box tests share: a node as a process, and the ways to speak to it from outside.
//!
//! Guarantees: every node runs the built release binary, on loopback, on ports the system said are free, over a
//! folder of its own, and is gone when its `Node` is dropped. Waits are for a state, with a deadline that is only
//! ever met by a failure.
//! Deliberately not here: any crate of Floe. What a test knows of Floe, it knows from its doors.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test helper lives in the real world, and its failure is the test's failure"
)]

pub mod batch;
pub mod contract;
pub mod crash;
pub mod fixture;
pub mod http;
pub mod kafka;
pub mod node;
pub mod ports;
pub mod tools;
pub mod wait;

pub use node::Node;
