//! SyncGroup: the leader brings the assignment, everybody gets its part.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Answer, Group, State, Sync, Synced, Ticket};
use crate::{MemberId, Refusal};

impl Group {
    /// A member asks for its part. Answered now, or when the leader has brought the assignment.
    pub fn sync(&mut self, now: Duration, ticket: Ticket, sync: Sync) {
        if let Err(refusal) = self.try_sync(now, ticket, sync) {
            self.answers.push(Answer::Synced(ticket, Err(refusal)));
        }
    }

    fn try_sync(&mut self, now: Duration, ticket: Ticket, sync: Sync) -> Result<(), Refusal> {
        self.check_caller(&sync.caller)?;
        let differs = |given: &Option<_>, ours| given.is_some() && *given != ours;
        if differs(&sync.protocol_type, self.protocol_type.clone())
            || differs(&sync.protocol, self.protocol.clone())
        {
            return Err(Refusal::InconsistentProtocol);
        }
        let id = sync.caller.member_id;
        let is_leader = self.leader.as_ref() == Some(&id);
        let member = self.members.get_mut(&id).ok_or(Refusal::UnknownMember)?;
        member.touch(now);
        match self.state {
            State::Empty => Err(Refusal::UnknownMember),
            State::Preparing { .. } => Err(Refusal::RebalanceInProgress),
            State::Stable => {
                member.has_synced = true;
                let synced = self.synced(&id);
                self.answers.push(Answer::Synced(ticket, Ok(synced)));
                Ok(())
            }
            State::Completing => {
                if is_leader {
                    self.check_assignments(&sync.assignments)?;
                }
                self.wait_for_assignment(ticket, &id);
                if is_leader {
                    self.assign(now, sync.assignments);
                }
                Ok(())
            }
        }
    }

    fn check_assignments(&self, assignments: &[(MemberId, bytes::Bytes)]) -> Result<(), Refusal> {
        let limit = self.settings.member_bytes_max;
        if assignments.iter().any(|(_, bytes)| bytes.len() > limit) {
            return Err(Refusal::MetadataTooLarge(limit));
        }
        Ok(())
    }

    fn wait_for_assignment(&mut self, ticket: Ticket, id: &MemberId) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.has_synced = true;
        if let Some(older) = member.syncing.replace(ticket) {
            self.answers
                .push(Answer::Synced(older, Err(Refusal::RebalanceInProgress)));
        }
    }

    fn assign(&mut self, now: Duration, assignments: Vec<(MemberId, bytes::Bytes)>) {
        let mut assignments: BTreeMap<_, _> = assignments.into_iter().collect();
        self.state = State::Stable;
        let mut waiting = Vec::new();
        for member in self.members.values_mut() {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
            if let Some(ticket) = member.syncing.take() {
                member.touch(now);
                waiting.push((ticket, member.id.clone()));
            }
        }
        for (ticket, id) in waiting {
            let answer = Answer::Synced(ticket, Ok(self.synced(&id)));
            self.answers.push(answer);
        }
    }

    fn synced(&self, id: &MemberId) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol: self.protocol.clone().unwrap_or_default(),
            assignment: self
                .members
                .get(id)
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
        }
    }

    pub(super) fn refuse_syncs(&mut self, refusal: &Refusal) {
        for member in self.members.values_mut() {
            if let Some(ticket) = member.syncing.take() {
                self.answers
                    .push(Answer::Synced(ticket, Err(refusal.clone())));
            }
        }
    }
}
