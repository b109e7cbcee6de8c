//! OffsetForLeaderEpoch (key 23, versions 2 to 4; KIP-101, KIP-320): where an epoch ends, so that a client sees
//! whether what it has read is still there.

use floe_broker::{Catalog, EpochEnd};
use floe_model::LeaderEpoch;
use floe_wire::ErrorCode;
use kacrab_protocol::generated::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequestData, OffsetForLeaderPartition,
};
use kacrab_protocol::generated::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponseData, OffsetForLeaderTopicResult,
};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};
use super::topics::{Named, find};

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(OffsetForLeaderEpochRequestData::read)?;
    let catalog = door.broker().catalog();
    let topics = asked.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let named = Named::Name(topic.topic.as_str());
            answer(partition.partition, one(door, &catalog, named, partition))
        });
        OffsetForLeaderTopicResult::default()
            .with_partitions(partitions.collect())
            .with_topic(topic.topic)
    });
    let message = OffsetForLeaderEpochResponseData::default().with_topics(topics.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}

fn one(
    door: &Door,
    catalog: &Catalog,
    named: Named<'_>,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<EpochEnd>, ErrorCode> {
    let partition = find(catalog, named, asked.partition)?;
    let current = u32::try_from(asked.current_leader_epoch).ok();
    let Ok(epoch) = u32::try_from(asked.leader_epoch) else {
        return Ok(None);
    };
    door.broker()
        .offset_for_epoch(partition, LeaderEpoch(epoch), current.map(LeaderEpoch))
        .map_err(|e| errors::fetch(&e))
}

fn answer(index: i32, found: Result<Option<EpochEnd>, ErrorCode>) -> EpochEndOffset {
    let answer = EpochEndOffset::default()
        .with_partition(index)
        .with_leader_epoch(-1)
        .with_end_offset(-1);
    match found {
        Err(error) => answer.with_error_code(code(error)),
        Ok(None) => answer.with_error_code(NONE),
        Ok(Some(found)) => answer
            .with_leader_epoch(found.epoch.0 as i32)
            .with_end_offset(found.end.0 as i64),
    }
}
