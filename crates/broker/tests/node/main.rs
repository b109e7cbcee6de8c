//! A whole broker over the simulated disk: what its doors rely on, restarts and power cuts included.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

mod appends;
mod crashes;
mod harness;
mod offsets;
mod reading;
mod restarts;
mod topics;
