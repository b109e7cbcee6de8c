//! A wish that the controller should end a generation, said again until the catalog has.

use std::time::Duration;

use floe_model::LeaderEpoch;

use super::{Command, Why};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    epoch: LeaderEpoch,
    why: Why,
    said_at: Duration,
}

impl Wish {
    pub(crate) fn say(epoch: LeaderEpoch, why: Why, now: Duration, out: &mut Vec<Command>) -> Self {
        out.push(Command::AskForSeal { epoch, why });
        Self::later(epoch, why, now)
    }

    /// To be said if nothing comes of it by itself.
    pub(crate) fn later(epoch: LeaderEpoch, why: Why, now: Duration) -> Self {
        Self {
            epoch,
            why,
            said_at: now,
        }
    }

    pub(crate) fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// The one that was to hear it may be gone.
    pub(crate) fn again(&mut self, now: Duration, after: Duration, out: &mut Vec<Command>) {
        if now >= self.said_at + after {
            *self = Self::say(self.epoch, self.why, now, out);
        }
    }
}
