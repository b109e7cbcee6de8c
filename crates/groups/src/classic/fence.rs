//! Who may act: the checks of everything a member does after it joined.

use std::time::Duration;

use super::{Caller, Group, State};
use crate::{GenerationId, InstanceId, MemberId, Refusal};

impl Group {
    /// Heartbeat: a sign of life, answered with whether to go on.
    pub fn heartbeat(&mut self, now: Duration, caller: &Caller) -> Result<(), Refusal> {
        self.check_caller(caller)?;
        self.touch(now, &caller.member_id);
        match self.state {
            State::Preparing { .. } => Err(Refusal::RebalanceInProgress),
            State::Empty | State::Completing | State::Stable => Ok(()),
        }
    }

    /// Whether a commit by this caller is to be stored; a member's is also a sign of life.
    ///
    /// A client without membership may commit while nobody else is in charge of the group's positions.
    pub fn check_commit(&mut self, now: Duration, caller: &Caller) -> Result<(), Refusal> {
        let is_simple = caller.generation < GenerationId(0);
        if is_simple && self.state == State::Empty {
            return Ok(());
        }
        if is_simple && caller.member_id.is_empty() && caller.instance_id.is_none() {
            return Err(Refusal::UnknownMember);
        }
        self.check_caller(caller)?;
        self.touch(now, &caller.member_id);
        match self.state {
            State::Completing => Err(Refusal::RebalanceInProgress),
            State::Empty | State::Preparing { .. } | State::Stable => Ok(()),
        }
    }

    pub(super) fn check_caller(&self, caller: &Caller) -> Result<(), Refusal> {
        self.check_member(&caller.member_id, caller.instance_id.as_ref())?;
        if caller.generation != self.generation {
            return Err(Refusal::IllegalGeneration);
        }
        Ok(())
    }

    /// The member of this id, and for a static one that no other has taken its instance id over.
    pub(super) fn check_member(
        &self,
        member_id: &MemberId,
        instance_id: Option<&InstanceId>,
    ) -> Result<(), Refusal> {
        if let Some(instance_id) = instance_id {
            match self.statics.get(instance_id) {
                None => return Err(Refusal::UnknownMember),
                Some(owner) if owner != member_id => return Err(Refusal::FencedInstance),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) {
            Ok(())
        } else {
            Err(Refusal::UnknownMember)
        }
    }

    fn touch(&mut self, now: Duration, member_id: &MemberId) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.touch(now);
        }
    }
}
