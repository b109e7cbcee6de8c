//! Groups over a whole broker on the simulated disk: what both doors rely on, restarts and power cuts included.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

mod churn;
mod consumers;
mod members;
mod positions;
mod words;

#[path = "../node/harness.rs"]
#[allow(
    dead_code,
    reason = "the words of the other suite, not all of them needed here"
)]
mod harness;
