//! Consumer groups as an operator sees them: list, describe with lag, delete.

use std::collections::HashMap;

use axum::Json;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use floe_broker::groups::{Kind, Listed, MemberDescription, State as Standing};
use floe_broker::{Isolation, OffsetSpec};
use floe_groups::{GroupId, Refusal};
use serde_json::{Value, json};

use super::path::GroupPath;
use super::query::Query;
use super::{Answered, Api, State};

/// Every group.
pub(crate) async fn list(api: State, RawQuery(query): RawQuery) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let groups: Vec<Value> = api.broker.groups().list().iter().map(listed).collect();
    Ok(Json(json!({ "groups": groups })).into_response())
}

/// One group: its members, what each has, and how far the group is behind in each partition.
pub(crate) async fn describe(
    api: State,
    GroupPath(group): GroupPath,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    let group = GroupId::from(group);
    let description = api.broker.groups().describe(&group);
    let description = description.ok_or_else(|| Refusal::NotFound(group.clone()))?;
    let mut owners = HashMap::new();
    let mut members = Vec::with_capacity(description.members.len());
    for member in &description.members {
        let assigned = assignment(&member.assignment);
        for pair in assigned.iter().flatten() {
            owners.insert(pair.clone(), member.member_id.as_str());
        }
        members.push(described(member, assigned));
    }
    let mut answer = listed(&description.listed);
    answer["protocol"] = (*description.protocol).into();
    answer["members"] = members.into();
    answer["positions"] = positions(&api, &group, &owners).await.into();
    Ok(Json(answer).into_response())
}

/// Deletes a group without members, with its positions.
pub(crate) async fn delete(
    api: State,
    GroupPath(group): GroupPath,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::parse(query.as_deref(), &[])?;
    api.broker
        .groups()
        .delete_group(&GroupId::from(group))
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn listed(listed: &Listed) -> Value {
    let kind = match listed.kind {
        Kind::Classic => "classic",
        Kind::Assigned => "assigned",
    };
    let state = match listed.state {
        Standing::Empty => "Empty",
        Standing::PreparingRebalance => "PreparingRebalance",
        Standing::CompletingRebalance => "CompletingRebalance",
        Standing::Stable => "Stable",
    };
    json!({
        "group": listed.group.as_str(),
        "kind": kind,
        "state": state,
        "protocolType": &*listed.protocol_type,
    })
}

fn described(member: &MemberDescription, assigned: Option<Vec<(String, u32)>>) -> Value {
    let partitions = assigned.map(|all| {
        let one =
            |(topic, partition): &(String, u32)| json!({ "topic": topic, "partition": partition });
        all.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "member": member.member_id.as_str(),
        "instance": member.instance_id.as_ref().map(floe_groups::InstanceId::as_str),
        "client": &*member.client_id,
        "host": &*member.client_host,
        "partitions": partitions,
    })
}

async fn positions(
    api: &Api,
    group: &GroupId,
    owners: &HashMap<(String, u32), &str>,
) -> Vec<Value> {
    let catalog = api.broker.catalog();
    let mut rows = Vec::new();
    for (partition, position) in api.broker.groups().positions(group) {
        let Some(name) = catalog.names.get(&partition.topic) else {
            continue;
        };
        let latest = OffsetSpec::Latest;
        let end = api
            .broker
            .list_offset(partition, latest, Isolation::ReadUncommitted, None);
        let end = end.await.ok().flatten().map(|found| found.offset.0);
        let key = (name.as_str().to_owned(), partition.partition.0);
        rows.push(json!({
            "topic": key.0,
            "partition": key.1,
            "position": position.offset.0,
            "commitOffset": end,
            "lag": end.map(|end| end.saturating_sub(position.offset.0)),
            "member": owners.get(&key),
            "metadata": &*position.metadata,
            "committedAt": position.committed_at.0,
        }));
    }
    rows.sort_by_key(|row| (row["topic"].to_string(), row["partition"].as_u64()));
    rows
}

/// The partitions of an assignment in the bytes of Kafka's consumer protocol; `None` if it is something else.
///
/// ```text
/// version i16 | topics i32 × { name: length i16, UTF-8 | partitions i32 × i32 } | user data
/// ```
fn assignment(bytes: &[u8]) -> Option<Vec<(String, u32)>> {
    fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
        let (head, tail) = rest.split_first_chunk::<N>()?;
        *rest = tail;
        Some(*head)
    }
    let mut rest = bytes;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    take::<2>(&mut rest)?;
    let mut all = Vec::new();
    for _ in 0..i32::from_be_bytes(take(&mut rest)?) {
        let length = usize::try_from(i16::from_be_bytes(take(&mut rest)?)).ok()?;
        let (name, tail) = rest.split_at_checked(length)?;
        rest = tail;
        let name = std::str::from_utf8(name).ok()?;
        for _ in 0..i32::from_be_bytes(take(&mut rest)?) {
            let partition = u32::from_be_bytes(take(&mut rest)?);
            all.push((name.to_owned(), partition));
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_and_foreign_bytes_are_none() {
        let bytes = b"\0\x01\0\0\0\x01\0\x02ab\0\0\0\x02\0\0\0\x05\0\0\0\x06\xff\xff\xff\xff";
        let expected = vec![("ab".to_owned(), 5), ("ab".to_owned(), 6)];
        assert_eq!(assignment(bytes), Some(expected));
        assert_eq!(assignment(b""), Some(Vec::new()));
        for cut in 1..bytes.len() - 4 {
            assert_eq!(assignment(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(
            assignment(&[0xff; 40]),
            Some(Vec::new()),
            "a negative count is none"
        );
    }
}
