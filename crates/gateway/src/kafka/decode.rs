//! Decodes a frame and does nothing with it: what the fuzzer and the tests of hostile bytes drive.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use floe_wire::produce::ProduceRequest;
use kacrab_protocol::generated::{
    api_versions_request::ApiVersionsRequestData, create_topics_request::CreateTopicsRequestData,
    delete_groups_request::DeleteGroupsRequestData, delete_topics_request::DeleteTopicsRequestData,
    describe_cluster_request::DescribeClusterRequestData,
    describe_configs_request::DescribeConfigsRequestData,
    describe_groups_request::DescribeGroupsRequestData, fetch_request::FetchRequestData,
    find_coordinator_request::FindCoordinatorRequestData, heartbeat_request::HeartbeatRequestData,
    init_producer_id_request::InitProducerIdRequestData, join_group_request::JoinGroupRequestData,
    leave_group_request::LeaveGroupRequestData, list_groups_request::ListGroupsRequestData,
    list_offsets_request::ListOffsetsRequestData, metadata_request::MetadataRequestData,
    offset_commit_request::OffsetCommitRequestData, offset_delete_request::OffsetDeleteRequestData,
    offset_fetch_request::OffsetFetchRequestData,
    offset_for_leader_epoch_request::OffsetForLeaderEpochRequestData,
    sync_group_request::SyncGroupRequestData,
};

use super::api::Key;
use super::request::{Caller, Close, Request};

/// A frame that is no request, with the words its caller's connection would be closed with.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

/// Decodes a whole frame without its length, as a connection would.
///
/// # Panics
/// If a body cannot be written again, or is read as another then: what forwards or logs requests relies on it.
pub fn decode(frame: &[u8]) -> Result<(), Refused> {
    let frame = Bytes::copy_from_slice(frame);
    let nobody = SocketAddr::from(([127, 0, 0, 1], 0));
    let caller = Caller {
        peer: nobody,
        local: nobody,
    };
    Request::parse(&frame, caller)
        .and_then(|request| body(&request))
        .map_err(|close| Refused(close.to_string()))
}

macro_rules! read {
    ($request:ident: $($key:ident $data:ident),* $(,)?) => {
        match $request.api.key {
            Key::Produce => ProduceRequest::read(&$request.body, $request.version)
                .map(drop)
                .map_err(|e| $request.undecodable(&e)),
            $(Key::$key => {
                let message = $request.read($data::read)?;
                let mut again = BytesMut::new();
                let written = message.write(&mut again, $request.version);
                assert!(written.is_ok(), "{message:?} is not written: {written:?}");
                let reread = $data::read(&mut again.freeze(), $request.version);
                assert_eq!(reread.as_ref().ok(), Some(&message), "{reread:?}");
                Ok(())
            })*
        }
    };
}

fn body(request: &Request) -> Result<(), Close> {
    if !request.api.takes(request.version) {
        return Ok(());
    }
    read!(request:
        Fetch FetchRequestData,
        ListOffsets ListOffsetsRequestData,
        Metadata MetadataRequestData,
        OffsetCommit OffsetCommitRequestData,
        OffsetFetch OffsetFetchRequestData,
        FindCoordinator FindCoordinatorRequestData,
        JoinGroup JoinGroupRequestData,
        Heartbeat HeartbeatRequestData,
        LeaveGroup LeaveGroupRequestData,
        SyncGroup SyncGroupRequestData,
        DescribeGroups DescribeGroupsRequestData,
        ListGroups ListGroupsRequestData,
        ApiVersions ApiVersionsRequestData,
        CreateTopics CreateTopicsRequestData,
        DeleteTopics DeleteTopicsRequestData,
        InitProducerId InitProducerIdRequestData,
        OffsetForLeaderEpoch OffsetForLeaderEpochRequestData,
        DescribeConfigs DescribeConfigsRequestData,
        DeleteGroups DeleteGroupsRequestData,
        OffsetDelete OffsetDeleteRequestData,
        DescribeCluster DescribeClusterRequestData,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::api::APIS;
    use proptest::prelude::*;

    fn frame(key: i16, version: i16, rest: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        frame.extend_from_slice(&key.to_be_bytes());
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 1, 0xff, 0xff]);
        frame.extend_from_slice(rest);
        frame
    }

    proptest! {
        #[test]
        fn any_frame_is_decoded_or_refused(bytes: Vec<u8>) {
            drop(decode(&bytes));
        }

        #[test]
        fn any_body_of_any_api_is_decoded_or_refused(place in 0..APIS.len(), offset in 0_i16..20, body: Vec<u8>) {
            let api = &APIS[place];
            let version = api.min + offset % (api.max - api.min + 1);
            drop(decode(&frame(api.key as i16, version, &body)));
        }

        #[test]
        fn bodies_of_large_counts_are_decoded_or_refused(
            place in 0..APIS.len(), offset in 0_i16..20, head in prop::collection::vec(0_u8..3, 0..12),
            count in prop::sample::select(vec![[0xff, 0xff, 0xff, 0xff, 0x0f], [0x7f, 0xff, 0xff, 0xff, 0], [0x80, 0, 0, 0, 0]]),
            tail in prop::collection::vec(0_u8..4, 0..200),
        ) {
            let api = &APIS[place];
            let version = api.min + offset % (api.max - api.min + 1);
            let body = [&head[..], &count[..], &tail[..]].concat();
            drop(decode(&frame(api.key as i16, version, &body)));
        }
    }

    #[test]
    fn unknown_apis_and_versions_are_refused_by_name() {
        let refused = |key, version| decode(&frame(key, version, &[])).unwrap_err().to_string();
        assert_eq!(refused(7, 0), "API key 7 is not spoken here");
        assert_eq!(refused(-1, 0), "API key -1 is not spoken here");
        assert_eq!(
            refused(1, 3),
            "Fetch version 3 is not spoken here (4 to 18 are)"
        );
        let flexible = decode(&frame(0, 14, &[0])).unwrap_err().to_string();
        assert_eq!(
            flexible,
            "Produce version 14 is not spoken here (3 to 13 are)"
        );
        assert!(
            decode(&frame(18, 99, &[0])).is_ok(),
            "answered in version 0"
        );
    }

    #[test]
    fn large_frames_are_for_produce_only() {
        let large = vec![0; 2 << 20];
        let refused = decode(&frame(3, 9, &large)).unwrap_err().to_string();
        assert!(refused.contains("the limit is 1048576"), "{refused}");
    }
}
