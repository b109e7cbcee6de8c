//! Whole nodes as they ship, on simulated machines: brokers, their logs and their clients, from one seed.
//!
//! ```text
//! clients ─► call ─► Broker on a Machine ─► log ─► simulated disk        faults: kills, power, disks, clocks
//!    └────────────► Truth ◄──── everything read back at the end
//! ```
//!
//! Guarantees: one thread, one seed, time of its own; two runs of one seed note the same. At the end all machines are up and
//! everything that was acknowledged or seen is compared with what is there, then again after all have lost their power.

mod clients;
mod faults;
mod machine;
mod members;
mod truth;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use floe_groups::GroupId;
use floe_model::{NodeId, TopicPartition};
use floe_world::tasks::{Executor, Process, Ran};
use parking_lot::Mutex;

pub use faults::Fault;
pub use truth::Compared;

use crate::chance::Chance;
use clients::Shared;
use faults::Faults;
use machine::Machine;
use truth::Truth;

/// All must be served by then: an hour of the simulated world.
const TIME_MAX: Duration = Duration::from_hours(1);
/// Bound of a run, far above what one needs.
const EVENTS_MAX: u64 = 20_000_000;
/// Partitions that clients work on.
const PARTITIONS: i32 = 3;
/// The topic they are of.
const TOPIC: &str = "work";

/// What a run did, for the person who reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations of clients.
    pub operations: u64,
    /// Records acknowledged.
    pub acknowledged: u64,
    /// How often something was compared.
    pub compared: Compared,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// Things that happened.
    pub events: u64,
    /// How long it took in the simulated world.
    pub took: Duration,
    /// A print of everything noted.
    pub trace: u64,
}

impl Summary {
    /// Sums up.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.acknowledged += other.acknowledged;
        self.compared.durable += other.compared.durable;
        self.compared.ordered += other.compared.ordered;
        self.compared.exactly_once += other.compared.exactly_once;
        self.compared.positions += other.compared.positions;
        self.compared.delivered += other.compared.delivered;
        self.compared.topics += other.compared.topics;
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        self.events += other.events;
        self.took += other.took;
        self.trace ^= other.trace;
    }
}

/// A promise that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The seed that shows it again.
    pub seed: u64,
    /// Which promise, and where.
    pub what: String,
    /// What happened last.
    pub notes: VecDeque<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        let Self { seed, what, .. } = self;
        write!(
            f,
            "seed {seed}: {what}\nto run it again: cargo run --release -p floe-sim -- node {seed}"
        )
    }
}

/// Runs one seed.
pub fn run(seed: u64) -> Result<Summary, Broken> {
    let mut run = Run::new(seed);
    let ended = run.all();
    let mut truth = std::mem::take(&mut *run.shared.truth.lock());
    if let Err(what) = ended {
        truth.breaks(what);
    }
    for machine in &run.shared.machines {
        machine.end(false);
    }
    run.clients.end();
    match truth.broken {
        Some(what) => Err(Broken {
            seed,
            what,
            notes: truth.notes,
        }),
        None => Ok(Summary {
            trace: truth.trace(),
            operations: truth.operations,
            acknowledged: truth.acknowledged,
            compared: truth.compared,
            faults: run.faults.injected,
            events: run.events,
            took: run.executor.now(),
        }),
    }
}

struct Run {
    chance: Chance,
    executor: Executor,
    shared: Arc<Shared>,
    faults: Faults,
    clients: Process,
    events: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let chance = Chance::new(seed);
        let hung = Arc::default();
        let executor = Executor::new(faults::pace(&chance, &hung));
        let machine = Machine::new(NodeId(0), &executor, &chance);
        let shared = Shared {
            machines: vec![Arc::new(machine)],
            truth: Mutex::new(Truth::default()),
            chance: chance.clone(),
            clock: executor.clone(),
            busy: Mutex::new(0),
            ends: Mutex::default(),
        };
        let count = chance.number(5..12);
        Self {
            faults: Faults::new(&chance, &executor, hung, count),
            clients: executor.process(),
            shared: Arc::new(shared),
            executor,
            chance,
            events: 0,
        }
    }

    fn all(&mut self) -> Result<(), String> {
        for machine in &self.shared.machines {
            machine.start();
        }
        let partitions = self.partitions()?;
        self.work(&partitions);
        self.more_work();
        self.until("the clients' work", |run| {
            *run.shared.busy.lock() == 0 && run.faults.are_over()
        })?;
        self.is_whole(&partitions)?;
        for machine in &self.shared.machines {
            machine.end(true);
            machine.start();
        }
        self.is_whole(&partitions)
    }

    /// Runs a client to its end.
    fn client<R: Send + 'static>(
        &mut self,
        what: &str,
        client: impl Future<Output = R> + Send + 'static,
    ) -> Result<R, String> {
        let result = Arc::new(Mutex::new(None));
        let given = Arc::clone(&result);
        drop(self.clients.spawn(async move {
            let value = client.await;
            *given.lock() = Some(value);
        }));
        self.until(what, |_| result.lock().is_some())?;
        let value = result.lock().take();
        value.ok_or_else(|| format!("{what} gave nothing"))
    }

    fn partitions(&mut self) -> Result<Vec<TopicPartition>, String> {
        let shared = Arc::clone(&self.shared);
        self.client("creating the topic", async move {
            clients::topic(&shared, TOPIC, PARTITIONS).await
        })
    }

    fn work(&mut self, partitions: &[TopicPartition]) {
        for n in 0..9 {
            let at = partitions[n % partitions.len()];
            let shared = Arc::clone(&self.shared);
            let count = self.chance.number(40..80);
            *self.shared.busy.lock() += 1;
            let name = format!("c{n}");
            match n / 3 {
                0 => drop(
                    self.clients
                        .spawn(clients::idempotent(shared, name, at, count)),
                ),
                1 => drop(self.clients.spawn(clients::plain(shared, name, at, count))),
                _ => drop(self.clients.spawn(clients::reader(shared, name, at, count))),
            }
        }
    }

    fn more_work(&mut self) {
        for name in ["m0", "m1"] {
            let (shared, polls) = (Arc::clone(&self.shared), self.chance.number(30..80));
            let member = members::member(shared, name.to_owned(), TOPIC.to_owned(), Some(polls));
            drop(self.clients.spawn(member));
        }
        let churn = members::churn(Arc::clone(&self.shared), self.chance.number(3..8));
        drop(self.clients.spawn(churn));
        *self.shared.busy.lock() += 3;
    }

    fn is_whole(&mut self, partitions: &[TopicPartition]) -> Result<(), String> {
        for (n, at) in partitions.iter().enumerate() {
            let (at, shared) = (*at, Arc::clone(&self.shared));
            let name = format!("c{}", 6 + n);
            self.client("reading everything back", async move {
                let all = clients::everything(&shared, at).await;
                shared.truth.lock().is_whole(at, &all);
                shared.ends.lock().insert(at, all.len() as u64);
                let group = GroupId::from(name.as_str());
                clients::position(&shared, &name, &group, at).await;
            })?;
        }
        let shared = Arc::clone(&self.shared);
        self.client("reading on as the group", async move {
            let (name, topic) = ("m2".to_owned(), TOPIC.to_owned());
            // Members that say nothing any more are gone then.
            floe_world::time::sleep(Duration::from_secs(10)).await;
            members::member(Arc::clone(&shared), name, topic, None).await;
            members::positions(&shared).await;
            let ends = shared.ends.lock().clone();
            for (at, end) in ends {
                shared.truth.lock().has_read_all(at, end);
            }
        })
    }

    /// Things happen until it is so, or a promise is broken.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !is_so(self) {
            if let Some(broken) = self.shared.truth.lock().broken.clone() {
                return Err(broken);
            }
            self.events += 1;
            if self.events > EVENTS_MAX || self.executor.now() > TIME_MAX {
                let now = self.executor.now();
                return Err(format!(
                    "{what}: not done after {now:?}, {} events",
                    self.events
                ));
            }
            self.faults.step(&self.shared);
            let until = self.faults.next_at();
            let chance = self.chance.clone();
            let ran = self
                .executor
                .run_one(until, &mut |count| chance.number(0..count as u64) as usize);
            match ran {
                Ran::Task(_) => {
                    let took = Duration::from_micros(self.chance.number(0..10));
                    self.executor.advance(self.executor.now() + took);
                }
                Ran::Part(..) | Ran::Time => {}
                Ran::Nothing if until == Duration::MAX => {
                    return Err(format!("{what}: nothing happens any more"));
                }
                Ran::Nothing => self.executor.advance(until),
            }
        }
        match self.shared.truth.lock().broken.clone() {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }
}
