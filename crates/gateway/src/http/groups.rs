//! Consumer groups as an operator sees them: list, describe with lag, delete.
//!
//! Guarantees: a group's description has every partition that it has a position in or reads; one without a position is
//! told with the lag from where the group begins in it, if that is the node's business, as it is with HTTP consumers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::Json;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use floe_broker::groups::{Description, Listed, MemberDescription, State as Standing};
use floe_broker::{Catalog, Isolation, OffsetSpec};
use floe_groups::{GroupId, Kind, Position, Refusal, classic};
use floe_model::{Offset, TopicName, TopicPartition};
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
    let positions = positions(&api, &description, &owners).await;
    let lags = positions.iter().filter_map(|row| row["lag"].as_u64());
    answer["lag"] = lags.sum::<u64>().into();
    answer["positions"] = positions.into();
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
    group: &Description,
    owners: &HashMap<(String, u32), &str>,
) -> Vec<Value> {
    let catalog = api.broker.catalog();
    let mut known: BTreeMap<(&TopicName, u32), (TopicPartition, Option<Position>)> =
        BTreeMap::new();
    for (at, position) in api.broker.groups().positions(&group.listed.group) {
        if let Some(name) = catalog.names.get(&at.topic) {
            known.insert((name, at.partition.0), (at, Some(position)));
        }
    }
    for name in topics(group, owners, known.keys().map(|(name, _)| *name)) {
        let Some((name, topic)) = catalog.topics.get_key_value(&name) else {
            continue;
        };
        for partition in &topic.partitions {
            let at = topic.address(partition.index);
            known.entry((name, partition.index.0)).or_insert((at, None));
        }
    }
    let mut rows = Vec::with_capacity(known.len());
    for ((name, partition), (at, position)) in known {
        let latest = OffsetSpec::Latest;
        let isolation = Isolation::ReadUncommitted;
        let end = api.broker.list_offset(at, latest, isolation, None).await;
        let end = end.ok().flatten().map(|found| found.offset.0);
        let offset = position.as_ref().map(|position| position.offset);
        let begin = offset.or_else(|| begin(&catalog, group.listed.kind, at));
        let lag = begin.and_then(|begin| Some(end?.saturating_sub(begin.0)));
        rows.push(json!({
            "topic": name.as_str(),
            "partition": partition,
            "position": offset.map(|offset| offset.0),
            "commitOffset": end,
            "lag": lag,
            "member": owners.get(&(name.as_str().to_owned(), partition)),
            "metadata": position.as_ref().map(|position| &*position.metadata),
            "committedAt": position.as_ref().map(|position| position.committed_at.0),
        }));
    }
    rows
}

/// What the group reads: what its members subscribed to or have; with HTTP consumers also, since they read topics whole,
/// every topic that it has a position in.
fn topics<'a>(
    group: &Description,
    owners: &HashMap<(String, u32), &str>,
    positioned: impl Iterator<Item = &'a TopicName>,
) -> BTreeSet<TopicName> {
    let mut topics = BTreeSet::new();
    if group.listed.kind == Kind::Assigned {
        topics.extend(positioned.cloned());
    }
    let subscribed = group.members.iter().flat_map(|member| {
        let is_consumer = &*group.listed.protocol_type == "consumer";
        let found = is_consumer.then(|| classic::subscribed_topics(&member.metadata));
        found.flatten().unwrap_or_default()
    });
    let assigned = owners.keys().map(|(topic, _)| topic.clone());
    topics.extend(
        subscribed
            .chain(assigned)
            .filter_map(|name| TopicName::parse(&name).ok()),
    );
    topics
}

/// Where a group begins in a partition that it has no position in: HTTP consumers at the first record, since where else
/// they begin is fixed as a position when they register. A Kafka client decides for itself (`auto.offset.reset`).
fn begin(catalog: &Catalog, kind: Kind, at: TopicPartition) -> Option<Offset> {
    match kind {
        Kind::Assigned => Some(catalog.partition(at)?.log_start),
        Kind::Classic => None,
    }
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
