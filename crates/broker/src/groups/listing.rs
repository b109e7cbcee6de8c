//! ListGroups and DescribeGroups.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use floe_cluster::Catalog;
use floe_groups::{GroupId, Kind, MemberId, assigned, classic};
use floe_model::{TopicName, TopicPartition};

use super::shard::{Entry, Machine, State as ShardState};
use super::{Description, Groups, Listed, MemberDescription, State, row};

/// Protocol type of groups of HTTP consumers: tools that show consumer groups understand what is described of these, too.
const CONSUMER: &str = "consumer";

impl Groups {
    /// ListGroups: every group that has members or positions, by name.
    pub fn list(&self) -> Vec<Listed> {
        let mut listed = BTreeMap::new();
        for shard in &self.0.shards {
            let state = shard.lock();
            for (key, _) in state.table.rows() {
                let Some((name, _)) = row::parse_key(key) else {
                    continue;
                };
                if !listed.contains_key(name) {
                    let group = GroupId::from(name);
                    listed.insert(name.to_owned(), state.listed(&group));
                }
            }
            for group in state.groups.keys() {
                listed.insert(group.as_str().to_owned(), state.listed(group));
            }
        }
        listed.into_values().collect()
    }

    /// DescribeGroups; `None` if it has neither members nor positions.
    pub fn describe(&self, group: &GroupId) -> Option<Description> {
        let catalog = self.0.node.catalog.load_full();
        let state = self.0.shard(group).lock();
        if !state.is_known(group) {
            return None;
        }
        let (protocol, members) = match state.groups.get(group).map(|entry| &entry.machine) {
            Some(Machine::Classic(machine)) => (
                machine.protocol().cloned().unwrap_or_default(),
                machine
                    .members()
                    .map(|m| classic_member(machine, m))
                    .collect(),
            ),
            Some(Machine::Assigned(machine)) => (
                Arc::from("http"),
                machine
                    .members()
                    .map(|member| assigned_member(&catalog, machine, member))
                    .collect(),
            ),
            None => (Arc::default(), Vec::new()),
        };
        Some(Description {
            listed: state.listed(group),
            protocol,
            members,
        })
    }
}

impl ShardState {
    fn listed(&self, group: &GroupId) -> Listed {
        let (kind, state, protocol_type) = match self.groups.get(group) {
            Some(entry) => kind(entry),
            None => match self.kind_by_positions(group) {
                Kind::Classic => (Kind::Classic, State::Empty, Arc::default()),
                Kind::Assigned => (Kind::Assigned, State::Empty, Arc::from(CONSUMER)),
            },
        };
        Listed {
            group: group.clone(),
            kind,
            state,
            protocol_type,
        }
    }
}

fn kind(entry: &Entry) -> (Kind, State, Arc<str>) {
    match &entry.machine {
        Machine::Classic(machine) => {
            let state = match machine.state() {
                classic::State::Empty => State::Empty,
                classic::State::Preparing { .. } => State::PreparingRebalance,
                classic::State::Completing => State::CompletingRebalance,
                classic::State::Stable => State::Stable,
            };
            let protocol_type = machine.protocol_type().cloned().unwrap_or_default();
            (Kind::Classic, state, protocol_type)
        }
        Machine::Assigned(_) => (Kind::Assigned, State::Stable, Arc::from(CONSUMER)),
    }
}

fn classic_member(machine: &classic::Group, member: &classic::Member) -> MemberDescription {
    // As in Kafka, what members brought and got is shown once it holds for all.
    let is_stable = machine.state() == classic::State::Stable;
    let (metadata, assignment) = match machine.protocol() {
        Some(protocol) if is_stable => (member.metadata(protocol), member.assignment.clone()),
        Some(_) | None => (Bytes::new(), Bytes::new()),
    };
    MemberDescription {
        member_id: member.id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata,
        assignment,
    }
}

fn assigned_member(
    catalog: &Catalog,
    machine: &assigned::Group,
    member: &assigned::Member,
) -> MemberDescription {
    MemberDescription {
        member_id: MemberId::from(member.id.as_str()),
        instance_id: None,
        client_id: member.id.as_str().into(),
        client_host: Arc::default(),
        metadata: subscription(&member.topics),
        assignment: assignment(catalog, machine.assigned(&member.id)),
    }
}

/// Kafka's ConsumerProtocolSubscription, version 0: topics, no user data.
fn subscription(topics: &[TopicName]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(topics.len() as i32);
    for topic in topics {
        put_name(&mut bytes, topic);
    }
    bytes.put_i32(-1);
    bytes.freeze()
}

/// Kafka's ConsumerProtocolAssignment, version 0: partitions by topic, no user data.
fn assignment(catalog: &Catalog, assigned: impl Iterator<Item = TopicPartition>) -> Bytes {
    let mut topics: BTreeMap<&TopicName, Vec<u32>> = BTreeMap::new();
    for partition in assigned {
        if let Some(name) = catalog.names.get(&partition.topic) {
            topics.entry(name).or_default().push(partition.partition.0);
        }
    }
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(topics.len() as i32);
    for (topic, partitions) in topics {
        put_name(&mut bytes, topic);
        bytes.put_i32(partitions.len() as i32);
        for partition in partitions {
            bytes.put_u32(partition);
        }
    }
    bytes.put_i32(-1);
    bytes.freeze()
}

fn put_name(bytes: &mut BytesMut, name: &TopicName) {
    bytes.put_i16(name.as_str().len() as i16);
    bytes.put_slice(name.as_str().as_bytes());
}
