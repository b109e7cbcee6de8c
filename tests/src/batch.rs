//! Kafka's RecordBatch v2, written and read from the public description alone (KIP-98), so that a mistake of the
//! broker's own codec cannot hide behind the same mistake here. Uncompressed only.

use bytes::{BufMut, Bytes};

/// Bytes of a batch before its records.
pub const HEADER: usize = 61;

/// One record as a client sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Its offset; only read, never written.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The key, absent or maybe empty.
    pub key: Option<Vec<u8>>,
    /// The value, absent or maybe empty.
    pub value: Option<Vec<u8>>,
    /// Headers in their order, names may repeat.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record with a value only.
    pub fn value(value: impl Into<Vec<u8>>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// The same with a timestamp.
    #[must_use]
    pub fn at(mut self, timestamp: i64) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// The same with a key.
    #[must_use]
    pub fn keyed(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// What a producer puts into a batch's header.
#[derive(Debug, Clone, Copy)]
pub struct Producer {
    /// Producer id, -1 for none.
    pub id: i64,
    /// Producer epoch, -1 for none.
    pub epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub sequence: i32,
}

/// No idempotence.
pub const NO_PRODUCER: Producer = Producer {
    id: -1,
    epoch: -1,
    sequence: -1,
};

/// One batch of these records.
pub fn encode(records: &[Record], producer: Producer) -> Vec<u8> {
    let base = records.first().map_or(0, |record| record.timestamp);
    let max = records
        .iter()
        .map(|record| record.timestamp)
        .max()
        .unwrap_or(-1);
    let mut body = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let mut one = vec![0_u8];
        varint(&mut one, record.timestamp - base);
        varint(&mut one, index as i64);
        blob(&mut one, record.key.as_deref());
        blob(&mut one, record.value.as_deref());
        varint(&mut one, record.headers.len() as i64);
        for (name, value) in &record.headers {
            blob(&mut one, Some(name.as_bytes()));
            blob(&mut one, value.as_deref());
        }
        varint(&mut body, one.len() as i64);
        body.extend_from_slice(&one);
    }
    let mut covered = Vec::with_capacity(body.len() + HEADER);
    covered.put_i16(0);
    covered.put_i32(records.len() as i32 - 1);
    covered.put_i64(base);
    covered.put_i64(max);
    covered.put_i64(producer.id);
    covered.put_i16(producer.epoch);
    covered.put_i32(producer.sequence);
    covered.put_i32(records.len() as i32);
    covered.extend_from_slice(&body);
    let mut batch = Vec::with_capacity(covered.len() + 21);
    batch.put_i64(0);
    batch.put_i32(covered.len() as i32 + 9);
    batch.put_i32(-1);
    batch.put_i8(2);
    batch.put_u32(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &covered) as u32);
    batch.extend_from_slice(&covered);
    batch
}

/// All records of these batches.
///
/// # Panics
/// When the bytes are not whole, uncompressed v2 batches.
pub fn decode(batches: &Bytes) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = &batches[..];
    while rest.len() >= HEADER {
        let base_offset = i64::from_be_bytes(rest[0..8].try_into().unwrap());
        let length = i32::from_be_bytes(rest[8..12].try_into().unwrap()) as usize + 12;
        assert!(
            rest.len() >= length,
            "a batch of {length} bytes is cut to {}",
            rest.len()
        );
        let (batch, after) = rest.split_at(length);
        rest = after;
        assert_eq!(batch[16], 2, "magic of a batch");
        let crc = u32::from_be_bytes(batch[17..21].try_into().unwrap());
        let computed = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &batch[21..]) as u32;
        assert_eq!(crc, computed, "CRC-32C of the batch at {base_offset}");
        assert_eq!(batch[22] & 7, 0, "this reader knows no codec");
        let base_timestamp = i64::from_be_bytes(batch[27..35].try_into().unwrap());
        let count = i32::from_be_bytes(batch[57..61].try_into().unwrap());
        let mut cursor = &batch[HEADER..];
        for _ in 0..count {
            let _length = read_varint(&mut cursor);
            cursor = &cursor[1..];
            let timestamp = base_timestamp + read_varint(&mut cursor);
            let offset = base_offset + read_varint(&mut cursor);
            let key = read_blob(&mut cursor);
            let value = read_blob(&mut cursor);
            let headers = (0..read_varint(&mut cursor))
                .map(|_| {
                    let name = read_blob(&mut cursor).expect("a header has a name");
                    (String::from_utf8(name).unwrap(), read_blob(&mut cursor))
                })
                .collect();
            records.push(Record {
                offset,
                timestamp,
                key,
                value,
                headers,
            });
        }
        assert!(cursor.is_empty(), "bytes behind the last record");
    }
    records
}

/// Puts a number at a place of a batch and makes its checksum right again: for batches that lie.
pub fn patch(batch: &mut [u8], at: usize, bytes: &[u8]) {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &batch[21..]) as u32;
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn blob(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint(out, -1),
        Some(bytes) => {
            varint(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

fn read_varint(cursor: &mut &[u8]) -> i64 {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = cursor[0];
        *cursor = &cursor[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn read_blob(cursor: &mut &[u8]) -> Option<Vec<u8>> {
    let length = read_varint(cursor);
    if length < 0 {
        return None;
    }
    let (bytes, rest) = cursor.split_at(length as usize);
    *cursor = rest;
    Some(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{NO_PRODUCER, Record, decode, encode};
    use bytes::Bytes;

    #[test]
    fn what_is_written_is_what_is_read() {
        let mut record = Record::value("v").keyed("").at(70_000);
        record.headers = vec![("h".into(), None), ("h".into(), Some(Vec::new()))];
        let records = [Record::default().at(500_000), record.clone()];
        let read = decode(&Bytes::from(encode(&records, NO_PRODUCER)));
        record.offset = 1;
        assert_eq!(read, [Record::default().at(500_000), record]);
    }
}
