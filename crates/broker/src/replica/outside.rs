//! What the copies of a node's partitions share: its log, its clock, the way to the other nodes, and who hears what they say.
//!
//! Guarantees: nothing here waits. What is said to a node in lists gathers until the tasks that are ready have run, so that one
//! flush of many partitions is answered by one message; a copy that waits for time to pass is ticked with all others, by one task.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use floe_log::{Failure, Log};
use floe_model::{Boot, NodeId, TopicPartition};
use floe_replication::message::Renew;
use floe_replication::replica::Command;
use floe_world::{Clock, tasks};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::Replica;
use crate::metrics::Metrics;
use crate::peers::{Fenced, LIST_MAX, Message, Transport};

/// Words that may wait to be heard. What finds no room is lost like a message: whoever asked asks again.
const WAITING_MAX: usize = 1 << 16;

/// How long the commit offset may wait to be told when nothing else carries it, and what found no room to be sent again.
const TICK: Duration = Duration::from_millis(25);

/// What a copy has to say to this node's controller: answers to what it asked, and wishes.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) address: TopicPartition,
    pub(crate) what: Command,
}

/// See the module.
pub(crate) struct Outside {
    pub(crate) node: NodeId,
    pub(crate) boot: Boot,
    pub(crate) log: Log,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) metrics: Arc<Metrics>,
    said: mpsc::Sender<Said>,
    failure: OnceLock<Failure>,
    lists: Mutex<BTreeMap<NodeId, Lists>>,
    listed: Arc<Notify>,
    /// Copies for which time has to pass.
    ticked: Mutex<Vec<Weak<Replica>>>,
    awaited: Arc<Notify>,
}

/// What waits to be said to one node.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) fenced: Vec<Fenced>,
    pub(super) asks: Vec<(TopicPartition, Renew)>,
    pub(super) grants: Vec<(TopicPartition, Renew)>,
}

/// What a node's copies are given.
pub(crate) struct Given {
    pub(crate) node: NodeId,
    pub(crate) boot: Boot,
    pub(crate) log: Log,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Outside {
    /// ... and where what is said comes out. Nothing happens by itself before [`Outside::run`].
    pub(crate) fn new(given: Given) -> (Arc<Self>, mpsc::Receiver<Said>) {
        let (said, heard) = mpsc::channel(WAITING_MAX);
        let outside = Self {
            node: given.node,
            boot: given.boot,
            log: given.log,
            clock: given.clock,
            transport: given.transport,
            metrics: given.metrics,
            said,
            failure: OnceLock::new(),
            lists: Mutex::default(),
            listed: Arc::default(),
            ticked: Mutex::default(),
            awaited: Arc::default(),
        };
        (Arc::new(outside), heard)
    }

    /// Starts the tasks that send what has gathered and let time pass; they end with it.
    pub(crate) fn run(self: &Arc<Self>) {
        let (outside, listed) = (Arc::downgrade(self), Arc::clone(&self.listed));
        tasks::spawn(async move {
            loop {
                listed.notified().await;
                // Whoever else is answered by the same flush adds to it first.
                tokio::task::yield_now().await;
                let Some(outside) = outside.upgrade() else {
                    return;
                };
                outside.send_lists();
            }
        });
        let (outside, awaited) = (Arc::downgrade(self), Arc::clone(&self.awaited));
        tasks::spawn(async move {
            loop {
                awaited.notified().await;
                loop {
                    floe_world::time::sleep(TICK).await;
                    let Some(outside) = outside.upgrade() else {
                        return;
                    };
                    if !outside.tick() {
                        break;
                    }
                }
            }
        });
    }

    /// The log has failed: what waits for it waits in vain.
    pub(super) fn failed(&self, failure: Failure) {
        drop(self.failure.set(failure));
    }

    /// Why nothing more is to be expected of the log, if so.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    pub(super) fn say(&self, address: TopicPartition, what: Command) {
        drop(self.said.try_send(Said { address, what }));
    }

    /// Adds to what a node is told.
    pub(super) fn gather(&self, to: NodeId, add: impl FnOnce(&mut Lists)) {
        let mut all = self.lists.lock();
        let lists = all.entry(to).or_default();
        add(lists);
        let longest = [lists.fenced.len(), lists.asks.len(), lists.grants.len()];
        if longest.into_iter().any(|len| len >= LIST_MAX) {
            let full = std::mem::take(lists);
            drop(all);
            self.send_list(to, full);
        } else {
            drop(all);
            self.listed.notify_one();
        }
    }

    /// Sends what has gathered.
    pub(crate) fn send_lists(&self) {
        let all = std::mem::take(&mut *self.lists.lock());
        for (to, lists) in all {
            self.send_list(to, lists);
        }
    }

    /// Refused, they are lost like messages: whoever asked asks again, and so does a leader for its lease.
    fn send_list(&self, to: NodeId, lists: Lists) {
        let messages = [
            (!lists.fenced.is_empty()).then(|| Message::Fenced(lists.fenced)),
            (!lists.asks.is_empty()).then(|| Message::LeaseAsk(lists.asks)),
            (!lists.grants.is_empty()).then(|| Message::LeaseGrant(lists.grants)),
        ];
        for message in messages.into_iter().flatten() {
            if let Err(unsent) = self.transport.send(to, message) {
                tracing::debug!(%unsent, "words of copies are lost");
            }
        }
    }

    /// From now on this copy is ticked, until it has nothing to wait for.
    pub(super) fn await_time(&self, replica: &Weak<Replica>) {
        self.ticked.lock().push(Weak::clone(replica));
        self.awaited.notify_one();
    }

    /// Time has passed. Whether anybody still waits.
    pub(crate) fn tick(&self) -> bool {
        let mut waiting = std::mem::take(&mut *self.ticked.lock());
        waiting.retain(|replica| replica.upgrade().is_some_and(|replica| replica.tick()));
        let mut ticked = self.ticked.lock();
        ticked.append(&mut waiting);
        !ticked.is_empty()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.listed.notify_one();
        self.awaited.notify_one();
    }
}
