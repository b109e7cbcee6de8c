//! JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups.

use std::sync::Arc;

use floe_groups::classic::{Caller, Join, Joined, Leaving, Sync, Synced, Ticket};
use floe_groups::{GROUP_ID_BYTES_MAX, GroupId, Refusal};
use tokio::sync::oneshot;

use super::shard::Shard;
use super::{Groups, Inner};

impl Groups {
    /// JoinGroup: answered when the generation begins. A caller that stops waiting gives its place up.
    pub async fn join(&self, group: &GroupId, join: Join) -> Result<Joined, Refusal> {
        check_name(group)?;
        let inner = &self.0;
        let fresh = inner.fresh_id();
        let shard = inner.shard(group);
        let is_new = join.member_id.is_empty();
        let (ticket, receiver) = {
            let mut state = shard.lock();
            if !is_new && !state.groups.contains_key(group) {
                return Err(Refusal::UnknownMember);
            }
            state.check_room(join.bytes())?;
            let (ticket, receiver) = state.join_ticket();
            match state.classic_or_new(group) {
                Ok(machine) => machine.join(inner.now(), ticket, &join, &fresh),
                Err(refusal) => {
                    state.abandon(inner.now(), group, ticket);
                    return Err(refusal);
                }
            }
            state.settle(group);
            (ticket, receiver)
        };
        Waiting::new(inner, shard, group, ticket)
            .answer(receiver)
            .await
    }

    /// SyncGroup: answered when the leader has assigned. A caller that stops waiting gives its place up.
    pub async fn sync(&self, group: &GroupId, sync: Sync) -> Result<Synced, Refusal> {
        let inner = &self.0;
        let shard = inner.shard(group);
        let (ticket, receiver) = {
            let mut state = shard.lock();
            state.check_room(sync.bytes())?;
            let (ticket, receiver) = state.sync_ticket();
            let Some(machine) = state.classic(group) else {
                state.abandon(inner.now(), group, ticket);
                return Err(Refusal::UnknownMember);
            };
            machine.sync(inner.now(), ticket, sync);
            state.settle(group);
            (ticket, receiver)
        };
        Waiting::new(inner, shard, group, ticket)
            .answer(receiver)
            .await
    }

    /// Heartbeat.
    pub fn heartbeat(&self, group: &GroupId, caller: &Caller) -> Result<(), Refusal> {
        let mut state = self.0.shard(group).lock();
        let machine = state.classic(group).ok_or(Refusal::UnknownMember)?;
        machine.heartbeat(self.0.now(), caller)
    }

    /// LeaveGroup: one result per member, in their order.
    pub fn leave(&self, group: &GroupId, leaving: &[Leaving]) -> Vec<Result<(), Refusal>> {
        let mut state = self.0.shard(group).lock();
        let Some(machine) = state.classic(group) else {
            return leaving
                .iter()
                .map(|_| Err(Refusal::UnknownMember))
                .collect();
        };
        let results = machine.leave(self.0.now(), leaving);
        state.settle(group);
        results
    }
}

/// A group that has members needs a name.
pub(super) fn check_name(group: &GroupId) -> Result<(), Refusal> {
    if (1..=GROUP_ID_BYTES_MAX).contains(&group.as_str().len()) {
        Ok(())
    } else {
        Err(Refusal::InvalidGroupId)
    }
}

/// A wait for the group's answer; dropped before it has come, the member stops waiting.
struct Waiting<'a> {
    inner: &'a Arc<Inner>,
    shard: &'a Shard,
    group: &'a GroupId,
    ticket: Option<Ticket>,
}

impl<'a> Waiting<'a> {
    fn new(inner: &'a Arc<Inner>, shard: &'a Shard, group: &'a GroupId, ticket: Ticket) -> Self {
        Self {
            inner,
            shard,
            group,
            ticket: Some(ticket),
        }
    }

    async fn answer<T>(
        mut self,
        receiver: oneshot::Receiver<Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let mut stopping = self.inner.node.stopping.subscribe();
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or(Err(Refusal::RebalanceInProgress)),
            // The client tries again and finds the node that is there then.
            _ = stopping.wait_for(|stopping| *stopping) => Err(Refusal::RebalanceInProgress),
        };
        self.ticket = None;
        answer
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let now = self.inner.now();
            self.shard.lock().abandon(now, self.group, ticket);
        }
    }
}
