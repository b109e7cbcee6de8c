//! The check every batch passes once, before it enters a log: one walk over its bytes that builds nothing.
//!
//! Guarantees: a batch that passes can be decompressed and walked by every reader, has offset deltas 0 to n-1, the
//! record count its header says and timestamps in range, and its CRC is right. Does not check producer sequences
//! against earlier batches: that is the partition's.

use floe_model::Timestamp;

use super::refusal::{Refusal, RefusalKind};
use super::{MAGIC, Records, TimestampType, View, crc32c};
use crate::codec::{self, Codec, Scratch};

/// What a topic accepts.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `max.message.bytes`: stored bytes of a batch.
    pub batch_bytes_max: usize,
    /// `message.decompressed.max.bytes`: bytes of its records once decompressed, if they are compressed.
    pub decompressed_bytes_max: usize,
    /// Whether each record needs a key (compacted topics).
    pub keys_needed: bool,
    /// Earliest accepted record timestamp (`message.timestamp.before.max.ms`).
    pub timestamp_min: Timestamp,
    /// Latest accepted record timestamp (`message.timestamp.after.max.ms`).
    pub timestamp_max: Timestamp,
}

impl Rules {
    /// Takes any timestamp and any key, up to the default batch size.
    pub const LENIENT: Self = Self {
        batch_bytes_max: floe_model::limits::BATCH_BYTES_MAX,
        decompressed_bytes_max: codec::DECOMPRESSED_BYTES_MAX,
        keys_needed: false,
        timestamp_min: Timestamp(i64::MIN),
        timestamp_max: Timestamp(i64::MAX),
    };
}

/// The idempotent producer of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence of the first record.
    pub base_sequence: i32,
}

/// What the walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of records, at least 1.
    pub record_count: u32,
    /// Greatest timestamp among the records; the header may say another (see
    /// [`correct_max_timestamp`](super::correct_max_timestamp)).
    pub max_timestamp: Timestamp,
    /// Whether the header's greatest timestamp is that one.
    pub is_header_timestamp_right: bool,
    /// Its idempotent producer.
    pub producer: Option<Producer>,
    /// Whether it belongs to a transaction.
    pub is_transactional: bool,
    /// How its records are compressed.
    pub codec: Codec,
}

/// Checks what a client sent for one partition. The scratch buffer is at rest afterwards.
pub fn check(bytes: &[u8], rules: &Rules, scratch: &mut Scratch) -> Result<Checked, Refusal> {
    let checked = check_all(bytes, rules, scratch);
    scratch.rest();
    checked
}

fn check_all(bytes: &[u8], rules: &Rules, scratch: &mut Scratch) -> Result<Checked, Refusal> {
    let view = View::first(bytes)?;
    check_header(&view, bytes.len(), rules)?;
    let producer = producer_of(&view)?;
    let record_count = count_of(&view)?;
    let codec = view.codec().map_err(RefusalKind::Codec)?;
    let most = rules.decompressed_bytes_max;
    let region = codec::decompress_within(codec, view.payload(), scratch, most)?;
    let max_timestamp = walk(&view, Records::new(region, record_count), rules)?;
    Ok(Checked {
        record_count,
        max_timestamp: Timestamp(max_timestamp),
        is_header_timestamp_right: max_timestamp == view.max_timestamp(),
        producer,
        is_transactional: view.is_transactional(),
        codec,
    })
}

fn check_header(view: &View<'_>, there: usize, rules: &Rules) -> Result<(), RefusalKind> {
    if view.magic() != MAGIC {
        return Err(RefusalKind::Magic(view.magic()));
    }
    let bytes = view.bytes().len();
    if bytes > rules.batch_bytes_max {
        return Err(RefusalKind::TooLarge {
            bytes,
            limit: rules.batch_bytes_max,
        });
    }
    let computed = crc32c(&view.bytes()[super::CRC_FROM..]);
    if computed != view.crc() {
        return Err(RefusalKind::Crc {
            stored: view.crc(),
            computed,
        });
    }
    if there > bytes {
        return Err(RefusalKind::MoreThanOne(there - bytes));
    }
    if view.is_control() {
        return Err(RefusalKind::BrokersOwn("the control attribute"));
    }
    if view.timestamp_type() == TimestampType::LogAppend {
        return Err(RefusalKind::BrokersOwn("log append time"));
    }
    if view.has_delete_horizon() {
        return Err(RefusalKind::BrokersOwn("a delete horizon"));
    }
    Ok(())
}

fn count_of(view: &View<'_>) -> Result<u32, RefusalKind> {
    let (count, delta) = (view.record_count(), view.last_offset_delta());
    if count < 1 || delta != count - 1 {
        return Err(RefusalKind::Count { count, delta });
    }
    Ok(count as u32)
}

fn producer_of(view: &View<'_>) -> Result<Option<Producer>, RefusalKind> {
    let (id, epoch, sequence) = (
        view.producer_id(),
        view.producer_epoch(),
        view.base_sequence(),
    );
    if id == super::NONE && !view.is_transactional() {
        return Ok(None);
    }
    if id < 0 || epoch < 0 || sequence < 0 {
        return Err(RefusalKind::Producer {
            id,
            epoch,
            sequence,
        });
    }
    Ok(Some(Producer {
        id,
        epoch,
        base_sequence: sequence,
    }))
}

/// Walks all records; gives the greatest timestamp.
fn walk(view: &View<'_>, mut records: Records<'_>, rules: &Rules) -> Result<i64, Refusal> {
    let base = view.base_timestamp();
    let mut greatest = Timestamp::NONE.0;
    let mut place = 0;
    while let Some(record) = records.try_next()? {
        if record.offset_delta != place as i32 {
            return Err(Refusal::at(
                place,
                RefusalKind::Delta {
                    found: record.offset_delta,
                    expected: place,
                },
            ));
        }
        let timestamp = base.saturating_add(record.timestamp_delta);
        if timestamp != Timestamp::NONE.0
            && !(rules.timestamp_min.0..=rules.timestamp_max.0).contains(&timestamp)
        {
            return Err(Refusal::at(
                place,
                RefusalKind::Timestamp {
                    found: Timestamp(timestamp),
                    from: rules.timestamp_min,
                    to: rules.timestamp_max,
                },
            ));
        }
        if rules.keys_needed && record.key.is_none() {
            return Err(Refusal::at(place, RefusalKind::NoKey));
        }
        greatest = greatest.max(timestamp);
        place += 1;
    }
    Ok(greatest)
}
