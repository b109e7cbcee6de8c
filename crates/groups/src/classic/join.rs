//! JoinGroup: new members, members that come back, static members that replace themselves.

use std::time::Duration;

use super::{Answer, Group, Join, Joined, JoinedMember, Member, State, Ticket};
use crate::{InstanceId, MemberId, Refusal};

/// More protocols than any client has assignors.
const PROTOCOLS_MAX: usize = 100;

impl Group {
    /// A member wants into the next generation. `fresh` makes a new member's id unique. Answered now or when the
    /// generation begins.
    pub fn join(&mut self, now: Duration, ticket: Ticket, join: &Join, fresh: &str) {
        let result = self.check_join(join).and_then(|()| {
            if join.member_id.is_empty() {
                self.join_without_id(now, ticket, join, fresh)
            } else {
                self.join_with_id(now, ticket, join)
            }
        });
        if let Err(refusal) = result {
            self.answers.push(Answer::Joined(ticket, Err(refusal)));
        }
    }

    fn check_join(&self, join: &Join) -> Result<(), Refusal> {
        let (min, max) = (
            self.settings.session_timeout_min,
            self.settings.session_timeout_max,
        );
        if !(min..=max).contains(&join.session_timeout) {
            let ms = |time: Duration| time.as_millis() as u64;
            return Err(Refusal::InvalidSessionTimeout {
                given_ms: ms(join.session_timeout),
                min_ms: ms(min),
                max_ms: ms(max),
            });
        }
        let limit = self.settings.member_bytes_max;
        let bytes: usize = join.protocols.iter().map(|(_, bytes)| bytes.len()).sum();
        if bytes > limit || join.protocols.len() > PROTOCOLS_MAX {
            return Err(Refusal::MetadataTooLarge(limit));
        }
        if join.protocol_type.is_empty() || join.protocols.is_empty() || !self.has_common(join) {
            return Err(Refusal::InconsistentProtocol);
        }
        Ok(())
    }

    /// Whether the group, without the one that joins, shares the protocol type and at least one protocol with it.
    fn has_common(&self, join: &Join) -> bool {
        let predecessor = join
            .instance_id
            .as_ref()
            .and_then(|id| self.statics.get(id));
        let mut others = self
            .members()
            .filter(|member| member.id != join.member_id && Some(&member.id) != predecessor)
            .peekable();
        if others.peek().is_none() {
            return true;
        }
        let others: Vec<_> = others.collect();
        self.protocol_type.as_ref() == Some(&join.protocol_type)
            && join
                .protocols
                .iter()
                .any(|(name, _)| others.iter().all(|member| member.supports(name)))
    }

    fn join_without_id(
        &mut self,
        now: Duration,
        ticket: Ticket,
        join: &Join,
        fresh: &str,
    ) -> Result<(), Refusal> {
        if let Some(instance_id) = &join.instance_id {
            let id = MemberId::from(format!("{instance_id}-{fresh}"));
            if let Some(old) = self.statics.get(instance_id).cloned() {
                self.replace_static(now, ticket, join, instance_id, &old, &id);
                return Ok(());
            }
            self.check_room()?;
            self.add_member(now, ticket, join, &id);
            return Ok(());
        }
        self.check_room()?;
        let id = MemberId::from(format!("{}-{fresh}", join.client_id));
        if join.needs_known_id {
            self.pending.insert(id.clone(), now + join.session_timeout);
            return Err(Refusal::MemberIdRequired(id));
        }
        self.add_member(now, ticket, join, &id);
        Ok(())
    }

    fn check_room(&self) -> Result<(), Refusal> {
        if self.members.len() + self.pending.len() < self.settings.members_max {
            Ok(())
        } else {
            Err(Refusal::Full)
        }
    }

    fn join_with_id(&mut self, now: Duration, ticket: Ticket, join: &Join) -> Result<(), Refusal> {
        if join.instance_id.is_none() && self.pending.remove(&join.member_id).is_some() {
            self.add_member(now, ticket, join, &join.member_id);
            return Ok(());
        }
        self.check_member(&join.member_id, join.instance_id.as_ref())?;
        let is_leader = self.leader.as_ref() == Some(&join.member_id);
        let member = self
            .members
            .get_mut(&join.member_id)
            .ok_or(Refusal::UnknownMember)?;
        let is_changed = member.protocols != join.protocols;
        member.update(now, join);
        let must_rebalance = match self.state {
            State::Stable => is_leader || is_changed,
            State::Completing => is_changed,
            State::Empty | State::Preparing { .. } => true,
        };
        if must_rebalance {
            self.wait_for_generation(now, ticket, &join.member_id);
        } else {
            // The answer to an earlier join was lost: give it again.
            let joined = self.joined(&join.member_id, false);
            self.answers.push(Answer::Joined(ticket, Ok(joined)));
        }
        Ok(())
    }

    fn add_member(&mut self, now: Duration, ticket: Ticket, join: &Join, id: &MemberId) {
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        if let Some(instance_id) = &join.instance_id {
            self.statics.insert(instance_id.clone(), id.clone());
        }
        self.leader.get_or_insert_with(|| id.clone());
        self.members
            .insert(id.clone(), Member::new(id.clone(), now, join));
        self.gather_longer(now);
        self.wait_for_generation(now, ticket, id);
    }

    /// A static member came back without its id: it gets a new one, and whoever still uses the old one is fenced
    /// (KIP-345). As long as it wants the same, nobody else notices.
    fn replace_static(
        &mut self,
        now: Duration,
        ticket: Ticket,
        join: &Join,
        instance_id: &InstanceId,
        old: &MemberId,
        id: &MemberId,
    ) {
        let mut member = self
            .members
            .remove(old)
            .expect("an instance id always names a member");
        if let Some(ticket) = member.joining.take() {
            self.answers
                .push(Answer::Joined(ticket, Err(Refusal::FencedInstance)));
        }
        if let Some(ticket) = member.syncing.take() {
            self.answers
                .push(Answer::Synced(ticket, Err(Refusal::FencedInstance)));
        }
        let wants_the_same = member.wants_the_same(join);
        member.id = id.clone();
        member.update(now, join);
        self.members.insert(id.clone(), member);
        self.statics.insert(instance_id.clone(), id.clone());
        if self.members.len() == 1 {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        let was_leader = self.leader.as_ref() == Some(old);
        if was_leader {
            self.leader = Some(id.clone());
        }
        if self.state == State::Stable && wants_the_same && self.choose_protocol() == self.protocol
        {
            let mut joined = self.joined(id, join.may_skip_assignment && was_leader);
            if was_leader && !join.may_skip_assignment {
                // An older client would assign if it were told that it leads: name the id that it no longer has.
                joined.leader = old.clone();
                joined.members.clear();
            }
            self.answers.push(Answer::Joined(ticket, Ok(joined)));
        } else {
            self.wait_for_generation(now, ticket, id);
        }
    }

    fn wait_for_generation(&mut self, now: Duration, ticket: Ticket, id: &MemberId) {
        let member = self
            .members
            .get_mut(id)
            .expect("the caller has put or found it there");
        if let Some(older) = member.joining.replace(ticket) {
            // The client has given that attempt up: it sent another.
            self.answers
                .push(Answer::Joined(older, Err(Refusal::RebalanceInProgress)));
        }
        match self.state {
            State::Preparing { .. } => self.complete_if_all_joined(now),
            State::Empty | State::Completing | State::Stable => self.prepare(now),
        }
    }

    /// What a member is told about the current generation.
    pub(super) fn joined(&self, id: &MemberId, skip_assignment: bool) -> Joined {
        let protocol = self.protocol.clone().unwrap_or_default();
        let leader = self.leader.clone().unwrap_or_else(|| MemberId::from(""));
        let members = if leader == *id {
            self.members()
                .map(|member| JoinedMember {
                    member_id: member.id.clone(),
                    instance_id: member.instance_id.clone(),
                    metadata: member.metadata(&protocol),
                })
                .collect()
        } else {
            Vec::new()
        };
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol,
            leader,
            member_id: id.clone(),
            skip_assignment,
            members,
        }
    }
}
