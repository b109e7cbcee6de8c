//! Record batches as producers send them.

use std::cell::RefCell;

use floe_model::{Offset, Timestamp};
use floe_wire::batch::{self, Builder, Record, Rules, View};
use floe_wire::codec::Scratch;

thread_local! {
    static SCRATCHES: RefCell<(Scratch, Scratch)> = RefCell::default();
}

/// Records of more bytes are not built anew: two scratch buffers that have grown wait for one another.
const REBUILT_BYTES_MAX: usize = 64 << 10;

/// A batch: what the check lets in can be walked by every reader, is what the check said it is, and gives the same
/// records when it is built anew.
pub fn record_batch(data: &[u8]) {
    let mut bytes = data.to_vec();
    SCRATCHES.with_borrow_mut(|(scratch, other)| {
        checked(&bytes, scratch, other);
        // Few mutations keep length and checksum; with both made right the walk behind them is met.
        if bytes.len() > batch::HEADER_BYTES {
            let length = (bytes.len() - batch::LENGTH_END) as u32;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            let crc = batch::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
            checked(&bytes, scratch, other);
        }
        for bytes in [data, &bytes] {
            let mut end = 0;
            for view in batch::batches(bytes).flatten() {
                end += view.bytes().len();
                walked(&view, scratch);
            }
            assert!(end <= bytes.len(), "batches lie in what was given");
        }
    });
}

fn checked(bytes: &[u8], scratch: &mut Scratch, other: &mut Scratch) {
    let Ok(checked) = batch::check(bytes, &Rules::LENIENT, scratch) else {
        return;
    };
    let view = View::first(bytes).expect("what passes the check has a header");
    assert_eq!(
        view.bytes().len(),
        bytes.len(),
        "one batch and nothing behind it"
    );
    assert!(view.is_crc_right(), "what passes the check is whole");
    assert!(!view.is_control(), "markers are the broker's own");
    let mut is_rebuilt = true;
    let mut again = Builder::new(checked.codec);
    let mut records =
        batch::records(&view, scratch).expect("what passes the check can be decompressed");
    let mut count = 0_u32;
    while let Some(record) = records
        .try_next()
        .expect("what passes the check can be walked")
    {
        assert_eq!(record.offset_delta, count as i32, "offset deltas are dense");
        assert!(
            view.timestamp_of(&record) <= checked.max_timestamp.0,
            "no record is later than the latest"
        );
        is_rebuilt &= again.bytes_len() + record_bytes(&record) <= REBUILT_BYTES_MAX;
        if is_rebuilt {
            add(&mut again, &view, &record);
        }
        count += 1;
    }
    assert_eq!(count, checked.record_count, "the count is the header's");
    if !is_rebuilt {
        return;
    }
    let again = again.finish().expect("it has a record");
    let rechecked = batch::check(&again, &Rules::LENIENT, other).expect("what is built passes");
    assert_eq!(rechecked.record_count, count, "none is lost");
    let rebuilt = View::first(&again).expect("what is built has a header");
    let mut left = batch::records(&view, scratch).expect("it did before");
    let mut right = batch::records(&rebuilt, other).expect("what is built can be decompressed");
    while let Some(record) = left.try_next().expect("it did before") {
        let same = right.try_next().expect("what is built can be walked");
        let same = same.expect("none is lost");
        assert_eq!((record.key, record.value), (same.key, same.value));
        assert!(record.headers.eq(same.headers), "headers stay as they are");
    }
}

fn add(to: &mut Builder, view: &View<'_>, record: &Record<'_>) {
    let headers: Vec<_> = record.headers.clone().map(|h| (h.name, h.value)).collect();
    assert_eq!(
        headers.len(),
        record.headers.len(),
        "all that are announced are there"
    );
    let timestamp = Timestamp(view.timestamp_of(record));
    to.record(timestamp, record.key, record.value, &headers)
        .expect("what came in one batch fits into one");
}

fn record_bytes(record: &Record<'_>) -> usize {
    let len = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let headers = record.headers.clone();
    let headers: usize = headers.map(|h| h.name.len() + len(h.value) + 2).sum();
    len(record.key) + len(record.value) + headers
}

/// Readers meet batches that nothing checked, too.
fn walked(view: &View<'_>, scratch: &mut Scratch) {
    let from = Offset(view.base_offset().max(0) as u64 + 1);
    let target = Timestamp(view.base_timestamp());
    if let Ok(Some((offset, at))) = batch::first_at_or_after(view, from, target, scratch) {
        assert!(
            offset >= from && at >= target,
            "what is found was asked for"
        );
    }
    drop(batch::greatest_timestamp(view, scratch));
    let Ok(mut records) = batch::records(view, scratch) else {
        return;
    };
    while let Ok(Some(record)) = records.try_next() {
        let headers = record.headers.len();
        assert_eq!(
            record.headers.count(),
            headers,
            "all that are announced are there"
        );
    }
}
