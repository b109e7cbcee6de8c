//! What the copies of a node's partitions share: its log, its clock, who it is, and where their words go.

use std::sync::{Arc, OnceLock};

use floe_log::{Failure, Log};
use floe_model::{Boot, NodeId, TopicPartition};
use floe_replication::replica::Command;
use floe_world::Clock;
use tokio::sync::mpsc;

/// Words that may wait to be heard. What finds no room is lost like a message: whoever asked asks again.
const WAITING_MAX: usize = 1 << 16;

/// What a copy has to say to others: answers to a controller, and wishes.
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
    said: mpsc::Sender<Said>,
    failure: OnceLock<Failure>,
}

impl Outside {
    /// ... and where what is said comes out.
    pub(crate) fn new(
        node: NodeId,
        boot: Boot,
        log: Log,
        clock: Arc<dyn Clock>,
    ) -> (Arc<Self>, mpsc::Receiver<Said>) {
        let (said, heard) = mpsc::channel(WAITING_MAX);
        let outside = Self {
            node,
            boot,
            log,
            clock,
            said,
            failure: OnceLock::new(),
        };
        (Arc::new(outside), heard)
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
}
