//! Bodies of HTTP produce requests.

use bytes::Bytes;

/// The media types that are more than one opaque record.
const MEDIA_TYPES: [&str; 3] = [
    "application/x-ndjson",
    "application/vnd.polar.producer.frames",
    "application/vnd.floe.records+json",
];

/// The first byte chooses the media type, the rest is the body: it is decoded or refused, and holds no more records
/// than it has bytes.
pub fn http_produce(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let media_type = MEDIA_TYPES[usize::from(*choice) % MEDIA_TYPES.len()];
    if let Ok(count) = floe_gateway::http::decode_body(media_type, &Bytes::copy_from_slice(body)) {
        assert!(
            count <= body.len(),
            "{count} records of {} bytes",
            body.len()
        );
    }
}
