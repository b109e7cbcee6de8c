//! Record batches, format 2 (KIP-98): viewed, checked, stamped and walked in place.
//!
//! ```text
//!  0 base offset        i64  | 27 base timestamp  i64   all big endian
//!  8 length             i32  | 35 max timestamp   i64
//! 12 leader epoch       i32  | 43 producer id     i64
//! 16 magic = 2          i8   | 51 producer epoch  i16
//! 17 CRC-32C            u32  | 53 base sequence   i32
//! 21 attributes         i16  | 57 record count    i32
//! 23 last offset delta  i32  | 61 records, compressed as a whole
//! ```
//! `length` counts the bytes behind itself; the CRC covers byte 21 to the end, so base offset and leader epoch
//! are stamped without touching it. Attributes: bits 0-2 codec, 3 timestamp type (1 = log append time),
//! 4 transactional, 5 control, 6 delete horizon.
//!
//! Guarantees: a [`View`] spans exactly one batch whose fixed part is there; nothing in this module panics on
//! foreign bytes. Does not decide which batches a partition takes: see [`check`].

mod build;
mod check;
mod record;
mod refusal;
#[cfg(test)]
mod tests;
mod time;

use floe_model::{LeaderEpoch, Offset, Timestamp};

pub use build::{Builder, TooLarge};
pub use check::{Checked, Producer, Rules, check};
pub use record::{Header, Headers, Record, Records, records};
pub use refusal::{Class, Refusal, RefusalKind};
pub use time::{first_at_or_after, greatest_timestamp};

use crate::codec::Codec;

/// Bytes of the fixed part.
pub const HEADER_BYTES: usize = 61;
/// Bytes ahead of what `length` counts.
pub const LENGTH_END: usize = 12;
/// The one format there is.
pub const MAGIC: i8 = 2;
/// No producer, no sequence.
pub const NONE: i64 = -1;

pub(crate) const CRC_FROM: usize = 21;
const TIMESTAMP_TYPE: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

/// Where a record's timestamp comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// From its producer.
    Create,
    /// From the broker, the same for the whole batch.
    LogAppend,
}

/// The bytes do not start with one whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than a batch's fixed part, or than its length field announces.
    #[error("record batch needs {needed} bytes, {there} are there")]
    Short {
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        there: usize,
    },
    /// A length field below the smallest batch or negative.
    #[error("record batch length field is {0}; the smallest is 49")]
    Length(i32),
}

/// One record batch, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
}

macro_rules! field {
    ($(#[$doc:meta])* $name:ident, $type:ty, $at:literal) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&self) -> $type {
            const END: usize = $at + size_of::<$type>();
            let mut raw = [0; size_of::<$type>()];
            raw.copy_from_slice(&self.bytes[$at..END]);
            <$type>::from_be_bytes(raw)
        }
    };
}

impl<'a> View<'a> {
    /// The batch `bytes` start with; more may follow it.
    pub fn first(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::Short {
                needed: HEADER_BYTES,
                there: bytes.len(),
            });
        }
        let length = Self { bytes }.length();
        let whole = usize::try_from(length)
            .ok()
            .filter(|l| *l >= HEADER_BYTES - LENGTH_END)
            .ok_or(Malformed::Length(length))?
            + LENGTH_END;
        match bytes.get(..whole) {
            Some(bytes) => Ok(Self { bytes }),
            None => Err(Malformed::Short {
                needed: whole,
                there: bytes.len(),
            }),
        }
    }

    field!(
        /// Offset of the first record.
        base_offset, i64, 0
    );
    field!(
        /// Bytes behind the length field.
        length, i32, 8
    );
    field!(
        /// Leader epoch it was appended under; -1 from a producer.
        leader_epoch, i32, 12
    );
    field!(
        /// Format number.
        magic, i8, 16
    );
    field!(
        /// Stored CRC-32C.
        crc, u32, 17
    );
    field!(
        /// Attribute bits.
        attributes, i16, 21
    );
    field!(
        /// Offset of the last record, relative to the first.
        last_offset_delta, i32, 23
    );
    field!(
        /// Base of the records' timestamps (or the delete horizon), in milliseconds.
        base_timestamp, i64, 27
    );
    field!(
        /// Greatest timestamp among the records, in milliseconds, as its writer says.
        max_timestamp, i64, 35
    );
    field!(
        /// Idempotent producer, or -1.
        producer_id, i64, 43
    );
    field!(
        /// Its epoch, or -1.
        producer_epoch, i16, 51
    );
    field!(
        /// Sequence of the first record, or -1.
        base_sequence, i32, 53
    );
    field!(
        /// Number of records.
        record_count, i32, 57
    );

    /// All bytes of the batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records region, compressed if the codec says so.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// The codec, or its unknown number.
    pub fn codec(&self) -> Result<Codec, u8> {
        Codec::from_bits((self.attributes() & 7) as u8)
    }

    /// Where its timestamps come from.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes() & TIMESTAMP_TYPE == 0 {
            TimestampType::Create
        } else {
            TimestampType::LogAppend
        }
    }

    /// Whether it belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes() & TRANSACTIONAL != 0
    }

    /// Whether it holds a transaction's marker instead of records.
    pub fn is_control(&self) -> bool {
        self.attributes() & CONTROL != 0
    }

    /// Whether its base timestamp is a delete horizon (KIP-534).
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes() & DELETE_HORIZON != 0
    }

    /// The offset behind the last record. Meaningful for a stored batch, whose base is not negative.
    pub fn next_offset(&self) -> Offset {
        let base = self.base_offset().max(0) as u64;
        Offset(base + self.last_offset_delta().max(0) as u64 + 1)
    }

    /// Computes the CRC-32C of what it covers and compares.
    pub fn is_crc_right(&self) -> bool {
        crc32c(&self.bytes[CRC_FROM..]) == self.crc()
    }
}

/// CRC-32C (Castagnoli), as record batches carry it.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Walks whole batches that lie one behind the other; ends at the first that is not whole, giving why.
pub fn batches(mut rest: &[u8]) -> impl Iterator<Item = Result<View<'_>, Malformed>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let item = View::first(rest);
        rest = match &item {
            Ok(view) => &rest[view.bytes.len()..],
            Err(_) => &[],
        };
        Some(item)
    })
}

/// Writes base offset and leader epoch, which the CRC does not cover, into a whole batch.
pub fn stamp(batch: &mut [u8], base: Offset, epoch: LeaderEpoch) {
    batch[..8].copy_from_slice(&base.0.to_be_bytes());
    batch[12..16].copy_from_slice(&epoch.0.to_be_bytes());
}

/// Corrects the greatest timestamp of a whole batch whose producer wrote another, and its CRC.
pub fn correct_max_timestamp(batch: &mut [u8], greatest: Timestamp) {
    batch[35..43].copy_from_slice(&greatest.0.to_be_bytes());
    seal(batch);
}

/// Turns a whole batch into one of log append time `now`, and corrects its CRC.
pub fn set_log_append_time(batch: &mut [u8], now: Timestamp) {
    batch[22] |= TIMESTAMP_TYPE as u8;
    correct_max_timestamp(batch, now);
}

/// Writes the CRC of a whole batch.
pub(crate) fn seal(batch: &mut [u8]) {
    let crc = crc32c(&batch[CRC_FROM..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}
