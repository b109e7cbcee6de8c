//! Bodies of HTTP produce requests.

use bytes::Bytes;

const LINES: &str = "application/x-ndjson";
const FRAMES: &str = "application/vnd.polar.producer.frames";
const RECORDS: &str = "application/vnd.floe.records+json";

/// The first byte chooses the media type, the rest is the body: it is decoded or refused, and what is decoded holds as
/// many records as another way of counting finds.
pub fn http_produce(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let media_type = [LINES, FRAMES, RECORDS][usize::from(*choice) % 3];
    let decoded = floe_gateway::http::decode_body(media_type, &Bytes::copy_from_slice(body));
    match (media_type, decoded) {
        (LINES, Ok(count)) => assert_eq!(count, lines(body), "a record a line"),
        // Too small for a record above the limit of a batch.
        (LINES, Err(refused)) => panic!("lines are not looked into: {}", refused.detail),
        (FRAMES, decoded) => assert_eq!(decoded.ok(), frames(body), "a record a frame"),
        (_, Ok(count)) => assert_eq!(Some(count), objects(body), "a record an object"),
        // What makes an object a record is told by tests, not counted here.
        (_, Err(_)) => {}
    }
}

/// Lines that are not blank, byte by byte.
fn lines(body: &[u8]) -> usize {
    let mut count = 0;
    let mut is_blank = true;
    for byte in body {
        match byte {
            b'\n' => is_blank = true,
            b' ' | b'\t' | b'\r' | 0x0c => {}
            _ => {
                count += usize::from(is_blank);
                is_blank = false;
            }
        }
    }
    count
}

/// Frames, if they end where the body does.
fn frames(mut body: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !body.is_empty() {
        let (length, rest) = body.split_at_checked(4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        body = rest.get(length as usize..)?;
        count += 1;
    }
    Some(count)
}

/// Objects on the outermost level, or in the one array; told by braces outside of strings.
fn objects(body: &[u8]) -> Option<usize> {
    let mut count = 0;
    let mut depth = 0_usize;
    let mut is_string = false;
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => drop(bytes.next()),
            _ if is_string => {}
            b'{' => {
                count += usize::from(depth == 0);
                depth += 1;
            }
            b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth == 0 && !is_string).then_some(count)
}
