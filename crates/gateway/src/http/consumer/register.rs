//! `PUT /v1/consumer/register`: a consumer takes part in a group.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::HeaderMap;
use floe_broker::groups::Registered;
use floe_groups::assigned::{OnNewGroup, Registration};
use floe_groups::{ConsumerId, GroupId};
use floe_model::TopicName;
use serde::Deserialize;
use serde_json::Value;

use super::super::body::{self, Bounds, DOCUMENT_BYTES_MAX};
use super::super::object::Object;
use super::super::problem::{Problem, shown};
use super::super::query::{Query, duration};
use super::super::{Answered, State, node};
use super::{bound, parse};
use crate::listen::Connection;

/// Longest session time-out.
pub(in crate::http) const SESSION_MAX: Duration = Duration::from_hours(24);

/// See the file's head.
pub(crate) async fn register(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    let query = parse(query.as_deref())?;
    let registration = if query.text("consumerId")?.is_some() || !query.texts("topic")?.is_empty() {
        from_query(&query)?
    } else {
        let bounds = Bounds::new(DOCUMENT_BYTES_MAX, &api.gate.limits, api.bodies.clone());
        let body = body::read_any(&headers, body, &bounds).await?;
        if body.is_empty() {
            return Err(missing());
        }
        from_body(&body, &connection)?
    };
    let registered = api.broker.groups().register(registration).await?;
    Ok(node::text(match registered {
        Registered::New => "OK",
        Registered::Already => "Already registered",
    }))
}

fn missing() -> Problem {
    Problem::bad(
        "invalid-registration",
        "Consumer id and topics can not be empty; give consumerId and one topic or more",
    )
}

fn topics(names: &[String]) -> Result<Vec<TopicName>, Problem> {
    if names.is_empty() {
        return Err(missing());
    }
    names.iter().map(|n| Ok(TopicName::parse(n)?)).collect()
}

fn policy(text: &str) -> Result<OnNewGroup, Problem> {
    match text {
        "startFromLatest" | "0" => Ok(OnNewGroup::Latest),
        "startFromEarliest" | "1" => Ok(OnNewGroup::Earliest),
        other => Err(Problem::bad(
            "invalid-registration",
            format!(
                "Invalid offset reset policy value '{}'; give onNewGroup as startFromLatest (0) or startFromEarliest (1)",
                shown(other)
            ),
        )),
    }
}

fn from_query(query: &Query) -> Result<Registration, Problem> {
    let id = query
        .text("consumerId")?
        .filter(|id| !id.is_empty())
        .ok_or_else(missing)?;
    let group = query.text("group")?.unwrap_or_else(|| "default".to_owned());
    let on_new_group = query.text("onNewGroup")?;
    Ok(Registration {
        group: GroupId::from(group),
        consumer: ConsumerId::from(id),
        topics: topics(&query.texts("topic")?)?,
        on_new_group: on_new_group.map_or(Ok(OnNewGroup::default()), |text| policy(&text))?,
        idle_timeout: query.duration("sessionTimeout", SESSION_MAX)?,
        connection: None,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Info {
    #[serde(alias = "consumerId", alias = "consumer_id", default)]
    id: String,
    group: Option<String>,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(alias = "on_new_group")]
    on_new_group: Option<Value>,
    #[serde(alias = "session_timeout")]
    session_timeout: Option<Value>,
}

fn from_body(body: &[u8], connection: &Connection) -> Result<Registration, Problem> {
    let Object(info): Object<Info> = serde_json::from_slice(body).map_err(|e| {
        Problem::bad(
            "invalid-registration",
            format!("Invalid ConsumerInfo payload: {e}; give {{\"id\", \"group\", \"topics\": [..], \"onNewGroup\"}}"),
        )
    })?;
    if info.id.is_empty() {
        return Err(missing());
    }
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let on_new_group = info.on_new_group.filter(|v| !v.is_null());
    let session = info.session_timeout.filter(|v| !v.is_null());
    let idle_timeout = session.map(|value| {
        let text = plain(&value);
        duration(&text)
            .filter(|d| *d <= SESSION_MAX)
            .ok_or_else(|| {
                Problem::parameter(
                    "sessionTimeout",
                    &text,
                    "milliseconds or seconds (30s), at most a day",
                )
            })
    });
    Ok(Registration {
        group: GroupId::from(info.group.unwrap_or_else(|| "default".to_owned())),
        consumer: ConsumerId::from(info.id),
        topics: topics(&info.topics)?,
        on_new_group: on_new_group.map_or(Ok(OnNewGroup::default()), |v| policy(&plain(&v)))?,
        idle_timeout: idle_timeout.transpose()?,
        connection: Some(bound(connection)),
    })
}
