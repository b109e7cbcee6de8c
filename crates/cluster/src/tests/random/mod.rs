//! The state machine under hundreds of thousands of commands that nobody waits for: made from what the catalog said at some moment,
//! applied later, in any order, some twice, some by lives that are over. An oracle of its own says what must hold; with any one
//! rule taken out it finds what that rule is there to prevent.

mod follower;
mod oracle;
mod world;

use super::*;
use crate::rule::{Rule, without};
use oracle::Broken;
use world::World;

/// Everything that is left to chance, from one seed.
#[derive(Clone, Debug)]
pub(in crate::tests) struct Chance(u64);

impl Chance {
    pub(in crate::tests) fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Below `n`.
    pub(in crate::tests) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % n
    }

    pub(in crate::tests) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        (!among.is_empty()).then(|| among[self.below(among.len())].clone())
    }
}

fn run(seed: u64, steps: usize) -> Result<World, Broken> {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step()?;
    }
    world.compare()?;
    Ok(world)
}

#[test]
fn a_catalog_keeps_its_rules_whatever_comes_late_twice_or_from_the_dead() {
    let mut accepted = BTreeMap::new();
    for seed in 0..60 {
        let world = run(seed, 6_000).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        for (kind, counts) in world.counts {
            let sum: &mut (usize, usize) = accepted.entry(kind).or_default();
            *sum = (sum.0 + counts.0, sum.1 + counts.1);
        }
    }
    // A run that refuses or accepts everything of a kind proves nothing of it.
    let names: Vec<_> = accepted.keys().copied().collect();
    assert_eq!(names.len(), 12, "every kind of command: {names:?}");
    for (kind, (done, refused)) in accepted {
        assert!(done > 500, "{kind}: {done} done, {refused} refused");
        let is_never_refused = ["confirm-deleted", "reserve-producer-ids"].contains(&kind);
        assert!(
            refused > 50 || is_never_refused,
            "{kind}: {done} done, {refused} refused"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_catalog() {
    let bytes = |seed| format::encode_snapshot(&run(seed, 2_000).unwrap().catalog);
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
}

#[test]
fn every_rule_that_is_taken_out_is_missed() {
    let mut unnoticed = Vec::new();
    for rule in Rule::ALL {
        let is_broken = |seed| without(Some(rule), || run(seed, 6_000)).is_err();
        if !(0..40).any(is_broken) {
            unnoticed.push(rule);
        }
    }
    assert_eq!(unnoticed, []);
}
