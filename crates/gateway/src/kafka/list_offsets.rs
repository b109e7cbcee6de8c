//! ListOffsets (key 2, versions 1 to 11; KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023): offsets by time and by name.

use floe_broker::{Catalog, FoundOffset, Isolation, OffsetSpec};
use floe_model::{LeaderEpoch, Timestamp};
use floe_wire::ErrorCode;
use kacrab_protocol::generated::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequestData,
};
use kacrab_protocol::generated::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponseData, ListOffsetsTopicResponse,
};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};
use super::topics::{Named, find};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(ListOffsetsRequestData::read)?;
    let isolation = if asked.isolation_level == 1 {
        Isolation::ReadCommitted
    } else {
        Isolation::ReadUncommitted
    };
    let catalog = door.broker().catalog();
    let mut topics = Vec::new();
    for topic in asked.topics {
        let mut partitions = Vec::new();
        for partition in &topic.partitions {
            let named = Named::Name(topic.name.as_str());
            let found = one(door, &catalog, named, partition, isolation, request.version).await;
            partitions.push(answer(partition.partition_index, found, request.version));
        }
        topics.push(
            ListOffsetsTopicResponse::default()
                .with_name(topic.name)
                .with_partitions(partitions),
        );
    }
    let message = ListOffsetsResponseData::default().with_topics(topics);
    Answer::encode(request, |out, version| message.write(out, version))
}

async fn one(
    door: &Door,
    catalog: &Catalog,
    named: Named<'_>,
    asked: &ListOffsetsPartition,
    isolation: Isolation,
    version: i16,
) -> Result<Option<FoundOffset>, ErrorCode> {
    let partition = find(catalog, named, asked.partition_index)?;
    let spec = spec(asked.timestamp, version).ok_or(ErrorCode::UnsupportedVersion)?;
    let epoch = u32::try_from(asked.current_leader_epoch).ok();
    door.broker()
        .list_offset(partition, spec, isolation, epoch.map(LeaderEpoch))
        .await
        .map_err(|e| errors::fetch(&e))
}

/// What a timestamp asks for; the negative ones came with later versions.
fn spec(timestamp: i64, version: i16) -> Option<OffsetSpec> {
    Some(match timestamp {
        0.. => OffsetSpec::Time(Timestamp(timestamp)),
        -1 => OffsetSpec::Latest,
        -2 => OffsetSpec::Earliest,
        -3 if version >= 7 => OffsetSpec::MaxTimestamp,
        -4 if version >= 8 => OffsetSpec::EarliestLocal,
        -5 if version >= 9 => OffsetSpec::LatestTiered,
        -6 if version >= 11 => OffsetSpec::EarliestPendingUpload,
        _ => return None,
    })
}

fn answer(
    index: i32,
    found: Result<Option<FoundOffset>, ErrorCode>,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let answer = ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_offset(-1)
        .with_timestamp(-1);
    match found {
        Err(error) => answer.with_error_code(code(error)),
        Ok(None) => answer.with_error_code(NONE),
        Ok(Some(found)) => {
            let answer = answer
                .with_offset(found.offset.0 as i64)
                .with_timestamp(found.timestamp.0);
            if version >= 4 {
                answer.with_leader_epoch(found.epoch.0 as i32)
            } else {
                answer
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_timestamps_are_known_from_their_version_on() {
        assert_eq!(spec(-1, 1), Some(OffsetSpec::Latest));
        assert_eq!(spec(-2, 1), Some(OffsetSpec::Earliest));
        assert_eq!(spec(0, 1), Some(OffsetSpec::Time(Timestamp(0))));
        let later = [(-3, 7), (-4, 8), (-5, 9), (-6, 11)];
        for (timestamp, version) in later {
            assert_eq!(spec(timestamp, version - 1), None);
            assert!(spec(timestamp, version).is_some());
        }
        assert_eq!(spec(-7, 11), None);
    }
}
