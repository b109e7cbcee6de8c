//! Choices from the one seed of a run.

use std::ops::Range;
use std::sync::Arc;

use floe_world::Random;
use floe_world::random::Seeded;

/// A source of choices; clones go on in the same sequence.
#[derive(Clone)]
pub(crate) struct Chance(Arc<Seeded>);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Seeded::new(seed)))
    }

    pub(crate) fn bits(&self) -> u64 {
        self.0.next_u64()
    }

    /// A number in a range that is not empty.
    pub(crate) fn number(&self, range: Range<u64>) -> u64 {
        range.start + self.bits() % (range.end - range.start)
    }

    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of a few.
    pub(crate) fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[(self.bits() % choices.len() as u64) as usize]
    }

    /// One of a few, each with its weight.
    pub(crate) fn weighted<T: Copy>(&self, choices: &[(u64, T)]) -> T {
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.number(0..total);
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        choices[0].1
    }
}
