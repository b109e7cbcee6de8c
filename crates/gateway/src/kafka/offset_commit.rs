//! OffsetCommit (key 8, versions 2 to 10; KIP-320, KIP-345, KIP-1074): positions of a group, durable when answered.
//!
//! `retention time` of versions up to 4 is not kept: positions live as long as their topic.

use floe_broker::Catalog;
use floe_groups::{GroupId, NewPosition};
use floe_model::{LeaderEpoch, Offset};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::offset_commit_request::{
    OffsetCommitRequestData, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kacrab_protocol::generated::offset_commit_response::{
    OffsetCommitResponseData, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::group::caller;
use super::request::{Close, Request};
use super::topics::{Named, find};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(OffsetCommitRequestData::read)?;
    let catalog = door.broker().catalog();
    let mut positions = Vec::new();
    // Per partition in order: a code, or none when the broker is asked.
    let mut codes: Vec<Option<ErrorCode>> = Vec::new();
    for topic in &asked.topics {
        for partition in &topic.partitions {
            match position(&catalog, topic, partition, request.version) {
                Ok(position) => {
                    positions.push(position);
                    codes.push(None);
                }
                Err(error) => codes.push(Some(error)),
            }
        }
    }
    let group = GroupId::from(asked.group_id.as_str());
    let caller = caller(
        &asked.member_id,
        asked.group_instance_id.as_ref(),
        asked.generation_id_or_member_epoch,
    );
    let committed = door
        .broker()
        .groups()
        .commit(&group, &caller, positions)
        .await;
    let mut outcomes = match &committed {
        Ok(results) => results.iter(),
        Err(_) => [].iter(),
    };
    let mut codes = codes
        .into_iter()
        .map(|refused| match (refused, &committed) {
            (Some(error), _) => code(error),
            (None, Err(error)) => code(errors::group(error)),
            (None, Ok(_)) => match outcomes.next() {
                Some(Err(refused)) => code(errors::commit(*refused)),
                Some(Ok(())) => NONE,
                None => code(ErrorCode::UnknownServerError),
            },
        });
    let topics = asked.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(codes.next().unwrap_or(NONE))
        });
        OffsetCommitResponseTopic::default()
            .with_partitions(partitions.collect())
            .with_name(topic.name)
            .with_topic_id(topic.topic_id)
    });
    let message = OffsetCommitResponseData::default().with_topics(topics.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}

fn position(
    catalog: &Catalog,
    topic: &OffsetCommitRequestTopic,
    asked: &OffsetCommitRequestPartition,
    version: i16,
) -> Result<NewPosition, ErrorCode> {
    let named = Named::by(version, 10, topic.name.as_str(), topic.topic_id);
    let partition = find(catalog, named, asked.partition_index)?;
    let offset = u64::try_from(asked.committed_offset).map_err(|_| ErrorCode::InvalidRequest)?;
    let metadata = asked.committed_metadata.as_ref();
    Ok(NewPosition {
        partition,
        offset: Offset(offset),
        leader_epoch: u32::try_from(asked.committed_leader_epoch)
            .ok()
            .map(LeaderEpoch),
        metadata: metadata.map_or("", |m| m.as_str()).into(),
    })
}
