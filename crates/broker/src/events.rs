//! What the log tells the node: durable ends become commit offsets and wake who waits; a failure ends everything.
//!
//! Guarantees: one sweep per flush, no lock across partitions. Runs on the log's journal thread and never blocks.

use std::sync::Arc;

use arc_swap::ArcSwap;
use floe_log::{Durable, Events, Failure};
use floe_replication::Reported;

use crate::node::Partitions;
use crate::partition::Ended;

/// Called once when a write or flush has failed.
pub(crate) type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// See the module.
pub(crate) struct Sweep {
    pub(crate) partitions: Arc<ArcSwap<Partitions>>,
    pub(crate) on_failure: OnFailure,
}

impl Events for Sweep {
    fn durable(&self, ends: &[Durable]) {
        let partitions = self.partitions.load();
        for durable in ends {
            // A generation that has ended here meanwhile: whoever waited for it was told.
            let Some(partition) = partitions
                .get(&durable.partition)
                .filter(|partition| partition.epoch == durable.epoch)
            else {
                continue;
            };
            match partition.progress.durable(partition.member, durable.end) {
                Reported::Advanced(_) | Reported::Unchanged => {}
                Reported::Damaged | Reported::Stranger => {
                    unreachable!("the log's durable ends of one process only rise")
                }
            }
        }
    }

    fn failed(&self, failure: Failure) {
        for partition in self.partitions.load().values() {
            partition.progress.end(Ended::Stopping);
        }
        (self.on_failure)(&failure.to_string());
    }
}
