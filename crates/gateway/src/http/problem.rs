//! Refusals as RFC 9457 problems.
//!
//! Guarantees: every refusal names the thing, the value, the limit where there is one, and the remedy; every error of
//! the broker has exactly one problem here. What a problem type means stands in `docs/http.md`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

/// A refusal on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Status of the answer.
    pub status: StatusCode,
    /// Last part of the problem's type, `urn:floe:problem:<kind>`.
    pub kind: &'static str,
    /// What happened, to what, and what to do.
    pub detail: String,
    /// Seconds after which to come again.
    pub retry_after: Option<u64>,
    /// Further members, for programs.
    pub members: Map<String, Value>,
}

impl Problem {
    /// A problem without further members.
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            detail: detail.into(),
            retry_after: None,
            members: Map::new(),
        }
    }

    /// The request is wrong.
    pub fn bad(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, detail)
    }

    /// A parameter is wrong.
    pub fn parameter(name: &str, value: &str, expected: &str) -> Self {
        Self::bad(
            "invalid-parameter",
            format!("parameter '{name}' is '{}'; give {expected}", shown(value)),
        )
        .with("parameter", name)
    }

    /// No such thing.
    pub fn absent(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, kind, detail)
    }

    /// Come again.
    pub fn later(detail: impl Into<String>, seconds: u64) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        problem.retry_after = Some(seconds);
        problem
    }

    /// With one more member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The problem as JSON.
    pub fn body(&self) -> Value {
        let mut body = self.members.clone();
        body.insert(
            "type".into(),
            format!("urn:floe:problem:{}", self.kind).into(),
        );
        body.insert(
            "title".into(),
            self.status.canonical_reason().unwrap_or("Problem").into(),
        );
        body.insert("status".into(), self.status.as_u16().into());
        body.insert("detail".into(), self.detail.clone().into());
        Value::Object(body)
    }
}

/// A value as a problem shows it: short, whatever was sent.
pub(crate) fn shown(value: &str) -> String {
    const SHOWN_CHARS: usize = 100;
    let mut text: String = value.chars().take(SHOWN_CHARS).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
