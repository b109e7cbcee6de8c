//! The Kafka door's decoder.

/// A frame without its length, of any API and version: it is decoded or refused.
pub fn kafka_request(data: &[u8]) {
    if let Err(refused) = floe_gateway::kafka::decode(data) {
        assert!(!refused.to_string().is_empty(), "a refusal says why");
    }
}
