//! The bytes of one snapshot.
//!
//! ```text
//!  0  magic "FLOETABL"       8
//!  8  format                 u32   1
//! 12  crc                    u32   CRC-32C of all bytes from 16 on
//! 16  topic id              16
//! 32  partition              u32
//! 36  reserved               u32   0
//! 40  applied offset         u64
//! 48  rows                   u64
//! 56  length of the rows     u64   bytes
//! 64  rows: { key length u32 | key | value length u32 | value }*
//! ```
//! Integers are little-endian. Bytes behind the rows are left from an older, longer snapshot in the same file.
//!
//! Guarantees: what is decoded was encoded whole, for the same partition. Foreign bytes give [`Unusable`].

use floe_model::{Offset, TopicPartition};
use floe_wire::batch::crc32c;

use crate::Table;

const MAGIC: &[u8; 8] = b"FLOETABL";
const FORMAT: u32 = 1;
/// Bytes before the rows.
pub(crate) const HEADER: usize = 64;
const CRC_FROM: usize = 16;

/// Why a file is not a snapshot to start from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Never written, torn or damaged.
    #[error("is not whole")]
    NotWhole,
    /// Written by a newer release.
    #[error("has format {0}; this release reads format {FORMAT}: use a newer release")]
    NewerFormat(u32),
    /// Of another partition, or another life of the topic.
    #[error("belongs to another partition")]
    OtherPartition,
}

/// A table as bytes.
pub(crate) fn encode(partition: TopicPartition, table: &Table) -> Vec<u8> {
    let body_len = table.bytes() + 8 * table.len();
    let mut bytes = Vec::with_capacity(HEADER + body_len);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&partition.topic.0);
    bytes.extend_from_slice(&partition.partition.0.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&table.applied().0.to_le_bytes());
    bytes.extend_from_slice(&(table.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(body_len as u64).to_le_bytes());
    for (key, value) in table.rows() {
        for part in [key, value] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    assert_eq!(bytes.len(), HEADER + body_len, "rows are counted in bytes");
    let crc = crc32c(&bytes[CRC_FROM..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Length of the whole snapshot that begins with this header; checked against the file before anything is allocated.
pub(crate) fn whole_len(header: &[u8; HEADER], file_len: u64) -> Result<usize, Unusable> {
    if &header[..8] != MAGIC {
        return Err(Unusable::NotWhole);
    }
    let format = u32_at(header, 8);
    if format > FORMAT {
        return Err(Unusable::NewerFormat(format));
    }
    let len = u64_at(header, 56).saturating_add(HEADER as u64);
    if format != FORMAT || len > file_len {
        return Err(Unusable::NotWhole);
    }
    usize::try_from(len).map_err(|_| Unusable::NotWhole)
}

/// The table in a whole snapshot.
pub(crate) fn decode(partition: TopicPartition, bytes: &[u8]) -> Result<Table, Unusable> {
    if bytes.len() < HEADER || u32_at(bytes, 12) != crc32c(&bytes[CRC_FROM..]) {
        return Err(Unusable::NotWhole);
    }
    if bytes[16..32] != partition.topic.0 || u32_at(bytes, 32) != partition.partition.0 {
        return Err(Unusable::OtherPartition);
    }
    let mut table = Table::new(Offset(u64_at(bytes, 40)));
    let mut rest = &bytes[HEADER..];
    for _ in 0..u64_at(bytes, 48) {
        let key = part(&mut rest)?;
        let value = part(&mut rest)?;
        table.put(key, Some(value));
    }
    if rest.is_empty() {
        Ok(table)
    } else {
        Err(Unusable::NotWhole)
    }
}

fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Unusable> {
    let (len, after) = rest.split_first_chunk::<4>().ok_or(Unusable::NotWhole)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (part, after) = after.split_at_checked(len).ok_or(Unusable::NotWhole)?;
    *rest = after;
    Ok(part)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use floe_model::{PartitionIndex, TopicId};

    use super::*;

    fn partition() -> TopicPartition {
        TopicPartition {
            topic: TopicId([7; 16]),
            partition: PartitionIndex(3),
        }
    }

    fn sample() -> Table {
        let mut table = Table::new(Offset(0x0102));
        table.put(b"k", Some(b"vv"));
        table
    }

    #[test]
    fn the_layout_is_as_drawn() {
        let bytes = encode(partition(), &sample());
        assert_eq!(&bytes[..12], b"FLOETABL\x01\0\0\0");
        assert_eq!(&bytes[16..32], &[7; 16]);
        assert_eq!(&bytes[32..40], b"\x03\0\0\0\0\0\0\0");
        assert_eq!(&bytes[40..48], b"\x02\x01\0\0\0\0\0\0");
        assert_eq!(&bytes[48..56], b"\x01\0\0\0\0\0\0\0");
        assert_eq!(&bytes[56..64], b"\x0b\0\0\0\0\0\0\0");
        assert_eq!(&bytes[64..], b"\x01\0\0\0k\x02\0\0\0vv");
        assert_eq!(decode(partition(), &bytes), Ok(sample()));
    }

    #[test]
    fn any_flipped_or_missing_byte_is_seen() {
        let bytes = encode(partition(), &sample());
        for at in 12..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert_eq!(decode(partition(), &bad), Err(Unusable::NotWhole), "{at}");
            assert!(decode(partition(), &bytes[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn other_lives_of_the_topic_and_newer_formats_are_named() {
        let bytes = encode(partition(), &sample());
        let other = TopicPartition {
            topic: TopicId([8; 16]),
            ..partition()
        };
        assert_eq!(decode(other, &bytes), Err(Unusable::OtherPartition));
        let mut header: [u8; HEADER] = bytes[..HEADER].try_into().unwrap();
        assert_eq!(whole_len(&header, 75), Ok(75));
        assert_eq!(whole_len(&header, 74), Err(Unusable::NotWhole));
        header[8] = 2;
        assert_eq!(whole_len(&header, 75), Err(Unusable::NewerFormat(2)));
        header[..8].fill(0);
        assert_eq!(whole_len(&header, 75), Err(Unusable::NotWhole));
    }
}
