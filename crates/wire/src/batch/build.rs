//! Builds a batch from records: for the HTTP door, commands and Floe's own topics.
//!
//! Guarantees: what is built passes [`check`](super::check). Base offset and leader epoch are left for the log to
//! stamp.

use floe_model::Timestamp;

use super::check::Producer;
use super::{HEADER_BYTES, LENGTH_END, MAGIC, seal};
use crate::codec::{self, Codec};
use crate::varint::{len_i64, write_i64};

/// A batch under construction.
#[derive(Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    count: u32,
    base_timestamp: i64,
    max_timestamp: i64,
    codec: Codec,
    producer: Producer,
}

/// A record or batch that cannot be expressed: more than 2 GiB or too many records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record batch holds at most 2 GiB and 2^31 - 1 records")]
pub struct TooLarge;

const BATCH_BYTES_LIMIT: usize = i32::MAX as usize;

impl Default for Builder {
    fn default() -> Self {
        Self::new(Codec::None)
    }
}

impl Builder {
    /// Starts an empty batch.
    pub fn new(codec: Codec) -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            count: 0,
            base_timestamp: Timestamp::NONE.0,
            max_timestamp: Timestamp::NONE.0,
            codec,
            producer: Producer {
                id: -1,
                epoch: -1,
                base_sequence: -1,
            },
        }
    }

    /// Marks the batch as one of an idempotent producer.
    #[must_use]
    pub fn producer(mut self, producer: Producer) -> Self {
        self.producer = producer;
        self
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far, before compression.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes a record adds at most, before compression.
    pub fn record_bytes(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> usize {
        let part = |b: Option<&[u8]>| b.map_or(1, |b| len_i64(b.len() as i64) + b.len());
        let headers_len: usize = headers
            .iter()
            .map(|(name, value)| part(Some(name)) + part(*value))
            .sum();
        // attributes 1, timestamp delta up to 10, offset delta up to 5, length up to 5
        21 + part(key) + part(value) + len_i64(headers.len() as i64) + headers_len
    }

    /// Adds a record; null and empty are kept apart, header names may repeat.
    pub fn record(
        &mut self,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> Result<(), TooLarge> {
        let fits = self.bytes.len() + Self::record_bytes(key, value, headers) <= BATCH_BYTES_LIMIT;
        if !fits || self.count == i32::MAX as u32 {
            return Err(TooLarge);
        }
        if self.count == 0 {
            self.base_timestamp = timestamp.0;
            self.max_timestamp = timestamp.0;
        }
        let delta = timestamp.0.wrapping_sub(self.base_timestamp);
        let part = |b: Option<&[u8]>| b.map_or(1, |b| len_i64(b.len() as i64) + b.len());
        let length = 1
            + len_i64(delta)
            + len_i64(i64::from(self.count))
            + part(key)
            + part(value)
            + len_i64(headers.len() as i64)
            + headers
                .iter()
                .map(|(name, value)| part(Some(name)) + part(*value))
                .sum::<usize>();
        write_i64(&mut self.bytes, length as i64);
        self.bytes.push(0);
        write_i64(&mut self.bytes, delta);
        write_i64(&mut self.bytes, i64::from(self.count));
        self.nullable(key);
        self.nullable(value);
        write_i64(&mut self.bytes, headers.len() as i64);
        for (name, value) in headers {
            self.nullable(Some(name));
            self.nullable(*value);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp.0);
        self.count += 1;
        Ok(())
    }

    fn nullable(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => write_i64(&mut self.bytes, -1),
            Some(bytes) => {
                write_i64(&mut self.bytes, bytes.len() as i64);
                self.bytes.extend_from_slice(bytes);
            }
        }
    }

    /// The finished batch, or `None` without a record.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        if self.codec != Codec::None {
            let packed = codec::compress(self.codec, &self.bytes[HEADER_BYTES..]);
            self.bytes.truncate(HEADER_BYTES);
            self.bytes.extend_from_slice(&packed);
        }
        let length = (self.bytes.len() - LENGTH_END) as i32;
        let batch = &mut self.bytes;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        batch[12..16].copy_from_slice(&(-1_i32).to_be_bytes());
        batch[16] = MAGIC as u8;
        batch[21..23].copy_from_slice(&i16::from(self.codec.bits()).to_be_bytes());
        batch[23..27].copy_from_slice(&(self.count as i32 - 1).to_be_bytes());
        batch[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        batch[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        batch[43..51].copy_from_slice(&self.producer.id.to_be_bytes());
        batch[51..53].copy_from_slice(&self.producer.epoch.to_be_bytes());
        batch[53..57].copy_from_slice(&self.producer.base_sequence.to_be_bytes());
        batch[57..61].copy_from_slice(&self.count.to_be_bytes());
        seal(batch);
        Some(self.bytes)
    }
}
