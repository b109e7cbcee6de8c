//! What the log needs of a Kafka RecordBatch beside [`floe_wire::batch`], which draws it.
//!
//! Kafka's CRC leaves out the first 21 bytes; ours ([`head_crc`]) covers them on disk. Contents are not looked at here.

use std::ops::Range;

use floe_model::{LeaderEpoch, Timestamp};
pub use floe_wire::batch::{HEADER_BYTES, stamp};
use floe_wire::batch::{MAGIC, View, crc32c};

/// Bytes that Kafka's CRC leaves out.
pub const HEAD_BYTES: usize = 21;

/// A whole batch whose header's numbers can be counted with.
#[derive(Clone, Copy, Debug)]
pub struct BatchHead<'a>(View<'a>);

impl<'a> BatchHead<'a> {
    /// The batch at the front of `bytes`; `None` unless a whole one of version 2 is there.
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        let view = View::first(bytes).ok()?;
        (view.magic() == MAGIC && view.last_offset_delta() >= 0).then_some(Self(view))
    }

    /// All its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.0.bytes()
    }

    /// Offset of its first record.
    pub fn base(&self) -> u64 {
        self.0.base_offset() as u64
    }

    /// The offset after its last record; saturates on foreign bytes.
    pub fn end(&self) -> u64 {
        self.base().saturating_add(self.span())
    }

    /// Offsets it takes.
    pub fn span(&self) -> u64 {
        self.0.last_offset_delta() as u64 + 1
    }

    /// Its leader epoch.
    pub fn epoch(&self) -> LeaderEpoch {
        LeaderEpoch(self.0.leader_epoch() as u32)
    }

    /// Its largest record timestamp, as the header says.
    pub fn max_timestamp(&self) -> Timestamp {
        Timestamp(self.0.max_timestamp())
    }

    /// Kafka's own checksum, as the header says: equal means the same records.
    pub fn crc(&self) -> u32 {
        self.0.crc()
    }

    /// The same where 0 stands for one that is not known.
    pub(crate) fn crc_to_keep(&self) -> Option<u32> {
        Some(self.crc()).filter(|crc| *crc != 0)
    }

    /// Whether Kafka's own checksum holds.
    pub fn crc_holds(&self) -> bool {
        self.0.is_crc_right()
    }
}

/// Our checksum of the bytes that Kafka's leaves out.
pub fn head_crc(batch: &[u8]) -> u32 {
    crc32c(&batch[..HEAD_BYTES])
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

#[cfg(test)]
pub(crate) mod tests {
    use floe_model::Offset;

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
        let crc = crc32c(&batch[HEAD_BYTES..]);
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
