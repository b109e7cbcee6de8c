//! A run: consecutive batches of one generation in one piece of memory, which is at once the tail that readers are
//! served from, what the journal copies from, and the image that is written to the segment.
//!
//! ```text
//! open -- seal --> sealed -- taken by a segment thread --> written -- memory needed --> gone
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;
use floe_world::memory::{Growing, View};

use crate::format::batch::{self, BatchHead};
use crate::format::segment::{RUN_HEADER, TABLE_ENTRY};

/// Distance of the marks that a lookup starts from.
const MARK_BYTES: usize = 16 << 10;

/// Where a run lies in its segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) file_base: u64,
    pub(crate) block: u32,
    pub(crate) blocks: u32,
    pub(crate) header_crc: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) view: View,
    /// The writing end, until a segment thread takes it.
    pub(crate) writer: Option<Growing>,
    pub(crate) is_open: bool,
    pub(crate) batches: u32,
    pub(crate) max_timestamp: i64,
    /// Position up to which its bytes are in the journal, and batches up to there.
    pub(crate) journaled: usize,
    pub(crate) journaled_batches: u32,
    /// Set once it is written.
    pub(crate) place: Option<Place>,
    marks: Vec<(u64, usize)>,
    /// Set by a cut: what lies behind is gone.
    limit: Option<usize>,
    counted: Counted,
}

/// Bytes of memory that runs hold, counted in one place for a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<AtomicUsize>);

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One run's part of [`Held`], taken back when it goes.
#[derive(Debug)]
struct Counted(Held, usize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Run {
    /// Room that a run needs for one batch of so many bytes.
    pub(crate) fn bytes_for(batch: usize) -> usize {
        RUN_HEADER + batch + TABLE_ENTRY
    }

    pub(crate) fn new(buffer: Buffer, base: u64, held: &Held) -> Self {
        held.0.fetch_add(buffer.len(), Ordering::Relaxed);
        let counted = Counted(held.clone(), buffer.len());
        let writer = Growing::new(buffer, RUN_HEADER);
        Self {
            base,
            end: base,
            view: writer.view(),
            writer: Some(writer),
            is_open: true,
            batches: 0,
            max_timestamp: i64::MIN,
            journaled: RUN_HEADER,
            journaled_batches: 0,
            place: None,
            marks: Vec::new(),
            limit: None,
            counted,
        }
    }

    /// Whether a batch of so many bytes, and its entry in the table, have room.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let table = (self.batches as usize + 1) * TABLE_ENTRY;
        let room = self.writer.as_ref().map_or(0, Growing::room);
        self.is_open && bytes + table <= room
    }

    /// Copies a batch behind the others and, unless it carries them already, stamps offset and epoch into the copy.
    /// The caller has asked [`Run::has_room`].
    pub(crate) fn push(&mut self, head: &BatchHead<'_>, stamp: Option<(u64, LeaderEpoch)>) {
        let Some(writer) = self.writer.as_mut() else {
            return;
        };
        let bytes = head.bytes();
        let position = writer.position();
        let place = &mut writer.rest_mut()[..bytes.len()];
        place.copy_from_slice(bytes);
        let base = match stamp {
            Some((base, epoch)) => {
                batch::stamp(place, Offset(base), epoch);
                base
            }
            None => head.base(),
        };
        if self
            .marks
            .last()
            .is_none_or(|(_, at)| at + MARK_BYTES <= position)
        {
            self.marks.push((base, position));
        }
        writer.publish(bytes.len());
        self.end = base.saturating_add(head.span());
        self.batches += 1;
        self.max_timestamp = self.max_timestamp.max(head.max_timestamp().0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batches == 0
    }

    pub(crate) fn is_written(&self) -> bool {
        self.place.is_some()
    }

    /// Position after its last batch.
    pub(crate) fn position_end(&self) -> usize {
        self.limit.unwrap_or_else(|| self.view.published())
    }

    /// Drops the batches at or above `end`, which is between two batches. What is not written yet moves to memory of its
    /// own, because a piece's bytes cannot be taken back.
    pub(crate) fn cut(&mut self, end: u64) {
        self.is_open = false;
        let to = self.position_of(end);
        if to == self.position_end() {
            return;
        }
        let Some(_) = self.writer else {
            self.limit = Some(to);
            self.end = self.end.min(end);
            // A cut comes behind everything accepted before it: nothing of it is pending.
            self.journaled = to;
            self.journaled_batches = self.batches;
            return;
        };
        let kept = self.view.bytes(RUN_HEADER..to);
        let count = batch::walk(&kept).count();
        let bytes = Self::bytes_for(kept.len()) + count * TABLE_ENTRY;
        let class = floe_world::memory::class(bytes);
        let buffer = floe_world::Pool::new(class).try_get(bytes);
        let buffer = buffer.expect("a pool made for one piece has it");
        let mut run = Self::new(buffer, self.base, &self.counted.0);
        for (_, head) in batch::walk(&kept) {
            run.push(&head, None);
        }
        run.is_open = false;
        // A cut comes behind everything accepted before it.
        run.take_pending();
        *self = run;
    }

    /// Bytes of its batches.
    pub(crate) fn bytes(&self) -> usize {
        self.position_end() - RUN_HEADER
    }

    /// All its batches.
    pub(crate) fn all(&self) -> Bytes {
        self.view.bytes(RUN_HEADER..self.position_end())
    }

    /// Bytes and batches that the journal has not yet.
    pub(crate) fn pending(&self) -> (usize, usize) {
        (
            self.position_end() - self.journaled,
            (self.batches - self.journaled_batches) as usize,
        )
    }

    /// What the journal has of it.
    pub(crate) fn journaled_range(&self) -> Range<usize> {
        RUN_HEADER..self.journaled
    }

    /// What [`Run::pending`] counted, as a place, and from now on counted as journaled.
    pub(crate) fn take_pending(&mut self) -> Range<usize> {
        let range = self.journaled..self.position_end();
        self.journaled = range.end;
        self.journaled_batches = self.batches;
        range
    }

    /// Position of the first batch that ends above `offset`.
    pub(crate) fn position_of(&self, offset: u64) -> usize {
        let after = self.marks.partition_point(|(base, _)| *base <= offset);
        let start = after
            .checked_sub(1)
            .map_or(RUN_HEADER, |at| self.marks[at].1);
        self.skip(start, |head, _| head.end() <= offset)
    }

    /// Kafka's checksum of the batch that ends at `end`.
    pub(crate) fn checksum_at(&self, end: u64) -> Option<u32> {
        let after = self.marks.partition_point(|(base, _)| *base < end);
        let (_, start) = *self.marks.get(after.checked_sub(1)?)?;
        let bytes = self.view.slice(start..self.position_end());
        let mut heads = batch::walk(bytes).map(|(_, head)| head);
        let head = heads.find(|head| head.end() >= end)?;
        head.crc_to_keep().filter(|_| head.end() == end)
    }

    /// From `start`, over the batches that `passes` says, to the first it does not.
    fn skip(&self, start: usize, passes: impl Fn(&BatchHead<'_>, usize) -> bool) -> usize {
        let bytes = self.view.slice(start..self.position_end());
        for (place, head) in batch::walk(bytes) {
            if !passes(&head, start + place.end) {
                return start + place.start;
            }
        }
        self.position_end()
    }

    /// Whole batches from `from` (a position) on that end at or below `up_to`, at most `max_bytes` of them but for the
    /// first if `at_least_one`. Gives them with the offset after the last.
    pub(crate) fn slice(
        &self,
        from: usize,
        up_to: u64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Option<(Bytes, u64)> {
        let published = self.position_end();
        let limit = from.saturating_add(max_bytes);
        let to = if self.end <= up_to && published <= limit {
            published
        } else {
            // The nearest mark that is surely inside both bounds, then batch by batch.
            let marks = self
                .marks
                .partition_point(|(base, at)| *at <= limit && *base <= up_to);
            let start = marks
                .checked_sub(1)
                .map_or(from, |at| self.marks[at].1.max(from));
            self.skip(start, |head, end| {
                let is_first = at_least_one && end - head.bytes().len() == from;
                head.end() <= up_to && (end <= limit || is_first)
            })
        };
        if to <= from {
            return None;
        }
        let next = if to == published {
            self.end
        } else {
            self.offset_at(to)
        };
        Some((self.view.bytes(from..to), next))
    }

    fn offset_at(&self, position: usize) -> u64 {
        let bytes = self.view.slice(position..self.position_end());
        BatchHead::first(bytes).map_or(self.end, |head| head.base())
    }
}

#[cfg(test)]
mod tests {
    use floe_world::Pool;

    use super::*;
    use crate::format::batch::tests::example;

    fn run(batches: usize, payload: usize) -> Run {
        let buffer = Pool::new(1 << 20).try_get(1 << 20).unwrap();
        let mut run = Run::new(buffer, 100, &Held::default());
        for _ in 0..batches {
            let bytes = example(2, payload, 5);
            let head = BatchHead::first(&bytes).unwrap();
            assert!(run.has_room(bytes.len()));
            run.push(&head, Some((run.end, LeaderEpoch(1))));
        }
        run
    }

    #[test]
    fn a_lookup_finds_the_batch_that_contains_the_offset() {
        let run = run(200, 1000);
        for offset in 100..500 {
            let (bytes, next) = run.slice(run.position_of(offset), 500, 1, true).unwrap();
            let head = BatchHead::first(&bytes).unwrap();
            assert_eq!(head.bytes().len(), bytes.len());
            assert!(head.base() <= offset && offset < head.end());
            assert_eq!(next, head.end());
        }
    }

    #[test]
    fn a_slice_holds_whole_batches_within_both_bounds() {
        let run = run(200, 1000);
        for (up_to, max) in [
            (500, 1 << 20),
            (301, 1 << 20),
            (300, 20_000),
            (104, 5000),
            (500, 1061 * 3),
        ] {
            let from = run.position_of(102);
            let (bytes, next) = run.slice(from, up_to, max, false).unwrap();
            let wanted = ((up_to - 102) / 2).min((max / 1061) as u64);
            assert_eq!(bytes.len() as u64, wanted * 1061, "{up_to} {max}");
            assert_eq!(next, 102 + wanted * 2);
        }
        assert!(
            run.slice(run.position_of(102), 103, 1 << 20, true)
                .is_none()
        );
        assert!(run.slice(run.position_of(102), 500, 10, false).is_none());
    }

    #[test]
    fn a_run_keeps_room_for_its_table() {
        let mut run = Run::new(Pool::new(4096).try_get(4096).unwrap(), 0, &Held::default());
        let bytes = example(1, 0, 0);
        let head = BatchHead::first(&bytes).unwrap();
        while run.has_room(bytes.len()) {
            run.push(&head, None);
        }
        let used = RUN_HEADER + run.bytes() + run.batches as usize * TABLE_ENTRY;
        assert!(used <= 4096 && used > 4096 - 65);
    }
}
