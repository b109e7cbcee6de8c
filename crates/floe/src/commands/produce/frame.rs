//! Lines gathered into the body of one request.
//!
//! Guarantees: a body stays below what a node takes by default unless one line alone is larger; the bytes of a value are
//! those of its line. Reads no input and sends nothing.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::api::{Body, segment};
use crate::exit::{Failure, Outcome};

/// Bytes of one body: a node takes 1 MiB by default.
const BODY_BYTES: usize = 512 * 1024;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Nowhere.
    None,
    /// One for all.
    All(String),
    /// The field of each line's object.
    Field(String),
    /// What stands before this text.
    Before(String),
}

/// A body that waits to be sent.
#[derive(Debug)]
pub(super) struct Framer {
    keys: Keys,
    body: Vec<u8>,
    records: u64,
    line: u64,
}

/// A body and what it holds.
#[derive(Debug)]
pub(super) struct Framed {
    /// Its media type.
    pub(super) kind: Body,
    /// Query of the request.
    pub(super) query: String,
    /// The bytes.
    pub(super) body: Bytes,
    /// Records in it.
    pub(super) records: u64,
    /// Number of the last line in it, from 1.
    pub(super) lines: u64,
}

#[derive(Serialize)]
struct Record<'a> {
    key: &'a str,
    value: &'a RawValue,
}

#[derive(Serialize)]
struct TextRecord<'a> {
    key: &'a str,
    value: &'a str,
}

impl Framer {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            body: Vec::with_capacity(BODY_BYTES),
            records: 0,
            line: 0,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Adds a line, or returns false when what waits has to be sent first.
    pub(super) fn add(&mut self, line: &[u8]) -> Outcome<bool> {
        if !self.is_empty() && self.body.len() + line.len() > BODY_BYTES {
            return Ok(false);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            self.line += 1;
            return Ok(true);
        }
        match &self.keys {
            Keys::None | Keys::All(_) => {
                self.body.extend_from_slice(line);
                self.body.push(b'\n');
            }
            Keys::Field(field) => {
                let (key, value) = by_field(line, field).map_err(|why| self.wrong(&why))?;
                self.frame(&Record { key: &key, value })?;
            }
            Keys::Before(separator) => {
                let text = std::str::from_utf8(line).map_err(|_| self.wrong("it is not UTF-8"))?;
                let (key, value) = text
                    .split_once(separator.as_str())
                    .ok_or_else(|| self.wrong(&format!("it has no {separator:?}")))?;
                self.frame(&TextRecord { key, value })?;
            }
        }
        self.line += 1;
        self.records += 1;
        Ok(true)
    }

    fn frame(&mut self, record: &impl Serialize) -> Outcome {
        self.body.push(if self.is_empty() { b'[' } else { b',' });
        serde_json::to_writer(&mut self.body, record)
            .map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::failed(format!("line {} of the input: {why}", self.line + 1))
    }

    /// What waits, if anything does.
    pub(super) fn take(&mut self) -> Option<Framed> {
        if self.is_empty() {
            return None;
        }
        let mut body = std::mem::replace(&mut self.body, Vec::with_capacity(BODY_BYTES));
        let (kind, query) = match &self.keys {
            Keys::None => (Body::Lines, String::new()),
            Keys::All(key) => (Body::Lines, format!("?partitionKey={}", segment(key))),
            Keys::Field(_) | Keys::Before(_) => {
                body.push(b']');
                (Body::Records, String::new())
            }
        };
        Some(Framed {
            kind,
            query,
            body: body.into(),
            records: std::mem::take(&mut self.records),
            lines: self.line,
        })
    }
}

/// The value of a line's field as a key, and the line as a value.
fn by_field<'a>(line: &'a [u8], field: &str) -> Result<(String, &'a RawValue), String> {
    let value: &RawValue = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let object = std::collections::BTreeMap::<String, &RawValue>::deserialize(
        &mut serde_json::Deserializer::from_slice(line),
    )
    .map_err(|_| "it is not a JSON object, so it has no field to take a key from".to_owned())?;
    let found = object
        .get(field)
        .ok_or_else(|| format!("its object has no field {field:?}"))?;
    let key = match serde_json::from_str(found.get()) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Null) => return Err(format!("its field {field:?} is null")),
        _ => found.get().to_owned(),
    };
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(keys: Keys, lines: &[&str]) -> Framed {
        let mut framer = Framer::new(keys);
        for line in lines {
            assert!(framer.add(line.as_bytes()).unwrap());
        }
        framer.take().unwrap()
    }

    #[test]
    fn blank_lines_are_no_records_and_line_ends_no_bytes() {
        let framed = framed(Keys::None, &["{\"a\":1}\r\n", "\n", "  \n", "b"]);
        assert_eq!(&framed.body[..], b"{\"a\":1}\nb\n");
        assert_eq!((framed.records, framed.lines), (2, 4));
    }

    #[test]
    fn a_field_becomes_the_key_and_the_value_keeps_its_bytes() {
        let lines = ["{ \"k\" : \"x\", \"n\":1.0 }\n", "{\"k\":5}\n"];
        let framed = framed(Keys::Field("k".into()), &lines);
        assert_eq!(
            &framed.body[..],
            br#"[{"key":"x","value":{ "k" : "x", "n":1.0 }},{"key":"5","value":{"k":5}}]"#
        );
        assert_eq!(framed.kind, Body::Records);
    }

    #[test]
    fn a_line_without_its_key_is_named() {
        let mut framer = Framer::new(Keys::Field("k".into()));
        assert!(framer.add(b"{\"k\":1}\n").unwrap());
        for (line, why) in [
            (
                "{\"x\":1}",
                "line 2 of the input: its object has no field \"k\"",
            ),
            (
                "{\"k\":null}",
                "line 2 of the input: its field \"k\" is null",
            ),
            ("[1]", "line 2 of the input: it is not a JSON object"),
        ] {
            let failure = framer.add(line.as_bytes()).unwrap_err();
            assert!(failure.message.starts_with(why), "{failure}");
        }
    }

    #[test]
    fn a_body_is_sent_before_it_grows_past_its_limit() {
        let mut framer = Framer::new(Keys::All("k/1".into()));
        let line = vec![b'x'; BODY_BYTES - 10];
        assert!(framer.add(&line).unwrap());
        assert!(!framer.add(&line).unwrap());
        assert_eq!(framer.take().unwrap().query, "?partitionKey=k%2F1");
        assert!(framer.add(&line).unwrap());
    }

    #[test]
    fn text_before_the_separator_is_the_key() {
        let framed = framed(Keys::Before(":".into()), &["a:b:c\n"]);
        assert_eq!(&framed.body[..], br#"[{"key":"a","value":"b:c"}]"#);
    }
}
