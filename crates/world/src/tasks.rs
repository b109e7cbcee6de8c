//! Threads and tasks: started here and nowhere else.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

/// Starts a named operating system thread (the name shows in `top -H`).
pub fn thread<F>(name: &str, body: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
}

/// Starts a task on the current runtime.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that starts tasks"
)]
pub fn spawn<F>(task: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(task)
}

/// Runs a blocking call on the runtime's small pool of threads for those.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that starts tasks"
)]
pub fn blocking<F, R>(call: F) -> tokio::task::JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    tokio::task::spawn_blocking(call)
}
