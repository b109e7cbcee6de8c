//! What one connection is doing, and until when it may.
//!
//! Guarantees: reading and writing cost two relaxed stores, never a timer; one timer per connection asks
//! [`Activity::next`] when to look again. A connection that is silent, half-way through a head, idle, or does not
//! take its answer is named as such after the time its [`Limits`] grant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use floe_world::Clock;
use parking_lot::Mutex;

use super::Limits;

/// After this long without a request a connection counts as quiet.
const QUIET: Duration = Duration::from_secs(2);
/// HTTP/2: all answers under way must be taken at this rate, beside the time that one may stall. The caller's window holds an
/// answer back unseen by the socket.
pub(super) const TAKEN_BYTES_PER_MS: u64 = 64;
/// Marks "not now" among the times.
const NEVER: u64 = u64::MAX;

/// Why a connection is closed by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// Nothing came, or nothing but the beginning of HTTP/2.
    FirstByte,
    /// A head began and did not end.
    Head,
    /// No request for long.
    Idle,
    /// The answer is not taken.
    Write,
}

/// Times are milliseconds of the monotonic clock since the connection was accepted.
pub struct Activity {
    clock: Arc<dyn Clock>,
    opened: Duration,
    any_read: AtomicBool,
    multiplexed: AtomicBool,
    any_request: AtomicBool,
    requests: AtomicU32,
    head_since: AtomicU64,
    idle_since: AtomicU64,
    blocked_since: AtomicU64,
    unflushed: AtomicBool,
    broken: AtomicBool,
    untaken: Mutex<Untaken>,
}

/// Answers of HTTP/2 that are not handed over whole, by number.
#[derive(Default)]
struct Untaken {
    next: u64,
    bytes: u64,
    /// The bytes of each, and by when they are to be taken, but for the time of a stall.
    answers: BTreeMap<u64, (u64, u64)>,
}

/// One of them.
pub(super) struct Owed(u64);

impl std::fmt::Debug for Activity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Activity")
            .field("requests", &self.requests)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Activity {
    /// Of a connection accepted now.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            opened: clock.monotonic(),
            clock,
            any_read: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            any_request: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            head_since: AtomicU64::new(NEVER),
            idle_since: AtomicU64::new(0),
            blocked_since: AtomicU64::new(NEVER),
            unflushed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            untaken: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        self.clock
            .monotonic()
            .saturating_sub(self.opened)
            .as_millis() as u64
    }

    /// Bytes came in. The first ones tell whether the caller speaks HTTP/2 (RFC 9113, 3.4).
    pub fn read(&self, bytes: &[u8]) {
        if !self.any_read.swap(true, Relaxed) {
            self.multiplexed.store(bytes.starts_with(b"PRI"), Relaxed);
        }
        if self.requests.load(Relaxed) == 0
            && self.head_since.load(Relaxed) == NEVER
            && !self.multiplexed.load(Relaxed)
        {
            self.head_since.store(self.now(), Relaxed);
        }
    }

    /// Bytes went out, or cannot at the moment.
    pub fn write(&self, blocked: bool) {
        if !blocked {
            self.blocked_since.store(NEVER, Relaxed);
        } else if self.blocked_since.load(Relaxed) == NEVER {
            self.blocked_since.store(self.now(), Relaxed);
        }
    }

    /// The connection failed, or an answer on it was given up: what was sent last may not have arrived.
    pub fn set_broken(&self) {
        self.broken.store(true, Relaxed);
    }

    /// See [`Activity::set_broken`].
    pub fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    /// A request's head is complete.
    pub fn request_began(&self) {
        self.head_since.store(NEVER, Relaxed);
        self.idle_since.store(self.now(), Relaxed);
        self.any_request.store(true, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    /// A request's answer has been handed over whole, or given up.
    pub fn request_ended(&self) {
        self.idle_since.store(self.now(), Relaxed);
        self.unflushed.store(true, Relaxed);
        self.requests.fetch_sub(1, Relaxed);
    }

    /// An answer of so many bytes is there for the caller. With HTTP/1.1 the socket shows whether it is taken.
    pub(super) fn answer_began(&self, bytes: u64) -> Option<Owed> {
        if bytes == 0 || !self.multiplexed.load(Relaxed) {
            return None;
        }
        let mut untaken = self.untaken.lock();
        untaken.next += 1;
        untaken.bytes += bytes;
        let by = self.now() + untaken.bytes / TAKEN_BYTES_PER_MS;
        let number = untaken.next;
        untaken.answers.insert(number, (bytes, by));
        Some(Owed(number))
    }

    /// It has been handed over whole, or given up.
    pub(super) fn answer_ended(&self, owed: &Owed) {
        let mut untaken = self.untaken.lock();
        if let Some((bytes, _)) = untaken.answers.remove(&owed.0) {
            untaken.bytes -= bytes;
        }
    }

    /// All that was handed over has gone to the kernel.
    pub fn flushed(&self) {
        self.unflushed.store(false, Relaxed);
    }

    /// Whether an answer is owed or not all of it with the kernel.
    pub fn is_answering(&self) -> bool {
        self.requests.load(Relaxed) > 0 || self.unflushed.load(Relaxed)
    }

    /// What orders connections by how soon they may go: those that nobody waits for first, and among them the one where a
    /// request began or ended longest ago, or none ever did.
    pub(super) fn standing(&self) -> (bool, Duration) {
        let since = Duration::from_millis(self.idle_since.load(Relaxed));
        (self.requests.load(Relaxed) > 0, self.opened + since)
    }

    /// Whether nothing has been asked or answered for a moment.
    pub fn is_quiet(&self) -> bool {
        let quiet_since = self.idle_since.load(Relaxed);
        self.requests.load(Relaxed) == 0
            && self.head_since.load(Relaxed) == NEVER
            && self.blocked_since.load(Relaxed) == NEVER
            && self.any_read.load(Relaxed)
            && self.now() >= quiet_since + QUIET.as_millis() as u64
    }

    /// How long until the next look, or what is overdue.
    pub fn next(&self, limits: &Limits) -> Result<Duration, Overdue> {
        let now = self.now();
        let left = |since: u64, limit: Duration, why: Overdue| {
            let spent = Duration::from_millis(now.saturating_sub(since));
            limit.checked_sub(spent).filter(|d| !d.is_zero()).ok_or(why)
        };
        let only_preface = self.multiplexed.load(Relaxed) && !self.any_request.load(Relaxed);
        if !self.any_read.load(Relaxed) || only_preface {
            let first = left(0, limits.first_byte, Overdue::FirstByte)?;
            return Ok(first.min(limits.head).min(limits.write_stall));
        }
        let blocked = self.blocked_since.load(Relaxed);
        let mut wait = limits.write_stall;
        if blocked != NEVER {
            wait = left(blocked, limits.write_stall, Overdue::Write)?;
        }
        let untaken = self
            .untaken
            .lock()
            .answers
            .values()
            .map(|(_, by)| *by)
            .min();
        if let Some(by) = untaken {
            let grace = Duration::from_millis(by.saturating_sub(now));
            if grace.is_zero() {
                wait = wait.min(left(by, limits.write_stall, Overdue::Write)?);
            }
            wait = wait.min(grace + limits.write_stall);
        }
        if self.requests.load(Relaxed) > 0 {
            return Ok(wait);
        }
        let head = self.head_since.load(Relaxed);
        if head != NEVER {
            return Ok(wait.min(left(head, limits.head, Overdue::Head)?));
        }
        let idle = left(self.idle_since.load(Relaxed), limits.idle, Overdue::Idle)?;
        Ok(wait.min(idle).min(limits.head).min(QUIET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_model::Timestamp;
    use floe_world::clock::Manual;

    fn subject() -> (Arc<Manual>, Activity, Limits) {
        let clock = Arc::new(Manual::at(Timestamp(0)));
        let activity = Activity::new(clock.clone());
        (clock, activity, Limits::default())
    }

    #[test]
    fn silence_after_the_connection_is_overdue_at_the_first_byte_limit() {
        let (clock, activity, limits) = subject();
        assert!(activity.next(&limits).is_ok());
        clock.advance(limits.first_byte);
        assert_eq!(activity.next(&limits), Err(Overdue::FirstByte));
    }

    #[test]
    fn a_head_that_drips_is_overdue_however_often_a_byte_comes() {
        let (clock, activity, limits) = subject();
        for _ in 0..10 {
            activity.read(b"G");
            assert!(activity.next(&limits).is_ok());
            clock.advance(limits.head / 10);
        }
        assert_eq!(activity.next(&limits), Err(Overdue::Head));
    }

    #[test]
    fn a_request_in_flight_is_never_idle() {
        let (clock, activity, limits) = subject();
        activity.read(b"GET");
        activity.request_began();
        clock.advance(limits.idle * 2);
        assert!(activity.next(&limits).is_ok());
        activity.request_ended();
        assert!(activity.next(&limits).is_ok());
        clock.advance(limits.idle);
        assert_eq!(activity.next(&limits), Err(Overdue::Idle));
    }

    #[test]
    fn an_answer_that_is_not_taken_is_overdue_even_with_a_request_in_flight() {
        let (clock, activity, limits) = subject();
        activity.read(b"GET");
        activity.request_began();
        activity.write(true);
        clock.advance(limits.write_stall / 2);
        activity.write(true);
        assert_eq!(activity.next(&limits), Ok(limits.write_stall / 2));
        clock.advance(limits.write_stall / 2);
        assert_eq!(activity.next(&limits), Err(Overdue::Write));
        activity.write(false);
        assert!(activity.next(&limits).is_ok());
    }

    #[test]
    fn an_answer_of_http2_held_back_by_its_window_is_overdue_however_busy_the_connection_is() {
        let (clock, activity, limits) = subject();
        activity.read(b"PRI * HTTP/2.0");
        let mut owed = Vec::new();
        for _ in 0..10 {
            activity.request_began();
            owed.push(activity.answer_began(64_000));
        }
        for _ in 0..limits.write_stall.as_secs() {
            assert!(activity.next(&limits).is_ok());
            activity.write(false);
            clock.advance(Duration::from_secs(1));
        }
        // The time of one stall is over, that of the first answer's bytes is not.
        assert_eq!(activity.next(&limits), Ok(Duration::from_secs(1)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(activity.next(&limits), Err(Overdue::Write));
        // Those behind it have the time of all bytes before them.
        activity.answer_ended(owed[0].as_ref().unwrap());
        assert_eq!(activity.next(&limits), Ok(Duration::from_secs(1)));
        for owed in owed.drain(1..) {
            activity.answer_ended(&owed.unwrap());
        }
        assert!(activity.answer_began(0).is_none());
        assert!(activity.next(&limits).is_ok());
    }

    #[test]
    fn a_connection_is_quiet_a_moment_after_its_last_answer_and_not_within_a_head() {
        let (clock, activity, _) = subject();
        activity.read(b"GET");
        clock.advance(QUIET);
        assert!(!activity.is_quiet());
        activity.request_began();
        clock.advance(QUIET);
        assert!(!activity.is_quiet());
        activity.request_ended();
        assert!(!activity.is_quiet());
        clock.advance(QUIET);
        assert!(activity.is_quiet());
    }

    #[test]
    fn pings_of_http2_are_not_a_head() {
        let (clock, activity, limits) = subject();
        activity.read(b"PRI * HTTP/2.0");
        activity.request_began();
        activity.request_ended();
        clock.advance(limits.head * 2);
        activity.read(b"ping");
        assert!(activity.next(&limits).is_ok());
    }

    #[test]
    fn http2_without_a_request_is_overdue_as_silence_is_whatever_else_it_says() {
        let (clock, activity, limits) = subject();
        for _ in 0..10 {
            activity.read(b"PRI * HTTP/2.0");
            assert!(activity.next(&limits).is_ok());
            clock.advance(limits.first_byte / 10);
        }
        assert_eq!(activity.next(&limits), Err(Overdue::FirstByte));
        activity.request_began();
        activity.request_ended();
        assert!(activity.next(&limits).is_ok());
    }

    #[test]
    fn who_has_asked_nothing_for_the_longest_goes_first_and_who_is_being_answered_last() {
        let (clock, answered, _) = subject();
        clock.advance(QUIET);
        let silent = Activity::new(clock.clone());
        clock.advance(QUIET);
        let new = Activity::new(clock.clone());
        answered.request_began();
        assert!(silent.standing() < new.standing());
        assert!(new.standing() < answered.standing());
        clock.advance(QUIET);
        silent.request_began();
        silent.request_ended();
        answered.request_ended();
        assert!(new.standing() < silent.standing());
        assert!(new.standing() < answered.standing());
    }
}
