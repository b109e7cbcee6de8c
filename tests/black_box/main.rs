//! Black-box tests of the built binary, one file per subject. A test's name is the sentence it proves.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests live in the real world"
)]

mod clients;
mod commands;
mod crash;
mod demo;
mod fixture;
mod groups;
mod hostile;
mod http_door;
mod http_page;
mod offsets;
mod records;
mod start;
mod topics;
