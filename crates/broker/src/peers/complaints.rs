//! Says each complaint once in a while, so that a stranger who calls a thousand times a second does not fill the log.
//!
//! Guarantees: the first of a kind about somebody is said at once; of those that follow within the interval the count is said
//! with the next one. Remembers a bounded number of them: when full, it forgets those said longest ago.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Most complaints remembered.
const REMEMBERED_MAX: usize = 256;

/// About whom, and what.
type Key = (String, &'static str);

#[derive(Debug)]
pub(super) struct Complaints {
    every: Duration,
    said: Mutex<HashMap<Key, Said>>,
}

#[derive(Debug)]
struct Said {
    at: Duration,
    kept_back: u64,
}

impl Complaints {
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            said: Mutex::default(),
        }
    }

    /// Whether to say it now; if so, how many were kept back since it was said last.
    pub(super) fn is_due(&self, about: &str, what: &'static str, now: Duration) -> Option<u64> {
        let mut said = self.said.lock();
        let key = (about.to_owned(), what);
        if let Some(before) = said.get_mut(&key) {
            if now < before.at + self.every {
                before.kept_back += 1;
                return None;
            }
            before.at = now;
            return Some(std::mem::take(&mut before.kept_back));
        }
        if said.len() >= REMEMBERED_MAX {
            let mut times: Vec<Duration> = said.values().map(|said| said.at).collect();
            let (_, middle, _) = times.select_nth_unstable(REMEMBERED_MAX / 2);
            let middle = *middle;
            said.retain(|_, said| said.at > middle);
        }
        let first = Said {
            at: now,
            kept_back: 0,
        };
        said.insert(key, first);
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_mins(1);

    #[test]
    fn a_complaint_is_said_once_in_its_interval_with_the_count_of_those_kept_back() {
        let complaints = Complaints::new(EVERY);
        let at = Duration::from_secs;
        assert_eq!(complaints.is_due("a", "tls", at(0)), Some(0));
        assert_eq!(complaints.is_due("a", "tls", at(1)), None);
        assert_eq!(complaints.is_due("a", "http", at(1)), Some(0));
        assert_eq!(complaints.is_due("b", "tls", at(1)), Some(0));
        assert_eq!(complaints.is_due("a", "tls", at(59)), None);
        assert_eq!(complaints.is_due("a", "tls", at(60)), Some(2));
        assert_eq!(complaints.is_due("a", "tls", at(61)), None);
    }

    #[test]
    fn however_many_strangers_call_the_memory_of_them_is_bounded() {
        let complaints = Complaints::new(EVERY);
        for caller in 0..10 * REMEMBERED_MAX {
            let now = Duration::from_millis(caller as u64);
            let said = complaints.is_due(&caller.to_string(), "tls", now);
            assert_eq!(said, Some(0), "the first of each is said");
            assert!(complaints.said.lock().len() <= REMEMBERED_MAX);
        }
    }
}
