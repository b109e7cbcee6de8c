//! Records inside a batch's uncompressed records region: walked in place, borrowed, never copied.
//!
//! ```text
//! length varint | attributes i8 | timestamp delta varlong | offset delta varint
//! | key length varint (-1 null) | key | value length varint (-1 null) | value
//! | header count varint | { name length varint | name | value length varint (-1 null) | value }*
//! ```

use super::refusal::{Refusal, RefusalKind};
use super::{TimestampType, View};
use crate::codec::{Scratch, decompress};
use crate::varint::{read_i32, read_i64};

/// One record; null and empty are different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset relative to the batch's base.
    pub offset_delta: i32,
    /// Milliseconds relative to the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Key, or null.
    pub key: Option<&'a [u8]>,
    /// Value, or null (a tombstone).
    pub value: Option<&'a [u8]>,
    /// Headers, in order; names may repeat.
    pub headers: Headers<'a>,
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Name; usually UTF-8.
    pub name: &'a [u8],
    /// Value, or null.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    left: u32,
    bytes: &'a [u8],
}

impl Headers<'_> {
    /// How many are left.
    pub fn len(&self) -> usize {
        self.left as usize
    }

    /// Whether there is none (left).
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut at = 0;
        // Walked once already when the record was read, so neither can fail.
        let name = nullable(self.bytes, &mut at, "header name").ok()??;
        let value = nullable(self.bytes, &mut at, "header value").ok()?;
        self.bytes = &self.bytes[at..];
        Some(Header { name, value })
    }
}

/// Walks the records of a region.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    place: u32,
    count: u32,
}

impl<'a> Records<'a> {
    /// Over an uncompressed region that should hold `count` records.
    pub fn new(bytes: &'a [u8], count: u32) -> Self {
        Self {
            bytes,
            at: 0,
            place: 0,
            count,
        }
    }

    /// Reads the next record; after the last one, checks that no bytes are left.
    #[inline]
    pub fn try_next(&mut self) -> Result<Option<Record<'a>>, Refusal> {
        if self.place == self.count {
            if self.at != self.bytes.len() {
                return Err(RefusalKind::End {
                    at: self.at,
                    of: self.bytes.len(),
                }
                .into());
            }
            return Ok(None);
        }
        let record = read(self.bytes, &mut self.at).map_err(|k| Refusal::at(self.place, k))?;
        self.place += 1;
        Ok(Some(record))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.try_next().transpose();
        if matches!(item, Some(Err(_))) {
            self.count = self.place;
            self.at = self.bytes.len();
        }
        item
    }
}

/// The records of a stored batch, decompressed into `scratch` if need be.
pub fn records<'a>(view: &View<'a>, scratch: &'a mut Scratch) -> Result<Records<'a>, Refusal> {
    let count = u32::try_from(view.record_count()).map_err(|_| RefusalKind::Count {
        count: view.record_count(),
        delta: view.last_offset_delta(),
    })?;
    let codec = view.codec().map_err(RefusalKind::Codec)?;
    let region = decompress(codec, view.payload(), scratch).map_err(RefusalKind::Decompress)?;
    Ok(Records::new(region, count))
}

impl View<'_> {
    /// The timestamp of a record of this batch, in milliseconds; -1 is none.
    pub fn timestamp_of(&self, record: &Record<'_>) -> i64 {
        match self.timestamp_type() {
            TimestampType::LogAppend => self.max_timestamp(),
            TimestampType::Create if self.has_delete_horizon() => record.timestamp_delta,
            TimestampType::Create => self.base_timestamp().saturating_add(record.timestamp_delta),
        }
    }
}

#[inline]
fn read<'a>(bytes: &'a [u8], at: &mut usize) -> Result<Record<'a>, RefusalKind> {
    let start = *at;
    let length = read_i32(bytes, at)
        .and_then(|l| usize::try_from(l).ok())
        .ok_or(RefusalKind::Field {
            field: "record length",
            at: start,
        })?;
    let body = bytes
        .get(*at..)
        .and_then(|rest| rest.get(..length))
        .ok_or(RefusalKind::Field {
            field: "record length",
            at: start,
        })?;
    let body_at = *at;
    *at += length;
    body_of(body).map_err(|kind| match kind {
        RefusalKind::Field { field, at } => RefusalKind::Field {
            field,
            at: at + body_at,
        },
        other => other,
    })
}

#[inline]
fn body_of(body: &[u8]) -> Result<Record<'_>, RefusalKind> {
    let mut at = 1; // attributes, unused
    let timestamp_delta = read_i64(body, &mut at).ok_or(RefusalKind::Field {
        field: "timestamp delta",
        at,
    })?;
    let offset_delta = read_i32(body, &mut at).ok_or(RefusalKind::Field {
        field: "offset delta",
        at,
    })?;
    let key = nullable(body, &mut at, "key")?;
    let value = nullable(body, &mut at, "value")?;
    let headers = headers(body, &mut at)?;
    if at != body.len() {
        return Err(RefusalKind::Field {
            field: "record length",
            at,
        });
    }
    Ok(Record {
        offset_delta,
        timestamp_delta,
        key,
        value,
        headers,
    })
}

#[inline]
fn headers<'a>(body: &'a [u8], at: &mut usize) -> Result<Headers<'a>, RefusalKind> {
    let start = *at;
    let left = read_i32(body, at)
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(RefusalKind::Field {
            field: "header count",
            at: start,
        })?;
    let bytes_at = *at;
    // Each header takes two bytes at least, so a false count fails within the body's own length.
    for _ in 0..left {
        let name_at = *at;
        if nullable(body, at, "header name")?.is_none() {
            return Err(RefusalKind::Field {
                field: "header name",
                at: name_at,
            });
        }
        nullable(body, at, "header value")?;
    }
    Ok(Headers {
        left,
        bytes: &body[bytes_at..*at],
    })
}

/// A length (-1 is null) and that many bytes.
#[inline]
fn nullable<'a>(
    bytes: &'a [u8],
    at: &mut usize,
    field: &'static str,
) -> Result<Option<&'a [u8]>, RefusalKind> {
    let start = *at;
    let wrong = RefusalKind::Field { field, at: start };
    let Some(length) = read_i32(bytes, at) else {
        return Err(wrong);
    };
    if length == -1 {
        return Ok(None);
    }
    let Ok(length) = usize::try_from(length) else {
        return Err(wrong);
    };
    let Some(part) = bytes.get(*at..).and_then(|rest| rest.get(..length)) else {
        return Err(wrong);
    };
    *at += length;
    Ok(Some(part))
}
