//! Taking the answers of reads from disk, side by side.
//!
//! Guarantees: a fetch that has bytes in hand never waits long for memory that others hold, so that fetches cannot wait for one
//! another in a ring: what is not there within a short while is left for the reader's next fetch. One with nothing in
//! hand waits longer, then answers empty.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use floe_log::{ColdRead, ReadError, Slices};
use floe_world::time::{Sleep, sleep};

/// For the first bytes.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// For the rest, once there are some: several reads of a slow disk.
const REST_WAIT: Duration = Duration::from_millis(100);

/// An answer, with the place of its part.
pub(super) type Answer = (usize, Result<Slices, ReadError>);

/// Awaits reads; `has_bytes`: others of the same fetch have given bytes already.
pub(super) async fn gather(reads: Vec<(usize, ColdRead)>, has_bytes: bool) -> Vec<Answer> {
    if reads.is_empty() {
        return Vec::new();
    }
    let wait = if has_bytes { REST_WAIT } else { FIRST_WAIT };
    let gather = Gather {
        reads,
        answers: Vec::new(),
        timeout: Box::pin(sleep(wait)),
        has_bytes,
    };
    gather.await
}

struct Gather {
    reads: Vec<(usize, ColdRead)>,
    answers: Vec<Answer>,
    timeout: Pin<Box<Sleep>>,
    has_bytes: bool,
}

impl Future for Gather {
    type Output = Vec<Answer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let answers = &mut this.answers;
        this.reads
            .retain_mut(|(place, read)| match Pin::new(read).poll(context) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    answers.push((*place, answer));
                    false
                }
            });
        if !this.has_bytes && !this.answers.is_empty() {
            this.has_bytes = true;
            this.timeout = Box::pin(sleep(REST_WAIT));
        }
        if this.reads.is_empty() || this.timeout.as_mut().poll(context).is_ready() {
            return Poll::Ready(std::mem::take(&mut this.answers));
        }
        Poll::Pending
    }
}
