//! OffsetDelete (key 47, version 0; KIP-496): forgets positions of a group in partitions its members do not read.

use floe_broker::groups::Error;
use floe_groups::{GroupId, Refusal};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::offset_delete_request::OffsetDeleteRequestData;
use kacrab_protocol::generated::offset_delete_response::{
    OffsetDeleteResponseData, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};
use super::topics::{Named, find};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(OffsetDeleteRequestData::read)?;
    let catalog = door.broker().catalog();
    let mut known = Vec::new();
    let mut found: Vec<Option<ErrorCode>> = Vec::new();
    for topic in &asked.topics {
        for partition in &topic.partitions {
            let named = Named::Name(topic.name.as_str());
            match find(&catalog, named, partition.partition_index) {
                Ok(partition) => {
                    known.push(partition);
                    found.push(None);
                }
                Err(error) => found.push(Some(error)),
            }
        }
    }
    let group = GroupId::from(asked.group_id.as_str());
    let deleted = door
        .broker()
        .groups()
        .delete_positions(&group, &known)
        .await;
    let deleted: Vec<Result<(), Refusal>> = match deleted {
        Ok(results) => results,
        Err(error) => return refuse(request, &error),
    };
    let mut outcomes = deleted.iter();
    let mut codes = found.into_iter().map(|refused| match refused {
        Some(error) => code(error),
        None => match outcomes.next() {
            Some(Err(refused)) => code(errors::refusal(refused)),
            _ => NONE,
        },
    });
    let topics = asked.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            OffsetDeleteResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(codes.next().unwrap_or(NONE))
        });
        OffsetDeleteResponseTopic::default()
            .with_partitions(partitions.collect())
            .with_name(topic.name)
    });
    let message = OffsetDeleteResponseData::default().with_topics(topics.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}

fn refuse(request: &Request, error: &Error) -> Result<Answer, Close> {
    let message = OffsetDeleteResponseData::default().with_error_code(code(errors::group(error)));
    Answer::encode(request, |out, version| message.write(out, version))
}
