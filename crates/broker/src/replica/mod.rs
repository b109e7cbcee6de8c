//! This node's copy of one partition: the machine of `floe_replication` over this node's log.
//!
//! ```text
//! append, flush, catalog, peers ─► Replica::step ─► machine ─► commands ─► log, commit offset, controller
//! ```
//!
//! Guarantees: the machine sees appends in the order of the log, since both are made under one lock; commands to the log are given in
//! their order, under the same lock; nothing here waits for a disk.

mod outside;

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use floe_cluster::format;
use floe_log::{AppendError, PartitionLog, Receipt};
use floe_model::{LeaderEpoch, Offset, TopicPartition};
use floe_replication::message::{Batch, Checksum};
use floe_replication::replica::{Command, Event, Opened, Recovered, Settings};
use floe_replication::{Member, Terms};
use floe_wire::batch::View;
use floe_world::tasks;
use parking_lot::Mutex;

use crate::partition::{Ended, Partition};
pub(crate) use outside::{Outside, Said};

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
    /// The generation led here, if one is.
    led: ArcSwapOption<Partition>,
    /// For tasks that wait for the log.
    itself: Weak<Replica>,
}

struct Machine {
    replica: floe_replication::Replica,
    commands: Vec<Command>,
    /// Of the generation that is being opened, as the catalog says it; empty when a leader was first to say.
    descriptor: Bytes,
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
                descriptor: Bytes::new(),
            }),
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

    /// The generation that the machine leads and may append in.
    pub(crate) fn leads(&self) -> Option<LeaderEpoch> {
        let machine = self.machine.lock();
        machine.replica.leads()
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
        let receipts = self.step_in(&mut machine, Event::Appended { epoch, batch });
        debug_assert!(receipts.is_empty(), "an append opens nothing");
        Ok(end)
    }

    /// Takes in what happened. Gives back what has to be kept before a generation that began with it is used.
    pub(crate) fn step(&self, event: Event) -> Vec<Receipt> {
        self.step_in(&mut self.machine.lock(), event)
    }

    /// The catalog opened a generation.
    pub(crate) fn opened(&self, opened: Opened) -> Vec<Receipt> {
        let mut machine = self.machine.lock();
        machine.descriptor = format::encode_descriptor(opened.leader, &opened.members);
        let receipts = self.step_in(&mut machine, Event::Opened(opened));
        machine.descriptor = Bytes::new();
        receipts
    }

    fn step_in(&self, machine: &mut Machine, event: Event) -> Vec<Receipt> {
        let now = self.outside.clock.monotonic();
        machine.replica.step(now, event, &mut machine.commands);
        let mut receipts = Vec::new();
        for command in machine.commands.drain(..) {
            self.carry_out(command, &machine.descriptor, &mut receipts);
        }
        receipts
    }

    fn carry_out(&self, command: Command, descriptor: &Bytes, receipts: &mut Vec<Receipt>) {
        let Outside { log, .. } = &*self.outside;
        match command {
            Command::Open { epoch, start, .. } => {
                let descriptor = descriptor.clone();
                receipts.push(log.open_generation(&self.log, epoch, start, descriptor));
            }
            Command::Fence { fence, number } => {
                let receipt = log.fence(&self.log, fence);
                self.when(receipt, move |_| Event::FenceFlushed(number));
            }
            Command::Truncate { epoch, end } => receipts.push(log.truncate(&self.log, epoch, end)),
            Command::Committed { epoch, offset } => {
                if let Some(led) = self.led.load().as_ref().filter(|led| led.epoch == epoch) {
                    led.progress.advance(offset);
                }
            }
            Command::Ended { .. } => self.end(Ended::Moved),
            said => self.outside.say(self.address, said),
        }
    }

    /// Steps once the log has kept its promise.
    fn when<T: Send + 'static>(
        &self,
        receipt: Receipt<T>,
        event: impl FnOnce(T) -> Event + Send + 'static,
    ) {
        let itself = Weak::clone(&self.itself);
        tasks::spawn(async move {
            let kept = receipt.await;
            let Some(replica) = itself.upgrade() else {
                return;
            };
            match kept {
                Ok(kept) => {
                    let receipts = replica.step(event(kept));
                    debug_assert!(receipts.is_empty(), "a flush opens nothing");
                }
                Err(failure) => replica.outside.failed(failure),
            }
        });
    }
}
