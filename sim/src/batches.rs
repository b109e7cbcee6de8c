//! Record batches that can be told apart: a RecordBatch v2 head (KIP-98) over bytes drawn from the seed.
//!
//! The log looks at heads only, so the records in it are opaque.

use floe_log::format::batch::{self, HEAD_BYTES, HEADER_BYTES};
use floe_log::format::crc;
use floe_model::{LeaderEpoch, Offset};

use crate::chance::Chance;

/// A batch of `records` records and about `bytes` bytes, not stamped yet.
pub(crate) fn draw(chance: &Chance, records: u32, bytes: usize, max_timestamp: i64) -> Vec<u8> {
    let len = bytes.max(HEADER_BYTES + 8);
    let mut batch = vec![0; len];
    for piece in batch[HEADER_BYTES..].chunks_mut(8) {
        piece.copy_from_slice(&chance.bits().to_le_bytes()[..piece.len()]);
    }
    batch[8..12].copy_from_slice(&(len as u32 - 12).to_be_bytes());
    batch[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    batch[16] = 2;
    batch[23..27].copy_from_slice(&(records - 1).to_be_bytes());
    batch[27..35].copy_from_slice(&max_timestamp.to_be_bytes());
    batch[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
    batch[43..51].fill(0xff);
    batch[51..57].fill(0xff);
    batch[57..61].copy_from_slice(&records.to_be_bytes());
    let sum = crc(&[&batch[HEAD_BYTES..]]);
    batch[17..21].copy_from_slice(&sum.to_be_bytes());
    batch
}

/// The same as it lies in the log.
pub(crate) fn stamped(mut batch: Vec<u8>, base: Offset, epoch: LeaderEpoch) -> bytes::Bytes {
    batch::stamp(&mut batch, base, epoch);
    batch.into()
}
