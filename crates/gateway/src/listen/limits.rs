//! What one listener grants its callers: how many there may be and how long each may take over what.
//!
//! Guarantees: every wait for a caller ends. Values only; [`super::activity`] judges by them.

use std::time::Duration;

/// Limits of the connections of one or several listeners.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most connections at once.
    pub connections: usize,
    /// What becomes of one more.
    pub full: Full,
    /// From the connection to its first byte; with HTTP/2, whose first bytes ask nothing, to its first request.
    pub first_byte: Duration,
    /// From the first byte of a request's head to its last (HTTP/1.1).
    pub head: Duration,
    /// Between requests.
    pub idle: Duration,
    /// Between two pieces of a request body.
    pub body_stall: Duration,
    /// From the first byte of a request body to its last.
    pub body: Duration,
    /// Without one byte of an answer being taken by the caller.
    pub write_stall: Duration,
    /// From the last byte of an HTTP produce's body until its records are durable.
    pub durable: Duration,
    /// Largest head of a request, in bytes; also the read buffer of an HTTP/1.1 connection.
    pub head_bytes: usize,
    /// Concurrent requests of one HTTP/2 connection.
    pub streams: u32,
    /// From the wish to stop until connections with a request in flight are cut.
    pub drain: Duration,
}

/// What becomes of a connection for which there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It is told so and closed: the others may hold more than a connection, such as a consumer's partitions.
    Refuse,
    /// The one that has asked nothing for the longest is closed for it: nothing is lost with it but a caller's time.
    GiveWay,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            full: Full::Refuse,
            first_byte: Duration::from_secs(30),
            head: Duration::from_secs(10),
            idle: Duration::from_mins(10),
            body_stall: Duration::from_secs(10),
            body: Duration::from_mins(1),
            write_stall: Duration::from_secs(30),
            durable: Duration::from_secs(30),
            head_bytes: 32 * 1024,
            streams: 128,
            drain: Duration::from_secs(5),
        }
    }
}
