//! What was read from disk lately and checked, kept for the next read: small reads of one run cost one transfer, and a
//! reader that goes on finds the next stretch read ahead.
//!
//! Bounded in bytes; what has been read to its end goes first, then the oldest. What a cut, a drop or retention took stays
//! unreachable: every read is bounded by its generation first, and one that was cut or opened again is another one here.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset};

use super::Wanted;
use crate::Slices;
use crate::format::batch;
use crate::generation::Version;
use crate::partition::PartitionLog;

/// Consecutive runs of one generation, as read and checked.
pub(crate) struct Chunk {
    pub(crate) partition: Arc<PartitionLog>,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) version: Version,
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) bytes: Bytes,
    /// Where the batches of each run lie in `bytes`.
    pub(crate) parts: Vec<Range<usize>>,
    /// Memory that it holds.
    pub(crate) held: usize,
    /// Where the last read ended: a part, a position, and the offset there.
    cursor: (usize, usize, u64),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Chunks {
    chunks: VecDeque<Chunk>,
    held: usize,
}

impl Chunk {
    pub(crate) fn new(
        partition: &Arc<PartitionLog>,
        generation: (LeaderEpoch, Version),
        bounds: Range<u64>,
        bytes: Bytes,
        parts: Vec<Range<usize>>,
        held: usize,
    ) -> Self {
        let cursor = (0, parts.first().map_or(0, |part| part.start), bounds.start);
        Self {
            partition: Arc::clone(partition),
            epoch: generation.0,
            version: generation.1,
            base: bounds.start,
            end: bounds.end,
            bytes,
            parts,
            held,
            cursor,
        }
    }

    /// Whether the last read came to its end.
    fn is_read(&self) -> bool {
        self.cursor.2 >= self.end
    }

    /// Whole batches, as asked for.
    pub(crate) fn slices(&mut self, wanted: Wanted) -> Slices {
        let (mut part, mut position, _) = self.cursor;
        if self.cursor.2 > wanted.from {
            (part, position) = (0, self.parts.first().map_or(0, |part| part.start));
        }
        let mut slices = Slices {
            batches: Vec::new(),
            next: Offset(wanted.from),
        };
        let mut taken = 0;
        while let Some(range) = self.parts.get(part) {
            let start = position.max(range.start);
            let mut found = start..start;
            let mut is_over = false;
            for (place, head) in batch::walk(&self.bytes[start..range.end]) {
                if head.end() <= slices.next.0 {
                    found = start + place.end..start + place.end;
                    continue;
                }
                let fits = taken + place.len() <= wanted.max_bytes;
                let is_first = taken == 0 && wanted.at_least_one;
                if head.end() > wanted.up_to || !(fits || is_first) {
                    is_over = true;
                    break;
                }
                taken += place.len();
                found.end = start + place.end;
                slices.next = Offset(head.end());
            }
            position = found.end;
            if !found.is_empty() {
                slices.batches.push(self.bytes.slice(found));
            }
            if is_over {
                break;
            }
            part += 1;
            position = self.parts.get(part).map_or(position, |part| part.start);
        }
        self.cursor = (part, position, slices.next.0);
        slices
    }
}

impl Chunks {
    /// What is kept of what is asked for; and whether the reader has come to the end of it.
    pub(crate) fn serve(
        &mut self,
        partition: &Arc<PartitionLog>,
        generation: (LeaderEpoch, Version),
        wanted: Wanted,
    ) -> Option<(Slices, bool)> {
        let at = self.chunks.iter().rposition(|chunk| {
            Arc::ptr_eq(&chunk.partition, partition)
                && (chunk.epoch, chunk.version) == generation
                && (chunk.base..chunk.end).contains(&wanted.from)
        })?;
        let slices = self.chunks[at].slices(wanted);
        let is_at_end = self.chunks[at].is_read();
        if is_at_end && let Some(chunk) = self.chunks.remove(at) {
            self.chunks.push_front(chunk);
        }
        Some((slices, is_at_end))
    }

    /// Keeps a chunk. While more than `most` bytes are held, those go that a reader has come to the end of, then the oldest: what
    /// was read ahead for one partition stays until the readers of the others have had their turn.
    pub(crate) fn keep(&mut self, chunk: Chunk, most: usize) {
        self.held += chunk.held;
        if chunk.is_read() {
            self.chunks.push_front(chunk);
        } else {
            self.chunks.push_back(chunk);
        }
        while self.held > most {
            let Some(oldest) = self.chunks.pop_front() else {
                break;
            };
            self.held -= oldest.held;
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, PartitionIndex, TopicId, TopicPartition};

    use super::*;
    use crate::format::batch::{BatchHead, stamp, tests::example};
    use crate::partition::State;

    fn chunk() -> Chunk {
        let partition = TopicPartition {
            topic: TopicId([1; 16]),
            partition: PartitionIndex(0),
        };
        let partition = PartitionLog::new(partition, 0, State::new(Incarnation(1)));
        let mut bytes = Vec::new();
        let mut parts = Vec::new();
        for run in 0..3 {
            bytes.extend([0; 40]);
            let start = bytes.len();
            for at in 0..10 {
                let mut batch = example(2, 100, 0);
                stamp(&mut batch, Offset(100 + run * 20 + at * 2), LeaderEpoch(1));
                bytes.extend(batch);
            }
            parts.push(start..bytes.len());
        }
        Chunk::new(
            &partition,
            (LeaderEpoch(1), Version::default()),
            100..160,
            Bytes::from(bytes),
            parts,
            1,
        )
    }

    fn wanted(from: u64, up_to: u64, max_bytes: usize) -> Wanted {
        Wanted {
            epoch: None,
            from,
            up_to,
            max_bytes,
            at_least_one: true,
        }
    }

    #[test]
    fn reads_in_any_order_give_whole_batches_from_the_one_asked_for() {
        let mut chunk = chunk();
        for from in [100, 101, 159, 120, 119, 140, 100, 158] {
            let slices = chunk.slices(wanted(from, 160, 1));
            let head = BatchHead::first(&slices.batches[0]).unwrap();
            assert!(head.base() <= from && from < head.end(), "{from}");
            assert_eq!((slices.batches.len(), slices.next.0), (1, head.end()));
        }
    }

    #[test]
    fn a_reader_that_goes_on_gets_everything_once() {
        for max_bytes in [1, 161, 500, 5000, 100_000] {
            let mut chunk = chunk();
            let mut next = 100;
            let mut total = 0;
            while next < 160 {
                let slices = chunk.slices(wanted(next, 160, max_bytes));
                assert!(slices.next.0 > next);
                next = slices.next.0;
                total += slices.bytes();
            }
            assert_eq!(total, 30 * 161, "{max_bytes}");
        }
    }

    #[test]
    fn what_was_read_ahead_outlives_what_others_have_read_to_the_end() {
        let mut chunks = Chunks::default();
        let (ahead, others) = (chunk(), [chunk(), chunk(), chunk()]);
        let partition = Arc::clone(&ahead.partition);
        chunks.keep(ahead, 2);
        for mut other in others {
            let read = other.slices(wanted(100, 160, 100_000));
            assert_eq!(read.next, Offset(160));
            chunks.keep(other, 2);
        }
        assert_eq!(chunks.chunks.len(), 2);
        let epoch = (LeaderEpoch(1), Version::default());
        let served = chunks.serve(&partition, epoch, wanted(100, 160, 100_000));
        assert!(matches!(served, Some((_, true))));
        // It has been read now, too, and goes before one that nobody has read.
        let fresh = chunk();
        let unread = Arc::clone(&fresh.partition);
        chunks.keep(fresh, 2);
        chunks.keep(chunk(), 2);
        let read = chunks.serve(&partition, epoch, wanted(100, 160, 1));
        assert!(read.is_none());
        assert!(chunks.serve(&unread, epoch, wanted(100, 160, 1)).is_some());
    }

    #[test]
    fn a_slice_ends_below_the_bound() {
        let mut chunk = chunk();
        assert_eq!(chunk.slices(wanted(100, 131, 100_000)).next, Offset(130));
        assert_eq!(chunk.slices(wanted(130, 131, 100_000)).next, Offset(130));
        assert_eq!(chunk.slices(wanted(130, 160, 100_000)).next, Offset(160));
    }
}
