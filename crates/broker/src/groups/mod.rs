//! The groups of a node: drives the pure machines of `floe_groups` and stores positions.
//!
//! Guarantees: a position is durable in the internal topic `__group_positions` before its commit is answered.
//! Membership lives in memory: after a restart members join again and read on from their positions.

mod outcome;

use std::time::Duration;

use floe_groups::assigned::{self, DeliveryToken, Received, Registration};
use floe_groups::classic::{Join, Joined, Leaving, Sync, Synced};
use floe_groups::{ConnectionId, GroupId, NewPosition, Position, Refusal, classic};
use floe_model::TopicPartition;

pub use outcome::{
    Chunk, CommitRefusal, Description, Error, Kind, Listed, MemberDescription, Polled, Registered,
    State,
};

/// The groups of a node, for both doors. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Groups {}

#[allow(
    unused_variables,
    clippy::unused_async,
    clippy::unused_self,
    reason = "filled in next"
)]
impl Groups {
    /// JoinGroup: answered when the generation begins.
    pub async fn join(&self, group: &GroupId, join: Join) -> Result<Joined, Refusal> {
        unreachable!("not wired yet")
    }

    /// SyncGroup: answered when the leader has assigned.
    pub async fn sync(&self, group: &GroupId, sync: Sync) -> Result<Synced, Refusal> {
        unreachable!("not wired yet")
    }

    /// Heartbeat.
    pub fn heartbeat(&self, group: &GroupId, caller: &classic::Caller) -> Result<(), Refusal> {
        unreachable!("not wired yet")
    }

    /// LeaveGroup: one result per member, in their order.
    pub fn leave(&self, group: &GroupId, leaving: &[Leaving]) -> Vec<Result<(), Refusal>> {
        unreachable!("not wired yet")
    }

    /// OffsetCommit: durable when it returns; one result per position, in their order. Partitions that do not
    /// exist are the caller's to refuse.
    pub async fn commit(
        &self,
        group: &GroupId,
        caller: &classic::Caller,
        positions: Vec<NewPosition>,
    ) -> Result<Vec<Result<(), CommitRefusal>>, Error> {
        unreachable!("not wired yet")
    }

    /// OffsetFetch of one partition.
    pub fn position(&self, group: &GroupId, partition: TopicPartition) -> Option<Position> {
        unreachable!("not wired yet")
    }

    /// OffsetFetch of everything: all positions of a group in topics that exist, by topic id and partition.
    pub fn positions(&self, group: &GroupId) -> Vec<(TopicPartition, Position)> {
        unreachable!("not wired yet")
    }

    /// OffsetDelete: one result per partition, in their order ([`Refusal::SubscribedToTopic`] where members read
    /// the topic).
    pub async fn delete_positions(
        &self,
        group: &GroupId,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Result<(), Refusal>>, Error> {
        unreachable!("not wired yet")
    }

    /// DeleteGroups: the group and its positions, if it has no members.
    pub async fn delete_group(&self, group: &GroupId) -> Result<(), Error> {
        unreachable!("not wired yet")
    }

    /// ListGroups: every group that has members or positions.
    pub fn list(&self) -> Vec<Listed> {
        unreachable!("not wired yet")
    }

    /// DescribeGroups; `None` if it has neither members nor positions.
    pub fn describe(&self, group: &GroupId) -> Option<Description> {
        unreachable!("not wired yet")
    }

    /// Registers an HTTP consumer.
    pub async fn register(&self, registration: Registration) -> Result<Registered, Error> {
        unreachable!("not wired yet")
    }

    /// The next chunks for an HTTP consumer: what it had before is committed first, unless `received` says
    /// otherwise. Waits up to `wait` for records or partitions. Whole batches of about `bytes_max` in sum.
    pub async fn poll(
        &self,
        caller: &assigned::Caller,
        received: Received,
        wait: Duration,
        bytes_max: usize,
    ) -> Result<Polled, Error> {
        unreachable!("not wired yet")
    }

    /// Commits what the consumer got last; durable when it returns.
    pub async fn commit_delivered(&self, caller: &assigned::Caller) -> Result<(), Error> {
        unreachable!("not wired yet")
    }

    /// Ends a consumer; what it got last is committed first if `commit`.
    pub async fn goodbye(&self, caller: &assigned::Caller, commit: bool) -> Result<(), Error> {
        unreachable!("not wired yet")
    }

    /// Tells that an answer could not be written, or that the connection it went over was reset before the next
    /// poll: the chunk will be delivered again. Without effect once a newer poll has begun.
    pub fn delivery_lost(&self, caller: &assigned::Caller, delivery: DeliveryToken) {
        unreachable!("not wired yet")
    }

    /// Tells that a connection is gone: a consumer bound to it leaves at once.
    pub fn connection_closed(&self, connection: ConnectionId) {
        unreachable!("not wired yet")
    }
}
