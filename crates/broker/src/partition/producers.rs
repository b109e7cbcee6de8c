//! Sequence state of idempotent producers in one partition (KIP-98): a fold of the log.
//!
//! ```text
//! snapshot  version u8 | leader epoch u32 | log time i64 | producers u32 | each: id i64 | epoch i16 | log time i64 | batches u8
//!           | each: base sequence i32 | records u32 | base offset u64                    (little endian)
//! ```
//! Guarantees: the last five batches of each producer are known, so a retry is answered with its first offset; batches are taken
//! in sequence only; the same batches in the same order give the same state, live or read back from the log. Forgets a
//! producer when nobody can be retrying, a day of log time and an hour of this process after its last batch, or as one of
//! those silent longest on a node that may know no more (`room.rs`). An unknown producer may start anywhere (KIP-360), so
//! one that was forgotten goes on; only a retry of what it had appended before would then be appended again.

use std::collections::HashMap;
use std::time::Duration;

use floe_model::{LeaderEpoch, Offset, ProducerId, Timestamp};
use floe_wire::batch::{Producer, View};

use super::room::{Age, PRODUCERS_MAX, Tally, youngest_of_oldest};
use crate::ProduceError;

/// Batches remembered of each producer: as many as a client keeps in flight (KIP-679).
const BATCHES: usize = 5;
/// Below this, on this process's clock, a retry may still come: far beyond any delivery timeout.
const RETRIES_END: Duration = Duration::from_hours(1);
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    known: HashMap<i64, Known>,
    /// What of `known` is counted where.
    tally: Tally,
    counted: usize,
    /// Largest record time so far.
    log_time: i64,
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    epoch: i16,
    /// The log's time at the last batch.
    log_time: i64,
    /// This process's time at the last batch.
    touched: Duration,
    /// Oldest first; the first `len` count.
    batches: [Batch; BATCHES],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Batch {
    base_sequence: i32,
    records: u32,
    base: Offset,
}

/// Where a batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequenced {
    /// Offset of its first record.
    pub(crate) base: Offset,
    /// Offset after its last.
    pub(crate) end: Offset,
}

/// A kept snapshot this release cannot read: the state is rebuilt from the log instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("producer snapshot cannot be read")]
pub(crate) struct Undecodable;

impl Batch {
    /// The sequence that follows it; sequences wrap from 2^31 - 1 to 0.
    fn next_sequence(&self) -> i32 {
        advance(self.base_sequence, self.records)
    }
}

fn advance(sequence: i32, records: u32) -> i32 {
    ((i64::from(sequence) + i64::from(records)) & i64::from(i32::MAX)) as i32
}

impl Known {
    fn age(&self, id: i64) -> Age {
        Age {
            touched: self.touched,
            log_time: self.log_time,
            id,
        }
    }

    fn last(&self) -> &Batch {
        &self.batches[self.len - 1]
    }

    fn push(&mut self, batch: Batch) {
        if self.len == BATCHES {
            self.batches.rotate_left(1);
            self.len -= 1;
        }
        self.batches[self.len] = batch;
        self.len += 1;
    }
}

impl Producers {
    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.known.capacity()
    }

    /// Counts them with those of other partitions from now on.
    pub(crate) fn counted_in(mut self, tally: Tally) -> Self {
        self.tally = tally;
        self.counted = 0;
        self.count();
        self
    }

    fn count(&mut self) {
        let (before, now) = (self.counted, self.known.len());
        self.counted = now;
        self.tally.changed(before, now);
    }

    /// How long each producer has been silent.
    pub(super) fn ages(&self) -> impl Iterator<Item = Age> + '_ {
        self.known.iter().map(|(id, known)| known.age(*id))
    }

    /// Forgets producers of this age and older, and gives their memory back; how many there were.
    pub(super) fn forget_up_to(&mut self, last: Age) -> usize {
        let before = self.known.len();
        self.known.retain(|id, known| known.age(*id) > last);
        let left = self.known.len();
        if self.known.capacity() > 4 * left {
            self.known.shrink_to(2 * left);
        }
        self.count();
        before - left
    }

    /// Forgets the oldest while it is more than a node may know: a log may name any number.
    pub(crate) fn bound(&mut self) {
        let excess = self.known.len().saturating_sub(PRODUCERS_MAX);
        if excess > 0 {
            let mut ages: Vec<_> = self.ages().collect();
            if let Some(last) = youngest_of_oldest(&mut ages, excess) {
                self.forget_up_to(last);
            }
        }
    }

    /// Whether a batch follows its producer's last; `Some`: it is here already, and where.
    pub(crate) fn check(
        &self,
        producer: &Producer,
        records: u32,
    ) -> Result<Option<Sequenced>, ProduceError> {
        let id = ProducerId(producer.id);
        let sequence = producer.base_sequence;
        let Some(known) = self.known.get(&producer.id) else {
            return Ok(None);
        };
        if producer.epoch < known.epoch {
            return Err(ProduceError::StaleProducerEpoch {
                producer: id,
                epoch: producer.epoch,
                current: known.epoch,
            });
        }
        let expected = if producer.epoch > known.epoch {
            0
        } else {
            known.last().next_sequence()
        };
        if sequence == expected {
            return Ok(None);
        }
        if producer.epoch == known.epoch {
            if let Some(batch) = known.batches[..known.len]
                .iter()
                .find(|batch| batch.base_sequence == sequence && batch.records == records)
            {
                return Ok(Some(Sequenced {
                    base: batch.base,
                    end: batch.base.plus(u64::from(records)),
                }));
            }
            if is_before_all(known, sequence) {
                return Err(ProduceError::DuplicateSequence {
                    producer: id,
                    sequence,
                });
            }
        }
        Err(ProduceError::OutOfOrderSequence {
            producer: id,
            sequence,
            expected,
        })
    }

    /// A batch was appended.
    pub(crate) fn record(
        &mut self,
        producer: &Producer,
        records: u32,
        base: Offset,
        max_timestamp: Timestamp,
        now: Duration,
    ) {
        self.log_time = self.log_time.max(max_timestamp.0);
        let batch = Batch {
            base_sequence: producer.base_sequence,
            records,
            base,
        };
        let known = self.known.entry(producer.id).or_insert_with(|| Known {
            epoch: producer.epoch,
            log_time: 0,
            touched: now,
            batches: [Batch::default(); BATCHES],
            len: 0,
        });
        if known.epoch != producer.epoch {
            known.epoch = producer.epoch;
            known.len = 0;
        }
        known.push(batch);
        known.log_time = self.log_time;
        known.touched = now;
        self.count();
    }

    /// Takes in a batch read back from the log.
    pub(crate) fn replay(&mut self, view: &View<'_>, now: Duration) {
        if view.producer_id() < 0 || view.is_control() {
            return;
        }
        let producer = Producer {
            id: view.producer_id(),
            epoch: view.producer_epoch(),
            base_sequence: view.base_sequence(),
        };
        let records = view.last_offset_delta().max(0) as u32 + 1;
        let base = Offset(view.base_offset().max(0) as u64);
        self.record(
            &producer,
            records,
            base,
            Timestamp(view.max_timestamp()),
            now,
        );
    }

    /// Forgets producers that have been silent for `expiration` of log time.
    pub(crate) fn expire(&mut self, expiration: Duration, now: Duration) {
        let before = self.log_time.saturating_sub(expiration.as_millis() as i64);
        self.known.retain(|_, known| {
            known.log_time >= before || now.saturating_sub(known.touched) < RETRIES_END
        });
        self.count();
    }

    /// Draws the state, by id, as of the end of a generation that is open now.
    pub(crate) fn snapshot(&self, epoch: LeaderEpoch) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(17 + self.known.len() * 100);
        bytes.push(VERSION);
        bytes.extend(epoch.0.to_le_bytes());
        bytes.extend(self.log_time.to_le_bytes());
        bytes.extend((self.known.len() as u32).to_le_bytes());
        let mut ids: Vec<_> = self.known.iter().collect();
        ids.sort_unstable_by_key(|(id, _)| **id);
        for (id, known) in ids {
            bytes.extend(id.to_le_bytes());
            bytes.extend(known.epoch.to_le_bytes());
            bytes.extend(known.log_time.to_le_bytes());
            bytes.push(known.len as u8);
            for batch in &known.batches[..known.len] {
                bytes.extend(batch.base_sequence.to_le_bytes());
                bytes.extend(batch.records.to_le_bytes());
                bytes.extend(batch.base.0.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads a snapshot back, and the generation it was drawn in.
    pub(crate) fn restore(
        mut bytes: &[u8],
        now: Duration,
    ) -> Result<(LeaderEpoch, Self), Undecodable> {
        let bytes = &mut bytes;
        if take::<1>(bytes)? != [VERSION] {
            return Err(Undecodable);
        }
        let epoch = LeaderEpoch(u32::from_le_bytes(take(bytes)?));
        let mut producers = Self {
            known: HashMap::new(),
            tally: Tally::default(),
            counted: 0,
            log_time: i64::from_le_bytes(take(bytes)?),
        };
        for _ in 0..u32::from_le_bytes(take(bytes)?) {
            let id = i64::from_le_bytes(take(bytes)?);
            let mut known = Known {
                epoch: i16::from_le_bytes(take(bytes)?),
                log_time: i64::from_le_bytes(take(bytes)?),
                touched: now,
                batches: [Batch::default(); BATCHES],
                len: usize::from(take::<1>(bytes)?[0]),
            };
            if known.len == 0 || known.len > BATCHES {
                return Err(Undecodable);
            }
            for batch in &mut known.batches[..known.len] {
                batch.base_sequence = i32::from_le_bytes(take(bytes)?);
                batch.records = u32::from_le_bytes(take(bytes)?);
                batch.base = Offset(u64::from_le_bytes(take(bytes)?));
            }
            producers.known.insert(id, known);
        }
        producers.count();
        if bytes.is_empty() {
            Ok((epoch, producers))
        } else {
            Err(Undecodable)
        }
    }
}

impl Drop for Producers {
    fn drop(&mut self) {
        self.known.clear();
        self.count();
    }
}

/// Whether a sequence lies before the oldest batch remembered, by less than half the ring of sequences.
fn is_before_all(known: &Known, sequence: i32) -> bool {
    let behind = known.batches[0].base_sequence.wrapping_sub(sequence) & i32::MAX;
    known.len == BATCHES && behind > 0 && behind < i32::MAX / 2
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Undecodable> {
    let (head, rest) = bytes.split_first_chunk().ok_or(Undecodable)?;
    *bytes = rest;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn producer(id: i64, epoch: i16, base_sequence: i32) -> Producer {
        Producer {
            id,
            epoch,
            base_sequence,
        }
    }

    /// Appends in sequence; every batch of `records` at the offset that follows.
    fn append(
        producers: &mut Producers,
        at: Producer,
        records: u32,
        base: u64,
    ) -> Result<Option<Sequenced>, ProduceError> {
        let known = producers.check(&at, records)?;
        if known.is_none() {
            producers.record(&at, records, Offset(base), Timestamp(1_000), Duration::ZERO);
        }
        Ok(known)
    }

    #[test]
    fn each_of_the_last_five_batches_is_answered_with_its_first_offset() {
        let mut producers = Producers::default();
        for n in 0..7 {
            let appended = append(
                &mut producers,
                producer(1, 0, n * 10),
                10,
                n as u64 * 10 + 100,
            );
            assert_eq!(appended, Ok(None));
        }
        for n in 2..7_u64 {
            let again = producers.check(&producer(1, 0, n as i32 * 10), 10);
            let expected = Sequenced {
                base: Offset(n * 10 + 100),
                end: Offset(n * 10 + 110),
            };
            assert_eq!(again, Ok(Some(expected)));
        }
        assert!(matches!(
            producers.check(&producer(1, 0, 10), 10),
            Err(ProduceError::DuplicateSequence { .. })
        ));
    }

    #[test]
    fn a_gap_is_refused_and_names_what_is_expected() {
        let mut producers = Producers::default();
        append(&mut producers, producer(1, 0, 0), 3, 0).unwrap();
        assert!(matches!(
            producers.check(&producer(1, 0, 5), 1),
            Err(ProduceError::OutOfOrderSequence { expected: 3, .. })
        ));
        // The same start with another count is not the same batch.
        assert!(matches!(
            producers.check(&producer(1, 0, 0), 2),
            Err(ProduceError::OutOfOrderSequence { .. })
        ));
    }

    #[test]
    fn an_unknown_producer_may_start_anywhere() {
        let producers = Producers::default();
        assert_eq!(producers.check(&producer(9, 3, 77), 1), Ok(None));
    }

    #[test]
    fn a_new_epoch_starts_at_zero_and_an_old_one_is_fenced() {
        let mut producers = Producers::default();
        append(&mut producers, producer(1, 4, 8), 1, 0).unwrap();
        assert!(matches!(
            producers.check(&producer(1, 5, 9), 1),
            Err(ProduceError::OutOfOrderSequence { expected: 0, .. })
        ));
        assert_eq!(append(&mut producers, producer(1, 5, 0), 1, 1), Ok(None));
        assert!(matches!(
            producers.check(&producer(1, 4, 9), 1),
            Err(ProduceError::StaleProducerEpoch { current: 5, .. })
        ));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut producers = Producers::default();
        append(&mut producers, producer(1, 0, i32::MAX - 1), 2, 0).unwrap();
        assert_eq!(append(&mut producers, producer(1, 0, 0), 2, 2), Ok(None));
        append(&mut producers, producer(2, 0, i32::MAX), 3, 4).unwrap();
        assert_eq!(append(&mut producers, producer(2, 0, 2), 1, 7), Ok(None));
    }

    #[test]
    fn a_producer_goes_after_a_day_of_log_time_and_then_may_start_anywhere() {
        let mut producers = Producers::default();
        let hour = |n| Duration::from_hours(n);
        producers.record(&producer(1, 0, 0), 2, Offset(0), Timestamp(1_000), hour(0));
        let later = Timestamp(1_000 + DAY.as_millis() as i64 + 1);
        producers.record(&producer(2, 0, 0), 1, Offset(2), later, hour(0));
        producers.expire(DAY, hour(0));
        assert_eq!(producers.len(), 2, "a retry may still come");
        producers.expire(DAY, hour(2));
        assert_eq!(producers.len(), 1);
        assert_eq!(producers.check(&producer(1, 0, 2), 2), Ok(None));
    }

    #[test]
    fn what_a_log_names_beyond_the_bound_is_forgotten_oldest_first() {
        let mut producers = Producers::default();
        for id in 0..PRODUCERS_MAX as i64 + 9 {
            let at = Timestamp(PRODUCERS_MAX as i64 - id);
            producers.record(&producer(id, 0, 0), 1, Offset(0), at, Duration::ZERO);
        }
        producers.bound();
        assert_eq!(producers.len(), PRODUCERS_MAX);
        assert_eq!(producers.check(&producer(8, 0, 7), 1), Ok(None));
        assert!(producers.check(&producer(9, 0, 7), 1).is_err());
    }

    #[test]
    fn a_snapshot_reads_back_equal_and_damage_is_refused() {
        let mut producers = Producers::default();
        for n in 0..7 {
            append(&mut producers, producer(1, 0, n), 1, n as u64).unwrap();
        }
        append(&mut producers, producer(-5, 9, 3), 4, 7).unwrap();
        let bytes = producers.snapshot(LeaderEpoch(3));
        let (epoch, read) = Producers::restore(&bytes, Duration::ZERO).unwrap();
        assert_eq!(epoch, LeaderEpoch(3));
        assert_eq!(read.known, producers.known);
        assert_eq!(read.log_time, producers.log_time);
        assert_eq!(read.snapshot(epoch), bytes);
        for len in 0..bytes.len() {
            assert!(Producers::restore(&bytes[..len], Duration::ZERO).is_err());
        }
    }
}
