//! The topic names in a `consumer` member's metadata (Kafka's ConsumerProtocolSubscription).
//!
//! ```text
//! version i16 | count i32 | count × (length i16 | name) | further fields, not read
//! ```

use bytes::Buf;

/// The topics subscribed to, or `None` if the bytes are something else.
pub fn topics(mut metadata: &[u8]) -> Option<Vec<String>> {
    let version = metadata.try_get_i16().ok()?;
    let count = usize::try_from(metadata.try_get_i32().ok()?).ok()?;
    // Each name takes at least its length's two bytes: a count beyond that is a lie.
    if version < 0 || count > metadata.len() / 2 {
        return None;
    }
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let len = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
        let name = metadata.get(..len)?;
        names.push(std::str::from_utf8(name).ok()?.to_owned());
        metadata.advance(len);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::topics;

    #[test]
    fn names_are_read_and_what_follows_is_left() {
        let bytes = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bcrest";
        assert_eq!(topics(bytes), Some(vec!["a".to_owned(), "bc".to_owned()]));
    }

    #[test]
    fn foreign_bytes_give_none() {
        let whole = b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bc";
        for cut in 0..whole.len() {
            assert_eq!(topics(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(topics(b"\x00\x01\x7f\xff\xff\xff\x00\x01a"), None);
        assert_eq!(topics(b"\x00\x01\xff\xff\xff\xff"), None);
        assert_eq!(topics(b"\x00\x01\x00\x00\x00\x01\xff\xff"), None);
        assert_eq!(topics(b"\x00\x01\x00\x00\x00\x01\x00\x01\xff"), None);
    }
}
