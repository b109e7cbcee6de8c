//! Nodes with one partition, stepped in one thread: time, network, logs and tasks move only when the rig moves them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use floe_log::{AppendError, Config, Log, Outcome, Setup, Step};
use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, Timestamp, TopicId,
    TopicPartition,
};
use floe_replication::replica::{Event, Opened};
use floe_replication::{Leader, Member};
use floe_wire::batch::{Builder, batches, records};
use floe_wire::codec::{Codec, Scratch};
use floe_world::clock::Manual;
use floe_world::disk::Simulated;
use floe_world::{Clock as _, Pool, random};
use tokio::sync::mpsc;

use super::control::Past;
use crate::events::Sweep;
use crate::exchange::{Exchange, Heard};
use crate::metrics::Metrics;
use crate::node::Replicas;
use crate::peers::{Network, Peer, Settings};
use crate::replica::{Given, Outside, Replica, Said, recovered};

pub(super) const AT: TopicPartition = TopicPartition {
    topic: TopicId([9; 16]),
    partition: PartitionIndex(0),
};

/// What the catalog says, in its order.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Opened(Opened),
    Sealed(LeaderEpoch, Offset),
}

/// One process of a node.
pub(super) struct Life {
    pub(super) log: Log,
    pub(super) outside: Arc<Outside>,
    pub(super) replica: Arc<Replica>,
    pub(super) said: mpsc::Receiver<Said>,
    pub(super) hearing: mpsc::Receiver<Heard>,
    pub(super) metrics: Arc<Metrics>,
    /// Held by the node, known to its log and its exchange.
    _replicas: Arc<ArcSwap<Replicas>>,
    /// Entries of the catalog that it knows.
    pub(super) applied: usize,
}

pub(super) struct Node {
    pub(super) disk: Simulated,
    pub(super) life: Option<Life>,
    /// Its journal does nothing.
    pub(super) is_slow: bool,
    /// As who it started last.
    pub(super) who: Leader,
}

pub(super) struct Rig {
    seed: u64,
    pub(super) config: Config,
    pub(super) clock: Arc<Manual>,
    pub(super) network: Arc<Network>,
    pub(super) nodes: Vec<Node>,
    pub(super) catalog: Vec<Entry>,
    pub(super) past: Vec<Past>,
    pub(super) has_table: bool,
}

/// Small, so that little data goes all ways.
pub(super) fn config() -> Config {
    Config {
        ring_bytes: 4 << 20,
        group_bytes_max: 256 << 10,
        segment_bytes: 256 << 10,
        large_append_bytes: 16 << 10,
        batch_bytes_max: 48 << 10,
        run_bytes_max: 64 << 10,
        ..Config::default()
    }
}

impl Rig {
    /// So many nodes, numbered from 1, that hold nothing yet.
    pub(super) async fn new(seed: u64, nodes: u32) -> Self {
        Self::with(seed, nodes, config(), Settings::default()).await
    }

    pub(super) async fn with(seed: u64, nodes: u32, config: Config, settings: Settings) -> Self {
        let node = |id: u32| Node {
            disk: Simulated::new(seed * 31 + u64::from(id)),
            life: None,
            is_slow: false,
            who: Leader {
                node: NodeId(id),
                incarnation: Incarnation(0),
                boot: Boot(0),
            },
        };
        let mut rig = Self {
            seed,
            config,
            clock: Arc::new(Manual::at(Timestamp(1_700_000_000_000))),
            network: Network::new(seed, settings),
            nodes: (1..=nodes).map(node).collect(),
            catalog: Vec::new(),
            past: Vec::new(),
            has_table: false,
        };
        for id in 1..=nodes {
            rig.start(id);
        }
        rig.run(2).await;
        rig
    }

    pub(super) fn node(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize - 1]
    }

    pub(super) fn life(&mut self, id: u32) -> &mut Life {
        self.node(id).life.as_mut().expect("the node is up")
    }

    pub(super) fn replica(&mut self, id: u32) -> Arc<Replica> {
        Arc::clone(&self.life(id).replica)
    }

    pub(super) fn member(&mut self, id: u32) -> Member {
        self.life(id).replica.member()
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// A process begins on the node's disk.
    pub(super) fn start(&mut self, id: u32) {
        let disk = self.node(id).disk.clone();
        let (log, found) = Log::open(Setup {
            disk: Arc::new(disk),
            dir: PathBuf::from("/data"),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(random::Seeded::new(self.seed * 77 + u64::from(id))),
            tail: Pool::new(4 << 20),
            reads: Pool::new(2 << 20),
            config: Config {
                node: NodeId(id),
                ..self.config.clone()
            },
        })
        .expect("the disk can be opened");
        let replicas = Arc::new(ArcSwap::from_pointee(Replicas::default()));
        log.attach(Arc::new(Sweep {
            replicas: Arc::downgrade(&replicas),
            on_failure: Box::new(|_| {}),
        }));
        let incarnation = drive(&log, log.bind(AT)).expect("bound");
        let metrics = Arc::new(Metrics::default());
        let (exchange, hearing) = Exchange::new(&replicas, Arc::clone(&metrics));
        let me = Peer {
            node: NodeId(id),
            incarnation,
            boot: found.boot,
            cluster: None,
        };
        let transport = self.network.join(me, exchange);
        let (outside, said) = Outside::new(Given {
            node: NodeId(id),
            boot: found.boot,
            log: log.clone(),
            clock: Arc::clone(&self.clock) as _,
            transport,
            metrics: Arc::clone(&metrics),
        });
        let partition = log.partition(AT).expect("it is bound");
        let open = self.open().map_or(LeaderEpoch(0), |open| open.epoch);
        let held = drive(&log, recovered(&log, &partition, open));
        let replica = Replica::new(AT, partition, &held, Arc::clone(&outside));
        replicas.store(Arc::new(Replicas::from([(AT, Arc::clone(&replica))])));
        self.node(id).who = Leader {
            node: NodeId(id),
            incarnation,
            boot: found.boot,
        };
        self.node(id).life = Some(Life {
            log,
            outside,
            replica,
            said,
            hearing,
            metrics,
            _replicas: replicas,
            applied: 0,
        });
    }

    /// Its process ends; power goes with it, or only the process.
    pub(super) async fn stop(&mut self, id: u32, is_power_cut: bool) {
        let node = &mut self.nodes[id as usize - 1];
        if is_power_cut {
            node.disk.cut_power();
        }
        node.life = None;
        self.network.leave(NodeId(id));
        node.disk = if is_power_cut {
            node.disk.after_power_cut()
        } else {
            node.disk.after_crash()
        };
        yields().await;
    }

    /// The open generation.
    pub(super) fn open(&self) -> Option<&Opened> {
        let mut last = self.catalog.iter().rev();
        last.find_map(|entry| match entry {
            Entry::Opened(opened) => Some(opened),
            Entry::Sealed(..) => None,
        })
    }

    /// The first generation, on these nodes, led by the first.
    pub(super) async fn open_first(&mut self, nodes: &[u32], quorum: usize) {
        let members = nodes.iter().map(|id| self.member(*id)).collect();
        let opened = Opened {
            epoch: LeaderEpoch(1),
            start: Offset::ZERO,
            leader: self.node(nodes[0]).who,
            members,
            quorum,
            has_table: self.has_table,
            leases: Vec::new(),
        };
        self.catalog.push(Entry::Opened(opened));
        for id in nodes {
            self.learn(*id);
        }
        self.run(2).await;
    }

    /// A node takes in all that the catalog says and it does not know.
    pub(super) fn learn(&mut self, id: u32) {
        let entries = self.catalog.clone();
        let life = self.life(id);
        for entry in &entries[life.applied..] {
            drop(match entry {
                Entry::Opened(opened) => life.replica.opened(opened.clone()),
                Entry::Sealed(epoch, end) => life.replica.step(Event::Sealed {
                    epoch: *epoch,
                    end: *end,
                    lossy: false,
                }),
            });
        }
        life.applied = entries.len();
    }

    /// So many milliseconds go by: messages, flushes, reads, every 25 ms a tick.
    pub(super) async fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.clock.advance(Duration::from_millis(1));
            let now = self.network.now() + Duration::from_millis(1);
            while self.network.step(now) {
                yields().await;
            }
            for node in &self.nodes {
                let Some(life) = &node.life else { continue };
                if !node.is_slow {
                    steps(&life.log);
                }
                while life.log.step_reads() == Step::Worked {}
                yields().await;
                if now.as_millis().is_multiple_of(25) {
                    life.outside.tick();
                }
                life.outside.send_lists();
            }
        }
    }

    /// Runs until it holds.
    pub(super) async fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..20_000 {
            if holds(self) {
                return;
            }
            self.run(1).await;
        }
        panic!("not within 20 seconds: {what}");
    }

    /// Appends on a node one batch of one value; gives its end.
    pub(super) fn append(&mut self, id: u32, value: &str) -> Result<Offset, AppendError> {
        let replica = self.replica(id);
        let Some(epoch) = replica.leads() else {
            return Err(AppendError::NotOpen { open: None });
        };
        replica.append(epoch, &batch(value))
    }

    pub(super) fn committed(&mut self, id: u32, epoch: u32) -> u64 {
        let committed = self.replica(id).committed(LeaderEpoch(epoch));
        committed.map_or(0, |committed| committed.0)
    }

    /// End of what a node holds of a generation, accepted.
    pub(super) fn end(&mut self, id: u32, epoch: u32) -> u64 {
        let all = self.replica(id).log.generations();
        let found = all.iter().find(|held| held.epoch.0 == epoch);
        found.map_or(0, |held| held.end.0)
    }

    /// Offsets and values of a generation as they lie on a node.
    pub(super) fn values(&mut self, id: u32, epoch: u32) -> Vec<(u64, String)> {
        let life = self.life(id);
        let partition = Arc::clone(&life.replica.log);
        let all = partition.generations();
        let Some(held) = all.iter().find(|held| held.epoch.0 == epoch) else {
            return Vec::new();
        };
        let (mut next, mut values) = (held.start, Vec::new());
        while next < held.end {
            let log = life.log.clone();
            let read = log.read_generation(&partition, held.epoch, next, held.end, 50_000, true);
            let slices = match read.expect("it is held") {
                Outcome::Memory(slices) => slices,
                Outcome::Cold(read) => drive(&log, read).expect("it can be read"),
            };
            assert!(slices.next > next);
            next = slices.next;
            for bytes in &slices.batches {
                values.extend(values_of(bytes));
            }
        }
        values
    }

    /// Whether a node reads that offset of a generation from memory.
    pub(super) fn is_in_memory(&mut self, id: u32, epoch: u32, from: u64) -> bool {
        let life = self.life(id);
        let (epoch, from) = (LeaderEpoch(epoch), Offset(from));
        let read = life
            .log
            .read_generation(&life.replica.log, epoch, from, from.plus(1), 1, true);
        matches!(read.expect("it is held"), Outcome::Memory(_))
    }

    /// A connection ends, and does not begin again by itself.
    pub(super) fn cut(&mut self, one: u32, other: u32) {
        self.network.disconnect(NodeId(one), NodeId(other));
    }

    pub(super) fn heal(&mut self, one: u32, other: u32) {
        self.network.connect(NodeId(one), NodeId(other));
    }
}

/// What is runnable runs.
pub(super) async fn yields() {
    for _ in 0..6 {
        tokio::task::yield_now().await;
    }
}

pub(super) fn steps(log: &Log) {
    while log.step_journal() == Step::Worked
        || log.step_segments() == Step::Worked
        || log.step_removals() == Step::Worked
    {}
    log.step_checkpoint();
}

/// Steps a log until it answers.
pub(super) fn drive<F: Future>(log: &Log, future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..1_000 {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        steps(log);
        while log.step_reads() == Step::Worked {}
    }
    panic!("the log does not answer");
}

pub(super) fn batch(value: &str) -> Bytes {
    let mut builder = Builder::new(Codec::None);
    builder
        .record(Timestamp(5), None, Some(value.as_bytes()), &[])
        .unwrap();
    builder.finish().unwrap().into()
}

pub(super) fn values_of(bytes: &[u8]) -> Vec<(u64, String)> {
    let mut scratch = Scratch::default();
    let mut values = Vec::new();
    for view in batches(bytes) {
        let view = view.unwrap();
        let base = view.base_offset() as u64;
        for record in records(&view, &mut scratch).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            values.push((base + record.offset_delta as u64, value));
        }
    }
    values
}

/// Runs a test of the rig.
pub(super) fn on_rig<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(test)
}
