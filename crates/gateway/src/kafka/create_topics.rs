//! CreateTopics (key 19, versions 2 to 7; KIP-4, KIP-464, KIP-525): one answer per topic, with its settings from
//! version 5 on.
//!
//! -1 partitions or replicas take the node's default. A manual assignment is taken when it names nodes that are
//! there; it decides nothing but the number of partitions while there is one node.

use std::collections::HashMap;
use std::sync::Arc;

use floe_broker::{NewTopic, Topic};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::create_topics_request::{CreatableTopic, CreateTopicsRequestData};
use kacrab_protocol::generated::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponseData,
};

use super::answer::{Answer, code, text, uuid};
use super::describe_configs::source;
use super::door::Door;
use super::errors;
use super::request::{Close, Request};

type Refused = (ErrorCode, String);

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(CreateTopicsRequestData::read)?;
    let mut named: HashMap<String, usize> = HashMap::new();
    for topic in &asked.topics {
        *named.entry(topic.name.as_str().to_owned()).or_default() += 1;
    }
    let mut results = Vec::new();
    for topic in asked.topics {
        let name = topic.name.clone();
        let outcome = if named.get(name.as_str()).is_some_and(|times| *times > 1) {
            let reason = format!("topic '{}' is named twice in this request", name.as_str());
            Err((ErrorCode::InvalidRequest, reason))
        } else {
            create(door, topic, asked.validate_only).await
        };
        results.push(match outcome {
            Ok(topic) => created(door, &topic, request.version),
            Err((error, reason)) => CreatableTopicResult::default()
                .with_name(name)
                .with_error_code(code(error))
                .with_error_message(Some(text(&reason)))
                .with_num_partitions(-1)
                .with_replication_factor(-1)
                .with_configs(Some(Vec::new())),
        });
    }
    let message = CreateTopicsResponseData::default().with_topics(results);
    Answer::encode(request, |out, version| message.write(out, version))
}

async fn create(
    door: &Door,
    asked: CreatableTopic,
    validate_only: bool,
) -> Result<Arc<Topic>, Refused> {
    let assigned = assigned_partitions(door, &asked)?;
    let mut settings = Vec::new();
    for config in &asked.configs {
        let name = config.name.as_str();
        let value = config.value.as_ref().ok_or_else(|| {
            let reason = format!("topic setting '{name}' has no value; leave it out instead");
            (ErrorCode::InvalidConfig, reason)
        })?;
        settings.push((name.to_owned(), value.as_str().to_owned()));
    }
    let new = NewTopic {
        name: asked.name.as_str().to_owned(),
        partitions: assigned.or((asked.num_partitions != -1).then_some(asked.num_partitions)),
        replication_factor: (asked.replication_factor != -1).then_some(asked.replication_factor),
        settings,
        validate_only,
    };
    let created = door.broker().create_topic(new).await;
    created.map_err(|e| (errors::create_topic(&e), e.to_string()))
}

/// The number of partitions a manual assignment names.
fn assigned_partitions(door: &Door, asked: &CreatableTopic) -> Result<Option<i32>, Refused> {
    if asked.assignments.is_empty() {
        return Ok(None);
    }
    let refuse = |code, reason: &str| Err((code, reason.to_owned()));
    if asked.num_partitions != -1 || asked.replication_factor != -1 {
        return refuse(
            ErrorCode::InvalidRequest,
            "give an assignment, or a number of partitions and replicas, not both",
        );
    }
    let mut indexes: Vec<i32> = asked
        .assignments
        .iter()
        .map(|a| a.partition_index)
        .collect();
    indexes.sort_unstable();
    let is_dense = indexes
        .iter()
        .zip(0..)
        .all(|(index, place)| *index == place);
    if !is_dense {
        return refuse(
            ErrorCode::InvalidReplicaAssignment,
            "assigned partitions must be 0, 1, 2, … without gaps",
        );
    }
    let is_here = |a: &[i32]| a == [door.node()];
    if !asked.assignments.iter().all(|a| is_here(&a.broker_ids)) {
        return refuse(
            ErrorCode::InvalidReplicaAssignment,
            "an assignment names nodes that are not there, or one twice",
        );
    }
    Ok(Some(indexes.len() as i32))
}

fn created(door: &Door, topic: &Topic, version: i16) -> CreatableTopicResult {
    let replicas = topic
        .partitions
        .first()
        .map_or(1, |p| p.replicas.len().max(1));
    let settings = door.broker().describe_settings(topic);
    let configs = settings.iter().map(|setting| {
        CreatableTopicConfigs::default()
            .with_name(text(setting.name))
            .with_value(Some(text(&setting.value)))
            .with_config_source(source(setting))
    });
    let result = CreatableTopicResult::default()
        .with_name(text(topic.name.as_str()))
        .with_num_partitions(topic.partitions.len() as i32)
        .with_replication_factor(replicas as i16)
        .with_configs(Some(if version >= 5 {
            configs.collect()
        } else {
            Vec::new()
        }));
    if version >= 7 {
        result.with_topic_id(uuid(topic.id))
    } else {
        result
    }
}
