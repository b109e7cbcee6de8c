//! Walking stored batches record by record.

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset, Timestamp};
use floe_wire::batch::{self, Headers};
use floe_wire::codec::Scratch;
use floe_world::Pool;
use parking_lot::Mutex;

use super::super::problem::Problem;

/// Scratch buffers kept between requests, at most.
const KEPT: usize = 4;

/// Recycled buffers for decompression, shared by all requests.
pub(crate) struct Scratches {
    /// Of one batch, decompressed.
    bytes_max: usize,
    kept: Mutex<Vec<Scratch>>,
}

impl Scratches {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            kept: Mutex::default(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let kept = self.kept.lock().pop();
        let mut scratch = kept.unwrap_or_else(|| Scratch::new(self.bytes_max));
        let result = work(&mut scratch);
        scratch.rest();
        let mut kept = self.kept.lock();
        if kept.len() < KEPT {
            kept.push(scratch);
        }
        result
    }
}

/// One record where it lies.
pub(crate) struct Found<'a> {
    pub(crate) offset: Offset,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) timestamp: Timestamp,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Headers<'a>,
}

/// A batch that cannot be decoded.
#[derive(Debug)]
pub(crate) struct Unreadable {
    from: i64,
    to: Offset,
    why: String,
}

impl Unreadable {
    /// What its reader is told: the range, and where to go on.
    pub(crate) fn problem(&self) -> Problem {
        let Self { from, to, why } = self;
        Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "undecodable",
            format!("offsets {from} up to {to} hold a batch that does not decode ({why}); go on at offset={to}"),
        )
        .with("from", *from)
        .with("nextOffset", to.0)
    }
}

/// Records whose answer the memory for answers can never hold: their reader is told, with the way around.
pub(crate) fn oversized(pool: &Pool, what: &str, bytes: usize, go_on: &str) -> Problem {
    Problem::new(
        axum::http::StatusCode::INTERNAL_SERVER_ERROR,
        "oversized",
        format!(
            "{what}: an answer of {bytes} bytes, the memory for answers has {}; raise memory.limit.bytes, or {go_on}",
            pool.limit()
        ),
    )
}

/// Calls `take` for each record at or after `from`, until it says no; tells whether the end was reached.
pub(crate) fn walk(
    scratches: &Scratches,
    stored: &[Bytes],
    from: Offset,
    mut take: impl FnMut(&Found<'_>) -> bool,
) -> Result<bool, Unreadable> {
    scratches.with(|scratch| {
        for bytes in stored {
            for view in batch::batches(bytes) {
                let view = view.map_err(|e| Unreadable {
                    from: from.0 as i64,
                    to: from.plus(1),
                    why: e.to_string(),
                })?;
                if view.is_control() || view.next_offset() <= from {
                    continue;
                }
                if !batch(&view, from, scratch, &mut take)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })
}

fn batch(
    view: &batch::View<'_>,
    from: Offset,
    scratch: &mut Scratch,
    take: &mut impl FnMut(&Found<'_>) -> bool,
) -> Result<bool, Unreadable> {
    let unreadable = |why: batch::Refusal| Unreadable {
        from: view.base_offset(),
        to: view.next_offset(),
        why: why.to_string(),
    };
    let base = view.base_offset().max(0) as u64;
    let epoch = LeaderEpoch(view.leader_epoch().max(0) as u32);
    let mut records = batch::records(view, scratch).map_err(unreadable)?;
    while let Some(record) = records.try_next().map_err(unreadable)? {
        let offset = Offset(base + record.offset_delta.max(0) as u64);
        if offset < from {
            continue;
        }
        let found = Found {
            offset,
            epoch,
            timestamp: Timestamp(view.timestamp_of(&record)),
            key: record.key,
            value: record.value,
            headers: record.headers,
        };
        if !take(&found) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_wire::batch::{Builder, stamp};
    use floe_wire::codec::Codec;

    fn stored(base: u64, count: u32, codec: Codec) -> Vec<u8> {
        let mut builder = Builder::new(codec);
        for place in 0..count {
            let value = format!("{}", base + u64::from(place));
            builder
                .record(Timestamp(5), None, Some(value.as_bytes()), &[])
                .unwrap();
        }
        let mut bytes = builder.finish().unwrap();
        stamp(&mut bytes, Offset(base), LeaderEpoch(3));
        bytes
    }

    fn offsets(stored: &[Bytes], from: u64) -> Vec<u64> {
        let mut all = Vec::new();
        let end = walk(&Scratches::new(1 << 20), stored, Offset(from), |found| {
            assert_eq!(found.value.unwrap(), found.offset.0.to_string().as_bytes());
            assert_eq!(
                (found.epoch, found.timestamp),
                (LeaderEpoch(3), Timestamp(5))
            );
            all.push(found.offset.0);
            true
        });
        assert!(end.unwrap());
        all
    }

    #[test]
    fn reading_begins_at_the_very_offset_inside_a_batch_of_any_codec() {
        for codec in Codec::ALL {
            let mut first = stored(32, 20, codec);
            first.extend(stored(52, 2, codec));
            let all = [Bytes::from(first), Bytes::from(stored(54, 1, codec))];
            assert_eq!(offsets(&all, 45), (45..55).collect::<Vec<_>>(), "{codec:?}");
            assert_eq!(offsets(&all, 54), [54]);
            assert!(offsets(&all, 55).is_empty());
        }
    }

    #[test]
    fn an_undecodable_batch_names_its_range() {
        let mut bytes = stored(32, 20, Codec::Gzip);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        let unreadable = walk(
            &Scratches::new(1 << 20),
            &[bytes.into()],
            Offset(40),
            |_| true,
        );
        let problem = unreadable.unwrap_err().problem();
        assert_eq!(
            (&problem.members["from"], &problem.members["nextOffset"]),
            (&32.into(), &52.into())
        );
    }

    #[test]
    fn a_batch_that_decompresses_above_the_limit_is_undecodable_and_stepped_over() {
        let bytes = [Bytes::from(stored(32, 2000, Codec::Gzip))];
        let small = walk(&Scratches::new(1000), &bytes, Offset(40), |_| true);
        let problem = small.unwrap_err().problem();
        assert!(problem.detail.contains("1000 bytes"), "{}", problem.detail);
        assert_eq!(problem.members["nextOffset"], 2032);
    }
}
