//! The frame around everything nodes say to one another.
//!
//! ```text
//!  0 mark f1 0e   2 u8 version   3 u8 kind
//!  4 u32 head bytes    8 u32 crc of head
//! 12 u32 body bytes   16 u32 crc of body
//! 20 u32 crc of the 20 bytes before
//! 24 head, then body
//! ```
//! Integers are little-endian, checksums CRC-32C.
//!
//! Guarantees: a length is used only after its checksum held and it is within the limits; a changed bit anywhere is noticed
//! before the part it is in is used. What is no frame is called by its name where it can be told from its first bytes.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes before the head.
pub const PREAMBLE_BYTES: usize = 24;
/// What every frame begins with: no text, no TLS record, no Kafka length.
pub const MARK: [u8; 2] = [0xf1, 0x0e];
/// Bytes that tell a stranger.
pub const TELLING_BYTES: usize = 4;
/// Largest head. Decoded it takes at most 128 times that.
pub const HEAD_BYTES_MAX: usize = 256 << 10;
/// Largest head before the other side has proven the secret.
pub const HANDSHAKE_HEAD_BYTES_MAX: usize = 512;
/// Largest body that any receiver may be set to take.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Handshake, dialler: who I am, and a nonce.
    Hello = 1,
    /// Handshake, acceptor: who I am, and a nonce.
    Challenge = 2,
    /// Handshake, dialler: the secret is known here.
    Proof = 3,
    /// Handshake, acceptor: here, too.
    Welcome = 4,
    /// Handshake: no, and why.
    Refused = 5,
    /// Leader to follower. Body: batches.
    Append = 16,
    /// Follower to leader.
    Answer = 17,
    /// Controller to members, a list.
    Fence = 18,
    /// Members to controller, a list.
    Fenced = 19,
    /// A member does not do what it was asked.
    Refusal = 20,
    /// Copy a generation from another member.
    CopyOrder = 21,
    /// A copy is whole and durable.
    Copied = 22,
    /// Send me what follows.
    Pull = 23,
    /// What follows. Body: batches.
    Piece = 24,
    /// Leader to member, a list.
    LeaseAsk = 25,
    /// Member to leader, a list.
    LeaseGrant = 26,
    /// Both ways.
    Heartbeat = 32,
    /// Between voters. Body: theirs.
    Consensus = 48,
    /// A request of a client, for the leader. Body: the request.
    Forward = 64,
    /// Its answer. Body: the answer.
    Forwarded = 65,
    /// To the controller. Body: the request.
    ControllerRequest = 80,
    /// From the controller. Body: the answer.
    ControllerAnswer = 81,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Hello,
        Self::Challenge,
        Self::Proof,
        Self::Welcome,
        Self::Refused,
        Self::Append,
        Self::Answer,
        Self::Fence,
        Self::Fenced,
        Self::Refusal,
        Self::CopyOrder,
        Self::Copied,
        Self::Pull,
        Self::Piece,
        Self::LeaseAsk,
        Self::LeaseGrant,
        Self::Heartbeat,
        Self::Consensus,
        Self::Forward,
        Self::Forwarded,
        Self::ControllerRequest,
        Self::ControllerAnswer,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Most bytes of a frame's parts that a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the head.
    pub head_bytes: usize,
    /// Of the body.
    pub body_bytes: usize,
}

impl Limits {
    /// Before the other side has proven the secret.
    pub const HANDSHAKE: Self = Self {
        head_bytes: HANDSHAKE_HEAD_BYTES_MAX,
        body_bytes: 0,
    };
}

/// Another protocol, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// A method and a blank, the preface of HTTP/2, or an answer.
    #[error("HTTP")]
    Http,
    /// The record header of a handshake (RFC 8446, 5.1).
    #[error("TLS")]
    Tls,
    /// A length that a Kafka request could have.
    #[error("the Kafka protocol, or one like it,")]
    Kafka,
    /// None that is known.
    #[error("an unknown protocol")]
    Unknown,
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They begin otherwise.
    #[error("{0} is spoken, which the port for other nodes (peer.port) does not take")]
    Foreign(Foreign),
    /// A part does not match its checksum.
    #[error("the {0} of a frame fails its checksum")]
    Checksum(&'static str),
    /// Not the version that was agreed on.
    #[error("a frame has version {found}; {agreed} was agreed on")]
    Version {
        /// As sent.
        found: u8,
        /// As agreed.
        agreed: u8,
    },
    /// A kind that this version does not have.
    #[error("a frame is of the unknown kind {0}")]
    Kind(u8),
    /// A part is too long.
    #[error("the {part} of a frame has {announced} bytes; the limit is {limit}")]
    Length {
        /// Which.
        part: &'static str,
        /// As announced.
        announced: usize,
        /// The limit in force.
        limit: usize,
    },
}

/// A preamble, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// What the frame says.
    pub kind: Kind,
    /// Bytes of the head.
    pub head_bytes: usize,
    /// Bytes of the body.
    pub body_bytes: usize,
    head_crc: u32,
    body_crc: u32,
}

/// Draws the preamble of a frame.
///
/// # Panics
/// If a part is longer than any receiver takes: its sender must ask before.
pub fn preamble(version: u8, kind: Kind, head: &[u8], body: &[Bytes]) -> [u8; PREAMBLE_BYTES] {
    let body_bytes: usize = body.iter().map(Bytes::len).sum();
    assert!(head.len() <= HEAD_BYTES_MAX && body_bytes <= BODY_BYTES_MAX);
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..2].copy_from_slice(&MARK);
    bytes[2] = version;
    bytes[3] = kind as u8;
    put(&mut bytes, 4, head.len() as u32);
    put(&mut bytes, 8, crc([head]));
    put(&mut bytes, 12, body_bytes as u32);
    put(&mut bytes, 16, crc(body.iter().map(|part| &part[..])));
    let sum = crc([&bytes[..20]]);
    put(&mut bytes, 20, sum);
    bytes
}

impl Preamble {
    /// Reads and checks one.
    pub fn decode(bytes: &[u8; PREAMBLE_BYTES], agreed: u8, limits: Limits) -> Result<Self, Error> {
        if let Some(foreign) = foreign([bytes[0], bytes[1], bytes[2], bytes[3]]) {
            return Err(Error::Foreign(foreign));
        }
        if get(bytes, 20) != crc([&bytes[..20]]) {
            return Err(Error::Checksum("preamble"));
        }
        let found = bytes[2];
        if found != agreed {
            return Err(Error::Version { found, agreed });
        }
        let kind = Kind::of(bytes[3]).ok_or(Error::Kind(bytes[3]))?;
        Ok(Self {
            kind,
            head_bytes: bounded("head", get(bytes, 4), limits.head_bytes)?,
            body_bytes: bounded("body", get(bytes, 12), limits.body_bytes)?,
            head_crc: get(bytes, 8),
            body_crc: get(bytes, 16),
        })
    }

    /// Whether this is the head it was drawn for.
    pub fn check_head(&self, head: &[u8]) -> Result<(), Error> {
        let is_it = head.len() == self.head_bytes && crc([head]) == self.head_crc;
        is_it.then_some(()).ok_or(Error::Checksum("head"))
    }

    /// Whether this is the body it was drawn for.
    pub fn check_body(&self, body: &[u8]) -> Result<(), Error> {
        let is_it = body.len() == self.body_bytes && crc([body]) == self.body_crc;
        is_it.then_some(()).ok_or(Error::Checksum("body"))
    }
}

/// What is spoken, if not this.
pub fn foreign(first: [u8; TELLING_BYTES]) -> Option<Foreign> {
    if first[..2] == MARK {
        return None;
    }
    Some(match &first {
        b"GET " | b"PUT " | b"POST" | b"HEAD" | b"DELE" | b"OPTI" | b"PATC" | b"CONN" | b"TRAC"
        | b"PRI " | b"HTTP" => Foreign::Http,
        [0x16, 3, ..] => Foreign::Tls,
        // A request of less than 16 MiB; Kafka's own limit is 100 MiB, of what a client sends first it is a few hundred bytes.
        [0, high, middle, low] if (*high, *middle, *low) != (0, 0, 0) => Foreign::Kafka,
        _ => Foreign::Unknown,
    })
}

fn bounded(part: &'static str, announced: u32, limit: usize) -> Result<usize, Error> {
    let announced = announced as usize;
    if announced > limit {
        return Err(Error::Length {
            part,
            announced,
            limit,
        });
    }
    Ok(announced)
}

fn crc<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}

fn put(bytes: &mut [u8; PREAMBLE_BYTES], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

fn get(bytes: &[u8; PREAMBLE_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        head_bytes: 16,
        body_bytes: 32,
    };

    fn frame(head: &[u8], body: &[u8]) -> Vec<u8> {
        let parts = body.chunks(3).map(Bytes::copy_from_slice);
        let parts: Vec<Bytes> = parts.collect();
        let mut bytes = preamble(1, Kind::Append, head, &parts).to_vec();
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(body);
        bytes
    }

    /// Reads a frame as a receiver does: no part before its checksum held.
    fn read(bytes: &[u8]) -> Result<(Kind, &[u8], &[u8]), Error> {
        let (first, rest) = bytes.split_first_chunk().expect("a preamble");
        let preamble = Preamble::decode(first, 1, LIMITS)?;
        let end = preamble.head_bytes.min(rest.len());
        let (head, body) = rest.split_at(end);
        preamble.check_head(head)?;
        preamble.check_body(body)?;
        Ok((preamble.kind, head, body))
    }

    #[test]
    fn a_frame_is_drawn_as_the_picture_says() {
        let bytes = frame(b"123456789", b"123456789");
        // The catalogue's check value of CRC-32C, twice.
        let sum = [0x83, 0x92, 0x06, 0xe3];
        assert_eq!(bytes[..4], [0xf1, 0x0e, 1, 16]);
        assert_eq!(bytes[4..8], [9, 0, 0, 0]);
        assert_eq!(bytes[8..12], sum);
        assert_eq!(bytes[12..16], [9, 0, 0, 0]);
        assert_eq!(bytes[16..20], sum);
        assert_eq!(bytes[24..], *b"123456789123456789");
        let expected: (Kind, &[u8], &[u8]) = (Kind::Append, b"123456789", b"123456789");
        assert_eq!(read(&bytes), Ok(expected));
    }

    #[test]
    fn every_changed_bit_of_a_frame_is_noticed() {
        let whole = frame(b"head of a frame", b"and its body");
        assert!(read(&whole).is_ok());
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn parts_are_taken_at_their_limit_and_refused_one_past_it() {
        let of = |head, body| frame(&vec![7; head], &vec![7; body]);
        assert!(read(&of(16, 32)).is_ok());
        assert!(read(&of(0, 0)).is_ok());
        for (head, body, part, limit) in [(17, 0, "head", 16), (0, 33, "body", 32)] {
            let announced = limit + 1;
            let refused = Error::Length {
                part,
                announced,
                limit,
            };
            assert_eq!(read(&of(head, body)), Err(refused));
        }
    }

    #[test]
    fn a_version_that_was_not_agreed_on_and_an_unknown_kind_are_named() {
        let bytes = preamble(2, Kind::Append, &[], &[]);
        let error = Error::Version {
            found: 2,
            agreed: 1,
        };
        assert_eq!(Preamble::decode(&bytes, 1, LIMITS), Err(error));
        let mut bytes = preamble(1, Kind::Append, &[], &[]);
        bytes[3] = 255;
        let sum = crc([&bytes[..20]]);
        put(&mut bytes, 20, sum);
        let error = Error::Kind(255);
        assert_eq!(Preamble::decode(&bytes, 1, LIMITS), Err(error));
    }

    #[test]
    fn every_kind_is_known_by_its_number() {
        for number in 0..=255 {
            let kind = Kind::of(number);
            assert!(kind.is_none_or(|kind| kind as u8 == number));
        }
        let known = (0..=255).filter_map(Kind::of).count();
        assert_eq!(known, 22, "each has a number of its own");
    }

    #[test]
    fn a_stranger_is_called_by_its_name() {
        for (first, expected) in [
            (*b"GET ", Foreign::Http),
            (*b"PRI ", Foreign::Http),
            (*b"HTTP", Foreign::Http),
            ([0x16, 3, 1, 2], Foreign::Tls),
            ([0, 0, 0, 0x24], Foreign::Kafka),
            ([0, 0, 0, 0], Foreign::Unknown),
            (*b"SSH-", Foreign::Unknown),
        ] {
            assert_eq!(foreign(first), Some(expected));
        }
        assert_eq!(foreign([0xf1, 0x0e, 9, 9]), None);
        let text = Error::Foreign(Foreign::Http).to_string();
        assert!(text.contains("peer.port"), "{text}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: [u8; PREAMBLE_BYTES], is_marked: bool, is_summed: bool) {
            let mut bytes = bytes;
            if is_marked {
                bytes[..2].copy_from_slice(&MARK);
                bytes[2] = 1;
            }
            if is_summed {
                let sum = crc([&bytes[..20]]);
                put(&mut bytes, 20, sum);
            }
            if let Ok(preamble) = Preamble::decode(&bytes, 1, LIMITS) {
                prop_assert!(preamble.head_bytes <= LIMITS.head_bytes);
                prop_assert!(preamble.body_bytes <= LIMITS.body_bytes);
            }
        }
    }
}
