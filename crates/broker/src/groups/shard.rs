//! The groups that one partition of `__group_positions` is responsible for.
//!
//! Guarantees: everything about one group happens under its shard's lock, commits included, so the order in which a
//! group allows them is their order in the log. Order: a shard's lock is taken before the lock of the partition its
//! positions are appended to, never the other way round; no two shards are locked at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use floe_groups::classic::{self, Answer, Joined, Synced, Ticket};
use floe_groups::{ConsumerId, GroupId, Refusal, Settings, assigned};
use floe_model::TopicPartition;
use floe_state::Table;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::store::Write;
use super::usage::Usage;

/// One shard.
pub(super) struct Shard {
    /// Where its positions are stored.
    pub(super) partition: TopicPartition,
    /// Registrations that fix positions do so one after another.
    pub(super) registering: tokio::sync::Mutex<()>,
    /// How many batches of positions have been dealt with: in the table, or failed.
    pub(super) dealt_with: watch::Sender<u64>,
    state: Mutex<State>,
}

/// What a shard's lock guards.
pub(super) struct State {
    settings: Arc<Settings>,
    /// Groups with members.
    pub(super) groups: HashMap<GroupId, Entry>,
    /// Positions, as of the last durable commit.
    pub(super) table: Table,
    /// Appends positions; `None` once the node stops.
    pub(super) writes: Option<mpsc::Sender<Write>>,
    /// How many batches have been appended.
    pub(super) appended: u64,
    /// Bytes of batches on their way.
    pub(super) in_flight: usize,
    joins: HashMap<Ticket, oneshot::Sender<Result<Joined, Refusal>>>,
    syncs: HashMap<Ticket, oneshot::Sender<Result<Synced, Refusal>>>,
    tickets: u64,
    usage: Arc<Usage>,
    /// Most groups with members.
    groups_max: usize,
}

/// A group with members.
pub(super) struct Entry {
    pub(super) machine: Machine,
    /// Waiting polls look again.
    pub(super) changed: Arc<Notify>,
    /// Index of the catalog its partitions were taken from.
    pub(super) seen: Option<u64>,
    bytes: usize,
}

/// One group is of one kind.
pub(super) enum Machine {
    /// Kafka's classic protocol.
    Classic(classic::Group),
    /// HTTP consumers.
    Assigned(assigned::Group),
}

impl Shard {
    pub(super) fn new(
        partition: TopicPartition,
        settings: Arc<Settings>,
        usage: Arc<Usage>,
        groups_max: usize,
        table: Table,
        writes: mpsc::Sender<Write>,
    ) -> Self {
        Self {
            partition,
            registering: tokio::sync::Mutex::new(()),
            dealt_with: watch::Sender::new(0),
            state: Mutex::new(State {
                settings,
                groups: HashMap::new(),
                table,
                writes: Some(writes),
                appended: 0,
                in_flight: 0,
                joins: HashMap::new(),
                syncs: HashMap::new(),
                tickets: 0,
                usage,
                groups_max,
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits until every position that was accepted before is in the table, so that a reader of positions never sees
    /// one that an earlier commit is about to replace.
    pub(super) async fn caught_up(&self) {
        let appended = self.lock().appended;
        let mut dealt_with = self.dealt_with.subscribe();
        // The sender lives as long as the shard.
        drop(dealt_with.wait_for(|count| *count >= appended).await);
    }
}

impl State {
    /// The classic group of this name; made if there is none. Follow with [`settle`](Self::settle).
    pub(super) fn classic_or_new(&mut self, id: &GroupId) -> Result<&mut classic::Group, Refusal> {
        let settings = Arc::clone(&self.settings);
        let new = || Machine::Classic(classic::Group::new(settings));
        match &mut self.entry_or_new(id, new)?.machine {
            Machine::Classic(group) => Ok(group),
            Machine::Assigned(_) => Err(Refusal::InconsistentProtocol),
        }
    }

    /// The classic group of this name, if it has members.
    pub(super) fn classic(&mut self, id: &GroupId) -> Option<&mut classic::Group> {
        match &mut self.groups.get_mut(id)?.machine {
            Machine::Classic(group) => Some(group),
            Machine::Assigned(_) => None,
        }
    }

    /// The server-assigned group of this name; made if there is none. Follow with [`settle`](Self::settle).
    pub(super) fn assigned_or_new(
        &mut self,
        id: &GroupId,
    ) -> Result<&mut assigned::Group, Refusal> {
        let settings = Arc::clone(&self.settings);
        let new = || Machine::Assigned(assigned::Group::new(settings));
        match &mut self.entry_or_new(id, new)?.machine {
            Machine::Assigned(group) => Ok(group),
            Machine::Classic(_) => Err(Refusal::InconsistentProtocol),
        }
    }

    /// The server-assigned group of this name that has this registration of this consumer.
    pub(super) fn assigned(
        &mut self,
        id: &GroupId,
        consumer: &ConsumerId,
        registration: u64,
    ) -> Result<&mut assigned::Group, Refusal> {
        let absent = || Refusal::NotRegistered(consumer.clone());
        let entry = self.groups.get_mut(id).ok_or_else(absent)?;
        let Machine::Assigned(group) = &mut entry.machine else {
            return Err(absent());
        };
        match group.member(consumer) {
            Some(member) if member.registration == registration => Ok(group),
            Some(_) | None => Err(absent()),
        }
    }

    fn entry_or_new(
        &mut self,
        id: &GroupId,
        new: impl FnOnce() -> Machine,
    ) -> Result<&mut Entry, Refusal> {
        if !self.groups.contains_key(id) && self.groups.len() >= self.groups_max {
            return Err(Refusal::Full);
        }
        Ok(self.groups.entry(id.clone()).or_insert_with(|| Entry {
            machine: new(),
            changed: Arc::new(Notify::new()),
            seen: None,
            bytes: 0,
        }))
    }

    /// Whether members may bring so much more.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), Refusal> {
        if self.usage.has_room_for_member(bytes) {
            Ok(())
        } else {
            Err(Refusal::Full)
        }
    }

    /// A ticket for a join, and where its answer comes out.
    pub(super) fn join_ticket(&mut self) -> (Ticket, oneshot::Receiver<Result<Joined, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.next_ticket();
        self.joins.insert(ticket, sender);
        (ticket, receiver)
    }

    /// A ticket for a sync, and where its answer comes out.
    pub(super) fn sync_ticket(&mut self) -> (Ticket, oneshot::Receiver<Result<Synced, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.next_ticket();
        self.syncs.insert(ticket, sender);
        (ticket, receiver)
    }

    fn next_ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Nobody waits for this ticket any longer.
    pub(super) fn abandon(&mut self, now: Duration, id: &GroupId, ticket: Ticket) {
        let was_waiting =
            self.joins.remove(&ticket).is_some() | self.syncs.remove(&ticket).is_some();
        if was_waiting && let Some(group) = self.classic(id) {
            group.abandon(now, ticket);
            self.settle(id);
        }
    }

    /// Sends what a group has answered, wakes polls if its assignment has changed, counts what its members take, and
    /// forgets it if it is vacant.
    pub(super) fn settle(&mut self, id: &GroupId) {
        let Some(entry) = self.groups.get_mut(id) else {
            return;
        };
        let (answers, bytes, is_vacant) = match &mut entry.machine {
            Machine::Classic(group) => (group.take_answers(), group.bytes(), group.is_vacant()),
            Machine::Assigned(group) => {
                if group.take_changed() {
                    entry.changed.notify_waiters();
                }
                (Vec::new(), group.bytes(), group.is_vacant())
            }
        };
        self.usage.members_changed(entry.bytes, bytes);
        entry.bytes = bytes;
        if is_vacant {
            self.groups.remove(id);
        }
        for answer in answers {
            // A receiver that has gone needs no answer: its member is given up by its session.
            match answer {
                Answer::Joined(ticket, joined) => {
                    self.joins.remove(&ticket).map(|to| to.send(joined).is_ok())
                }
                Answer::Synced(ticket, synced) => {
                    self.syncs.remove(&ticket).map(|to| to.send(synced).is_ok())
                }
            };
        }
    }
}
