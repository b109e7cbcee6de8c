//! A leader's side of feeding one follower: session, window, what was sent and what is known to be durable there.
//!
//! Guarantees: at most one read of the log at a time and at most a window of bytes not known durable, so a slow follower costs
//! its own window and nothing else; what is sent in one session is in order and without gaps; answers to older
//! sessions, and answers overtaken by later ones, are not looked at.

use std::collections::VecDeque;
use std::time::Duration;

use floe_model::Offset;

use crate::Member;
use crate::message::{Answer, Session, Stamp};

/// How much sooner than all else the first that was sent is taken for lost.
const FIRST_SOONER: u32 = 8;

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) member: Member,
    pub(super) session: Session,
    /// First offset not sent in this session.
    pub(super) next: Offset,
    /// Durable there, as far as known.
    pub(super) durable: Offset,
    /// The commit offset last sent.
    pub(super) told: Offset,
    /// Sent and not known durable: where each part ends, and its bytes.
    in_flight: VecDeque<(Offset, usize)>,
    in_flight_bytes: usize,
    /// The driver reads and sends; it will say how far it came.
    pub(super) is_sending: bool,
    pub(super) is_connected: bool,
    /// Refused for good, or damaged: nothing is sent to it any more.
    is_out: bool,
    latest: Option<Stamp>,
    moved_at: Duration,
}

impl Link {
    pub(super) fn new(member: Member, start: Offset, now: Duration) -> Self {
        Self {
            member,
            session: Session(1),
            next: start,
            durable: start,
            told: start,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            is_sending: false,
            is_connected: true,
            is_out: false,
            latest: None,
            moved_at: now,
        }
    }

    /// Goes back, or on, to `from`, in a new session: whatever is under way of the old one counts no more.
    pub(super) fn restart(&mut self, from: Offset, now: Duration) {
        self.session = Session(self.session.0 + 1);
        self.next = from;
        self.in_flight.clear();
        self.in_flight_bytes = 0;
        self.is_sending = false;
        self.moved_at = now;
    }

    pub(super) fn leave_out(&mut self) {
        self.is_out = true;
    }

    /// Whether something may be sent to it now.
    pub(super) fn is_ready(&self) -> bool {
        self.is_connected && !self.is_out && !self.is_sending
    }

    pub(super) fn has_window(&self, window_bytes: usize) -> bool {
        self.in_flight_bytes < window_bytes
    }

    pub(super) fn sent(&mut self, end: Offset, bytes: usize, now: Duration) {
        self.is_sending = false;
        if end <= self.next {
            return;
        }
        if self.in_flight.is_empty() {
            self.moved_at = now;
        }
        self.next = end;
        self.in_flight.push_back((end, bytes));
        self.in_flight_bytes += bytes;
    }

    /// Whether the answer is of this session and later than those before. Rule: a leader counts an end only from an append of
    /// its own epoch and session.
    pub(super) fn is_current(&mut self, answer: &Answer) -> bool {
        if answer.session != self.session || self.latest >= Some(answer.stamp) {
            return false;
        }
        self.latest = Some(answer.stamp);
        true
    }

    pub(super) fn reported(&mut self, end: Offset, now: Duration) {
        while let Some((sent, bytes)) = self.in_flight.front().copied()
            && sent <= end
        {
            self.in_flight.pop_front();
            self.in_flight_bytes -= bytes;
            self.moved_at = now;
        }
        self.durable = end;
    }

    /// Whether there is something that time must bring on, the leader being at `end` and its commit offset at `shown`.
    pub(super) fn waits(&self, end: Offset, shown: Offset) -> bool {
        let has_more = self.next < end || self.told < shown;
        self.is_connected
            && !self.is_out
            && (!self.in_flight.is_empty() || has_more && !self.is_sending)
    }

    /// Nothing has come of what was sent for so long that it may be lost. A follower that has not answered yet may just not have
    /// known of the generation when it came.
    pub(super) fn is_stalled(&self, now: Duration, resend_after: Duration) -> bool {
        let resend_after = match self.latest {
            Some(_) => resend_after,
            None => resend_after / FIRST_SOONER,
        };
        self.is_connected
            && !self.is_out
            && !self.in_flight.is_empty()
            && now >= self.moved_at + resend_after
    }
}
