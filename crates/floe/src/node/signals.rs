//! What the system tells a running node: SIGINT and SIGTERM ask it to stop.

use crate::exit::{Failure, Outcome};

/// Ends when the process is asked to stop; says by what.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on the signals are caught.
    pub(super) fn catch() -> Outcome<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let caught = |kind| {
            signal(kind).map_err(|error| Failure::failed(format!("cannot catch signals: {error}")))
        };
        Ok(Self {
            interrupt: caught(SignalKind::interrupt())?,
            terminate: caught(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Ends when the process is asked to stop.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// From now on Ctrl-C is caught.
    pub(super) fn catch() -> Outcome<Self> {
        Ok(Self)
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
