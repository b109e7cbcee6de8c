//! OffsetFetch (key 9, versions 1 to 10; KIP-320, KIP-447, KIP-709): positions of groups.
//!
//! One group per request up to version 7, any number after; topics by id from version 10 on. A partition without a
//! position has offset -1 and no error. Positions are always stable: there are no transactions.

use std::collections::BTreeMap;

use floe_broker::Catalog;
use floe_groups::{GroupId, Position};
use floe_model::{TopicId, TopicPartition};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::offset_fetch_request::{
    OffsetFetchRequestData, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kacrab_protocol::generated::offset_fetch_response::{
    OffsetFetchResponseData, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kacrab_protocol::{KafkaString, KafkaUuid};

use super::answer::{Answer, NONE, code, text, uuid};
use super::door::Door;
use super::request::{Close, Request};
use super::topics::{Named, find};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(OffsetFetchRequestData::read)?;
    let catalog = door.broker().catalog();
    let message = if request.version >= 8 {
        for group in &asked.groups {
            let group = GroupId::from(group.group_id.as_str());
            door.broker().groups().caught_up(&group).await;
        }
        let groups = asked.groups.into_iter();
        let groups = groups.map(|g| one(door, &catalog, g, request.version));
        OffsetFetchResponseData::default().with_groups(groups.collect())
    } else {
        let topics = asked.topics.map(|topics| {
            let topics = topics.into_iter().map(|topic| {
                OffsetFetchRequestTopics::default()
                    .with_name(topic.name)
                    .with_partition_indexes(topic.partition_indexes)
            });
            topics.collect()
        });
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(asked.group_id)
            .with_topics(topics);
        let id = GroupId::from(group.group_id.as_str());
        door.broker().groups().caught_up(&id).await;
        let found = one(door, &catalog, group, request.version);
        let message = OffsetFetchResponseData::default()
            .with_topics(found.topics.into_iter().map(single).collect());
        if request.version >= 2 {
            message.with_error_code(found.error_code)
        } else {
            message
        }
    };
    Answer::encode(request, |out, version| message.write(out, version))
}

/// The shape of versions up to 7.
fn single(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.into_iter().map(|partition| {
        OffsetFetchResponsePartition::default()
            .with_partition_index(partition.partition_index)
            .with_committed_offset(partition.committed_offset)
            .with_committed_leader_epoch(partition.committed_leader_epoch)
            .with_metadata(partition.metadata)
            .with_error_code(partition.error_code)
    });
    OffsetFetchResponseTopic::default()
        .with_partitions(partitions.collect())
        .with_name(topic.name)
}

fn one(
    door: &Door,
    catalog: &Catalog,
    asked: OffsetFetchRequestGroup,
    version: i16,
) -> OffsetFetchResponseGroup {
    let group = GroupId::from(asked.group_id.as_str());
    let topics = match asked.topics {
        None => everything(door, catalog, &group, version),
        Some(topics) => topics
            .into_iter()
            .map(|topic| {
                let partitions = topic.partition_indexes.iter().map(|index| {
                    let named = Named::by(version, 10, topic.name.as_str(), topic.topic_id);
                    match find(catalog, named, *index) {
                        Ok(partition) => {
                            let found = door.broker().groups().position(&group, partition);
                            answer(*index, found.as_ref(), version)
                        }
                        Err(ErrorCode::UnknownTopicId) => answer(*index, None, version)
                            .with_error_code(code(ErrorCode::UnknownTopicId)),
                        Err(_) => answer(*index, None, version),
                    }
                });
                OffsetFetchResponseTopics::default()
                    .with_partitions(partitions.collect())
                    .with_name(topic.name)
                    .with_topic_id(topic.topic_id)
            })
            .collect(),
    };
    OffsetFetchResponseGroup::default()
        .with_group_id(asked.group_id)
        .with_topics(topics)
        .with_error_code(NONE)
}

fn everything(
    door: &Door,
    catalog: &Catalog,
    group: &GroupId,
    version: i16,
) -> Vec<OffsetFetchResponseTopics> {
    let mut by_topic: BTreeMap<TopicId, Vec<(TopicPartition, Position)>> = BTreeMap::new();
    for (partition, position) in door.broker().groups().positions(group) {
        let topic = by_topic.entry(partition.topic).or_default();
        topic.push((partition, position));
    }
    let topics = by_topic.into_iter().filter_map(|(id, positions)| {
        let topic = catalog.topic_by_id(id)?;
        let partitions = positions.iter().map(|(partition, position)| {
            answer(partition.partition.0 as i32, Some(position), version)
        });
        let (name, id) = if version >= 10 {
            (KafkaString::default(), uuid(id))
        } else {
            (text(topic.name.as_str()), KafkaUuid::ZERO)
        };
        Some(
            OffsetFetchResponseTopics::default()
                .with_name(name)
                .with_topic_id(id)
                .with_partitions(partitions.collect()),
        )
    });
    topics.collect()
}

fn answer(index: i32, found: Option<&Position>, version: i16) -> OffsetFetchResponsePartitions {
    let answer = OffsetFetchResponsePartitions::default()
        .with_partition_index(index)
        .with_error_code(NONE);
    let Some(position) = found else {
        return answer
            .with_committed_offset(-1)
            .with_metadata(Some(KafkaString::default()));
    };
    let answer = answer
        .with_committed_offset(position.offset.0 as i64)
        .with_metadata(Some(text(&position.metadata)));
    match position.leader_epoch {
        Some(epoch) if version >= 5 => answer.with_committed_leader_epoch(epoch.0 as i32),
        _ => answer,
    }
}
