//! Copying a generation from a member that holds it: to seal it (repair), or because a later generation's member lacks it
//! (backfill). The one that lacks pulls, so it sets the pace.
//!
//! Guarantees: takes only pieces of the member named in the order, only what follows its own records, never above the end in the
//! order; compares what lies below. Says "copied" when all up to the end is durable, and for a repair the fence too. A repair is
//! refused once the generation is known to be sealed.

use std::time::Duration;

use floe_model::LeaderEpoch;

use super::{Command, Replica};
use crate::held::{Held, Place};
use crate::message::{Order, Piece, Pull, Purpose, Refusal};
use crate::rule::{Rule, keeps};

/// One copy under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    order: Order,
    pulled_at: Duration,
}

impl Copying {
    pub(super) fn is_repair(&self) -> bool {
        self.order.purpose == Purpose::Repair
    }

    /// The fence that has to be durable with the copy.
    fn fence(&self) -> LeaderEpoch {
        match self.order.purpose {
            Purpose::Repair => self.order.epoch.next(),
            Purpose::Backfill => LeaderEpoch(0),
        }
    }
}

impl Replica {
    pub(super) fn copy_ordered(&mut self, order: Order, now: Duration, out: &mut Vec<Command>) {
        let epoch = order.epoch;
        let is_repair = order.purpose == Purpose::Repair;
        let is_damaged = self.held.get(&epoch).is_some_and(Held::is_damaged);
        let refusal = if order.to != self.me {
            Some(Refusal::Stranger)
        } else if is_damaged {
            Some(Refusal::Damaged)
        } else if is_repair && self.known > epoch {
            Some(Refusal::Fenced(self.known))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let ask = order.ask;
            out.push(Command::Refuse { ask, refusal });
            return;
        }
        if self.forgetting.contains(&epoch) {
            return;
        }
        // The copy carries the fence itself: a newcomer has none yet, and from here on the old leader is refused.
        if is_repair && self.fence < epoch.next() {
            self.raise_fence(epoch.next(), None, now, out);
        }
        let held = self.open(epoch, order.start, order.as_of, out);
        if !is_repair && held.seal(order.end) {
            let end = order.end;
            out.push(Command::Truncate { epoch, end });
        }
        if is_repair && held.accepted() > order.end && !keeps(Rule::NoTruncateToProposal) {
            held.cut(order.end);
            let end = order.end;
            out.push(Command::Truncate { epoch, end });
        }
        let pulled_at = now;
        self.copying.insert(epoch, Copying { order, pulled_at });
        self.pull(epoch, now, out);
        self.copy_on(epoch, out);
    }

    fn pull(&mut self, epoch: LeaderEpoch, now: Duration, out: &mut Vec<Command>) {
        let base = self.held[&epoch].accepted();
        let copying = self.copying.get_mut(&epoch).expect("a copy under way");
        copying.pulled_at = now;
        let order = copying.order;
        if base < order.end {
            out.push(Command::Pull(Pull {
                from: self.me,
                to: order.from,
                epoch,
                base,
                end: order.end,
            }));
        }
    }

    /// What was asked for may be lost.
    pub(super) fn pull_again(&mut self, now: Duration, out: &mut Vec<Command>) {
        let resend_after = self.settings.resend_after;
        let is_late = |copying: &Copying| now >= copying.pulled_at + resend_after;
        let late = self.copying.iter().filter(|(_, copying)| is_late(copying));
        for epoch in late.map(|(epoch, _)| *epoch).collect::<Vec<_>>() {
            self.pull(epoch, now, out);
        }
    }

    /// Gives only what is durable here, whole up to the end asked for.
    pub(super) fn pull_arrived(&self, pull: Pull, out: &mut Vec<Command>) {
        let Some((start, durable)) = self.durable(pull.epoch) else {
            return;
        };
        if pull.to == self.me && pull.base >= start && pull.end <= durable {
            out.push(Command::Give(pull));
        }
    }

    pub(super) fn piece_arrived(&mut self, piece: &Piece, now: Duration, out: &mut Vec<Command>) {
        let epoch = piece.epoch;
        let Some(copying) = self.copying.get(&epoch) else {
            return;
        };
        let order = copying.order;
        // Rule: accepted only from the bytes of the holder that the order names.
        if piece.to != self.me || piece.from != order.from {
            return;
        }
        let held = self.held.get_mut(&epoch).expect("what is copied is held");
        match held.place(&piece.run) {
            Place::Differs(at) => {
                held.damaged();
                self.copying.remove(&epoch);
                let (ask, refusal) = (order.ask, Refusal::Damaged);
                out.push(Command::Damaged { epoch, at });
                out.push(Command::Refuse { ask, refusal });
            }
            // An answer to an earlier pull; this one's is still to come, or will be asked for again.
            Place::Gap | Place::Forgotten => {}
            Place::Follows(first) => {
                let below = piece.run.batches()[first..].iter();
                let below = below.take_while(|batch| batch.end <= order.end);
                let mut count = 0;
                for batch in below {
                    held.push(*batch);
                    count += 1;
                }
                if count > 0 {
                    out.push(Command::Append {
                        epoch,
                        first,
                        count,
                    });
                    self.pull(epoch, now, out);
                }
            }
        }
    }

    /// Whether the copy is whole and durable by now.
    pub(super) fn copy_on(&mut self, epoch: LeaderEpoch, out: &mut Vec<Command>) {
        let Some(copying) = self.copying.get(&epoch) else {
            return;
        };
        let order = copying.order;
        if self.held[&epoch].durable() < order.end || self.fence_flushed < copying.fence() {
            return;
        }
        self.copying.remove(&epoch);
        out.push(Command::Copied {
            from: self.me,
            ask: order.ask,
            epoch,
            end: order.end,
        });
    }
}
