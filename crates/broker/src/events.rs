//! What the log tells the node: durable ends become commit offsets and wake who waits; a failure ends everything.
//!
//! Guarantees: one sweep per flush, no lock across partitions. Runs on the log's journal thread and never blocks.

use std::sync::Weak;

use arc_swap::ArcSwap;
use floe_log::{Durable, Events, Failure};
use floe_replication::replica::Event;

use crate::node::Replicas;
use crate::partition::Ended;

/// Called once when a write or flush has failed.
pub(crate) type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// See the module.
pub(crate) struct Sweep {
    /// The node's: they hold the log, which holds this.
    pub(crate) replicas: Weak<ArcSwap<Replicas>>,
    pub(crate) on_failure: OnFailure,
}

impl Events for Sweep {
    fn durable(&self, ends: &[Durable]) {
        let Some(replicas) = self.replicas.upgrade() else {
            return;
        };
        let replicas = replicas.load();
        for durable in ends {
            if let Some(replica) = replicas.get(&durable.partition) {
                let (epoch, end) = (durable.epoch, durable.end);
                let opened = replica.step(Event::Flushed { epoch, end });
                debug_assert!(opened.is_empty(), "a flush opens nothing");
            }
        }
    }

    fn failed(&self, failure: Failure) {
        if let Some(replicas) = self.replicas.upgrade() {
            for replica in replicas.load().values() {
                replica.end(Ended::Stopping);
            }
        }
        (self.on_failure)(&failure.to_string());
    }
}
