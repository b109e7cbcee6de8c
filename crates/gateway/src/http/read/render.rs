//! One record as JSON: what readers are given, and what producers may send back.

use std::io::Write;

use floe_model::{PartitionIndex, TopicName};

use super::super::json::{Text as _, write_string, write_text, write_value};
use super::Found;

/// Writes `{topic?, partition, offset, timestamp, key, value, headers}`.
pub(crate) fn record(
    out: &mut impl Write,
    topic: Option<&TopicName>,
    partition: PartitionIndex,
    found: &Found<'_>,
    one_line: bool,
) {
    out.put(b"{");
    if let Some(topic) = topic {
        out.put(b"\"topic\":");
        write_string(out, topic.as_str());
        out.put(b",");
    }
    number(out, b"\"partition\":", partition.0);
    number(out, b",\"offset\":", found.offset.0);
    number(out, b",\"timestamp\":", found.timestamp.0);
    out.put(b",\"key\":");
    write_text(out, found.key);
    out.put(b",\"value\":");
    write_value(out, found.value, one_line);
    out.put(b",\"headers\":[");
    for (place, header) in found.headers.clone().enumerate() {
        if place > 0 {
            out.put(b",");
        }
        out.put(b"{\"key\":");
        write_text(out, Some(header.name));
        out.put(b",\"value\":");
        write_text(out, header.value);
        out.put(b"}");
    }
    out.put(b"]}");
}

fn number(out: &mut impl Write, name: &[u8], value: impl std::fmt::Display) {
    out.put(name);
    write!(out, "{value}").expect("writing into memory does not fail");
}
