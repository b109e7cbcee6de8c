//! Batches that come from another copy: room is taken in the log before the machine decides, so that the log never refuses what the
//! machine has taken.
//!
//! Guarantees: nobody who hands in waits: where there is no room at once, a message waits in this partition's queue, and what comes
//! after it behind it. What waits keeps the memory that its sender may take here, and is bounded in number. What does
//! not hold together is dropped whole, before anything is decided.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use floe_log::format::batch::BatchHead;
use floe_log::{Admission, AppendError, Origin};
use floe_model::LeaderEpoch;
use floe_replication::message::{Append, Piece, Run};
use floe_replication::replica::Event;
use floe_world::tasks;

use super::{Machine, Replica};
use crate::peers::Batches;

/// Messages of one partition that may wait for room. Those with batches are bounded by the sender's memory long before.
const WAITING_MAX: usize = 1_024;

/// What came with batches.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// From a leader.
    Append(Append),
    /// From a holder.
    Piece(Piece),
}

/// Messages that wait for room in the log.
#[derive(Default)]
pub(super) struct Arriving {
    waiting: VecDeque<(Arrival, Batches)>,
    /// A task takes them in, one after another.
    is_waiting: bool,
}

/// The bytes of the message that the machine decides on.
pub(super) struct AtHand {
    batches: Batches,
    admission: Option<Admission>,
    origin: Origin,
}

impl Arrival {
    fn run(&self) -> (LeaderEpoch, &Run) {
        match self {
            Self::Append(append) => (append.epoch, &append.run),
            Self::Piece(piece) => (piece.epoch, &piece.run),
        }
    }

    fn with(&self, part: Run) -> Self {
        match self {
            Self::Append(append) => Self::Append(Append {
                run: part,
                ..append.clone()
            }),
            Self::Piece(piece) => Self::Piece(Piece {
                run: part,
                ..piece.clone()
            }),
        }
    }

    /// Whether these are the batches that it speaks of.
    fn is_of(&self, batches: &Batches) -> bool {
        let (epoch, run) = self.run();
        let mut base = run.base();
        let mut is_next = |(batch, bytes): (&floe_replication::message::Batch, Bytes)| {
            let whole = BatchHead::first(&bytes).filter(|head| head.bytes().len() == bytes.len());
            let is_same = whole.is_some_and(|head| {
                (head.base(), head.end(), head.epoch()) == (base.0, batch.end.0, epoch)
                    && head.crc() == batch.checksum.0
            });
            base = batch.end;
            is_same
        };
        run.batches().len() == batches.len()
            && run.batches().iter().zip(batches.iter()).all(&mut is_next)
    }
}

impl Replica {
    /// Takes a message with batches in, now or as soon as the log has room.
    pub(crate) fn arrived(&self, arrival: Arrival, batches: Batches) {
        if !arrival.is_of(&batches) {
            tracing::warn!(partition = %self.address, "a message of another node does not fit its batches");
            self.outside.metrics.dropped("mismatch");
            return;
        }
        {
            let mut arriving = self.arriving.lock();
            if arriving.is_waiting {
                if arriving.waiting.len() < WAITING_MAX {
                    arriving.waiting.push_back((arrival, batches));
                } else {
                    self.outside.metrics.dropped("no_room");
                }
                return;
            }
        }
        if batches.is_empty() {
            self.take_in(arrival, batches, None);
            return;
        }
        let Some(itself) = self.itself.upgrade() else {
            return;
        };
        let mut taking = Box::pin(admit(itself, arrival, batches));
        let Poll::Pending = taking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        else {
            return;
        };
        self.arriving.lock().is_waiting = true;
        let itself = self.itself.clone();
        tasks::spawn(async move {
            taking.await;
            while let Some(replica) = itself.upgrade()
                && let Some((arrival, batches)) = replica.next_arrival()
            {
                admit(replica, arrival, batches).await;
            }
        });
    }

    fn next_arrival(&self) -> Option<(Arrival, Batches)> {
        let mut arriving = self.arriving.lock();
        let next = arriving.waiting.pop_front();
        arriving.is_waiting = next.is_some();
        next
    }

    fn take_in(&self, arrival: Arrival, batches: Batches, admission: Option<Admission>) {
        let mut machine = self.machine.lock();
        let (event, origin) = match arrival {
            Arrival::Append(append) => (Event::AppendArrived(append), Origin::Leader),
            Arrival::Piece(piece) => (Event::PieceArrived(piece), Origin::Holder),
        };
        machine.at_hand = Some(AtHand {
            batches,
            admission,
            origin,
        });
        // What it opens is journaled before what follows in it.
        drop(self.pump(&mut machine, Some(event)));
        machine.at_hand = None;
    }

    /// Carries out an append of what is at hand.
    pub(super) fn append_at_hand(
        &self,
        machine: &mut Machine,
        epoch: LeaderEpoch,
        first: usize,
        count: usize,
    ) {
        let hand = machine.at_hand.take().expect("batches come with a message");
        let admission = hand.admission.expect("room was taken for them");
        let batches: Vec<Bytes> = hand.batches.iter().skip(first).take(count).collect();
        let appended =
            self.outside
                .log
                .append_as_is(&self.log, epoch, hand.origin, &batches, admission);
        match appended {
            // With a failed log the process is about to end; nothing of this is ever reported durable.
            Ok(_) | Err(AppendError::Poisoned) => {}
            // Invariant: the log takes what the machine has taken, or a fence would answer for what is not there.
            Err(error) => panic!("{} of epoch {epoch}: {error}", self.address),
        }
    }
}

/// Waits for room, then has the machine decide.
async fn admit(replica: Arc<Replica>, arrival: Arrival, batches: Batches) {
    let mut rest = VecDeque::from([(arrival, batches)]);
    while let Some((arrival, batches)) = rest.pop_front() {
        let (bytes, count) = (batches.bytes(), batches.len());
        if count == 0 {
            replica.take_in(arrival, batches, None);
            continue;
        }
        let log = &replica.outside.log;
        match log.admit(&replica.log, bytes, count).await {
            Ok(admission) => replica.take_in(arrival, batches, Some(admission)),
            Err(AppendError::TooLarge { .. }) if count > 1 => {
                let [front, back] = halves(&arrival, &batches);
                rest.push_front(back);
                rest.push_front(front);
            }
            Err(error) => {
                // Said again by who sent it; a full disk says so itself.
                tracing::debug!(partition = %replica.address, %error, "batches of another copy are not taken");
                replica.outside.metrics.dropped("no_room");
            }
        }
    }
}

/// More than one run of this log can hold: as if it had come in two messages.
fn halves(arrival: &Arrival, batches: &Batches) -> [(Arrival, Batches); 2] {
    let (_, run) = arrival.run();
    let half = batches.len() / 2;
    let (front, back) = run.batches().split_at(half);
    let last = front.last().expect("half of two or more is one or more");
    let runs = [
        Run::new(run.base(), run.previous(), front.to_vec()),
        Run::new(last.end, Some(last.checksum), back.to_vec()),
    ];
    let bytes: Vec<Bytes> = batches.iter().collect();
    let (front, back) = bytes.split_at(half);
    let parts = [front, back].map(|part| Batches::of(part.to_vec()));
    let mut parts = parts.into_iter();
    runs.map(|run| {
        let run = run.expect("a part of what rises rises");
        (arrival.with(run), parts.next().unwrap_or_default())
    })
}
