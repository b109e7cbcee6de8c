//! Metadata (key 3, versions 0 to 13; KIP-4, KIP-516): nodes, topics, partitions and who leads them.
//!
//! No list of topics means all of them; in version 0 an empty one, too. A topic named for the first time comes into
//! being when `auto.create.topics.enable` is on and the asker allows it.

use std::sync::Arc;

use floe_broker::{Catalog, CreateTopicError, Topic};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::metadata_request::{MetadataRequestData, MetadataRequestTopic};
use kacrab_protocol::generated::metadata_response::{
    MetadataResponseBroker, MetadataResponseData, MetadataResponsePartition, MetadataResponseTopic,
};
use kacrab_protocol::{KafkaString, KafkaUuid};

use super::answer::{Answer, NONE, code, text, topic_id, uuid};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};

/// What anybody may do to a topic while there are no ACLs: bits 3 to 8, 10 and 11 of Kafka's `AclOperation`.
const TOPIC_OPERATIONS: i32 = 0b1101_1111_1000;
/// The same for the cluster: create, alter, describe, cluster action, the configs, idempotent write.
pub(super) const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(MetadataRequestData::read)?;
    let version = request.version;
    let with_operations = asked.include_topic_authorized_operations;
    let is_all = asked
        .topics
        .as_ref()
        .is_none_or(|topics| version == 0 && topics.is_empty());
    let topics = if is_all {
        let catalog = door.broker().catalog();
        let topics = catalog.topics.values();
        topics.map(|t| present(t, with_operations)).collect()
    } else {
        let may_create = version < 4 || asked.allow_auto_topic_creation;
        let mut found = Vec::new();
        for topic in asked.topics.unwrap_or_default() {
            found.push(one(door, &topic, may_create, version, with_operations).await);
        }
        found
    };
    let catalog = door.broker().catalog();
    let mut message = MetadataResponseData::default()
        .with_brokers(brokers(door, request, &catalog))
        .with_cluster_id(Some(text(&catalog.cluster.to_string())))
        .with_controller_id(controller(door, &catalog))
        .with_topics(topics);
    if (8..=10).contains(&version) && asked.include_cluster_authorized_operations {
        message = message.with_cluster_authorized_operations(CLUSTER_OPERATIONS);
    }
    Answer::encode(request, |out, version| message.write(out, version))
}

/// The node that clients send administration to.
pub(super) fn controller(door: &Door, catalog: &Catalog) -> i32 {
    catalog.controller.map_or(door.node(), |node| node.0 as i32)
}

/// This node as its caller reaches it, and the others as they advertise themselves.
fn brokers(door: &Door, request: &Request, catalog: &Catalog) -> Vec<MetadataResponseBroker> {
    addresses(door, request, catalog)
        .into_iter()
        .map(|(id, host, port)| {
            MetadataResponseBroker::default()
                .with_node_id(id)
                .with_host(text(&host))
                .with_port(port)
        })
        .collect()
}

/// Id, host and port of every node.
pub(super) fn addresses(
    door: &Door,
    request: &Request,
    catalog: &Catalog,
) -> Vec<(i32, String, i32)> {
    let (host, port) = door.address(request.caller.local);
    let others = catalog.nodes.values().filter_map(|node| {
        let id = node.id.0 as i32;
        let kafka = node.endpoints.iter().find(|e| e.door == "kafka")?;
        (id != door.node()).then(|| (id, kafka.host.clone(), i32::from(kafka.port)))
    });
    std::iter::once((door.node(), host, port))
        .chain(others)
        .collect()
}

async fn one(
    door: &Door,
    asked: &MetadataRequestTopic,
    may_create: bool,
    version: i16,
    with_operations: bool,
) -> MetadataResponseTopic {
    let name = asked.name.as_ref().map(KafkaString::as_str);
    let Some(name) = name.filter(|_| asked.topic_id == KafkaUuid::ZERO) else {
        let catalog = door.broker().catalog();
        return match catalog.topic_by_id(topic_id(asked.topic_id)) {
            Some(topic) => present(topic, with_operations),
            None => absent(None, asked.topic_id, ErrorCode::UnknownTopicId, version),
        };
    };
    let found = find_or_create(door, name, may_create).await;
    match found {
        Ok(Some(topic)) => present(&topic, with_operations),
        Ok(None) => {
            let unknown = ErrorCode::UnknownTopicOrPartition;
            absent(Some(name), KafkaUuid::ZERO, unknown, version)
        }
        Err(error) => {
            let code = match &error {
                CreateTopicError::Unavailable(_) => ErrorCode::LeaderNotAvailable,
                refused => errors::create_topic(refused),
            };
            absent(Some(name), KafkaUuid::ZERO, code, version)
        }
    }
}

async fn find_or_create(
    door: &Door,
    name: &str,
    may_create: bool,
) -> Result<Option<Arc<Topic>>, CreateTopicError> {
    let known = door.broker().catalog().topic(name).cloned();
    if known.is_some() {
        return Ok(known);
    }
    floe_model::TopicName::parse(name)?;
    if may_create {
        door.broker().topic_or_create(name).await
    } else {
        Ok(None)
    }
}

fn absent(
    name: Option<&str>,
    id: KafkaUuid,
    error: ErrorCode,
    version: i16,
) -> MetadataResponseTopic {
    // The name may be missing from version 12 on only.
    let name = name.or((version < 12).then_some(""));
    MetadataResponseTopic::default()
        .with_error_code(code(error))
        .with_name(name.map(text))
        .with_topic_id(id)
}

fn present(topic: &Topic, with_operations: bool) -> MetadataResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| {
        let replicas: Vec<i32> = partition
            .replicas
            .iter()
            .map(|replica| replica.node.0 as i32)
            .collect();
        MetadataResponsePartition::default()
            .with_error_code(NONE)
            .with_partition_index(partition.index.0 as i32)
            .with_leader_id(partition.leader.node.0 as i32)
            .with_leader_epoch(partition.epoch.0 as i32)
            .with_replica_nodes(replicas.clone())
            .with_isr_nodes(replicas)
    });
    let answer = MetadataResponseTopic::default()
        .with_error_code(NONE)
        .with_name(Some(text(topic.name.as_str())))
        .with_topic_id(uuid(topic.id))
        .with_is_internal(topic.name.is_internal())
        .with_partitions(partitions.collect());
    if with_operations {
        answer.with_topic_authorized_operations(TOPIC_OPERATIONS)
    } else {
        answer
    }
}
