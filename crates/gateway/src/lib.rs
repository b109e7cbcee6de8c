//! The doors: Kafka, HTTP, metrics; they translate and never decide.

pub mod kafka;
pub mod listen;
