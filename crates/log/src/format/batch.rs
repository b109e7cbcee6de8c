//! The few header fields of a Kafka RecordBatch v2 that the log needs (KIP-98; big-endian).
//!
//! ```text
//!  0 i64 base offset     12 i32 leader epoch   21 i16 attributes          35 i64 max timestamp   61 records
//!  8 i32 length after    16 i8  magic (2)      23 i32 last offset delta   43 producer id, epoch, base sequence
//!                        17 u32 crc of 21..    27 i64 base timestamp      57 i32 record count
//! ```
//! Kafka's CRC leaves out the first 21 bytes; ours ([`head_crc`]) covers them on disk. Contents are not looked at here.

use std::ops::Range;

use floe_model::{LeaderEpoch, Offset, Timestamp};

/// Bytes of the header, before the records.
pub const HEADER_BYTES: usize = 61;
/// Bytes that Kafka's CRC leaves out.
pub const HEAD_BYTES: usize = 21;

/// A whole batch: its header fields by place.
#[derive(Clone, Copy, Debug)]
pub struct BatchHead<'a>(&'a [u8]);

impl<'a> BatchHead<'a> {
    /// The batch at the front of `bytes`; `None` unless a whole one of version 2 is there.
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < HEADER_BYTES || bytes[16] != 2 {
            return None;
        }
        let len = usize::try_from(i32::from_be_bytes(four(bytes, 8))).ok()? + 12;
        if len < HEADER_BYTES {
            return None;
        }
        let head = Self(bytes.get(..len)?);
        (head.last_offset_delta() >= 0).then_some(head)
    }

    /// All its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Offset of its first record.
    pub fn base(&self) -> u64 {
        u64::from_be_bytes(eight(self.0, 0))
    }

    /// The offset after its last record; saturates on foreign bytes.
    pub fn end(&self) -> u64 {
        self.base().saturating_add(self.span())
    }

    /// Offsets it takes.
    pub fn span(&self) -> u64 {
        self.last_offset_delta() as u64 + 1
    }

    fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(four(self.0, 23))
    }

    /// Its leader epoch.
    pub fn epoch(&self) -> LeaderEpoch {
        LeaderEpoch(u32::from_be_bytes(four(self.0, 12)))
    }

    /// Its largest record timestamp, as the header says.
    pub fn max_timestamp(&self) -> Timestamp {
        Timestamp(i64::from_be_bytes(eight(self.0, 35)))
    }

    /// Whether Kafka's own checksum holds.
    pub fn crc_holds(&self) -> bool {
        crc_fast::crc32_iscsi(&self.0[HEAD_BYTES..]) == u32::from_be_bytes(four(self.0, 17))
    }
}

/// Writes base offset and leader epoch, which Kafka's CRC leaves out.
pub fn stamp(batch: &mut [u8], base: Offset, epoch: LeaderEpoch) {
    batch[..8].copy_from_slice(&base.0.to_be_bytes());
    batch[12..16].copy_from_slice(&epoch.0.to_be_bytes());
}

/// Our checksum of the bytes that Kafka's leaves out.
pub fn head_crc(batch: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(&batch[..HEAD_BYTES])
}

/// The whole batches at the front of `bytes`, with their places; ends at the first thing that is not one.
pub fn walk(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, BatchHead<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let head = BatchHead::first(&bytes[at..])?;
        let place = at..at + head.bytes().len();
        at = place.end;
        Some((place, head))
    })
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    field
}

fn eight(bytes: &[u8], at: usize) -> [u8; 8] {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    field
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A batch of `records` opaque records in `payload` bytes.
    pub(crate) fn example(records: u32, payload: usize, max_timestamp: i64) -> Vec<u8> {
        let mut batch = vec![0x5a; HEADER_BYTES + payload];
        batch[..8].copy_from_slice(&0_u64.to_be_bytes());
        batch[8..12].copy_from_slice(&((HEADER_BYTES - 12 + payload) as u32).to_be_bytes());
        batch[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        batch[16] = 2;
        batch[21..23].copy_from_slice(&0_u16.to_be_bytes());
        batch[23..27].copy_from_slice(&(records - 1).to_be_bytes());
        batch[27..35].copy_from_slice(&max_timestamp.to_be_bytes());
        batch[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
        batch[57..61].copy_from_slice(&records.to_be_bytes());
        let crc = crc_fast::crc32_iscsi(&batch[HEAD_BYTES..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        batch
    }

    #[test]
    fn stamping_leaves_kafkas_crc_whole() {
        let mut batch = example(3, 40, 77);
        stamp(&mut batch, Offset(9), LeaderEpoch(4));
        let head = BatchHead::first(&batch).unwrap();
        assert_eq!(
            (head.base(), head.end(), head.epoch()),
            (9, 12, LeaderEpoch(4))
        );
        assert_eq!(head.max_timestamp(), Timestamp(77));
        assert!(head.crc_holds());
    }

    #[test]
    fn walk_ends_at_a_batch_that_is_not_whole() {
        let mut bytes = example(1, 10, 0);
        bytes.extend(example(2, 20, 0));
        let cut = bytes.len() - 1;
        assert_eq!(walk(&bytes).count(), 2);
        assert_eq!(walk(&bytes[..cut]).count(), 1);
        assert_eq!(walk(&[0; 200]).count(), 0);
    }
}
