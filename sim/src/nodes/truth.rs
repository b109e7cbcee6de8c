//! What clients were told and have seen, and what must be true because of it.
//!
//! ```text
//! P1 durable      what was acknowledged is there at its offset        P2 ordered   an offset never changes, none is missing
//! P4 exactly once what an idempotent producer sent is there once      P5 no skip   a position is one that was committed, not older
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use floe_model::TopicPartition;

/// Notes kept for who reads about a broken seed.
const NOTES_MAX: usize = 200;

/// How often each promise was compared with what is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Acknowledged records found again.
    pub durable: u64,
    /// Offsets that were seen before and are the same.
    pub ordered: u64,
    /// Records of idempotent producers that are there once.
    pub exactly_once: u64,
    /// Positions read back.
    pub positions: u64,
    /// Chunks given to members of a group.
    pub delivered: u64,
    /// Topics looked for after they were created or deleted.
    pub topics: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Truth {
    /// What is known to lie where; a later sight must be the same.
    seen: BTreeMap<TopicPartition, BTreeMap<u64, String>>,
    /// Values that were acknowledged, with where, if the answer said so.
    acked: BTreeMap<(TopicPartition, String), Option<u64>>,
    /// Values that may be there at most once.
    once: BTreeSet<String>,
    /// All that was ever sent.
    sent: BTreeSet<String>,
    positions: BTreeMap<(String, TopicPartition), Committed>,
    /// Up to where the members of the group were given records, without a gap.
    delivered: BTreeMap<TopicPartition, u64>,
    pub(crate) compared: Compared,
    pub(crate) operations: u64,
    pub(crate) acknowledged: u64,
    /// The first promise that did not hold.
    pub(crate) broken: Option<String>,
    trace: DefaultHasher,
    pub(crate) notes: VecDeque<String>,
}

#[derive(Default)]
struct Committed {
    acked: u64,
    tried: u64,
}

impl Truth {
    /// Something has happened.
    pub(crate) fn note(&mut self, at: Duration, what: &str) {
        (at, what).hash(&mut self.trace);
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
        }
        let mut note = String::new();
        let written = write!(note, "{:>10.6} {what}", at.as_secs_f64());
        written.expect("a string takes everything");
        self.notes.push_back(note);
    }

    /// A print of everything noted.
    pub(crate) fn trace(&self) -> u64 {
        self.trace.finish()
    }

    pub(crate) fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    pub(crate) fn sending(&mut self, values: &[String], is_once: bool) {
        self.operations += 1;
        self.sent.extend(values.iter().cloned());
        if is_once {
            self.once.extend(values.iter().cloned());
        }
    }

    /// The answer said where they lie; `None`: that they were there already, not where.
    pub(crate) fn acked(&mut self, at: TopicPartition, base: Option<u64>, values: &[String]) {
        self.acknowledged += values.len() as u64;
        for (n, value) in (0..).zip(values) {
            let offset = base.map(|base| base + n);
            if let Some(offset) = offset {
                self.saw(at, offset, value);
            }
            self.acked.insert((at, value.clone()), offset);
        }
    }

    /// A reader was given this record, or an answer said that it is there.
    pub(crate) fn saw(&mut self, at: TopicPartition, offset: u64, value: &str) {
        if !self.sent.contains(value) {
            self.breaks(format!("{at} has '{value}' at {offset}: nobody sent it"));
        }
        let known = self.seen.entry(at).or_default();
        match known.get(&offset) {
            None => drop(known.insert(offset, value.to_owned())),
            Some(before) if before == value => self.compared.ordered += 1,
            Some(before) => {
                let what = format!("{at} has '{value}' at {offset}; it was '{before}' (P2)");
                self.breaks(what);
            }
        }
    }

    pub(crate) fn committing(&mut self, group: &str, at: TopicPartition, offset: u64) {
        self.operations += 1;
        let known = self.positions.entry((group.to_owned(), at)).or_default();
        known.tried = known.tried.max(offset);
    }

    pub(crate) fn committed(&mut self, group: &str, at: TopicPartition, offset: u64) {
        let known = self.positions.entry((group.to_owned(), at)).or_default();
        known.acked = known.acked.max(offset);
    }

    /// What is acknowledged now: a position read from now on is not below it.
    pub(crate) fn least_position(&self, group: &str, at: TopicPartition) -> u64 {
        let known = self.positions.get(&(group.to_owned(), at));
        known.map_or(0, |known| known.acked)
    }

    /// A position was read; `least` was acknowledged when it was asked for.
    pub(crate) fn position(&mut self, group: &str, at: TopicPartition, least: u64, is: u64) {
        self.compared.positions += 1;
        let known = self.positions.get(&(group.to_owned(), at));
        let most = known.map_or(0, |known| known.tried);
        if is < least || is > most {
            self.breaks(format!(
                "group {group} is at {is} of {at}: acknowledged was {least}, asked at most {most} (P5)"
            ));
        }
    }

    /// A member of the group was given these; it began at the first record.
    pub(crate) fn delivered(&mut self, at: TopicPartition, start: u64, end: u64) {
        self.compared.delivered += 1;
        let before = self.delivered.entry(at).or_default();
        let upto = *before;
        *before = upto.max(end);
        if start > upto {
            self.breaks(format!(
                "the group is given {at} from {start} on; it had read up to {upto} (P5)"
            ));
        }
    }

    /// Where the members' group is now: never above what they were given.
    pub(crate) fn group_is_at(&mut self, at: TopicPartition, is: u64) {
        self.compared.positions += 1;
        let upto = self.delivered.get(&at).copied().unwrap_or_default();
        if is > upto {
            self.breaks(format!(
                "the group is at {is} of {at}; it was given records up to {upto} (P5)"
            ));
        }
    }

    /// The group has read everything.
    pub(crate) fn has_read_all(&mut self, at: TopicPartition, end: u64) {
        let upto = self.delivered.get(&at).copied().unwrap_or_default();
        if upto != end {
            self.breaks(format!("the group was given {at} up to {upto}, and there is nothing more; it ends at {end} (P5)"));
        }
    }

    /// Everything that a partition has, from its first offset on.
    pub(crate) fn is_whole(&mut self, at: TopicPartition, records: &[(u64, String)]) {
        let mut at_offset = BTreeMap::new();
        let mut places: BTreeMap<&str, u64> = BTreeMap::new();
        for (n, (offset, value)) in (0..).zip(records) {
            if *offset != n {
                self.breaks(format!("{at} goes on with {offset} where {n} follows (P2)"));
            }
            self.saw(at, *offset, value);
            at_offset.insert(*offset, value);
            let before = places.insert(value, *offset);
            if let Some(before) = before.filter(|_| self.once.contains(value)) {
                self.breaks(format!("{at} has '{value}' at {before} and {offset} (P4)"));
            }
        }
        self.compared.exactly_once += places
            .keys()
            .filter(|value| self.once.contains(**value))
            .count() as u64;
        let known = self.seen.get(&at).into_iter().flatten();
        let lost = known.filter(|(offset, _)| !at_offset.contains_key(offset));
        let lost = lost
            .map(|(offset, value)| format!("'{value}' at {offset}"))
            .next();
        if let Some(lost) = lost {
            self.breaks(format!(
                "{at} ends at {}; {lost} was there (P1)",
                records.len()
            ));
        }
        let of_partition = self.acked.iter().filter(|((of, _), _)| *of == at);
        let mut missing = None;
        for ((_, value), _) in of_partition {
            self.compared.durable += 1;
            if !places.contains_key(value.as_str()) {
                missing.get_or_insert_with(|| value.clone());
            }
        }
        if let Some(missing) = missing {
            self.breaks(format!(
                "{at} lacks '{missing}', which was acknowledged (P1)"
            ));
        }
    }
}
