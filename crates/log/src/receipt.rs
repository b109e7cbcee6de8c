//! The promise of a flush: one value, set once, awaited or waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

use crate::Failure;

/// Resolves when what was asked for is on stable storage and in effect.
#[derive(Debug)]
pub struct Receipt<T = ()>(Arc<Cell<T>>);

/// The side that resolves a [`Receipt`]; dropped unresolved, it resolves with a failure.
#[derive(Debug)]
pub(crate) struct Promise<T = ()>(Arc<Cell<T>>);

#[derive(Debug)]
struct Cell<T> {
    state: Mutex<State<T>>,
    set: Condvar,
}

#[derive(Debug)]
struct State<T> {
    value: Option<Result<T, Failure>>,
    waker: Option<Waker>,
}

/// A promise and its receipt.
pub(crate) fn promise<T>() -> (Promise<T>, Receipt<T>) {
    let cell = Arc::new(Cell {
        state: Mutex::new(State {
            value: None,
            waker: None,
        }),
        set: Condvar::new(),
    });
    (Promise(Arc::clone(&cell)), Receipt(cell))
}

impl<T> Promise<T> {
    pub(crate) fn resolve(self, value: Result<T, Failure>) {
        self.set(value);
    }

    fn set(&self, value: Result<T, Failure>) {
        let mut state = self.0.state.lock();
        if state.value.is_some() {
            return;
        }
        state.value = Some(value);
        let waker = state.waker.take();
        drop(state);
        self.0.set.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.set(Err(Failure::closed()));
    }
}

impl<T> Receipt<T> {
    /// Blocks until resolved. Not for a thread of the runtime.
    pub fn wait(self) -> Result<T, Failure> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.value.take() {
                return value;
            }
            self.0.set.wait(&mut state);
        }
    }

    /// Whether it has resolved.
    pub fn is_resolved(&self) -> bool {
        self.0.state.lock().value.is_some()
    }
}

impl<T> Future for Receipt<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.state.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Failure {
    /// What a promise that nobody can keep any more resolves with.
    pub(crate) fn closed() -> Self {
        Self {
            action: "use",
            path: std::path::PathBuf::from("the log"),
            source: Arc::new(std::io::Error::new(
                std::io::ErrorKind::BrokenPipe,
                "it is closed",
            )),
        }
    }
}
