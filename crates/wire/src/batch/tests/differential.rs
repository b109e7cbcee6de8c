//! Our batches against those of an independent codec, byte for byte.

use super::*;
use bytes::{Bytes, BytesMut};
use kacrab_protocol::record::{Record as TheirRecord, RecordBatch, RecordHeader};

fn theirs(records: &[Owned], base: u64) -> RecordBatch {
    let first = records[0].0;
    let records: Vec<_> = records.iter().zip(0..).collect();
    RecordBatch {
        base_offset: base as i64,
        partition_leader_epoch: 3,
        magic: 2,
        attributes: 0,
        last_offset_delta: records.len() as i32 - 1,
        first_timestamp: first,
        max_timestamp: records.iter().map(|(r, _)| r.0).max().unwrap(),
        producer_id: 8,
        producer_epoch: 1,
        base_sequence: 40,
        records: records
            .into_iter()
            .map(
                |((timestamp, key, value, headers), offset_delta)| TheirRecord {
                    attributes: 0,
                    timestamp_delta: timestamp - first,
                    offset_delta,
                    key: key.clone().map(Bytes::from),
                    value: value.clone().map(Bytes::from),
                    headers: headers
                        .iter()
                        .map(|(name, value)| RecordHeader {
                            key: name.clone().into(),
                            value: value.clone().map(Bytes::from),
                        })
                        .collect(),
                },
            )
            .collect(),
    }
}

proptest! {
    #[test]
    fn both_codecs_write_the_same_bytes_and_read_each_other(owned in some_records(), base in 0_u64..1 << 40) {
        let producer = Producer { id: 8, epoch: 1, base_sequence: 40 };
        let mut ours = fill(Builder::new(Codec::None).producer(producer), &owned);
        stamp(&mut ours, Offset(base), LeaderEpoch(3));
        let theirs = theirs(&owned, base);
        let mut bytes = BytesMut::new();
        theirs.encode(&mut bytes).unwrap();
        prop_assert_eq!(&ours[..], &bytes[..]);
        prop_assert_eq!(RecordBatch::decode(&mut Bytes::from(ours)).unwrap(), theirs);
        let found = check(&bytes, &Rules::LENIENT, &mut Scratch::default()).unwrap();
        prop_assert_eq!(found.producer, Some(producer));
    }
}
