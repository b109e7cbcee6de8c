//! How many idempotent producers a node knows, and who is forgotten when it may know no more.
//!
//! Guarantees: a newcomer is never refused and never waits: the producers of the whole node that have been silent longest make
//! room, a sixteenth at a time, so that looking through all of them costs each newcomer little. One thread makes room; what
//! others append meanwhile exceeds the bound for that moment. No two partitions are locked at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::Producers;

/// Producers that all partitions of a node may know together; about 20 MiB.
pub(crate) const PRODUCERS_MAX: usize = 100_000;
/// How many are left when room has been made.
const LEFT: usize = PRODUCERS_MAX - PRODUCERS_MAX / 16;
/// The log says at most this often that room was made.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// How long a producer has been silent: the smallest is the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    /// This process's time at the last batch.
    pub(super) touched: Duration,
    /// The log's time at the last batch: tells those apart that a start has read back.
    pub(super) log_time: i64,
    /// Ids are given in ascending order.
    pub(super) id: i64,
}

/// How many producers the partitions of a node know together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    known: AtomicUsize,
    is_making_room: AtomicBool,
    /// When the log may say so again, in milliseconds of this process.
    told_again_ms: AtomicU64,
}

impl Tally {
    pub(super) fn changed(&self, before: usize, now: usize) {
        if now > before {
            self.0.known.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            self.0.known.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    fn known(&self) -> usize {
        self.0.known.load(Ordering::Relaxed)
    }

    /// Whether room must be made.
    pub(crate) fn is_full(&self) -> bool {
        self.known() > PRODUCERS_MAX
    }

    /// Forgets the producers of these partitions that have been silent longest, unless another thread does so already.
    /// Gives their number. The caller holds the lock of none.
    pub(crate) fn make_room<'a>(
        &self,
        partitions: impl Iterator<Item = &'a Mutex<Producers>> + Clone,
        now: Duration,
    ) -> usize {
        if self.0.is_making_room.swap(true, Ordering::Acquire) {
            return 0;
        }
        let mut ages = Vec::with_capacity(PRODUCERS_MAX);
        for producers in partitions.clone() {
            ages.extend(producers.lock().ages());
        }
        let excess = self.known().saturating_sub(LEFT);
        let mut gone = 0;
        if let Some(last) = youngest_of_oldest(&mut ages, excess) {
            for producers in partitions {
                gone += producers.lock().forget_up_to(last);
            }
        }
        self.0.is_making_room.store(false, Ordering::Release);
        self.tell(gone, now);
        gone
    }

    fn tell(&self, gone: usize, now: Duration) {
        let now_ms = now.as_millis() as u64;
        if gone == 0 || now_ms < self.0.told_again_ms.load(Ordering::Relaxed) {
            return;
        }
        let next_ms = now_ms + TOLD_EVERY.as_millis() as u64;
        self.0.told_again_ms.store(next_ms, Ordering::Relaxed);
        tracing::warn!(
            forgotten = gone,
            limit = PRODUCERS_MAX,
            "more idempotent producers than a node remembers: those silent longest are forgotten, a late retry of theirs may be \
             appended twice; let clients keep their producers instead of making new ones"
        );
    }
}

/// Up to which age the `count` oldest go; `None`: nobody does.
pub(super) fn youngest_of_oldest(ages: &mut [Age], count: usize) -> Option<Age> {
    let place = count.min(ages.len()).checked_sub(1)?;
    Some(*ages.select_nth_unstable(place).1)
}

#[cfg(test)]
mod tests {
    use floe_model::{Offset, Timestamp};
    use floe_wire::batch::Producer;

    use super::*;

    fn seconds(n: usize) -> Duration {
        Duration::from_secs(n as u64)
    }

    fn record(producers: &Mutex<Producers>, id: usize, now: Duration) {
        let producer = Producer {
            id: id as i64,
            epoch: 0,
            base_sequence: 0,
        };
        producers
            .lock()
            .record(&producer, 1, Offset(0), Timestamp(1), now);
    }

    fn knows(producers: &Mutex<Producers>, id: usize) -> bool {
        producers.lock().ages().any(|age| age.id == id as i64)
    }

    /// Partitions that know `PRODUCERS_MAX` together, ids ascending with time, by turns.
    fn full(tally: &Tally, partitions: usize) -> Vec<Mutex<Producers>> {
        let counted = || Mutex::new(Producers::default().counted_in(tally.clone()));
        let all: Vec<_> = (0..partitions).map(|_| counted()).collect();
        for id in 0..PRODUCERS_MAX {
            record(&all[id % partitions], id, seconds(id));
        }
        all
    }

    #[test]
    fn the_longest_silent_of_all_partitions_make_room() {
        let tally = Tally::default();
        let all = full(&tally, 3);
        assert!(!tally.is_full());
        // The oldest speaks again, so it is not the oldest any more.
        record(&all[0], 0, seconds(PRODUCERS_MAX));
        record(&all[1], PRODUCERS_MAX, seconds(PRODUCERS_MAX));
        assert!(tally.is_full());
        let gone = tally.make_room(all.iter(), seconds(PRODUCERS_MAX));
        assert_eq!((gone, tally.known()), (PRODUCERS_MAX + 1 - LEFT, LEFT));
        assert!(knows(&all[0], 0) && knows(&all[1], PRODUCERS_MAX));
        for id in 1..PRODUCERS_MAX {
            assert_eq!(knows_fast(&all, id), id > gone, "{id}");
        }
    }

    /// As `knows`, in the partition where `full` put it.
    fn knows_fast(all: &[Mutex<Producers>], id: usize) -> bool {
        let producer = Producer {
            id: id as i64,
            epoch: 0,
            base_sequence: 7,
        };
        // A known producer is asked for its next sequence; an unknown one may start anywhere.
        all[id % all.len()].lock().check(&producer, 1).is_err()
    }

    #[test]
    fn those_a_start_has_read_back_go_by_the_time_of_their_log() {
        let ages = |log_time, id| Age {
            touched: Duration::ZERO,
            log_time,
            id,
        };
        let mut all = [ages(30, 1), ages(10, 9), ages(20, 5), ages(10, 2)];
        assert_eq!(youngest_of_oldest(&mut all, 2), Some(ages(10, 9)));
        assert_eq!(youngest_of_oldest(&mut all, 0), None);
        assert_eq!(youngest_of_oldest(&mut all, 9), Some(ages(30, 1)));
        assert_eq!(youngest_of_oldest(&mut [], 1), None);
    }

    #[test]
    fn what_a_partition_forgets_it_gives_back() {
        let tally = Tally::default();
        let all = full(&tally, 1);
        let last = all[0].lock().ages().max().unwrap();
        all[0].lock().forget_up_to(last);
        assert_eq!(tally.known(), 0);
        assert!(all[0].lock().capacity() < 1_000);
    }

    #[test]
    fn a_partition_that_goes_is_not_counted_any_more() {
        let tally = Tally::default();
        let all = full(&tally, 2);
        drop(all);
        assert_eq!(tally.known(), 0);
    }
}
