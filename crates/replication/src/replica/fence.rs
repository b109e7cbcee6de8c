//! Fences: how a replica ends its part in a generation.
//!
//! Guarantees: in force from the moment its record is handed to the log, so that whatever was accepted lies before it; answered
//! after its flush, with the accepted end of that moment; only by a member under the life that the generation names.

use std::time::Duration;

use floe_model::{LeaderEpoch, Offset};

use super::{Command, Replica};
use crate::Member;
use crate::message::{Ask, Fence, Refusal};
use crate::rule::{Rule, keeps};

/// A fence on its way to stable storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    number: u64,
    fence: LeaderEpoch,
    /// With the end of the generation when it was handed over. A fence that a repair carries is not answered.
    answer: Option<Due>,
}

/// The answer to a fence, once it is flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// As whom this replica was asked.
    from: Member,
    ask: Ask,
    epoch: LeaderEpoch,
    end: Offset,
}

impl Replica {
    pub(super) fn fence_asked(&mut self, asked: &Fence, now: Duration, out: &mut Vec<Command>) {
        let ask = asked.ask;
        // Rule WipedIsNoWitness: this life never held what that one did.
        if asked.to != self.me && keeps(Rule::WipedIsNoWitness) {
            let refusal = Refusal::Stranger;
            out.push(Command::Refuse { ask, refusal });
            return;
        }
        let epoch = asked.epoch;
        if self.known > epoch {
            let refusal = Refusal::Fenced(self.known);
            out.push(Command::Refuse { ask, refusal });
            return;
        }
        let held = self.held.get_mut(&epoch);
        if held.as_ref().is_some_and(|held| held.is_damaged()) {
            let refusal = Refusal::Damaged;
            out.push(Command::Refuse { ask, refusal });
            return;
        }
        if let Some(held) = held
            && !keeps(Rule::NoTruncateToCommit)
            && held.committed() < held.accepted()
        {
            let end = held.committed();
            held.cut(end);
            out.push(Command::Truncate { epoch, end });
        }
        // Rule FenceCoversPending: the record lies behind everything accepted so far, so its flush makes that durable too, and
        // the end to answer is the accepted one.
        let end = self
            .held
            .get(&epoch)
            .map_or(asked.start, crate::held::Held::accepted);
        let from = asked.to;
        let due = Due {
            from,
            ask,
            epoch,
            end,
        };
        self.raise_fence(epoch.next(), Some(due), now, out);
        if !keeps(Rule::FenceDurable) {
            out.push(Command::Fenced { from, ask, end });
        }
    }

    /// Hands a fence to the log. It is in force at once: a refusal too many is harmless, an acceptance too many is not.
    pub(super) fn raise_fence(
        &mut self,
        fence: LeaderEpoch,
        answer: Option<Due>,
        now: Duration,
        out: &mut Vec<Command>,
    ) {
        self.fence = self.fence.max(fence);
        let fence = self.fence;
        if let Some(leading) = &mut self.leading
            && leading.epoch() < fence
        {
            leading.fenced(fence, now);
        }
        let number = self.next_number();
        out.push(Command::Fence { fence, number });
        self.asked.push_back(Asked {
            number,
            fence,
            answer,
        });
    }

    /// Rule FenceDurable: only now is it answered.
    pub(super) fn fence_flushed(&mut self, number: u64, now: Duration, out: &mut Vec<Command>) {
        while let Some(asked) = self.asked.pop_front_if(|asked| asked.number <= number) {
            self.fence_flushed = self.fence_flushed.max(asked.fence);
            let Some(due) = asked.answer else {
                continue;
            };
            let (from, ask, end) = (due.from, due.ask, due.end);
            let held = self.held.get_mut(&due.epoch);
            if held.is_some_and(|held| held.flushed(end)) {
                self.durable_grew(due.epoch, now, out);
            }
            if keeps(Rule::FenceDurable) {
                out.push(Command::Fenced { from, ask, end });
            }
        }
        let waiting: Vec<_> = self.copying.keys().copied().collect();
        for epoch in waiting {
            self.copy_on(epoch, out);
        }
    }
}
