//! Waiting for time to pass: on the machine by the runtime's timers, in a [simulated](crate::tasks::Executor) process by its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::tasks::{Timer, current};

/// The time ran out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time ran out")]
pub struct Elapsed;

pin_project! {
    /// See [`sleep`].
    #[project = Projected]
    pub struct Sleep {
        #[pin]
        kind: Kind,
    }
}

pin_project! {
    #[project = ProjectedKind]
    enum Kind {
        Real { #[pin] sleep: tokio::time::Sleep },
        Simulated { timer: Timer },
    }
}

/// Resolves when so much time has passed.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that waits for time"
)]
pub fn sleep(wait: Duration) -> Sleep {
    let kind = match current() {
        Some(process) => Kind::Simulated {
            timer: Timer::after(&process, wait),
        },
        None => Kind::Real {
            sleep: tokio::time::sleep(wait),
        },
    };
    Sleep { kind }
}

impl Sleep {
    /// Whether the time has passed.
    pub fn is_elapsed(&self) -> bool {
        match &self.kind {
            Kind::Real { sleep } => sleep.is_elapsed(),
            Kind::Simulated { timer } => timer.is_elapsed(),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.project().kind.project() {
            ProjectedKind::Real { sleep } => sleep.poll(context),
            ProjectedKind::Simulated { timer } => timer.poll(context),
        }
    }
}

/// What the future gives, if it does within so much time; it has the first word.
pub async fn timeout<F: Future>(wait: Duration, future: F) -> Result<F::Output, Elapsed> {
    let sleep = sleep(wait);
    tokio::select! {
        biased;
        given = future => Ok(given),
        () = sleep => Err(Elapsed),
    }
}
