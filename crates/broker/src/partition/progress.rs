//! The commit offset of a generation and those who wait for it.
//!
//! Guarantees: reading the commit offset takes no lock; everyone who waits for an offset is woken once it is reached, in one sweep
//! per flush; a waiter that goes away leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use floe_model::Offset;
use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub(crate) struct Progress {
    committed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By the commit offset waited for, then by number.
    waiting: BTreeMap<(Offset, u64), Waker>,
    next: u64,
    ended: Option<Ended>,
}

/// Why the commit offset will not move any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The topic was deleted.
    Deleted,
    /// The generation was sealed: what became of the rest its successor knows.
    Moved,
    /// The node stops, or its log failed.
    Stopping,
}

/// A place among the waiters.
pub(crate) type Ticket = (Offset, u64);

impl Progress {
    pub(crate) fn new(start: Offset) -> Self {
        Self {
            committed: AtomicU64::new(start.0),
            state: Mutex::new(State {
                waiting: BTreeMap::new(),
                next: 0,
                ended: None,
            }),
        }
    }

    /// First offset not committed.
    pub(crate) fn committed(&self) -> Offset {
        Offset(self.committed.load(Ordering::Acquire))
    }

    /// Why it will not move any more, if so.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.state.lock().ended
    }

    /// Everything below `committed` is committed. Never goes back.
    pub(crate) fn advance(&self, committed: Offset) {
        let mut state = self.state.lock();
        if state.ended.is_some() || committed <= self.committed() {
            return;
        }
        self.committed.store(committed.0, Ordering::Release);
        let later = state.waiting.split_off(&(committed.plus(1), 0));
        let reached = std::mem::replace(&mut state.waiting, later);
        drop(state);
        reached.into_values().for_each(Waker::wake);
    }

    /// It will not move any more: wakes everyone.
    pub(crate) fn end(&self, why: Ended) {
        let mut state = self.state.lock();
        state.ended.get_or_insert(why);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Whether the commit offset has reached `target`; if not, the waker is kept until it has. `ticket` is the waiter's
    /// place, to be given again at the next poll and to [`Progress::forget`].
    pub(crate) fn poll_reached(
        &self,
        target: Offset,
        ticket: &mut Option<Ticket>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Ended>> {
        if self.committed() >= target {
            // The sweep that moved it there takes the place away.
            *ticket = None;
            return Poll::Ready(Ok(()));
        }
        let mut state = self.state.lock();
        if self.committed() >= target {
            *ticket = None;
            return Poll::Ready(Ok(()));
        }
        if let Some(ended) = state.ended {
            return Poll::Ready(Err(ended));
        }
        let place = *ticket.get_or_insert((target, state.next));
        state.next += 1;
        state.waiting.insert(place, context.waker().clone());
        Poll::Pending
    }

    /// The waiter goes away.
    pub(crate) fn forget(&self, ticket: Option<Ticket>) {
        if let Some(place) = ticket {
            self.state.lock().waiting.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn progress() -> Progress {
        Progress::new(Offset(10))
    }

    #[test]
    fn a_sweep_wakes_those_it_reaches_and_no_others() {
        let progress = progress();
        let [near, far] = [(); 2].map(|()| Arc::new(Count::default()));
        let [near_waker, far_waker] = [&near, &far].map(|count| Waker::from(Arc::clone(count)));
        let (mut a, mut b) = (None, None);
        let poll = |target, ticket: &mut _, waker| {
            progress.poll_reached(Offset(target), ticket, &mut Context::from_waker(waker))
        };
        assert!(poll(12, &mut a, &near_waker).is_pending());
        assert!(poll(13, &mut b, &far_waker).is_pending());
        progress.advance(Offset(12));
        assert_eq!(near.0.load(Ordering::SeqCst), 1);
        assert_eq!(far.0.load(Ordering::SeqCst), 0);
        assert_eq!(poll(12, &mut a, &near_waker), Poll::Ready(Ok(())));
        assert!(poll(13, &mut b, &far_waker).is_pending());
        progress.end(Ended::Deleted);
        assert_eq!(far.0.load(Ordering::SeqCst), 1);
        assert_eq!(
            poll(13, &mut b, &far_waker),
            Poll::Ready(Err(Ended::Deleted))
        );
    }

    #[test]
    fn a_waiter_that_goes_away_leaves_nothing_behind() {
        let progress = progress();
        let mut ticket = None;
        let mut context = Context::from_waker(Waker::noop());
        assert!(
            progress
                .poll_reached(Offset(11), &mut ticket, &mut context)
                .is_pending()
        );
        assert!(
            progress
                .poll_reached(Offset(11), &mut ticket, &mut context)
                .is_pending()
        );
        assert_eq!(progress.state.lock().waiting.len(), 1);
        progress.forget(ticket);
        assert_eq!(progress.state.lock().waiting.len(), 0);
    }
}
