//! Bytes as JSON and back, without loss.
//!
//! A record's key, value and header values are bytes or null; JSON has text, numbers and structure. The rule:
//!
//! | bytes | JSON |
//! |---|---|
//! | null | `null` |
//! | an object, array, number or boolean as JSON text | that JSON, byte for byte (values only) |
//! | other UTF-8 | a string; no bytes: `""` |
//! | other bytes | `{"$base64": "…"}` |
//! | JSON text that the lines above cannot tell apart (a string, `null`, an object that looks like a marker) | `{"$json": …}` |
//!
//! Guarantees: writing what was read gives the same bytes, for every byte sequence. Keys and header values take
//! strings and `$base64` only. The values of a consumer's poll are the one exception: there every JSON text stands
//! as it is, strings too, as in the API this one is compatible with; what is not JSON is `{"$text": "…"}` or
//! `{"$base64": "…"}`.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::value::RawValue;

const BASE64_MARKER: &str = "$base64";
const JSON_MARKER: &str = "$json";
const TEXT_MARKER: &str = "$text";

/// Bytes encoded at once: a multiple of 3, so that parts join without padding.
const BASE64_PART: usize = 3 * 1024;

/// Memory that is written to: a vector, or an answer on its way.
pub(crate) trait Text: Write {
    /// Adds bytes.
    fn put(&mut self, bytes: &[u8]) {
        self.write_all(bytes)
            .expect("writing into memory does not fail");
    }
}

impl<W: Write + ?Sized> Text for W {}

/// Writes a key or a header's value.
pub(crate) fn write_text(out: &mut impl Write, bytes: Option<&[u8]>) {
    match bytes {
        None => out.put(b"null"),
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => write_string(out, text),
            Err(_) => write_base64(out, bytes),
        },
    }
}

/// Writes a value. With `one_line`, JSON that holds line breaks is written as a string, so that a line stays one.
pub(crate) fn write_value(out: &mut impl Write, bytes: Option<&[u8]>, one_line: bool) {
    let Some(bytes) = bytes else {
        out.put(b"null");
        return;
    };
    match json_kind(bytes) {
        Some(Kind::Plain) if !(one_line && bytes.contains(&b'\n')) => out.put(bytes),
        Some(Kind::Ambiguous) if !bytes.contains(&b'\n') => write_json_marker(out, bytes),
        _ => write_text(out, Some(bytes)),
    }
}

/// Writes a value of a poll.
pub(crate) fn write_poll_value(out: &mut impl Write, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        out.put(b"null");
        return;
    };
    match json_kind(bytes) {
        Some(Kind::Ambiguous) if bytes[0] != b'"' => write_json_marker(out, bytes),
        Some(_) => out.put(bytes),
        None => match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.put(b"{\"$text\":");
                write_string(out, text);
                out.put(b"}");
            }
            Err(_) => write_base64(out, bytes),
        },
    }
}

/// Writes a JSON string.
pub(crate) fn write_string(out: &mut impl Write, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always written as JSON into memory");
}

/// Reads a key or a header's value. `what` names it in the refusal.
pub(crate) fn read_text(raw: Option<&RawValue>, what: &str) -> Result<Option<Bytes>, String> {
    let Some(raw) = raw.filter(|r| r.get() != "null") else {
        return Ok(None);
    };
    match raw.get().as_bytes()[0] {
        b'"' => string(raw).map(Some),
        b'{' => match marker(raw) {
            Some((TEXT_MARKER, inner)) => string(inner).map(Some),
            Some((BASE64_MARKER, inner)) => base64(inner, what).map(Some),
            _ => Err(format!(
                "{what} is an object; give a string, null or {{\"$base64\": \"…\"}}"
            )),
        },
        _ => Err(format!(
            "{what} is {}; give a string, null or {{\"$base64\": \"…\"}}",
            raw.get()
        )),
    }
}

/// Reads a value; `body` holds `raw` and is shared instead of copied where it can be.
pub(crate) fn read_value(raw: &RawValue, body: &Bytes) -> Result<Option<Bytes>, String> {
    match raw.get().as_bytes()[0] {
        b'n' => Ok(None),
        b'"' => string(raw).map(Some),
        b'{' => match marker(raw) {
            Some((TEXT_MARKER, inner)) => string(inner).map(Some),
            Some((BASE64_MARKER, inner)) => base64(inner, "value").map(Some),
            Some((_, inner)) => Ok(Some(body.slice_ref(inner.get().as_bytes()))),
            None => Ok(Some(body.slice_ref(raw.get().as_bytes()))),
        },
        _ => Ok(Some(body.slice_ref(raw.get().as_bytes()))),
    }
}

enum Kind {
    /// Stands for itself.
    Plain,
    /// Needs the marker.
    Ambiguous,
}

/// Whether bytes are one JSON text without space around it, and whether it can stand for itself.
fn json_kind(bytes: &[u8]) -> Option<Kind> {
    let (first, last) = (*bytes.first()?, *bytes.last()?);
    if first.is_ascii_whitespace() || last.is_ascii_whitespace() {
        return None;
    }
    // Most text is told from JSON by its first byte.
    if !matches!(
        first,
        b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'
    ) {
        return None;
    }
    let raw: &RawValue = serde_json::from_slice(bytes).ok()?;
    Some(match first {
        b'"' | b'n' => Kind::Ambiguous,
        b'{' if marker(raw).is_some() => Kind::Ambiguous,
        _ => Kind::Plain,
    })
}

/// The marker an object is, if it is one: a single member with one of the three names.
fn marker(raw: &RawValue) -> Option<(&'static str, &RawValue)> {
    struct Only<'a>(Option<(&'static str, &'a RawValue)>);

    impl<'de: 'a, 'a> serde::Deserialize<'de> for Only<'a> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Members;
            impl<'de> serde::de::Visitor<'de> for Members {
                type Value = Only<'de>;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Only<'de>, A::Error> {
                    let name: Option<std::borrow::Cow<'de, str>> = map.next_key()?;
                    let known = [BASE64_MARKER, JSON_MARKER, TEXT_MARKER];
                    let name = name.and_then(|n| known.into_iter().find(|k| n == *k));
                    let Some(name) = name else {
                        while map
                            .next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?
                            .is_some()
                        {}
                        return Ok(Only(None));
                    };
                    let inner: &'de RawValue = map.next_value()?;
                    let more = map.next_key::<serde::de::IgnoredAny>()?.is_some();
                    if more {
                        map.next_value::<serde::de::IgnoredAny>()?;
                        while map
                            .next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?
                            .is_some()
                        {}
                    }
                    Ok(Only((!more).then_some((name, inner))))
                }
            }
            deserializer.deserialize_map(Members)
        }
    }
    // Looking at the first member is enough for nearly every object.
    let text = raw.get();
    let first = text[1..].trim_start();
    if !first.starts_with("\"$") && !first.starts_with("\"\\u") {
        return None;
    }
    serde_json::from_str::<Only<'_>>(text).ok()?.0
}

fn write_json_marker(out: &mut impl Write, json: &[u8]) {
    out.put(b"{\"$json\":");
    out.put(json);
    out.put(b"}");
}

fn write_base64(out: &mut impl Write, bytes: &[u8]) {
    out.put(b"{\"$base64\":\"");
    let mut text = [0; BASE64_PART / 3 * 4];
    for part in bytes.chunks(BASE64_PART) {
        let written = BASE64
            .encode_slice(part, &mut text)
            .expect("the room is what base64 needs");
        out.put(&text[..written]);
    }
    out.put(b"\"}");
}

fn string(raw: &RawValue) -> Result<Bytes, String> {
    let text: String = serde_json::from_str(raw.get()).map_err(|e| format!("string: {e}"))?;
    Ok(text.into())
}

fn base64(raw: &RawValue, what: &str) -> Result<Bytes, String> {
    let refused = |why: &dyn std::fmt::Display| format!("{what}: $base64 does not decode: {why}");
    let text: std::borrow::Cow<'_, str> =
        serde_json::from_str(raw.get()).map_err(|e| refused(&e))?;
    BASE64
        .decode(text.as_bytes())
        .map(Bytes::from)
        .map_err(|e| refused(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(bytes: Option<&[u8]>, one_line: bool) -> String {
        let mut out = b"[".to_vec();
        write_value(&mut out, bytes, one_line);
        out.push(b']');
        let body = Bytes::from(out);
        let raw: Vec<&RawValue> = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            read_value(raw[0], &body).unwrap().as_deref(),
            bytes,
            "{body:?}"
        );
        raw[0].get().to_owned()
    }

    #[test]
    fn every_value_comes_back_as_the_bytes_it_was() {
        for (bytes, expected) in [
            (None, "null"),
            (Some(&b""[..]), r#""""#),
            (Some(b"hello"), r#""hello""#),
            (Some(br#"{"a": 1,  "b":[ ]}"#), r#"{"a": 1,  "b":[ ]}"#),
            (Some(b"12.50"), "12.50"),
            (Some(b"true"), "true"),
            (Some(b"truer"), r#""truer""#),
            (Some(b" 1 "), r#"" 1 ""#),
            (Some(b"null"), r#"{"$json":null}"#),
            (Some(br#""abc""#), r#"{"$json":"abc"}"#),
            (Some(br#"{"$json":1}"#), r#"{"$json":{"$json":1}}"#),
            (Some(br#"{"$base64":1,"x":2}"#), r#"{"$base64":1,"x":2}"#),
            (
                Some(br#"{ "\u0024json" : 1}"#),
                r#"{"$json":{ "\u0024json" : 1}}"#,
            ),
            (Some(b"\xff\x00"), r#"{"$base64":"/wA="}"#),
            (Some(b"{\xff}"), r#"{"$base64":"e/99"}"#),
            (Some("é\u{0}\n\"".as_bytes()), "\"é\\u0000\\n\\\"\""),
            (
                Some(b"99999999999999999999999999"),
                "99999999999999999999999999",
            ),
            (Some(b"nul"), r#""nul""#),
        ] {
            assert_eq!(round_trip(bytes, true), expected);
            round_trip(bytes, false);
        }
    }

    #[test]
    fn a_value_stays_on_one_line_where_a_line_is_a_record() {
        for bytes in [
            &b"{\n\"a\":1\n}"[..],
            b"\"a\nb\"",
            b"{\"$json\":\n1}",
            b"[\n]",
        ] {
            assert!(!round_trip(Some(bytes), true).contains('\n'));
            round_trip(Some(bytes), false);
        }
    }

    #[test]
    fn deep_nesting_neither_panics_nor_overflows() {
        let deep = "[".repeat(500_000) + &"]".repeat(500_000);
        round_trip(Some(deep.as_bytes()), true);
        round_trip(Some("[".repeat(500_000).as_bytes()), true);
        let markers = "{\"$json\":".repeat(50_000) + "1" + &"}".repeat(50_000);
        round_trip(Some(markers.as_bytes()), true);
    }

    #[test]
    fn random_bytes_come_back() {
        let random = floe_world::random::Seeded::new(7);
        let alphabet = br#"{}[]"$:,jsonbae64text 01\n\u0024tru"#;
        for _ in 0..50_000 {
            let length = floe_world::Random::next_u64(&random) % 12;
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    let chance = floe_world::Random::next_u64(&random);
                    if chance.is_multiple_of(50) {
                        (chance >> 8) as u8
                    } else {
                        alphabet[(chance >> 8) as usize % alphabet.len()]
                    }
                })
                .collect();
            round_trip(Some(&bytes), true);
        }
    }

    #[test]
    fn keys_take_strings_null_and_markers_only() {
        let read = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            read_text(Some(&raw), "key")
        };
        assert_eq!(read("null"), Ok(None));
        assert_eq!(read(r#""""#), Ok(Some(Bytes::new())));
        assert_eq!(read(r#""a/b""#), Ok(Some(Bytes::from("a/b"))));
        assert_eq!(
            read(r#"{"$base64":"/w=="}"#),
            Ok(Some(Bytes::from(&b"\xff"[..])))
        );
        for wrong in [
            "1",
            "[]",
            "{}",
            r#"{"$base64":"?"}"#,
            r#"{"$json":1}"#,
            "true",
        ] {
            assert!(read(wrong).unwrap_err().starts_with("key"), "{wrong}");
        }
    }

    #[test]
    fn poll_values_are_json_as_it_is_and_marked_otherwise() {
        let written = |bytes: Option<&[u8]>| {
            let mut out = Vec::new();
            write_poll_value(&mut out, bytes);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Some(br#""abc""#)), r#""abc""#);
        assert_eq!(written(Some(br#"{"a":1}"#)), r#"{"a":1}"#);
        assert_eq!(written(Some(b"abc")), r#"{"$text":"abc"}"#);
        assert_eq!(written(Some(b"")), r#"{"$text":""}"#);
        assert_eq!(written(Some(b"\xff")), r#"{"$base64":"/w=="}"#);
        assert_eq!(written(None), "null");
        assert_eq!(written(Some(b"null")), r#"{"$json":null}"#);
        assert_eq!(
            written(Some(br#"{"$text":"x"}"#)),
            r#"{"$json":{"$text":"x"}}"#
        );
    }
}
