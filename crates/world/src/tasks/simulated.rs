//! Processes that are simulated: all of them in one thread, one thing at a time, in an order that the caller chooses.
//!
//! ```text
//! Executor::run_one(choose) ─► one poll of a task, or one step of a part, or time goes on to the next timer
//! ```
//!
//! Guarantees: what happens depends on what was started and on the choices alone: tasks are kept by number, and in which order they
//! were woken plays no part. Time goes on only when the caller says so or when nothing else can. A process that has ended runs
//! nothing any more, not even what its own end would start.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use super::Step;
use super::handle::{Handle, Slot};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Body = Box<dyn FnMut() -> Step + Send>;

/// How long the steps of parts take: says when a part that has something to look at takes its next step, `None` to let it hang
/// until it is asked again by [`Executor::resume`].
pub type Pace = Box<dyn FnMut(u64, &'static str, Duration) -> Option<Duration> + Send>;

thread_local! {
    static CURRENT: RefCell<Option<Process>> = const { RefCell::new(None) };
}

/// The process whose code runs.
pub(crate) fn current() -> Option<Process> {
    CURRENT.with_borrow(Clone::clone)
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// A task of this process was polled.
    Task(u64),
    /// A part of this process took a step.
    Part(u64, &'static str, Step),
    /// Time has gone on.
    Time,
    /// Nothing is ready, and no timer runs.
    Nothing,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Executor(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    pace: Mutex<Pace>,
}

#[derive(Default)]
struct State {
    now: Duration,
    /// Numbers of processes, tasks, parts and timers.
    next: u64,
    processes: BTreeSet<u64>,
    tasks: BTreeMap<u64, Task>,
    ready: BTreeSet<u64>,
    parts: BTreeMap<u64, Part>,
    timers: BTreeMap<(Duration, u64), Option<Waker>>,
}

struct Task {
    process: u64,
    /// `None` while it is being polled.
    work: Option<Work>,
}

struct Part {
    process: u64,
    name: &'static str,
    /// `None` while it takes a step.
    body: Option<Body>,
    due: Due,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Nothing has happened since it found nothing to do.
    Never,
    At(Duration),
    /// It takes no step until it may.
    Hangs,
}

/// A simulated process: what is started within it ends with it. Cheap to clone.
#[derive(Clone)]
pub struct Process {
    executor: Weak<Shared>,
    number: u64,
}

impl Executor {
    /// Nothing runs yet; it is time 0.
    pub fn new(pace: Pace) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            pace: Mutex::new(pace),
        }))
    }

    /// A new process.
    pub fn process(&self) -> Process {
        let mut state = self.0.state.lock();
        let number = state.number();
        state.processes.insert(number);
        Process {
            executor: Arc::downgrade(&self.0),
            number,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Duration {
        self.0.state.lock().now
    }

    /// Time goes on to `until`: timers up to there run out.
    pub fn advance(&self, until: Duration) {
        let mut state = self.0.state.lock();
        state.now = state.now.max(until);
        let now = state.now;
        let run_out = state.timers.range_mut(..=(now, u64::MAX));
        let wakers: Vec<Waker> = run_out.filter_map(|(_, waker)| waker.take()).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// When the next timer runs out or the next part takes a step, if nothing happens before. Now, if something is ready.
    pub fn next_at(&self) -> Option<Duration> {
        let state = self.0.state.lock();
        if !state.ready.is_empty() {
            return Some(state.now);
        }
        state.next_at().map(|at| at.max(state.now))
    }

    /// One thing happens: `choose` says which of so many. Time goes on to what is next if nothing is ready, not beyond `until`.
    pub fn run_one(&self, until: Duration, choose: &mut dyn FnMut(usize) -> usize) -> Ran {
        let state = self.0.state.lock();
        let due = state.due();
        let count = state.ready.len() + due.len();
        if count == 0 {
            let next = state.next_at();
            drop(state);
            return match next {
                Some(at) if at <= until => {
                    self.advance(at);
                    Ran::Time
                }
                _ => Ran::Nothing,
            };
        }
        let chosen = choose(count);
        let task = state.ready.iter().nth(chosen).copied();
        let part = chosen.checked_sub(state.ready.len()).map(|n| due[n]);
        drop(state);
        match (task, part) {
            (Some(task), _) => self.poll(task),
            (None, Some(part)) => self.step(part),
            (None, None) => panic!("choice {chosen} of {count}"),
        }
    }

    /// Parts that hang are asked for their pace again.
    pub fn resume(&self) {
        let mut hanging = Vec::new();
        for (number, part) in &mut self.0.state.lock().parts {
            if part.due == Due::Hangs {
                part.due = Due::Never;
                hanging.push(*number);
            }
        }
        self.0.look(hanging.into_iter());
    }

    fn poll(&self, number: u64) -> Ran {
        let mut state = self.0.state.lock();
        state.ready.remove(&number);
        let task = state.tasks.get_mut(&number).expect("what is ready is here");
        let process = task.process;
        let work = task.work.take();
        drop(state);
        let mut work = work.expect("nothing polls a task while it is polled");
        let waker = Waker::from(Arc::new(Wakes {
            executor: Arc::downgrade(&self.0),
            task: number,
        }));
        let polled = self.of(process).enter(|| {
            let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                drop(std::mem::replace(
                    &mut work,
                    Box::pin(std::future::pending()),
                ));
            }
            polled
        });
        let mut state = self.0.state.lock();
        match polled {
            Poll::Ready(()) => {
                state.tasks.remove(&number);
                state.ready.remove(&number);
            }
            Poll::Pending => {
                if let Some(task) = state.tasks.get_mut(&number) {
                    task.work = Some(work);
                }
            }
        }
        drop(state);
        self.0.happened_in(process);
        Ran::Task(process)
    }

    fn step(&self, number: u64) -> Ran {
        let mut state = self.0.state.lock();
        let part = state.parts.get_mut(&number).expect("what is due is here");
        part.due = Due::Never;
        let (process, name) = (part.process, part.name);
        let body = part.body.take();
        drop(state);
        let mut body = body.expect("nothing steps a part while it takes a step");
        let step = self.of(process).enter(&mut body);
        let mut state = self.0.state.lock();
        if let Some(part) = state.parts.get_mut(&number) {
            part.body = Some(body);
        }
        drop(state);
        if step == Step::Worked {
            self.0.happened_in(process);
        }
        Ran::Part(process, name, step)
    }

    fn of(&self, number: u64) -> Process {
        Process {
            executor: Arc::downgrade(&self.0),
            number,
        }
    }
}

impl Shared {
    /// The parts of a process look whether there is something to do.
    fn happened_in(&self, process: u64) {
        let state = self.state.lock();
        let of_process = state
            .parts
            .iter()
            .filter(|(_, part)| part.process == process);
        let parts: Vec<u64> = of_process.map(|(number, _)| *number).collect();
        drop(state);
        self.look(parts.into_iter());
    }

    fn look(&self, parts: impl Iterator<Item = u64>) {
        let mut pace = self.pace.lock();
        let mut state = self.state.lock();
        let now = state.now;
        for number in parts {
            let Some(part) = state.parts.get_mut(&number) else {
                continue;
            };
            if part.due == Due::Never {
                let at = pace(part.process, part.name, now);
                part.due = at.map_or(Due::Hangs, Due::At);
            }
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Parts that may take a step now.
    fn due(&self) -> Vec<u64> {
        let due = self.parts.iter().filter(|(_, part)| match part.due {
            Due::At(at) => at <= self.now && part.body.is_some(),
            Due::Never | Due::Hangs => false,
        });
        due.map(|(number, _)| *number).collect()
    }

    fn next_at(&self) -> Option<Duration> {
        let parts = self.parts.values().filter_map(|part| match part.due {
            Due::At(at) => Some(at),
            Due::Never | Due::Hangs => None,
        });
        let armed = self.timers.iter().find(|(_, waker)| waker.is_some());
        parts.chain(armed.map(|((at, _), _)| *at)).min()
    }
}

impl Process {
    /// Its number: rises.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Runs code as its own.
    pub fn enter<R>(&self, code: impl FnOnce() -> R) -> R {
        struct Back(Option<Process>);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _back = Back(CURRENT.replace(Some(self.clone())));
        code()
    }

    /// Starts a task.
    pub fn spawn<F>(&self, task: F) -> Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (handle, slot) = Handle::simulated();
        let work = Box::pin(async move { Slot::give(&slot, task.await) });
        if let Some(executor) = self.executor.upgrade() {
            let mut state = executor.state.lock();
            if state.processes.contains(&self.number) {
                let number = state.number();
                let process = self.number;
                let work = Some(work as Work);
                state.tasks.insert(number, Task { process, work });
                state.ready.insert(number);
                return handle;
            }
        }
        // Order: dropped without a lock; what it holds may have a word to say.
        drop(work);
        handle
    }

    pub(super) fn part(&self, name: &'static str, body: Body) {
        let Some(executor) = self.executor.upgrade() else {
            return;
        };
        let mut state = executor.state.lock();
        if !state.processes.contains(&self.number) {
            return;
        }
        let number = state.number();
        let part = Part {
            process: self.number,
            name,
            body: Some(body),
            due: Due::Never,
        };
        state.parts.insert(number, part);
        drop(state);
        executor.look(std::iter::once(number));
    }

    /// It runs no more, from one moment to the next: all it had in memory is dropped.
    pub fn end(&self) {
        let Some(executor) = self.executor.upgrade() else {
            return;
        };
        let mut state = executor.state.lock();
        state.processes.remove(&self.number);
        let tasks: Vec<Task> = state
            .tasks
            .extract_if(.., |_, task| task.process == self.number)
            .map(|(_, task)| task)
            .collect();
        let parts: Vec<Part> = state
            .parts
            .extract_if(.., |_, part| part.process == self.number)
            .map(|(_, part)| part)
            .collect();
        let State {
            ready, tasks: left, ..
        } = &mut *state;
        ready.retain(|number| left.contains_key(number));
        drop(state);
        self.enter(|| drop((tasks, parts)));
    }
}

struct Wakes {
    executor: Weak<Shared>,
    task: u64,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(executor) = self.executor.upgrade() else {
            return;
        };
        let mut state = executor.state.lock();
        if state.tasks.contains_key(&self.task) {
            state.ready.insert(self.task);
        }
    }
}

/// Runs out at a time.
pub(crate) struct Timer {
    executor: Weak<Shared>,
    key: (Duration, u64),
}

impl Timer {
    /// Of the process whose code runs.
    pub(crate) fn after(process: &Process, wait: Duration) -> Self {
        let executor = Weak::clone(&process.executor);
        let key = executor.upgrade().map_or((Duration::MAX, 0), |executor| {
            let mut state = executor.state.lock();
            let key = (state.now.saturating_add(wait), state.number());
            state.timers.insert(key, None);
            key
        });
        Self { executor, key }
    }

    pub(crate) fn is_elapsed(&self) -> bool {
        let executor = self.executor.upgrade();
        executor.is_some_and(|executor| executor.state.lock().now >= self.key.0)
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let Some(executor) = self.executor.upgrade() else {
            return Poll::Pending;
        };
        let mut state = executor.state.lock();
        if state.now >= self.key.0 {
            return Poll::Ready(());
        }
        state.timers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(executor) = self.executor.upgrade() {
            let waker = executor.state.lock().timers.remove(&self.key);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests;
