//! Record batches as producers send them.

use std::cell::RefCell;

use floe_wire::batch::{self, Rules, View};
use floe_wire::codec::Scratch;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A batch: what the check lets in can be walked by every reader, and is what the check said it is.
pub fn record_batch(data: &[u8]) {
    let mut bytes = data.to_vec();
    SCRATCH.with_borrow_mut(|scratch| {
        checked(&bytes, scratch);
        // Few mutations keep a checksum; with one made right the walk behind it is met.
        if bytes.len() > batch::HEADER_BYTES {
            let crc = batch::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
            checked(&bytes, scratch);
        }
        for view in batch::batches(&bytes).flatten() {
            walked(&view, scratch);
        }
    });
}

fn checked(bytes: &[u8], scratch: &mut Scratch) {
    let Ok(checked) = batch::check(bytes, &Rules::LENIENT, scratch) else {
        return;
    };
    let view = View::first(bytes).expect("what passes the check has a header");
    assert_eq!(
        view.bytes().len(),
        bytes.len(),
        "one batch and nothing behind it"
    );
    let mut records =
        batch::records(&view, scratch).expect("what passes the check can be decompressed");
    let mut count = 0_u32;
    while let Some(record) = records
        .try_next()
        .expect("what passes the check can be walked")
    {
        assert_eq!(record.offset_delta, count as i32, "offset deltas are dense");
        count += 1;
    }
    assert_eq!(count, checked.record_count, "the count is the header's");
}

/// Readers meet batches that nothing checked, too.
fn walked(view: &View<'_>, scratch: &mut Scratch) {
    let Ok(mut records) = batch::records(view, scratch) else {
        return;
    };
    while let Ok(Some(record)) = records.try_next() {
        assert!(
            record.headers.count() <= view.bytes().len().max(64 << 20),
            "a header takes bytes"
        );
    }
}
