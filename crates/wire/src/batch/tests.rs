use super::*;
use crate::codec::Scratch;
use proptest::prelude::*;

mod differential;

type Owned = (
    i64,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Vec<(Vec<u8>, Option<Vec<u8>>)>,
);

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn some_records() -> impl Strategy<Value = Vec<Owned>> {
    let header = (
        prop_oneof![Just(b"same".to_vec()), bytes()],
        prop::option::of(bytes()),
    );
    let record = (
        0_i64..2_000_000_000_000,
        prop::option::of(bytes()),
        prop::option::of(bytes()),
        prop::collection::vec(header, 0..4),
    );
    prop::collection::vec(record, 1..40)
}

fn build(codec: Codec, records: &[Owned]) -> Vec<u8> {
    fill(Builder::new(codec), records)
}

fn fill(mut builder: Builder, records: &[Owned]) -> Vec<u8> {
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = headers
            .iter()
            .map(|(n, v)| (n.as_slice(), v.as_deref()))
            .collect();
        builder
            .record(
                Timestamp(*timestamp),
                key.as_deref(),
                value.as_deref(),
                &headers,
            )
            .unwrap();
    }
    builder.finish().unwrap()
}

fn refusal(batch: &[u8]) -> Refusal {
    check(batch, &Rules::LENIENT, &mut Scratch::default()).unwrap_err()
}

fn simple(count: u32) -> Vec<u8> {
    let mut builder = Builder::default();
    for n in 0..count {
        builder
            .record(Timestamp(i64::from(n)), Some(b"k"), Some(b"v"), &[])
            .unwrap();
    }
    builder.finish().unwrap()
}

proptest! {
    #[test]
    fn what_is_built_passes_the_check_and_reads_back_equal(
        owned in some_records(), codec in 0_u8..5, base in 0_u64..1 << 40
    ) {
        let codec = Codec::from_bits(codec).unwrap();
        let mut batch = build(codec, &owned);
        let mut scratch = Scratch::default();
        let found = check(&batch, &Rules::LENIENT, &mut scratch).unwrap();
        prop_assert_eq!(found.record_count as usize, owned.len());
        prop_assert_eq!(found.max_timestamp.0, owned.iter().map(|r| r.0).max().unwrap());
        prop_assert!(found.is_header_timestamp_right);
        stamp(&mut batch, Offset(base), LeaderEpoch(9));
        let view = View::first(&batch).unwrap();
        prop_assert!(view.is_crc_right());
        prop_assert_eq!(view.base_offset() as u64, base);
        prop_assert_eq!(view.leader_epoch(), 9);
        prop_assert_eq!(view.next_offset(), Offset(base + owned.len() as u64));
        for (record, wanted) in records(&view, &mut scratch).unwrap().zip(&owned) {
            let record = record.unwrap();
            prop_assert_eq!(view.timestamp_of(&record), wanted.0);
            prop_assert_eq!(record.key, wanted.1.as_deref());
            prop_assert_eq!(record.value, wanted.2.as_deref());
            let headers: Vec<_> = record
                .headers
                .map(|h| (h.name.to_vec(), h.value.map(<[u8]>::to_vec)))
                .collect();
            prop_assert_eq!(&headers, &wanted.3);
        }
    }

    #[test]
    fn any_bytes_are_checked_or_refused(bytes: Vec<u8>) {
        drop(check(&bytes, &Rules::LENIENT, &mut Scratch::new(1 << 16)));
    }

    #[test]
    fn a_damaged_records_region_with_a_right_crc_is_walked_or_refused(
        owned in some_records(), codec in 0_u8..5, places in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4)
    ) {
        let mut batch = build(Codec::from_bits(codec).unwrap(), &owned);
        for (place, byte) in places {
            let at = CRC_FROM + usize::from(place) % (batch.len() - CRC_FROM);
            batch[at] = byte;
        }
        seal(&mut batch);
        let mut scratch = Scratch::new(1 << 20);
        if let Ok(found) = check(&batch, &Rules::LENIENT, &mut scratch) {
            let view = View::first(&batch).unwrap();
            let walk = records(&view, &mut scratch).unwrap();
            prop_assert_eq!(walk.flatten().count(), found.record_count as usize);
        }
    }

    #[test]
    fn the_crc_sees_every_flipped_bit_it_covers(owned in some_records(), place: u16, bit in 0_u8..8) {
        let mut batch = build(Codec::None, &owned);
        let at = CRC_FROM + usize::from(place) % (batch.len() - CRC_FROM);
        batch[at] ^= 1 << bit;
        let is_corrupt = refusal(&batch).class() == Class::Corrupt;
        prop_assert!(is_corrupt);
    }

    #[test]
    fn lookup_by_time_equals_a_scan(owned in some_records(), codec in 0_u8..5, target in 0_i64..2_000_000_000_000, from in 0_u64..40) {
        let mut batch = build(Codec::from_bits(codec).unwrap(), &owned);
        stamp(&mut batch, Offset(100), LeaderEpoch(0));
        let view = View::first(&batch).unwrap();
        let wanted = owned.iter().enumerate().find(|(n, r)| *n as u64 >= from && r.0 >= target)
            .map(|(n, r)| (Offset(100 + n as u64), Timestamp(r.0)));
        let mut scratch = Scratch::default();
        prop_assert_eq!(first_at_or_after(&view, Offset(100 + from), Timestamp(target), &mut scratch).unwrap(), wanted);
        let greatest = greatest_timestamp(&view, &mut scratch).unwrap().unwrap();
        let first_of_greatest = owned.iter().position(|r| r.0 == greatest.1.0).unwrap();
        prop_assert_eq!(greatest.1.0, owned.iter().map(|r| r.0).max().unwrap());
        prop_assert_eq!(greatest.0, Offset(100 + first_of_greatest as u64));
    }
}

#[test]
fn each_broken_header_field_is_refused_by_name() {
    let mut rules = Rules::LENIENT;
    let mut scratch = Scratch::default();
    let whole = simple(3);

    assert!(matches!(
        refusal(&whole[..60]).kind,
        RefusalKind::Malformed(Malformed::Short {
            needed: 61,
            there: 60
        })
    ));
    assert!(matches!(
        refusal(&whole[..whole.len() - 1]).kind,
        RefusalKind::Malformed(Malformed::Short { .. })
    ));
    let twice = [whole.clone(), whole.clone()].concat();
    assert!(matches!(refusal(&twice).kind, RefusalKind::MoreThanOne(n) if n == whole.len()));

    let with = |at: usize, bytes: &[u8]| {
        let mut batch = whole.clone();
        batch[at..at + bytes.len()].copy_from_slice(bytes);
        seal(&mut batch);
        refusal(&batch)
    };
    let negative = (-1_i32).to_be_bytes();
    assert!(matches!(
        with(8, &negative).kind,
        RefusalKind::Malformed(Malformed::Length(-1))
    ));
    assert!(matches!(with(16, &[1]).kind, RefusalKind::Magic(1)));
    assert!(matches!(
        with(22, &[1 << 5]).kind,
        RefusalKind::BrokersOwn(_)
    ));
    assert!(matches!(
        with(22, &[1 << 3]).kind,
        RefusalKind::BrokersOwn(_)
    ));
    assert!(matches!(
        with(22, &[1 << 6]).kind,
        RefusalKind::BrokersOwn(_)
    ));
    assert!(matches!(with(22, &[7]).kind, RefusalKind::Codec(7)));
    assert!(matches!(with(22, &[4]).kind, RefusalKind::Decompress(_)));
    assert!(matches!(
        with(57, &negative).kind,
        RefusalKind::Count { count: -1, .. }
    ));
    assert!(matches!(
        with(23, &[0, 0, 0, 9]).kind,
        RefusalKind::Count { delta: 9, .. }
    ));
    assert!(matches!(
        with(43, &[0; 8]).kind,
        RefusalKind::Producer { id: 0, .. }
    ));

    rules.batch_bytes_max = whole.len();
    assert!(check(&whole, &rules, &mut scratch).is_ok());
    rules.batch_bytes_max -= 1;
    let over = check(&whole, &rules, &mut scratch).unwrap_err();
    assert_eq!(over.class().error_code(), crate::ErrorCode::MessageTooLarge);
}

#[test]
fn wrong_record_counts_with_right_crc_are_refused() {
    let whole = simple(3);
    for (count, delta) in [(2_i32, 1_i32), (4, 3), (i32::MAX, i32::MAX - 1)] {
        let mut batch = whole.clone();
        batch[57..61].copy_from_slice(&count.to_be_bytes());
        batch[23..27].copy_from_slice(&delta.to_be_bytes());
        seal(&mut batch);
        assert_eq!(refusal(&batch).class(), Class::Invalid, "{count}");
    }
}

#[test]
fn rules_of_a_topic_name_the_record() {
    let mut builder = Builder::default();
    builder.record(Timestamp(10), Some(b""), None, &[]).unwrap();
    builder.record(Timestamp(99), None, Some(b""), &[]).unwrap();
    let batch = builder.finish().unwrap();
    let mut scratch = Scratch::default();
    let keyed = Rules {
        keys_needed: true,
        ..Rules::LENIENT
    };
    let no_key = check(&batch, &keyed, &mut scratch).unwrap_err();
    assert_eq!(no_key.record, Some(1));
    assert!(no_key.to_string().contains("record 1"), "{no_key}");
    let early = Rules {
        timestamp_max: Timestamp(98),
        ..Rules::LENIENT
    };
    let late = check(&batch, &early, &mut scratch).unwrap_err();
    assert_eq!((late.record, late.class()), (Some(1), Class::Timestamp));
}

#[test]
fn a_wrong_greatest_timestamp_is_told_and_corrected() {
    let mut batch = simple(5);
    correct_max_timestamp(&mut batch, Timestamp(77));
    let mut scratch = Scratch::default();
    let found = check(&batch, &Rules::LENIENT, &mut scratch).unwrap();
    assert!(!found.is_header_timestamp_right);
    assert_eq!(found.max_timestamp, Timestamp(4));
    correct_max_timestamp(&mut batch, found.max_timestamp);
    let found = check(&batch, &Rules::LENIENT, &mut scratch).unwrap();
    assert!(found.is_header_timestamp_right);
}

#[test]
fn log_append_time_is_every_records_time() {
    let mut batch = simple(3);
    set_log_append_time(&mut batch, Timestamp(1234));
    stamp(&mut batch, Offset(7), LeaderEpoch(1));
    let view = View::first(&batch).unwrap();
    assert!(view.is_crc_right());
    let mut scratch = Scratch::default();
    let all: Vec<_> = records(&view, &mut scratch)
        .unwrap()
        .map(|r| view.timestamp_of(&r.unwrap()))
        .collect();
    assert_eq!(all, [1234; 3]);
    let found = first_at_or_after(&view, Offset(8), Timestamp(1000), &mut scratch).unwrap();
    assert_eq!(found, Some((Offset(8), Timestamp(1234))));
}

#[test]
fn batches_one_behind_the_other_are_walked_to_the_first_that_is_not_whole() {
    let mut bytes = [simple(1), simple(2)].concat();
    let walked: Vec<_> = batches(&bytes).map(|b| b.unwrap().record_count()).collect();
    assert_eq!(walked, [1, 2]);
    bytes.truncate(bytes.len() - 1);
    assert!(batches(&bytes).last().unwrap().is_err());
    assert_eq!(batches(&bytes).count(), 2);
}
