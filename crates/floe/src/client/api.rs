//! The node's HTTP resources as the commands use them. All paths and field names stand here and nowhere else.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Answer, Ask, Client, refusal};
use crate::exit::{Code, Failure, Outcome};

const JSON: &str = "application/json";
const RECORDS: &str = "application/vnd.floe.records+json";
/// Most records of one read; a node bounds its answers by bytes, too.
const READ_MAX: u32 = 10_000;
/// Longest a poll may wait at the node for records; the client waits longer than this for its answer.
const WAIT_MS: u64 = 10_000;

impl Client {
    async fn ask(&mut self, method: Method, path: &str, body: Option<&Value>) -> Outcome<Answer> {
        self.expect(&ask(method, path, body)).await
    }

    /// All topics.
    pub async fn topics(&mut self) -> Outcome<Value> {
        self.get("/v1/topic").await
    }

    /// One topic.
    pub async fn topic(&mut self, name: &str) -> Outcome<Value> {
        self.get(&format!("/v1/topic/{}", segment(name))).await
    }

    /// Creates a topic; what is left out is the node's default.
    pub async fn create_topic(
        &mut self,
        name: &str,
        partitions: Option<u32>,
        settings: &[(String, String)],
    ) -> Outcome<Value> {
        let mut body = json!({});
        if let Some(partitions) = partitions {
            body["partitions"] = partitions.into();
        }
        for (setting, value) in settings {
            body["settings"][setting] = value.as_str().into();
        }
        let path = format!("/v1/topic/{}", segment(name));
        self.ask(Method::PUT, &path, Some(&body)).await?.json()
    }

    /// Deletes a topic.
    pub async fn delete_topic(&mut self, name: &str) -> Outcome {
        let path = format!("/v1/topic/{}", segment(name));
        self.ask(Method::DELETE, &path, None).await.map(drop)
    }

    /// All groups.
    pub async fn groups(&mut self) -> Outcome<Value> {
        self.get("/v1/group").await
    }

    /// One group.
    pub async fn group(&mut self, name: &str) -> Outcome<Value> {
        self.get(&format!("/v1/group/{}", segment(name))).await
    }

    /// Deletes a group and its positions.
    pub async fn delete_group(&mut self, name: &str) -> Outcome {
        let path = format!("/v1/group/{}", segment(name));
        self.ask(Method::DELETE, &path, None).await.map(drop)
    }

    /// Appends the records of one body.
    pub async fn produce(&mut self, topic: &str, query: &str, kind: Body, body: Bytes) -> Outcome {
        let path = format!("/v1/topic/{}/messages{query}", segment(topic));
        let content_type = match kind {
            Body::Lines => "application/x-ndjson",
            Body::Records => RECORDS,
        };
        let ask = Ask {
            method: Method::POST,
            path: &path,
            content_type: Some(content_type),
            accept: JSON,
            body,
        };
        self.expect(&ask).await.map(drop)
    }

    /// Reads a partition from `from` (a query such as `offset=5`), waiting at the node for records if there are none.
    pub async fn records(
        &mut self,
        topic: &str,
        partition: u64,
        from: &str,
        wait_ms: u64,
    ) -> Outcome<Batch> {
        let path = format!(
            "/v1/topic/{}/partitions/{partition}/records?{from}&max={READ_MAX}&wait={wait_ms}",
            segment(topic)
        );
        let answer = self
            .expect(&Ask {
                accept: "application/x-ndjson",
                ..ask(Method::GET, &path, None)
            })
            .await?;
        let header = |name: &str| {
            let text = answer.headers.get(name)?.to_str().ok()?;
            text.parse().ok()
        };
        let missing = || {
            Failure::failed(
                "the node's answer names no offset to go on from; is it of another release?",
            )
        };
        Ok(Batch {
            next_offset: header("floe-next-offset").ok_or_else(missing)?,
            commit_offset: header("floe-commit-offset").ok_or_else(missing)?,
            lines: answer.body,
        })
    }

    /// Joins a group.
    pub async fn register(&mut self, member: &Member<'_>, on_new_group: &str) -> Outcome {
        let path = format!(
            "/v1/consumer/register?{}&topic={}&onNewGroup={on_new_group}",
            member.query(),
            segment(member.topic)
        );
        self.ask(Method::PUT, &path, None).await.map(drop)
    }

    /// The next records of a group's member, as a JSON array; `None` when there are none for now.
    pub async fn poll(&mut self, member: &Member<'_>, is_patient: bool) -> Outcome<Option<Bytes>> {
        let wait = if is_patient { WAIT_MS } else { 1000 };
        let path = format!("/v1/consumer/poll?{}&wait={wait}", member.query());
        let answer = self
            .expect(&Ask {
                accept: RECORDS,
                ..ask(Method::POST, &path, None)
            })
            .await?;
        Ok((answer.status != StatusCode::NO_CONTENT).then_some(answer.body))
    }

    /// Leaves the group. Of what was given last, what lies below these offsets, by partition, counts as read.
    pub async fn goodbye(&mut self, member: &Member<'_>, read: &BTreeMap<u64, u64>) -> Outcome {
        let mut path = format!("/v1/consumer/goodbye?{}", member.query());
        if read.is_empty() {
            path.push_str("&commit=false");
        }
        for (partition, end) in read {
            path.push_str("&used=");
            path.push_str(&segment(&format!("{}:{partition}:{end}", member.topic)));
        }
        let answer = self.send(&ask(Method::POST, &path, None)).await?;
        match answer.status {
            // Gone already is gone.
            StatusCode::CONFLICT => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(refusal(&answer)),
        }
    }
}

/// Records of one partition, one a line as JSON.
#[derive(Debug)]
pub struct Batch {
    /// The lines.
    pub lines: Bytes,
    /// Where to read on.
    pub next_offset: u64,
    /// Where the partition ended.
    pub commit_offset: u64,
}

/// What a produce body holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// One value a line.
    Lines,
    /// A JSON array of records with keys.
    Records,
}

/// A member of a group as it names itself.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its group.
    pub group: &'a str,
    /// What it reads.
    pub topic: &'a str,
}

impl Member<'_> {
    fn query(&self) -> String {
        format!(
            "consumerId={}&group={}",
            segment(self.id),
            segment(self.group)
        )
    }
}

fn ask<'a>(method: Method, path: &'a str, body: Option<&Value>) -> Ask<'a> {
    Ask {
        method,
        path,
        content_type: body.map(|_| JSON),
        accept: JSON,
        body: body.map_or_else(Bytes::new, |body| body.to_string().into()),
    }
}

/// What stands in a path or a query as it is (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A name as one segment of a path or one value of a query.
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, UNRESERVED).to_string()
}

/// A number that JSON carries as a number or, for those who count past 2^53, as text.
pub fn number(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

/// A field that the node always sends.
pub fn field<'a>(value: &'a Value, name: &str) -> Outcome<&'a Value> {
    value.get(name).ok_or_else(|| {
        Failure::new(
            Code::Failed,
            format!("the node's answer has no '{name}'; is it of another release?"),
        )
    })
}

/// An array field; absent is empty.
pub fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A field as it stands in a table.
pub fn cell(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_for_paths_and_queries() {
        assert_eq!(segment("a.b_c-d"), "a.b_c-d");
        assert_eq!(segment("a/b ?é"), "a%2Fb%20%3F%C3%A9");
    }

    #[test]
    fn numbers_are_read_from_numbers_and_text() {
        assert_eq!(number(&json!(5)), Some(5));
        assert_eq!(
            number(&json!("9007199254740993")),
            Some(9_007_199_254_740_993)
        );
        assert_eq!(number(&json!(null)), None);
    }
}
