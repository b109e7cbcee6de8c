//! Bytes as a node writes them into JSON, and back (the rule stands in `docs/http.md`).
//!
//! Guarantees: what was produced comes back byte for byte; null and empty stay apart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

/// An object of one member that stands for bytes which JSON cannot carry, or would not tell apart.
#[derive(Deserialize)]
enum Marker<'a> {
    /// Text that is not JSON.
    #[serde(rename = "$text")]
    Text(String),
    /// Bytes that are not text.
    #[serde(rename = "$base64")]
    Base64(String),
    /// JSON that would be taken for something else.
    #[serde(rename = "$json", borrow)]
    Json(&'a RawValue),
}

/// The bytes behind a key or a value; `None` for null.
pub fn bytes(raw: &RawValue) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let text = raw.get();
    let bytes = match text.as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b'"') => serde_json::from_str::<String>(text)?.into_bytes(),
        Some(b'{') if text[1..].trim_start().starts_with("\"$") => {
            match serde_json::from_str::<Marker<'_>>(text) {
                Ok(Marker::Text(text)) => text.into_bytes(),
                Ok(Marker::Base64(text)) => STANDARD
                    .decode(text)
                    .map_err(|error| serde_json::Error::custom(format!("$base64: {error}")))?,
                Ok(Marker::Json(json)) => json.get().as_bytes().to_vec(),
                // An object like any other.
                Err(_) => text.as_bytes().to_vec(),
            }
        }
        _ => text.as_bytes().to_vec(),
    };
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_gives_the_bytes_it_stands_for() {
        for (json, expected) in [
            ("null", None),
            (r#""""#, Some(&b""[..])),
            (r#""a\n\u00e9""#, Some("a\né".as_bytes())),
            (r#"{"a": 1,  "b":[ ]}"#, Some(br#"{"a": 1,  "b":[ ]}"#)),
            ("12.50", Some(b"12.50")),
            (r#"{"$base64":"/wA="}"#, Some(b"\xff\x00")),
            (r#"{"$text":"x"}"#, Some(b"x")),
            (r#"{"$json":"abc"}"#, Some(br#""abc""#)),
            (r#"{"$json":null}"#, Some(b"null")),
            (r#"{"$other":1}"#, Some(br#"{"$other":1}"#)),
            (r#"{"$text":1}"#, Some(br#"{"$text":1}"#)),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(bytes(&raw).unwrap().as_deref(), expected, "{json}");
        }
        let broken: Box<RawValue> = serde_json::from_str(r#"{"$base64":"?"}"#).unwrap();
        assert!(bytes(&broken).is_err());
    }
}
