//! One record as JSON: what readers are given, and what producers may send back.

use floe_model::{PartitionIndex, TopicName};

use super::super::json::{write_string, write_text, write_value};
use super::Found;

/// Writes `{topic?, partition, offset, timestamp, key, value, headers}`.
pub(crate) fn record(
    out: &mut Vec<u8>,
    topic: Option<&TopicName>,
    partition: PartitionIndex,
    found: &Found<'_>,
    one_line: bool,
) {
    out.push(b'{');
    if let Some(topic) = topic {
        out.extend_from_slice(b"\"topic\":");
        write_string(out, topic.as_str());
        out.push(b',');
    }
    number(out, b"\"partition\":", partition.0);
    number(out, b",\"offset\":", found.offset.0);
    number(out, b",\"timestamp\":", found.timestamp.0);
    out.extend_from_slice(b",\"key\":");
    write_text(out, found.key);
    out.extend_from_slice(b",\"value\":");
    write_value(out, found.value, one_line);
    out.extend_from_slice(b",\"headers\":[");
    for (place, header) in found.headers.clone().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"key\":");
        write_text(out, Some(header.name));
        out.extend_from_slice(b",\"value\":");
        write_text(out, header.value);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

fn number(out: &mut Vec<u8>, name: &[u8], value: impl std::fmt::Display) {
    use std::io::Write;
    out.extend_from_slice(name);
    write!(out, "{value}").expect("writing into memory does not fail");
}
