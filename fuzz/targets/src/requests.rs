//! The Kafka door's decoder.

use bytes::Bytes;
use floe_wire::frame;
use floe_wire::produce::{ProduceRequest, TopicRef};
use kacrab_protocol::generated::produce_request::ProduceRequestData;
use kacrab_protocol::version::request_header_version;

/// A frame without its length, of any API and version: it is decoded or refused; what is decoded is read the same once
/// it is written again, and a produce request as the generated decoder reads it.
pub fn kafka_request(data: &[u8]) {
    if let Err(refused) = floe_gateway::kafka::decode(data) {
        assert!(!refused.to_string().is_empty(), "a refusal says why");
    }
    let data = Bytes::copy_from_slice(data);
    let flexible = |key, version| request_header_version(key, version) == 2;
    if let Ok((header, at)) = frame::request_header(&data, flexible)
        && header.api_key == 0
        && (3..=13).contains(&header.api_version)
    {
        produce(&data.slice(at..), header.api_version);
    }
}

fn produce(body: &Bytes, version: i16) {
    let Ok(ours) = ProduceRequest::read(body, version) else {
        return;
    };
    let records: usize = ours.partitions.iter().map(|p| p.records.len()).sum();
    assert!(records <= body.len(), "records are parts of the body");
    let Ok(theirs) = ProduceRequestData::read(&mut body.clone(), version) else {
        return;
    };
    assert_eq!(
        (ours.acks, ours.timeout_ms),
        (theirs.acks, theirs.timeout_ms)
    );
    let mut left = ours.partitions.iter();
    for topic in &theirs.topic_data {
        for partition in &topic.partition_data {
            let ours = left.next().expect("as many partitions");
            assert_eq!(ours.index, partition.index);
            let records = partition.records.as_deref().unwrap_or_default();
            assert_eq!(ours.records, records);
            match &ours.topic {
                TopicRef::Name(name) => assert_eq!(name, topic.name.as_bytes()),
                TopicRef::Id(id) => assert_eq!(*id, topic.topic_id.to_bytes()),
            }
        }
    }
    assert!(left.next().is_none(), "as many partitions");
}
