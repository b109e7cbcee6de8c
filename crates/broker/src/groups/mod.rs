//! The groups of a node: drives the pure machines of `floe_groups` and stores positions.
//!
//! ```text
//!   Kafka: join, sync, heartbeat, leave, commit, fetch      HTTP: register, poll, commit, goodbye
//!                                  \                          /
//!                  shard of the group: its machine, under one lock (shard.rs)
//!                          |  append, in the order allowed (store.rs)
//!                  __group_positions/partition of the shard
//!                          |  applied when durable (store.rs), snapshots (snapshots.rs)
//!                  table: group, topic id, partition -> position (row.rs)
//! ```
//!
//! Guarantees: a position is durable in the internal topic `__group_positions` before its commit is answered, moves
//! only by commits, and lives as long as its topic. Membership lives in memory: after a restart members join again
//! and read on from their positions. Every group, consumer, commit under way and position is counted against a limit.

mod commits;
mod consumers;
mod directory;
mod listing;
mod load;
mod membership;
mod metrics;
mod outcome;
mod polling;
mod row;
mod shard;
mod snapshots;
mod store;
mod timer;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use floe_world::tasks::Handle;
use parking_lot::Mutex;

use crate::node::Node;
use directory::Directory;
use shard::Shard;
use usage::Usage;

pub use outcome::{
    Chunk, CommitRefusal, Description, Error, Listed, MemberDescription, Polled, Registered, State,
};

/// The groups of a node, for both doors. Cheap to clone.
#[derive(Clone)]
pub struct Groups(Arc<Inner>);

struct Inner {
    node: Arc<Node>,
    shards: Vec<Arc<Shard>>,
    usage: Arc<Usage>,
    directory: Mutex<Directory>,
    appliers: Mutex<Vec<Handle<()>>>,
}

impl Groups {
    /// Ends it: no commit is taken any more, those on their way are finished, tables are written. To be called while
    /// the log still runs.
    pub(crate) async fn stop(&self) {
        for shard in &self.0.shards {
            shard.lock().writes = None;
        }
        let appliers = std::mem::take(&mut *self.0.appliers.lock());
        for applier in appliers {
            applier.await;
        }
    }
}

impl Inner {
    /// Time as the machines count it.
    fn now(&self) -> Duration {
        self.node.world.clock.monotonic()
    }

    /// Makes a member id unique.
    fn fresh_id(&self) -> String {
        let mut text = String::with_capacity(32);
        for byte in self.node.world.random.id() {
            use std::fmt::Write as _;
            write!(text, "{byte:02x}").expect("a string takes any text");
        }
        text
    }
}
