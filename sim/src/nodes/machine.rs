//! One simulated machine: a disk, a clock, and the life of the process that runs on it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use floe_broker::{Broker, Settings, StartError, World};
use floe_model::{NodeId, Timestamp};
use floe_world::clock;
use floe_world::disk::Simulated;
use floe_world::random::Seeded;
use floe_world::tasks::{Executor, Process};
use floe_world::{Pool, time};
use parking_lot::Mutex;

use crate::chance::Chance;

/// What the wall clocks show at first.
pub(crate) const START: i64 = 1_700_000_000_000;
/// Budget of one node.
const MEMORY_BYTES: usize = 64 << 20;

/// See the module.
pub(crate) struct Machine {
    pub(crate) node: NodeId,
    pub(crate) clock: Arc<clock::Simulated>,
    executor: Executor,
    chance: Chance,
    settings: Settings,
    state: Mutex<State>,
}

struct State {
    disk: Simulated,
    life: Option<Arc<Life>>,
}

/// One process.
pub(crate) struct Life {
    pub(crate) process: Process,
    broker: OnceLock<Broker>,
    /// Why it must end, as it said itself.
    failed: OnceLock<String>,
    refused: OnceLock<StartError>,
}

impl Machine {
    pub(crate) fn new(node: NodeId, executor: &Executor, chance: &Chance) -> Self {
        let mut settings = Settings::new(PathBuf::from("/data"));
        settings.node = node;
        settings.log.ring_bytes = chance.of(&[1 << 20, 2 << 20]);
        settings.log.group_bytes_max = 128 << 10;
        settings.log.segment_bytes = chance.of(&[64 << 10, 256 << 10]);
        settings.log.large_append_bytes = chance.of(&[4 << 10, 16 << 10]);
        settings.log.batch_bytes_max = 100 << 10;
        settings.log.run_bytes_max = 128 << 10;
        settings.topic_defaults.max_message_bytes = 64 << 10;
        Self {
            node,
            clock: Arc::new(clock::Simulated::new(executor.clone(), Timestamp(START))),
            executor: executor.clone(),
            chance: chance.clone(),
            settings,
            state: Mutex::new(State {
                disk: Simulated::new(chance.bits()),
                life: None,
            }),
        }
    }

    pub(crate) fn disk(&self) -> Simulated {
        self.state.lock().disk.clone()
    }

    pub(crate) fn life(&self) -> Option<Arc<Life>> {
        self.state.lock().life.clone()
    }

    /// The process begins; it is there when its broker is.
    pub(crate) fn start(&self) {
        let process = self.executor.process();
        let life = Arc::new(Life {
            process: process.clone(),
            broker: OnceLock::new(),
            failed: OnceLock::new(),
            refused: OnceLock::new(),
        });
        let mut state = self.state.lock();
        let before = state.life.replace(Arc::clone(&life));
        assert!(before.is_none(), "one process at a time");
        let world = World {
            disk: Arc::new(state.disk.clone()),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(Seeded::new(self.chance.bits())),
            memory: Pool::new(MEMORY_BYTES),
        };
        drop(state);
        let settings = self.settings.clone();
        drop(process.spawn(async move {
            let told = Arc::downgrade(&life);
            let failed = move |what: &str| {
                if let Some(life) = told.upgrade() {
                    drop(life.failed.set(what.to_owned()));
                }
            };
            match Broker::start(world, settings, failed).await {
                Ok(broker) => drop(life.broker.set(broker)),
                Err(error) => drop(life.refused.set(error)),
            }
        }));
    }

    /// The process ends from one moment to the next: SIGKILL, or with the power.
    pub(crate) fn end(&self, with_power: bool) {
        let mut state = self.state.lock();
        let life = state.life.take();
        state.disk = if with_power || state.disk.is_cut() {
            state.disk.after_power_cut()
        } else {
            state.disk.after_crash()
        };
        drop(state);
        if let Some(life) = life {
            life.process.end();
        }
    }

    /// What a client learns that asks this machine and waits so long: nothing if the process ends first, or is not there.
    pub(crate) async fn call<F, R>(
        &self,
        wait: Duration,
        request: impl FnOnce(Broker) -> F,
    ) -> Option<R>
    where
        F: Future<Output = R> + Send + 'static,
        R: Send + 'static,
    {
        let way = Duration::from_micros(self.chance.number(20..300));
        time::sleep(way).await;
        let answer = self.life().and_then(|life| {
            let broker = life.broker.get()?.clone();
            Some(life.process.spawn(request(broker)))
        });
        let Some(answer) = answer else {
            time::sleep(way).await;
            return None;
        };
        time::timeout(wait, answer).await.ok()
    }
}

impl Life {
    /// Why it says it cannot go on.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Why it did not start.
    pub(crate) fn refused(&self) -> Option<String> {
        self.refused.get().map(ToString::to_string)
    }
}
