//! `POST /v1/consumer/commit` and `POST /v1/consumer/goodbye`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use floe_groups::assigned::Used;
use floe_model::{Offset, PartitionIndex, TopicPartition};

use super::super::problem::Problem;
use super::super::query::Query;
use super::super::{Answered, State, node};
use super::{caller, parse};
use crate::listen::Connection;

/// Commits what the consumer was given last.
pub(crate) async fn commit(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
) -> Answered {
    let query = parse(query.as_deref())?;
    let caller = caller(&query, &connection)?;
    api.deliveries.take_back(api.broker.groups(), &caller).await;
    api.broker.groups().commit_delivered(&caller).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Ends a consumer; what it was given last is committed: all of it, with `used` as far as that says, with
/// `commit=false` nothing.
pub(crate) async fn goodbye(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
) -> Answered {
    let query = parse(query.as_deref())?;
    let caller = caller(&query, &connection)?;
    let ends = used(&api, &query)?;
    let used = match query.text("commit")?.as_deref() {
        None | Some("true") if ends.is_empty() => Used::All,
        None | Some("true") => Used::UpTo(ends),
        Some("false") if ends.is_empty() => Used::Nothing,
        Some(other) => {
            let expected = if ends.is_empty() {
                "true or false"
            } else {
                "true, or left out, beside 'used'"
            };
            return Err(Problem::parameter("commit", other, expected));
        }
    };
    api.deliveries.take_back(api.broker.groups(), &caller).await;
    api.broker.groups().goodbye(&caller, &used).await?;
    Ok(node::text("OK"))
}

/// The parameters `used=TOPIC:PARTITION:OFFSET`: below which offset the consumer has used what it was given.
fn used(api: &State, query: &Query) -> Result<Vec<(TopicPartition, Offset)>, Problem> {
    let catalog = api.broker.catalog();
    let texts = query.texts("used")?;
    let parsed = texts.iter().map(|text| {
        let mut parts = text.rsplitn(3, ':');
        let offset = parts.next().and_then(|offset| offset.parse().ok());
        let partition = parts.next().and_then(|partition| partition.parse().ok());
        let topic = parts.next().and_then(|topic| catalog.topic(topic));
        let (Some(offset), Some(partition), Some(topic)) = (offset, partition, topic) else {
            let expected = "TOPIC:PARTITION:OFFSET with a topic that is there, the offset after the last one used";
            return Err(Problem::parameter("used", text, expected));
        };
        let partition = TopicPartition {
            topic: topic.id,
            partition: PartitionIndex(partition),
        };
        Ok((partition, Offset(offset)))
    });
    parsed.collect()
}
