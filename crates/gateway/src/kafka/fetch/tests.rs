use super::*;
use crate::kafka::api::Api;
use floe_wire::frame::RequestHeader;
use kacrab_protocol::generated::fetch_response::FetchResponseData;

fn request(version: i16) -> Request {
    Request {
        api: Api::find(1).unwrap(),
        version,
        header: RequestHeader {
            api_key: 1,
            api_version: version,
            correlation_id: 77,
            client_id: None,
        },
        body: Bytes::new(),
        caller: crate::kafka::request::Caller {
            peer: ([127, 0, 0, 1], 1).into(),
            local: ([127, 0, 0, 1], 2).into(),
        },
    }
}

fn fetched(index: u32, records: &[&'static [u8]], error: Option<FetchError>) -> FetchedPart {
    let partition = TopicPartition {
        topic: floe_model::TopicId([7; 16]),
        partition: floe_model::PartitionIndex(index),
    };
    FetchedPart {
        partition,
        records: records.iter().map(|r| Bytes::from_static(r)).collect(),
        next: Offset(0),
        high_watermark: Offset(5),
        last_stable_offset: Offset(5),
        log_start: Offset(1),
        error,
    }
}

#[test]
fn every_version_is_read_back_by_the_message_definitions() {
    let out_of_range = FetchError::OutOfRange {
        offset: Offset(9),
        log_start: Offset(1),
        end: Offset(5),
    };
    let fetched = [
        fetched(0, &[b"one batch", b"another"], None),
        fetched(1, &[], None),
        fetched(2, &[], Some(out_of_range)),
    ];
    for version in 4..=18 {
        for committed in [false, true] {
            let topic = AskedTopic {
                name: crate::kafka::answer::text("flights"),
                id: KafkaUuid::from_parts(1, 2),
                partitions: vec![
                    AskedPartition {
                        index: 0,
                        place: Ok(0),
                    },
                    AskedPartition {
                        index: 1,
                        place: Ok(1),
                    },
                    AskedPartition {
                        index: 2,
                        place: Ok(2),
                    },
                    AskedPartition {
                        index: 9,
                        place: Err(ErrorCode::UnknownTopicOrPartition),
                    },
                ],
            };
            let mut encoder = Encoder::new(&request(version), committed);
            encoder.start(ErrorCode::None, 1);
            encoder.topic(&topic, &fetched);
            let frame: Bytes = encoder.finish().into_parts().concat().into();
            let announced = i32::from_be_bytes(*frame.first_chunk().unwrap());
            assert_eq!(announced as usize, frame.len() - 4);
            assert_eq!(&frame[4..8], 77_i32.to_be_bytes());
            let header = if version >= 12 { 9 } else { 8 };
            let mut body = frame.slice(header..);
            let read = FetchResponseData::read(&mut body, version).unwrap();
            assert!(body.is_empty(), "version {version}");
            let answered = &read.responses[0];
            if version >= 13 {
                assert_eq!(answered.topic_id, KafkaUuid::from_parts(1, 2));
            } else {
                assert_eq!(answered.topic.as_str(), "flights");
            }
            let [first, empty, beyond, unknown] = &answered.partitions[..] else {
                panic!("four partitions");
            };
            assert_eq!(first.records.as_deref(), Some(&b"one batchanother"[..]));
            assert_eq!((first.high_watermark, first.last_stable_offset), (5, 5));
            assert_eq!(first.aborted_transactions.is_some(), committed);
            assert_eq!(first.preferred_read_replica, -1);
            assert_eq!(empty.records.as_deref(), Some(&b""[..]), "empty, not null");
            assert_eq!(beyond.error_code, 1);
            assert_eq!((unknown.partition_index, unknown.error_code), (9, 3));
            assert_eq!(read.session_id, 0);
        }
    }
}
