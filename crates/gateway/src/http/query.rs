//! The query of a request: decoded once, each parameter known by name.
//!
//! Guarantees: `%2F` in a value is `/` and never anything else; `+` is a space, as forms write it; values are bytes
//! until text is asked for. A parameter that is not known is refused by name: a mistyped `partitonKey` must not
//! put a record into the wrong partition in silence.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::percent_decode;

use super::problem::{Problem, shown};

/// Most parameters of one request.
pub(super) const PARAMETERS_MAX: usize = 1000;

/// Decoded parameters in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(&'static str, Vec<u8>)>);

/// One known parameter and the other spellings it goes by.
pub(crate) type Known = (&'static str, &'static [&'static str]);

impl Query {
    /// Parses; `known` are the names this resource understands.
    pub(crate) fn parse(raw: Option<&str>, known: &[Known]) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for part in raw.unwrap_or("").split('&').filter(|p| !p.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decode(name);
            let found = known.iter().find(|(n, others)| {
                name == n.as_bytes() || others.iter().any(|o| name == o.as_bytes())
            });
            let Some((name, _)) = found else {
                let names: Vec<_> = known.iter().map(|(n, _)| *n).collect();
                let remedy = if names.is_empty() {
                    "this resource has none".to_owned()
                } else {
                    format!("known here: {}", names.join(", "))
                };
                let name = String::from_utf8_lossy(&name);
                return Err(Problem::bad(
                    "unknown-parameter",
                    format!("unknown parameter '{}'; {remedy}", shown(&name)),
                ));
            };
            if all.len() == PARAMETERS_MAX {
                return Err(Problem::bad(
                    "unknown-parameter",
                    format!("more than {PARAMETERS_MAX} parameters; send fewer"),
                ));
            }
            all.push((*name, decode(value).into_owned()));
        }
        Ok(Self(all))
    }

    /// The only value of a parameter, as bytes.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<Bytes>, Problem> {
        let mut values = self.0.iter().filter(|(n, _)| *n == name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Problem::bad(
                "invalid-parameter",
                format!("parameter '{name}' is given more than once; give it once"),
            ));
        }
        Ok(first.map(|(_, v)| Bytes::copy_from_slice(v)))
    }

    /// The only value of a parameter, as text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        self.bytes(name)?.map(|v| text(name, &v)).transpose()
    }

    /// All values of a parameter, as text.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        let values = self.0.iter().filter(|(n, _)| *n == name);
        values.map(|(_, v)| text(name, v)).collect()
    }

    /// The only value of a parameter, parsed.
    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        let parsed = value.parse();
        parsed
            .map(Some)
            .map_err(|_| Problem::parameter(name, &value, expected))
    }

    /// A duration: a number of milliseconds, or a number with `ms` or `s`.
    pub(crate) fn duration(&self, name: &str, most: Duration) -> Result<Option<Duration>, Problem> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        duration(&value)
            .filter(|d| *d <= most)
            .map(Some)
            .ok_or_else(|| {
                let expected = format!(
                    "milliseconds (500, 500ms) or seconds (5s), at most {} s",
                    most.as_secs()
                );
                Problem::parameter(name, &value, &expected)
            })
    }
}

/// See [`Query::duration`].
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (digits, scale) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => text
            .strip_suffix('s')
            .map_or((text, 1), |digits| (digits, 1000)),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(scale).map(Duration::from_millis)
}

fn text(name: &str, value: &[u8]) -> Result<String, Problem> {
    String::from_utf8(value.to_vec()).map_err(|_| {
        Problem::parameter(
            name,
            &String::from_utf8_lossy(value),
            "UTF-8 text, percent-encoded",
        )
    })
}

fn decode(raw: &str) -> Cow<'_, [u8]> {
    if raw.contains('+') {
        let spaced = raw.replace('+', " ");
        let decoded: Vec<u8> = percent_decode(spaced.as_bytes()).collect();
        return Cow::Owned(decoded);
    }
    percent_decode(raw.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        ("partitionKey", &["partition_key"]),
        ("topic", &[]),
        ("wait", &[]),
    ];

    fn key(raw: &str) -> Option<Vec<u8>> {
        let query = Query::parse(Some(raw), KNOWN).unwrap();
        query.bytes("partitionKey").unwrap().map(|b| b.to_vec())
    }

    #[test]
    fn keys_are_decoded_exactly_once() {
        for (raw, expected) in [
            ("partitionKey=a%2Fb", &b"a/b"[..]),
            ("partitionKey=a/b", b"a/b"),
            ("partitionKey=%252F", b"%2F"),
            ("partitionKey=a%252Fb", b"a%2Fb"),
            ("partitionKey=a%20b", b"a b"),
            ("partitionKey=a+b", b"a b"),
            ("partitionKey=a%2Bb", b"a+b"),
            ("partitionKey=^", b"^"),
            ("partitionKey=", b""),
            ("partitionKey", b""),
            ("partitionKey=%00", b"\0"),
            ("partitionKey=%C3%A9", "é".as_bytes()),
            ("partitionKey=%FF", b"\xff"),
            ("partitionKey=100%", b"100%"),
            ("partition_key=x", b"x"),
        ] {
            assert_eq!(key(raw).as_deref(), Some(expected), "{raw}");
        }
        assert_eq!(key(""), None);
    }

    #[test]
    fn an_unknown_or_doubled_parameter_is_refused_by_name() {
        let problem = Query::parse(Some("partitonKey=x"), KNOWN).unwrap_err();
        assert!(
            problem.detail.contains("'partitonKey'"),
            "{}",
            problem.detail
        );
        assert!(
            problem.detail.contains("partitionKey, topic"),
            "{}",
            problem.detail
        );
        let query = Query::parse(Some("topic=a&topic=b"), KNOWN).unwrap();
        assert_eq!(query.texts("topic").unwrap(), ["a", "b"]);
        assert!(
            query
                .text("topic")
                .unwrap_err()
                .detail
                .contains("more than once")
        );
    }

    #[test]
    fn durations_are_milliseconds_unless_they_say_seconds() {
        let get = |raw| {
            Query::parse(Some(raw), KNOWN)
                .unwrap()
                .duration("wait", Duration::from_mins(1))
        };
        assert_eq!(get("wait=500").unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(get("wait=500ms").unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(get("wait=5s").unwrap(), Some(Duration::from_secs(5)));
        assert_eq!(get("").unwrap(), None);
        for wrong in [
            "wait=-1",
            "wait=61s",
            "wait=",
            "wait=5m",
            "wait=99999999999999999999s",
        ] {
            assert!(get(wrong).is_err(), "{wrong}");
        }
    }
}
