//! Says each complaint once in a while, so that a stranger who calls a thousand times a second does not fill the log.
//!
//! Guarantees: the first of a kind about somebody is said at once, as long as not too many others were said in the same
//! interval; what is kept back is counted, and said with the next one. Remembers a bounded number of them: when full, it
//! forgets those said longest ago. Writes nothing itself.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Most complaints remembered.
const REMEMBERED_MAX: usize = 256;
/// Most complaints said in one interval, about whomever.
const SAID_MAX: u32 = 30;

/// About whom, and what.
type Key = (String, &'static str);

/// See the file's head.
#[derive(Debug)]
pub struct Complaints {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by: HashMap<Key, Said>,
    /// When the present interval began.
    since: Duration,
    /// How many were said in it.
    said: u32,
    /// Kept back, of those that are not remembered.
    kept_back: u64,
}

#[derive(Debug)]
struct Said {
    at: Duration,
    kept_back: u64,
}

impl Complaints {
    /// The same is said once in this time.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            state: Mutex::default(),
        }
    }

    /// Whether to say it now (of the monotonic clock); if so, how many were kept back: of the same since it was said last,
    /// and of all those that nothing could be said about.
    pub fn is_due(&self, about: &str, what: &'static str, now: Duration) -> Option<u64> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if now >= state.since + self.every {
            state.since = now;
            state.said = 0;
        }
        let has_room = state.said < SAID_MAX;
        let key = (about.to_owned(), what);
        let own = match state.by.get_mut(&key) {
            Some(before) if !has_room || now < before.at + self.every => {
                before.kept_back += 1;
                return None;
            }
            Some(before) => {
                before.at = now;
                std::mem::take(&mut before.kept_back)
            }
            None if !has_room => {
                state.kept_back += 1;
                return None;
            }
            None => {
                state.remember(key, now);
                0
            }
        };
        state.said += 1;
        Some(own + std::mem::take(&mut state.kept_back))
    }
}

impl State {
    fn remember(&mut self, key: Key, now: Duration) {
        if self.by.len() >= REMEMBERED_MAX {
            let mut times: Vec<Duration> = self.by.values().map(|said| said.at).collect();
            let (_, middle, _) = times.select_nth_unstable(REMEMBERED_MAX / 2);
            let middle = *middle;
            let forgotten = self.by.extract_if(|_, said| said.at <= middle);
            self.kept_back += forgotten.map(|(_, said)| said.kept_back).sum::<u64>();
        }
        let first = Said {
            at: now,
            kept_back: 0,
        };
        self.by.insert(key, first);
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
    fn however_many_strangers_call_memory_and_lines_are_bounded_and_every_call_is_counted() {
        let complaints = Complaints::new(EVERY);
        let calls = 50 * REMEMBERED_MAX as u64;
        let mut accounted = 0;
        for caller in 0..calls {
            let now = Duration::from_millis(100 * caller);
            let about = (caller / 2).to_string();
            if let Some(kept_back) = complaints.is_due(&about, "tls", now) {
                accounted += 1 + kept_back;
            }
            assert!(complaints.state.lock().by.len() <= REMEMBERED_MAX);
        }
        let mut last = Duration::from_millis(100 * calls);
        let state = complaints.state.lock();
        let remembered: u64 = state.by.values().map(|said| said.kept_back).sum();
        assert_eq!(accounted + remembered + state.kept_back, calls);
        drop(state);
        let mut lines = 0;
        for caller in 0..calls {
            last += Duration::from_millis(1);
            let said = complaints.is_due(&format!("other {caller}"), "tls", last);
            lines += u64::from(said.is_some());
        }
        let most = u64::from(SAID_MAX) * (calls / 60_000 + 2);
        assert!(lines <= most, "{lines} lines of {calls} calls");
    }
}
