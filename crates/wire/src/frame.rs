//! The frame around every Kafka request and response, and the request header.
//!
//! ```text
//! length i32 | api key i16 | api version i16 | correlation id i32 | client id i16 length (-1 null), bytes
//!            | tagged fields (header version 2: flexible messages, KIP-482) | body
//! ```
//! Guarantees: lengths are checked against the bytes at hand; tagged fields are skipped, never stored.

use bytes::Bytes;

use crate::varint::read_u32;

/// Bytes of the length field.
pub const LENGTH_BYTES: usize = 4;
/// Most tagged fields of one section (as Kafka 4.4 limits them).
pub const TAGGED_FIELDS_MAX: u32 = 10_000;

/// Why a frame is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A length above the limit: not Kafka at all, or a request too large.
    #[error("frame announces {announced} bytes; the limit (socket.request.max.bytes) is {limit}")]
    Length {
        /// As announced; negative ones show as such.
        announced: i32,
        /// The limit in force.
        limit: usize,
    },
    /// What came is no frame at all.
    #[error("this is {0}, which the Kafka port (kafka.port) does not speak; {remedy}", remedy = .0.remedy())]
    Foreign(Foreign),
    /// The frame ends inside this field.
    #[error("request ends inside its {0}")]
    Short(&'static str),
    /// The client id is not UTF-8.
    #[error("client id is not UTF-8")]
    ClientId,
    /// More tagged fields than Kafka allows.
    #[error("{0} tagged fields; the limit is 10000")]
    TaggedFields(u32),
}

/// Another protocol, told by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// A method and a blank, or a part of it; also the preface of HTTP/2.
    #[error("an HTTP request")]
    Http,
    /// The record header of a handshake (RFC 8446, 5.1).
    #[error("the beginning of TLS")]
    Tls,
}

impl Foreign {
    fn of(bytes: [u8; LENGTH_BYTES]) -> Option<Self> {
        match &bytes {
            b"GET " | b"PUT " | b"POST" | b"HEAD" | b"DELE" | b"OPTI" | b"PATC" | b"CONN"
            | b"TRAC" | b"PRI " => Some(Self::Http),
            [0x16, 3, ..] => Some(Self::Tls),
            _ => None,
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Http => {
                "the HTTP ports are http.discovery.port, http.produce.port, http.consume.port and metrics.port"
            }
            Self::Tls => "set the client to plain text (security.protocol=PLAINTEXT)",
        }
    }
}

/// Checks an announced frame length: at least the fixed header, at most `limit`.
pub fn length(announced: [u8; LENGTH_BYTES], limit: usize) -> Result<usize, Error> {
    let bytes = i32::from_be_bytes(announced);
    usize::try_from(bytes)
        .ok()
        .filter(|l| (8..=limit).contains(l))
        .ok_or_else(|| match Foreign::of(announced) {
            Some(foreign) => Error::Foreign(foreign),
            None => Error::Length {
                announced: bytes,
                limit,
            },
        })
}

/// The header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which API.
    pub api_key: i16,
    /// Its version.
    pub api_version: i16,
    /// Repeated in the answer.
    pub correlation_id: i32,
    /// Who asks, in their own words.
    pub client_id: Option<Bytes>,
}

impl RequestHeader {
    /// The client id as text.
    pub fn client(&self) -> &str {
        let id = self.client_id.as_deref().unwrap_or_default();
        std::str::from_utf8(id).unwrap_or("?")
    }
}

/// Reads the header; gives it and the byte where the body starts. `is_flexible` tells whether a given key and
/// version has tagged fields in its header.
pub fn request_header(
    frame: &Bytes,
    is_flexible: impl FnOnce(i16, i16) -> bool,
) -> Result<(RequestHeader, usize), Error> {
    let Some(fixed) = frame.first_chunk::<8>() else {
        return Err(Error::Short("header"));
    };
    let api_key = i16::from_be_bytes([fixed[0], fixed[1]]);
    let api_version = i16::from_be_bytes([fixed[2], fixed[3]]);
    let correlation_id = i32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    let mut at = 8;
    let client_id = client_id(frame, &mut at)?;
    if is_flexible(api_key, api_version) {
        skip_tagged_fields(frame, &mut at)?;
    }
    let header = RequestHeader {
        api_key,
        api_version,
        correlation_id,
        client_id,
    };
    Ok((header, at))
}

fn client_id(frame: &Bytes, at: &mut usize) -> Result<Option<Bytes>, Error> {
    let length = frame
        .get(*at..*at + 2)
        .map(|l| i16::from_be_bytes([l[0], l[1]]))
        .ok_or(Error::Short("client id"))?;
    *at += 2;
    let Ok(length) = usize::try_from(length) else {
        return Ok(None);
    };
    if frame.len() - *at < length {
        return Err(Error::Short("client id"));
    }
    let id = frame.slice(*at..*at + length);
    *at += length;
    if std::str::from_utf8(&id).is_err() {
        return Err(Error::ClientId);
    }
    Ok(Some(id))
}

/// Steps over a section of tagged fields.
pub fn skip_tagged_fields(bytes: &[u8], at: &mut usize) -> Result<(), Error> {
    const SHORT: Error = Error::Short("tagged fields");
    let count = read_u32(bytes, at).ok_or(SHORT)?;
    if count > TAGGED_FIELDS_MAX {
        return Err(Error::TaggedFields(count));
    }
    for _ in 0..count {
        read_u32(bytes, at).ok_or(SHORT)?;
        let length = read_u32(bytes, at).ok_or(SHORT)? as usize;
        if bytes.len() - *at < length {
            return Err(SHORT);
        }
        *at += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(client: &[u8], rest: &[u8]) -> Bytes {
        let mut bytes = vec![0, 3, 0, 12, 0, 0, 0, 7];
        bytes.extend_from_slice(&(client.len() as i16).to_be_bytes());
        bytes.extend_from_slice(client);
        bytes.extend_from_slice(rest);
        bytes.into()
    }

    #[test]
    fn header_with_and_without_tagged_fields_is_read() {
        let plain = frame(b"rdkafka", b"body");
        let (header, at) = request_header(&plain, |_, _| false).unwrap();
        assert_eq!((header.api_key, header.api_version), (3, 12));
        assert_eq!((header.correlation_id, header.client()), (7, "rdkafka"));
        assert_eq!(&plain[at..], b"body");
        let tagged = frame(b"x", &[1, 0, 2, 9, 9, b'b']);
        let (_, at) = request_header(&tagged, |_, _| true).unwrap();
        assert_eq!(&tagged[at..], b"b");
    }

    #[test]
    fn absurd_lengths_are_refused() {
        assert_eq!(length([0, 0, 0, 8], 100), Ok(8));
        assert_eq!(length([0, 0, 0, 100], 100), Ok(100));
        for announced in [-1, 0, 7, 101, i32::MAX, i32::MIN] {
            assert_eq!(
                length(announced.to_be_bytes(), 100),
                Err(Error::Length {
                    announced,
                    limit: 100
                })
            );
        }
    }

    #[test]
    fn another_protocol_is_called_by_its_name() {
        for first in [b"GET ", b"POST", b"PRI "] {
            let error = length(*first, 100).unwrap_err();
            assert_eq!(error, Error::Foreign(Foreign::Http));
            assert!(error.to_string().contains("http.produce.port"), "{error}");
        }
        let error = length([0x16, 3, 1, 2], 100).unwrap_err();
        assert!(error.to_string().contains("PLAINTEXT"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, flexible: bool) {
            let bytes = Bytes::from(bytes);
            if let Ok((_, at)) = request_header(&bytes, |_, _| flexible) {
                prop_assert!(at <= bytes.len());
            }
        }
    }
}
