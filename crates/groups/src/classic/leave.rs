//! LeaveGroup, and every other way in which a member goes.

use std::time::Duration;

use super::{Answer, Group, Leaving, State, Ticket};
use crate::{MemberId, Refusal};

impl Group {
    /// Members go, by their own will or an operator's (KIP-345: by instance id alone). One result each, in order.
    pub fn leave(&mut self, now: Duration, leaving: &[Leaving]) -> Vec<Result<(), Refusal>> {
        let mut gone = Vec::new();
        let results = leaving
            .iter()
            .map(|one| {
                if one.instance_id.is_none() && self.pending.remove(&one.member_id).is_some() {
                    return Ok(());
                }
                let id = self.leaving_id(one)?;
                self.remove(&id);
                gone.push(id);
                Ok(())
            })
            .collect();
        if gone.is_empty() {
            self.complete_if_all_joined(now);
        } else {
            self.go_on_without(now);
        }
        results
    }

    fn leaving_id(&self, one: &Leaving) -> Result<MemberId, Refusal> {
        let id = match &one.instance_id {
            Some(instance_id) => {
                let owner = self
                    .statics
                    .get(instance_id)
                    .ok_or(Refusal::UnknownMember)?;
                if !one.member_id.is_empty() && one.member_id != *owner {
                    return Err(Refusal::FencedInstance);
                }
                owner
            }
            None => &one.member_id,
        };
        if self.members.contains_key(id) {
            Ok(id.clone())
        } else {
            Err(Refusal::UnknownMember)
        }
    }

    /// Nobody waits any longer for the answer to this ticket: the connection it would go over is gone. The member
    /// has its session time-out to come back.
    pub fn abandon(&mut self, now: Duration, ticket: Ticket) {
        for member in self.members.values_mut() {
            let waits = [&mut member.joining, &mut member.syncing];
            for wait in waits {
                if *wait == Some(ticket) {
                    *wait = None;
                    member.alive_until = now + member.session_timeout;
                }
            }
        }
    }

    pub(super) fn remove_all(&mut self, now: Duration, ids: &[MemberId]) {
        for id in ids {
            self.remove(id);
        }
        if !ids.is_empty() {
            self.go_on_without(now);
        }
    }

    pub(super) fn remove(&mut self, id: &MemberId) {
        let Some(member) = self.members.remove(id) else {
            return;
        };
        if let Some(ticket) = member.joining {
            self.answers
                .push(Answer::Joined(ticket, Err(Refusal::UnknownMember)));
        }
        if let Some(ticket) = member.syncing {
            self.answers
                .push(Answer::Synced(ticket, Err(Refusal::UnknownMember)));
        }
        if let Some(instance_id) = &member.instance_id {
            self.statics.remove(instance_id);
        }
        if self.leader.as_ref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    fn go_on_without(&mut self, now: Duration) {
        match self.state {
            State::Stable | State::Completing => self.prepare(now),
            State::Preparing { .. } => self.complete_if_all_joined(now),
            State::Empty => {}
        }
    }
}
