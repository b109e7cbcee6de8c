//! The doors: Kafka, HTTP, metrics; they translate and never decide.

pub mod fixed;
pub mod http;
pub mod kafka;
pub mod listen;
pub mod metrics;
