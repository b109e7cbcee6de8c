//! Time: one wall clock for record timestamps, one that never goes back for everything measured.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use floe_model::Timestamp;

use crate::tasks::Executor;

/// A source of time. Three implementations ship: [`System`], [`Manual`] and [`Simulated`].
pub trait Clock: Send + Sync + 'static {
    /// Wall clock, milliseconds since the Unix epoch. May jump.
    fn now(&self) -> Timestamp;
    /// Time since an arbitrary start; never goes back, counts through suspension.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug, Default)]
pub struct System;

impl Clock for System {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the wall clock"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp(since.as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// A clock that a test moves.
#[derive(Debug, Default)]
pub struct Manual {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicI64,
}

impl Manual {
    /// Starts at this wall time.
    pub fn at(wall: Timestamp) -> Self {
        Self {
            wall_ms: AtomicI64::new(wall.0),
            monotonic_ms: AtomicI64::new(0),
        }
    }

    /// Both clocks go on by `step`.
    pub fn advance(&self, step: Duration) {
        let ms = step.as_millis() as i64;
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The wall clock jumps, the other does not.
    pub fn jump(&self, wall: Timestamp) {
        self.wall_ms.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_ms.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::SeqCst) as u64)
    }
}

/// The clock of a simulated machine: the executor's time, and a wall clock that may be wrong.
pub struct Simulated {
    executor: Executor,
    wall_ms: AtomicI64,
}

impl Simulated {
    /// Shows this wall time at the executor's time 0.
    pub fn new(executor: Executor, wall: Timestamp) -> Self {
        Self {
            executor,
            wall_ms: AtomicI64::new(wall.0),
        }
    }

    /// The wall clock jumps by so many milliseconds.
    pub fn jump(&self, by_ms: i64) {
        self.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        let passed = self.executor.now().as_millis() as i64;
        Timestamp(self.wall_ms.load(Ordering::SeqCst) + passed)
    }

    fn monotonic(&self) -> Duration {
        self.executor.now()
    }
}
