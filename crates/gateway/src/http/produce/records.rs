//! `application/vnd.floe.records+json`: an array, or one object after another (NDJSON too), of
//! `{key, value, headers, timestamp, partition}`; what a reader was given can be sent back as it is.
//!
//! Guarantees: null and empty stay apart; a record without `value` is refused, since leaving it out would delete.
//! Records are handed on one by one: a large body does not become a larger list.

use std::fmt;

use bytes::Bytes;
use floe_model::{PartitionIndex, Timestamp};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::json;
use super::super::object::Object;
use super::{Problem, Record, checked_timestamp};

/// A record and where it wants to go.
#[derive(Debug, PartialEq)]
pub(super) struct Incoming {
    pub(super) record: Record,
    pub(super) partition: Option<PartitionIndex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    #[serde(borrow)]
    value: &'a RawValue,
    #[serde(borrow, default)]
    headers: Option<&'a RawValue>,
    timestamp: Option<i64>,
    partition: Option<u32>,
    /// Part of what readers are given; means nothing here.
    #[serde(rename = "offset")]
    _offset: Option<IgnoredAny>,
    /// As above.
    #[serde(rename = "topic")]
    _topic: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    #[serde(borrow)]
    key: &'a RawValue,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// Hands on each record of `body`; the first refusal ends it, with the record's number in it.
pub(super) fn each(
    body: &Bytes,
    mut take: impl FnMut(Incoming) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut number = 0_u64;
    let mut refusal = None;
    let mut one = |Object(written): Object<Written<'_>>| {
        number += 1;
        let taken = incoming(&written, body)
            .map_err(|why| refused(number, &why))
            .and_then(&mut take);
        taken.map_err(|problem| refusal = Some(problem))
    };
    let is_array = body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    let parsed = if is_array {
        let mut parser = serde_json::Deserializer::from_slice(body);
        Array(&mut one)
            .deserialize(&mut parser)
            .and_then(|()| parser.end())
    } else {
        let mut parsed = Ok(());
        for written in serde_json::Deserializer::from_slice(body).into_iter::<Object<Written<'_>>>()
        {
            match written.map(&mut one) {
                Ok(Ok(())) => {}
                Ok(Err(())) => break,
                Err(error) => {
                    parsed = Err(error);
                    break;
                }
            }
        }
        parsed
    };
    match (refusal, parsed) {
        (Some(problem), _) => Err(problem),
        (None, Err(error)) => Err(refused(number + 1, &error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

fn refused(number: u64, why: &str) -> Problem {
    Problem::bad(
        "invalid-record",
        format!("record {number} of the body: {why}"),
    )
    .with("record", number)
}

fn incoming(written: &Written<'_>, body: &Bytes) -> Result<Incoming, String> {
    Ok(Incoming {
        record: Record {
            key: json::read_text(written.key, "key")?,
            value: json::read_value(written.value, body)?,
            headers: headers(written.headers)?,
            timestamp: match written.timestamp {
                None | Some(-1) => Timestamp::NONE,
                Some(ms) => checked_timestamp(ms)
                    .map_err(|expected| format!("timestamp is {ms}; give {expected}"))?,
            },
        },
        partition: written.partition.map(PartitionIndex),
    })
}

fn headers(raw: Option<&RawValue>) -> Result<Vec<(Bytes, Option<Bytes>)>, String> {
    let Some(raw) = raw else {
        return Ok(Vec::new());
    };
    let list: Vec<Object<Header<'_>>> = serde_json::from_str(raw.get()).map_err(|e| {
        format!("headers: {e}; give a list of {{\"key\": \"name\", \"value\": \"…\"}}")
    })?;
    let one = |Object(header): Object<Header<'_>>| {
        let name = json::read_text(Some(header.key), "header key")?;
        let name = name.ok_or("header key is null; give a string")?;
        Ok((name, json::read_text(header.value, "header value")?))
    };
    list.into_iter().map(one).collect()
}

/// Walks an array without collecting it.
struct Array<F>(F);

impl<'de, F> DeserializeSeed<'de> for Array<F>
where
    F: FnMut(Object<Written<'de>>) -> Result<(), ()>,
{
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F> Visitor<'de> for Array<F>
where
    F: FnMut(Object<Written<'de>>) -> Result<(), ()>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(written) = list.next_element()? {
            (self.0)(written).map_err(|()| A::Error::custom("refused"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(body: &str) -> Result<Vec<Incoming>, String> {
        let mut all = Vec::new();
        let body = Bytes::copy_from_slice(body.as_bytes());
        each(&body, |record| {
            all.push(record);
            Ok(())
        })
        .map_err(|p| p.detail)?;
        Ok(all)
    }

    #[test]
    fn an_array_and_lines_give_the_same_records() {
        let array = all(r#"[{"key":"a","value":{"n": 1}}, {"value":null}]"#).unwrap();
        let lines = all("{\"key\":\"a\",\"value\":{\"n\": 1}}\n\n{\"value\":null}\n").unwrap();
        assert_eq!(array, lines);
        assert_eq!(array[0].record.key.as_deref(), Some(&b"a"[..]));
        assert_eq!(array[0].record.value.as_deref(), Some(&br#"{"n": 1}"#[..]));
        assert_eq!(array[1].record.value, None);
        assert_eq!(all(" [] ").unwrap(), []);
        assert_eq!(all("\n \n").unwrap(), []);
    }

    #[test]
    fn null_empty_and_bytes_stay_apart_in_key_value_and_headers() {
        let one = |text: &str| all(text).unwrap().remove(0).record;
        let record = one(
            r#"{"key":"","value":"","headers":[{"key":"h","value":""},{"key":"h","value":null},{"key":"","value":{"$base64":"/w=="}}]}"#,
        );
        assert_eq!(record.key, Some(Bytes::new()));
        assert_eq!(record.value, Some(Bytes::new()));
        let h = Bytes::from("h");
        assert_eq!(
            record.headers,
            [
                (h.clone(), Some(Bytes::new())),
                (h, None),
                (Bytes::new(), Some(Bytes::from(&b"\xff"[..])))
            ]
        );
        let record = one(r#"{"key":null,"value":null,"headers":[]}"#);
        assert_eq!(
            (record.key, record.value, record.headers.len()),
            (None, None, 0)
        );
    }

    #[test]
    fn partition_and_time_are_taken_and_what_readers_are_given_is_accepted() {
        let read = r#"{"topic":"t","partition":3,"offset":9,"timestamp":12,"key":"k","value":1,"headers":[]}"#;
        let one = all(read).unwrap().remove(0);
        assert_eq!(one.partition, Some(PartitionIndex(3)));
        assert_eq!(one.record.timestamp, Timestamp(12));
    }

    #[test]
    fn a_wrong_record_is_refused_with_its_number_and_what_is_wrong() {
        for (body, parts) in [
            (
                r#"[{"value":1},{"key":"x"}]"#,
                ["record 2", "missing field `value`"],
            ),
            (r#"{"value":1}{"value":2,"vlaue":3}"#, ["record 2", "vlaue"]),
            (r#"[{"value":1,"key":5}]"#, ["record 1", "key is 5"]),
            (
                r#"[{"value":1,"timestamp":1764547200000000}]"#,
                ["record 1", "microseconds"],
            ),
            (
                r#"[{"value":1,"headers":{"a":"b"}}]"#,
                ["record 1", "give a list"],
            ),
            (
                r#"[{"value":1,"headers":[{"key":null}]}]"#,
                ["record 1", "header key is null"],
            ),
            (r#"[{"value":1}"#, ["record 2", "EOF"]),
            (r#"[{"value":1}] x"#, ["record 2", "trailing"]),
            ("5", ["record 1", "invalid type"]),
            (
                r#"[["k",1,null,5,1,0,"t"]]"#,
                ["record 1", "invalid type: sequence"],
            ),
            (
                r#"["k",1,null,5,1,0,"t"]"#,
                ["record 1", "invalid type: string"],
            ),
            (
                r#"[{"value":1,"headers":[["h","v"]]}]"#,
                ["record 1", "invalid type: sequence"],
            ),
        ] {
            let detail = all(body).unwrap_err();
            assert!(parts.iter().all(|p| detail.contains(p)), "{body}: {detail}");
        }
        assert!(all("[\u{7f}").is_err());
        let invalid = Bytes::from(&b"[{\"value\":\"\xff\"}]"[..]);
        assert!(each(&invalid, |_| Ok(())).is_err());
    }
}
