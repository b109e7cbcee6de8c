//! `POST /v1/consumer/commit` and `POST /v1/consumer/goodbye`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::super::problem::Problem;
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
    api.deliveries.take_back(api.broker.groups(), &caller);
    api.broker.groups().commit_delivered(&caller).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Ends a consumer; what it was given last is committed unless `commit=false`.
pub(crate) async fn goodbye(
    api: State,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
) -> Answered {
    let query = parse(query.as_deref())?;
    let caller = caller(&query, &connection)?;
    let commit = match query.text("commit")?.as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => return Err(Problem::parameter("commit", other, "true or false")),
    };
    api.deliveries.take_back(api.broker.groups(), &caller);
    api.broker.groups().goodbye(&caller, commit).await?;
    Ok(node::text("OK"))
}
