//! What becomes of a task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Resolves to what the task gives. If the task panics, so does whoever waits; if its runtime ends before it, nothing comes.
/// Dropping it lets the task go on.
#[derive(Debug)]
pub struct Handle<T>(Kind<T>);

#[derive(Debug)]
enum Kind<T> {
    Real(tokio::task::JoinHandle<T>),
    Simulated(Arc<Mutex<Slot<T>>>),
}

/// Where a simulated task leaves what it gives.
#[derive(Debug)]
pub(super) struct Slot<T> {
    given: Option<T>,
    is_finished: bool,
    waker: Option<Waker>,
}

impl<T> Slot<T> {
    pub(super) fn give(slot: &Mutex<Self>, value: T) {
        let mut slot = slot.lock();
        slot.given = Some(value);
        slot.is_finished = true;
        let waker = slot.waker.take();
        drop(slot);
        waker.inspect(Waker::wake_by_ref);
    }
}

impl<T> Handle<T> {
    pub(super) fn real(handle: tokio::task::JoinHandle<T>) -> Self {
        Self(Kind::Real(handle))
    }

    pub(super) fn simulated() -> (Self, Arc<Mutex<Slot<T>>>) {
        let slot = Arc::new(Mutex::new(Slot {
            given: None,
            is_finished: false,
            waker: None,
        }));
        (Self(Kind::Simulated(Arc::clone(&slot))), slot)
    }

    /// What the task gives, or what it panicked with; whoever waits goes on.
    pub async fn join(&mut self) -> std::thread::Result<T> {
        std::future::poll_fn(|context| self.poll_joined(context)).await
    }

    fn poll_joined(&mut self, context: &mut Context<'_>) -> Poll<std::thread::Result<T>> {
        match &mut self.0 {
            Kind::Real(handle) => match Pin::new(handle).poll(context) {
                Poll::Ready(Ok(given)) => Poll::Ready(Ok(given)),
                Poll::Ready(Err(error)) => error
                    .try_into_panic()
                    .map_or(Poll::Pending, |panic| Poll::Ready(Err(panic))),
                Poll::Pending => Poll::Pending,
            },
            Kind::Simulated(slot) => {
                let mut slot = slot.lock();
                if let Some(given) = slot.given.take() {
                    return Poll::Ready(Ok(given));
                }
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether the task is over.
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Real(handle) => handle.is_finished(),
            Kind::Simulated(slot) => slot.lock().is_finished,
        }
    }
}

impl<T> Future for Handle<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.poll_joined(context).map(|joined| match joined {
            Ok(given) => given,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}
