//! HTTP consumers: register, poll, commit, goodbye.
//!
//! Two styles. *Stateless*: `consumerId` in the query, over any connection. *Connection-bound*: registered by a JSON
//! body, known by its connection, gone with it.
//!
//! Guarantees: names are taken in camelCase and snake_case; every consumer parameter is understood, and where it means
//! nothing ignored, by every consumer resource, so that one query string serves a client for all four.

mod deliveries;
mod end;
mod poll;
mod register;

use std::sync::Arc;

use floe_groups::assigned::Caller;
use floe_groups::{ConnectionId, ConsumerId};

use super::Api;
use super::problem::Problem;
use super::query::{Known, Query};
use crate::listen::Connection;
pub(crate) use deliveries::Deliveries;
pub(crate) use end::{commit, goodbye};
pub(crate) use poll::poll;
pub(in crate::http) use register::SESSION_MAX;
pub(crate) use register::register;

const KNOWN: &[Known] = &[
    ("consumerId", &["consumer_id"]),
    ("group", &[]),
    ("topic", &[]),
    ("onNewGroup", &["on_new_group"]),
    ("sessionTimeout", &["session_timeout"]),
    ("wait", &[]),
    ("received", &[]),
    ("commit", &[]),
    ("used", &[]),
];

fn parse(raw: Option<&str>) -> Result<Query, Problem> {
    Query::parse(raw, KNOWN)
}

fn bound(connection: &Connection) -> ConnectionId {
    ConnectionId(connection.id.0)
}

/// Who calls: the id if one is given, else the connection.
fn caller(query: &Query, connection: &Connection) -> Result<Caller, Problem> {
    Ok(match query.text("consumerId")? {
        Some(id) => Caller::Id(ConsumerId::from(id)),
        None => Caller::Connection(bound(connection)),
    })
}

/// A connection has ended: answers on it that may not have arrived are taken back, and its own consumer leaves.
pub(crate) fn connection_ended(api: &Arc<Api>, connection: &Connection) {
    let groups = api.broker.groups();
    api.deliveries.ended(groups, connection);
    groups.connection_closed(bound(connection));
}
