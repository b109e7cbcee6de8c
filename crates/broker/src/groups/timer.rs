//! The clock of the groups: sessions that end, rebalances that go on without the late.

use std::sync::{Arc, Weak};
use std::time::Duration;

use floe_groups::ConsumerId;
use floe_world::tasks;

use super::shard::{Machine, Shard};
use super::{Groups, Inner};

/// How late a time-out may be noticed. Read from the node's clock; only the pauses between looks are the runtime's.
const INTERVAL: Duration = Duration::from_millis(100);

/// Ticks until the node stops.
pub(super) fn spawn(groups: &Groups) {
    let weak = Arc::downgrade(&groups.0);
    let mut stopping = groups.0.node.stopping.subscribe();
    tasks::spawn(async move {
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                () = floe_world::time::sleep(INTERVAL) => {}
            }
            let Some(inner) = Weak::upgrade(&weak) else {
                return;
            };
            inner.tick();
        }
    });
}

impl Inner {
    fn tick(&self) {
        for shard in &self.shards {
            let gone = tick_shard(self, shard);
            if !gone.is_empty() {
                let mut directory = self.directory.lock();
                for (consumer, registration) in gone {
                    directory.remove(&consumer, registration);
                }
            }
        }
    }
}

/// Ticks one shard; the HTTP consumers that are gone are returned.
fn tick_shard(inner: &Inner, shard: &Shard) -> Vec<(ConsumerId, u64)> {
    let now = inner.now();
    let mut state = shard.lock();
    let due: Vec<_> = state
        .groups
        .iter()
        .filter(|(_, entry)| {
            let deadline = match &entry.machine {
                Machine::Classic(group) => group.next_deadline(),
                Machine::Assigned(group) => group.next_deadline(),
            };
            deadline.is_some_and(|deadline| deadline <= now)
        })
        .map(|(id, _)| id.clone())
        .collect();
    let mut gone = Vec::new();
    for id in due {
        let Some(entry) = state.groups.get_mut(&id) else {
            continue;
        };
        match &mut entry.machine {
            Machine::Classic(group) => group.tick(now),
            Machine::Assigned(group) => {
                for member in group.tick(now) {
                    tracing::info!(group = %id, consumer = %member.id, "consumer was idle too long and is gone");
                    gone.push((member.id, member.registration));
                }
            }
        }
        state.settle(&id);
    }
    gone
}
