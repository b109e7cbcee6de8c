//! The listeners' limits that are no settings; see [`crate::fixed`].

use super::activity::TAKEN_BYTES_PER_MS;
use super::limits::Limits;
use super::protocol::{CONNECTION_WINDOW, FIELDS, RESETS, SEND_BUFFER, STREAM_WINDOW};
use super::socket::{LINGER, LINGER_BYTES};
use crate::fixed::{Amount, Fixed, row};

pub(crate) fn fixed() -> Vec<Fixed> {
    let limits = Limits::default();
    let closed = "the connection is closed";
    vec![
        row(
            "from a connection to its first byte, or with HTTP/2 to its first request",
            Amount::Time(limits.first_byte),
            closed,
        ),
        row(
            "from the first byte of a head (HTTP/1.1) or of a frame's length (Kafka) to its last",
            Amount::Time(limits.head),
            closed,
        ),
        row(
            "without a byte of an answer being taken",
            Amount::Time(limits.write_stall),
            closed,
        ),
        row(
            "head of an HTTP request",
            Amount::Bytes(limits.head_bytes),
            "431",
        ),
        row("fields of a head", Amount::Count(FIELDS), "431"),
        row(
            "between two pieces of a body",
            Amount::Time(limits.body_stall),
            "408",
        ),
        row("a body in all", Amount::Time(limits.body), "408"),
        row(
            "HTTP/2: requests of a connection at once",
            Amount::Count(limits.streams as usize),
            "the caller waits",
        ),
        row(
            "HTTP/2: bytes of a body under way",
            Amount::Bytes(STREAM_WINDOW as usize),
            "the caller waits",
        ),
        row(
            "HTTP/2: the same of all bodies of a connection",
            Amount::Bytes(CONNECTION_WINDOW as usize),
            "the caller waits",
        ),
        row(
            "HTTP/2: bytes of an answer waiting for its caller",
            Amount::Bytes(SEND_BUFFER),
            "the rest waits in the node",
        ),
        row(
            "HTTP/2: bytes that a caller takes in a second of the answers under way, beside the time without a byte taken",
            Amount::Bytes(TAKEN_BYTES_PER_MS as usize * 1_000),
            closed,
        ),
        row(
            "HTTP/2: requests taken back by the caller at once",
            Amount::Count(RESETS),
            closed,
        ),
        row(
            "from the end of our side of a connection to the end of the caller's",
            Amount::Time(LINGER),
            closed,
        ),
        row(
            "bytes taken in meanwhile",
            Amount::Bytes(LINGER_BYTES),
            closed,
        ),
    ]
}
