//! Media types: what a body is, and what answer a caller wants (RFC 9110, 8.3 and 12.5.1).

use axum::http::{HeaderMap, header};

/// JSON.
pub(crate) const JSON: &str = "application/json";
/// One JSON text a line.
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// Records with key, value, headers, timestamp and partition; see `docs/http.md`.
pub(crate) const RECORDS: &str = "application/vnd.floe.records+json";
/// Records as length and bytes.
pub(crate) const FRAMES: &str = "application/vnd.polar.producer.frames";
/// The bodies that can be more than one record.
#[cfg(test)]
pub(crate) const STRUCTURED: [&str; 3] = [NDJSON, RECORDS, FRAMES];
/// The binary answer of a poll.
pub(crate) const CONSUMER_MESSAGE: &str = "application/vnd.polar.consumermessage";

/// The media type of a body, without its parameters, in lower case.
pub(crate) fn of_body(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    essence(value.unwrap_or(""))
}

/// The first of `offered` that the caller names in `Accept`; wildcards name nothing.
pub(crate) fn wanted<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Option<&'a str> {
    let values = headers.get_all(header::ACCEPT);
    let named: Vec<String> = values
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter(|part| !is_excluded(part))
        .map(essence)
        .collect();
    let found = named.iter().find_map(|n| offered.iter().find(|o| n == *o));
    found.copied()
}

fn essence(value: &str) -> String {
    let end = value.find(';').unwrap_or(value.len());
    value[..end].trim().to_ascii_lowercase()
}

/// Whether a weight of zero takes the type out.
fn is_excluded(part: &str) -> bool {
    part.split(';').skip(1).any(|p| {
        let weight = p
            .trim()
            .strip_prefix("q=")
            .and_then(|w| w.parse::<f32>().ok());
        weight == Some(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn parameters_and_case_do_not_change_a_media_type() {
        let headers = with(header::CONTENT_TYPE, "Application/X-NDJSON ; charset=utf-8");
        assert_eq!(of_body(&headers), NDJSON);
        assert_eq!(of_body(&HeaderMap::new()), "");
    }

    #[test]
    fn only_a_type_that_is_named_is_wanted() {
        let want = |value| wanted(&with(header::ACCEPT, value), &[JSON, NDJSON]);
        assert_eq!(want("application/json"), Some(JSON));
        assert_eq!(want("text/html, application/x-ndjson;q=0.5"), Some(NDJSON));
        assert_eq!(want("application/json;q=0, */*"), None);
        assert_eq!(want("*/*"), None);
        assert_eq!(wanted(&HeaderMap::new(), &[JSON]), None);
    }
}
