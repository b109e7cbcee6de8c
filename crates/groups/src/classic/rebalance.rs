//! From one generation to the next, and the clock that drives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Group, State};
use crate::{GenerationId, MemberId, Refusal};

impl Group {
    /// Time has come to `now`: sessions end, rebalances go on without those that are late.
    pub fn tick(&mut self, now: Duration) {
        self.pending.retain(|_, lapses| *lapses > now);
        let expired: Vec<MemberId> = self
            .members()
            .filter(|member| member.is_expired(now))
            .map(|member| member.id.clone())
            .collect();
        self.remove_all(now, &expired);
        if self.sync_deadline.is_some_and(|deadline| deadline <= now) {
            self.sync_deadline = None;
            let late: Vec<MemberId> = self
                .members()
                .filter(|member| !member.has_synced && member.joining.is_none())
                .map(|member| member.id.clone())
                .collect();
            self.remove_all(now, &late);
        }
        match self.state {
            State::Preparing { deadline, .. } if deadline <= now => self.complete(now),
            State::Preparing { .. } => self.complete_if_all_joined(now),
            State::Empty | State::Completing | State::Stable => {}
        }
    }

    /// When [`tick`](Self::tick) has something to do next.
    pub fn next_deadline(&self) -> Option<Duration> {
        let state = match self.state {
            State::Preparing {
                deadline,
                gather_until,
            } => Some(gather_until.map_or(deadline, |gather| gather.min(deadline))),
            State::Empty | State::Completing | State::Stable => None,
        };
        self.members()
            .filter(|member| member.joining.is_none() && member.syncing.is_none())
            .map(|member| member.alive_until)
            .chain(self.pending.values().copied())
            .chain(self.sync_deadline)
            .chain(state)
            .min()
    }

    /// A rebalance begins: everybody is to join again.
    pub(super) fn prepare(&mut self, now: Duration) {
        if self.state == State::Completing {
            self.refuse_syncs(&Refusal::RebalanceInProgress);
            for member in self.members.values_mut() {
                member.assignment.clear();
            }
        }
        self.sync_deadline = None;
        let longest = self.longest_rebalance();
        let gather = self.settings.initial_rebalance_delay.min(longest);
        let is_first = self.state == State::Empty && !gather.is_zero();
        self.state = State::Preparing {
            deadline: now + longest,
            gather_until: is_first.then(|| now + gather),
        };
        self.complete_if_all_joined(now);
    }

    /// A new member came while the first rebalance waits for more: wait anew, but not beyond the deadline.
    pub(super) fn gather_longer(&mut self, now: Duration) {
        let delay = self.settings.initial_rebalance_delay;
        if let State::Preparing {
            deadline,
            gather_until: Some(until),
        } = &mut self.state
            && *until > now
        {
            *until = (now + delay).min(*deadline);
        }
    }

    pub(super) fn complete_if_all_joined(&mut self, now: Duration) {
        let State::Preparing { gather_until, .. } = self.state else {
            return;
        };
        let is_gathering = gather_until.is_some_and(|until| until > now);
        let all_joined = self.members().all(|member| member.joining.is_some());
        if all_joined && self.pending.is_empty() && !is_gathering {
            self.complete(now);
        }
    }

    /// The next generation begins with those that joined. A static member that did not stays a member until its
    /// session ends (KIP-345).
    fn complete(&mut self, now: Duration) {
        let late: Vec<MemberId> = self
            .members()
            .filter(|member| member.joining.is_none() && member.instance_id.is_none())
            .map(|member| member.id.clone())
            .collect();
        for id in &late {
            self.remove(id);
        }
        if self.members.is_empty() {
            self.become_empty();
            return;
        }
        let Some(first_joined) = self.members().find(|member| member.joining.is_some()) else {
            // Only absent static members: their sessions decide.
            self.state = State::Preparing {
                deadline: now + self.longest_rebalance(),
                gather_until: None,
            };
            return;
        };
        let first_joined = first_joined.id.clone();
        let leads = |id: &MemberId| self.members.get(id).is_some_and(|m| m.joining.is_some());
        if !self.leader.as_ref().is_some_and(leads) {
            self.leader = Some(first_joined);
        }
        self.next_generation();
        self.protocol = self.choose_protocol();
        self.state = State::Completing;
        self.sync_deadline = Some(now + self.longest_rebalance());
        let joined: Vec<_> = self
            .members
            .values_mut()
            .filter_map(|member| {
                // An absent static member cannot sync; its session decides.
                member.has_synced = member.joining.is_none();
                let ticket = member.joining.take()?;
                member.touch(now);
                Some((ticket, member.id.clone()))
            })
            .collect();
        for (ticket, id) in joined {
            let answer = Answer::Joined(ticket, Ok(self.joined(&id, false)));
            self.answers.push(answer);
        }
    }

    fn become_empty(&mut self) {
        self.next_generation();
        self.state = State::Empty;
        self.protocol = None;
        self.protocol_type = None;
        self.leader = None;
        self.sync_deadline = None;
    }

    fn next_generation(&mut self) {
        self.generation = GenerationId(self.generation.0.checked_add(1).unwrap_or(1));
    }

    fn longest_rebalance(&self) -> Duration {
        self.members()
            .map(|member| member.rebalance_timeout)
            .max()
            .unwrap_or_default()
    }

    /// Among the protocols that all support, the one that most members name first; of equals the first by name.
    pub(super) fn choose_protocol(&self) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members() {
            let favourite = member
                .protocols
                .iter()
                .map(|(name, _)| name)
                .find(|name| self.members().all(|other| other.supports(name)))?;
            *votes.entry(favourite).or_default() += 1;
        }
        let most = votes.values().copied().max()?;
        votes
            .into_iter()
            .find(|(_, count)| *count == most)
            .map(|(name, _)| name.clone())
    }
}
