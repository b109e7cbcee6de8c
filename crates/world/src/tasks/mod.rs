//! Threads and tasks: started here and nowhere else.
//!
//! Guarantees: what is started while a task of a [simulated](Executor) process runs, or within [`Process::enter`], belongs to that
//! process and runs on its executor, one thing at a time; anything else runs on the machine.

mod handle;
mod simulated;

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

pub use handle::Handle;
pub use simulated::{Executor, Pace, Process, Ran};
pub(crate) use simulated::{Timer, current};

/// What one step of a [`part`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Worked,
    /// There is nothing to do until something else happens.
    Idle,
}

/// Starts a named operating system thread (the name shows in `top -H`).
pub fn thread<F>(name: &str, body: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
}

/// Whether threads are to be [parts](part) here.
pub fn is_simulated() -> bool {
    current().is_some()
}

/// What a thread would do, step by step, in a simulated process: done again as long as it works, and looked at again when
/// anything of that process has happened since.
///
/// # Panics
/// Outside of one.
pub fn part<F>(name: &'static str, step: F)
where
    F: FnMut() -> Step + Send + 'static,
{
    let process = current().expect("a part belongs to a simulated process");
    process.part(name, Box::new(step));
}

/// Starts a task on the current runtime.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that starts tasks"
)]
pub fn spawn<F>(task: F) -> Handle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current() {
        Some(process) => process.spawn(task),
        None => Handle::real(tokio::spawn(task)),
    }
}

/// Runs a blocking call on the runtime's small pool of threads for those.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that starts tasks"
)]
pub fn blocking<F, R>(call: F) -> Handle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    match current() {
        Some(process) => process.spawn(async move { call() }),
        None => Handle::real(tokio::task::spawn_blocking(call)),
    }
}
