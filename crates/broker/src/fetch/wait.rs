//! Waiting until one of several partitions moves, or time is up.
//!
//! Guarantees: no move after the given commit offsets is missed; nothing stays behind when the wait is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use floe_model::Offset;
use floe_world::time::Sleep;

use crate::partition::{Partition, Ticket};

/// Resolves when a commit offset is above the one seen, when a partition ends, or when `timeout` has elapsed.
pub(super) async fn moved_or(seen: &[(Arc<Partition>, Offset)], timeout: Pin<&mut Sleep>) {
    let tickets = seen.iter().map(|_| None).collect();
    Moved {
        seen,
        tickets,
        timeout,
    }
    .await;
}

struct Moved<'a> {
    seen: &'a [(Arc<Partition>, Offset)],
    tickets: Vec<Option<Ticket>>,
    timeout: Pin<&'a mut Sleep>,
}

impl Future for Moved<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.timeout.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut has_moved = false;
        for ((partition, committed), ticket) in this.seen.iter().zip(&mut this.tickets) {
            let progress = &partition.progress;
            has_moved |= progress
                .poll_reached(committed.plus(1), ticket, context)
                .is_ready();
            if has_moved {
                break;
            }
        }
        if has_moved {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Moved<'_> {
    fn drop(&mut self) {
        for ((partition, _), ticket) in self.seen.iter().zip(&self.tickets) {
            partition.progress.forget(*ticket);
        }
    }
}
