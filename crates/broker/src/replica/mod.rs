//! This node's copy of one partition: the machine of `floe_replication` over this node's log and the way to the other nodes.
//!
//! ```text
//! append, flush, catalog, peers, time ─► Replica::step ─► machine ─► commands ─► log, peers, commit offset, controller
//! ```
//!
//! Guarantees: the machine sees appends in the order of the log, since both are made under one lock; commands are carried out in
//! their order, under the same lock; nothing here waits for a disk or a node. A word of another node that is lost is said again
//! after a time, for which a copy is ticked while it has something to wait for.

mod arrive;
mod asks;
mod carry;
mod feed;
mod outside;
mod recover;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use floe_cluster::format::{self, Descriptor};
use floe_log::{AppendError, PartitionLog, Receipt};
use floe_model::{LeaderEpoch, NodeId, Offset, TopicPartition};
use floe_replication::message::{Batch, Checksum};
use floe_replication::replica::{Command, Event, Opened, Recovered, Settings};
use floe_replication::{Member, Terms};
use floe_wire::batch::View;
use parking_lot::Mutex;

use crate::partition::{Ended, Partition};
use arrive::{Arriving, AtHand};
use asks::Asks;
use feed::Stuck;

pub(crate) use arrive::Arrival;
pub(crate) use outside::{Given, Outside, Said};
pub(crate) use recover::recovered;

/// How copies feed one another.
const SETTINGS: Settings = Settings {
    window_bytes: 8 << 20,
    send_bytes_max: 1 << 20,
    resend_after: Duration::from_secs(1),
    lease: Terms {
        duration: Duration::from_millis(500),
        drift_ppm: 1_000,
    },
};

/// See the module.
pub(crate) struct Replica {
    pub(crate) address: TopicPartition,
    pub(crate) log: Arc<PartitionLog>,
    me: Member,
    outside: Arc<Outside>,
    machine: Mutex<Machine>,
    arriving: Mutex<Arriving>,
    /// The generation led here, if one is.
    led: ArcSwapOption<Partition>,
    /// For tasks that wait for the log.
    itself: Weak<Replica>,
}

struct Machine {
    replica: floe_replication::Replica,
    commands: Vec<Command>,
    /// What came of commands that were carried out.
    more: VecDeque<Event>,
    /// Of the generation that is being opened, as the catalog says it; empty when a leader was first to say.
    descriptor: Bytes,
    /// Bytes of the message that is being taken in.
    at_hand: Option<AtHand>,
    asks: Asks,
    stuck: Vec<Stuck>,
    is_ticked: bool,
    /// Its topic is deleted: nothing is done any more.
    is_over: bool,
}

impl Machine {
    fn waits(&self) -> bool {
        !self.stuck.is_empty() || self.replica.waits()
    }
}

impl Replica {
    /// A copy as the log holds it.
    pub(crate) fn new(
        address: TopicPartition,
        log: Arc<PartitionLog>,
        recovered: &[Recovered],
        outside: Arc<Outside>,
    ) -> Arc<Self> {
        let me = Member {
            node: outside.node,
            incarnation: log.incarnation(),
        };
        let replica =
            floe_replication::Replica::new(me, outside.boot, log.fence(), recovered, SETTINGS);
        Arc::new_cyclic(|itself| Self {
            address,
            log,
            me,
            outside,
            machine: Mutex::new(Machine {
                replica,
                commands: Vec::new(),
                more: VecDeque::new(),
                descriptor: Bytes::new(),
                at_hand: None,
                asks: Asks::default(),
                stuck: Vec::new(),
                is_ticked: false,
                is_over: false,
            }),
            arriving: Mutex::default(),
            led: ArcSwapOption::empty(),
            itself: Weak::clone(itself),
        })
    }

    /// Who it is.
    pub(crate) fn member(&self) -> Member {
        self.me
    }

    /// The open generation, if it is led here.
    pub(crate) fn led(&self) -> Option<Arc<Partition>> {
        self.led.load_full()
    }

    /// From now on requests find this generation here.
    pub(crate) fn lead(&self, partition: Arc<Partition>) {
        self.led.store(Some(partition));
    }

    /// Who waits is told why the commit offset moves no more. What has moved or is deleted is not found here from now on; while the
    /// node stops it goes on to say so.
    pub(crate) fn end(&self, why: Ended) {
        let led = match why {
            Ended::Moved | Ended::Deleted => self.led.swap(None),
            Ended::Stopping => self.led.load_full(),
        };
        if let Some(led) = led {
            led.progress.end(why);
        }
    }

    /// The generation led here and this copy hold one another until then.
    pub(crate) fn let_go(&self) {
        self.led.store(None);
    }

    /// Its topic is deleted: nothing more is taken or said.
    pub(crate) fn delete(&self) {
        self.machine.lock().is_over = true;
        self.end(Ended::Deleted);
    }

    /// The generation that the machine leads and may append in.
    pub(crate) fn leads(&self) -> Option<LeaderEpoch> {
        let machine = self.machine.lock();
        machine.replica.leads()
    }

    /// Commit offset of a generation, as far as it is known here.
    pub(crate) fn committed(&self, epoch: LeaderEpoch) -> Option<Offset> {
        self.machine.lock().replica.committed(epoch)
    }

    /// Whether it may answer linearizable reads of the generation led here: to be asked after the read.
    pub(crate) fn has_lease(&self) -> bool {
        let now = self.outside.clock.monotonic();
        self.machine.lock().replica.has_lease(now)
    }

    /// Appends one checked batch in the generation led here; gives its end.
    pub(crate) fn append(&self, epoch: LeaderEpoch, bytes: &[u8]) -> Result<Offset, AppendError> {
        let mut machine = self.machine.lock();
        let leads = machine.replica.leads();
        if leads != Some(epoch) {
            return Err(AppendError::NotOpen { open: leads });
        }
        if !machine.replica.takes_appends() {
            let fence = machine.replica.fence();
            return Err(AppendError::Fenced { fence });
        }
        let end = self.outside.log.append(&self.log, epoch, bytes)?;
        let checksum = View::first(bytes).expect("the log took a batch").crc();
        let checksum = Checksum(checksum);
        let batch = Batch { end, checksum };
        let receipts = self.pump(&mut machine, Some(Event::Appended { epoch, batch }));
        debug_assert!(receipts.is_empty(), "an append opens nothing");
        Ok(end)
    }

    /// Takes in what happened here, be it a request of this node's controller. Gives back what has to be kept before a generation
    /// that began with it is used.
    pub(crate) fn step(&self, event: Event) -> Vec<Receipt> {
        self.heard(self.outside.node, event)
    }

    /// Takes in what that node says, or asks for.
    pub(crate) fn heard(&self, from: NodeId, mut event: Event) -> Vec<Receipt> {
        let mut machine = self.machine.lock();
        match &mut event {
            Event::FenceAsked(fence) => fence.ask = machine.asks.keep(from, fence.ask),
            Event::CopyOrdered(order) => order.ask = machine.asks.keep(from, order.ask),
            _ => {}
        }
        self.pump(&mut machine, Some(event))
    }

    /// The catalog opened a generation.
    pub(crate) fn opened(&self, opened: Opened) -> Vec<Receipt> {
        let mut machine = self.machine.lock();
        machine.descriptor = format::encode_descriptor(&Descriptor {
            leader: Some(opened.leader),
            members: opened.members.clone(),
            since: 0,
        });
        let receipts = self.pump(&mut machine, Some(Event::Opened(opened)));
        machine.descriptor = Bytes::new();
        receipts
    }

    /// That node can be reached now, or not any more.
    pub(crate) fn connection_changed(&self, node: NodeId, is_connected: bool) {
        let mut machine = self.machine.lock();
        let to = machine.replica.followers().find(|to| to.node == node);
        if let Some(to) = to {
            let changed = Event::ConnectionChanged { to, is_connected };
            let receipts = self.pump(&mut machine, Some(changed));
            debug_assert!(receipts.is_empty(), "a connection opens nothing");
        }
    }

    /// Time has passed. Whether it still waits for more of it.
    fn tick(&self) -> bool {
        let mut machine = self.machine.lock();
        self.unstick(&mut machine);
        let receipts = self.pump(&mut machine, None);
        debug_assert!(receipts.is_empty(), "time opens nothing");
        let receipts = self.pump(&mut machine, Some(Event::Ticked));
        debug_assert!(receipts.is_empty(), "time opens nothing");
        machine.is_ticked = !machine.is_over && machine.waits();
        machine.is_ticked
    }

    /// Takes in an event and what comes of it, until nothing more does.
    fn pump(&self, machine: &mut Machine, event: Option<Event>) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        if machine.is_over {
            machine.more.clear();
            return receipts;
        }
        let now = self.outside.clock.monotonic();
        let mut commands = std::mem::take(&mut machine.commands);
        let mut next = event.or_else(|| machine.more.pop_front());
        while let Some(event) = next {
            machine.replica.step(now, event, &mut commands);
            for command in commands.drain(..) {
                self.carry_out(machine, command, &mut receipts);
            }
            next = machine.more.pop_front();
        }
        machine.commands = commands;
        if !machine.is_ticked && machine.waits() {
            machine.is_ticked = true;
            self.outside.await_time(&self.itself);
        }
        receipts
    }
}
