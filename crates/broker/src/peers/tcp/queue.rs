//! Frames on their way to one node on one connection.
//!
//! Guarantees: bounded in bytes, counted from the hand-over until they are with the kernel; handing over never waits; one
//! frame always fits an empty queue. While a write runs the next ones gather, and leave together.

use std::collections::VecDeque;

use floe_wire::peer::frame::PREAMBLE_BYTES;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::peers::message::Drawn;

#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Drawn>,
    /// Of the frames here and of those that are being written.
    bytes: usize,
}

/// Bytes of a frame.
pub(super) fn bytes_of(frame: &Drawn) -> usize {
    PREAMBLE_BYTES + frame.head.len() + frame.body_bytes
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            filled: Notify::new(),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a frame, or says how many bytes wait.
    pub(super) fn push(&self, frame: Drawn) -> Result<(), usize> {
        let bytes = bytes_of(&frame);
        let mut state = self.state.lock();
        if state.bytes > 0 && state.bytes + bytes > self.limit {
            return Err(state.bytes);
        }
        state.bytes += bytes;
        state.frames.push_back(frame);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for a frame, then gives it with those behind it, up to about so many bytes and so many frames. Gives the bytes
    /// given. One caller.
    pub(super) async fn take(
        &self,
        into: &mut Vec<Drawn>,
        bytes_max: usize,
        frames_max: usize,
    ) -> usize {
        loop {
            let taken = self.take_now(into, bytes_max, frames_max);
            if taken > 0 {
                return taken;
            }
            self.filled.notified().await;
        }
    }

    fn take_now(&self, into: &mut Vec<Drawn>, bytes_max: usize, frames_max: usize) -> usize {
        let mut state = self.state.lock();
        let mut taken = 0;
        while taken < bytes_max && into.len() < frames_max {
            let Some(frame) = state.frames.pop_front() else {
                break;
            };
            taken += bytes_of(&frame);
            into.push(frame);
        }
        taken
    }

    /// So many of the bytes taken are written.
    pub(super) fn written(&self, bytes: usize) {
        self.state.lock().bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use floe_wire::peer::Kind;

    use super::*;

    fn frame(body_bytes: usize) -> Drawn {
        Drawn {
            kind: Kind::Consensus,
            head: Vec::new(),
            body: vec![Bytes::from(vec![0; body_bytes])],
            body_bytes,
        }
    }

    #[test]
    fn a_queue_is_full_at_its_limit_until_what_was_taken_is_written() {
        let queue = Queue::new(200);
        assert_eq!(queue.push(frame(76)), Ok(()));
        assert_eq!(queue.push(frame(76)), Ok(()));
        assert_eq!(queue.push(frame(0)), Err(200));
        let mut taken = Vec::new();
        assert_eq!(queue.take_now(&mut taken, 1, 9), 100);
        assert_eq!(queue.push(frame(0)), Err(200), "not written yet");
        queue.written(100);
        assert_eq!(queue.push(frame(76)), Ok(()));
        assert_eq!(queue.push(frame(0)), Err(200));
    }

    #[test]
    fn a_frame_above_the_limit_fits_an_empty_queue_alone() {
        let queue = Queue::new(200);
        assert_eq!(queue.push(frame(1000)), Ok(()));
        assert_eq!(queue.push(frame(0)), Err(1024));
    }

    #[test]
    fn frames_leave_in_order_and_no_more_at_once_than_asked() {
        let queue = Queue::new(1 << 20);
        for size in [1, 2, 3, 4] {
            queue.push(frame(size)).unwrap();
        }
        let sizes = |frames: &[Drawn]| frames.iter().map(|f| f.body_bytes).collect::<Vec<_>>();
        let mut taken = Vec::new();
        queue.take_now(&mut taken, usize::MAX, 2);
        assert_eq!(sizes(&taken), [1, 2]);
        taken.clear();
        queue.take_now(&mut taken, 1, 9);
        assert_eq!(sizes(&taken), [3]);
    }
}
