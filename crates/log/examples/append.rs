//! How fast one log takes batches, each flushed: `cargo run --release -p floe-log --example append -- DIR
//! [partitions 12] [batch bytes 65536] [MiB 4096] [in flight MiB 32] [ring MiB 1024]`.
//!
//! One thread appends batches round robin, as one connection would, with a bound on what is not flushed yet.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends at the first failure"
)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use floe_log::{AppendError, Config, Durable, Events, Failure, Log, PartitionLog, Setup};
use floe_model::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId, TopicPartition};
use floe_wire::batch::Builder;
use floe_wire::codec::Codec;
use floe_world::clock::{Clock, System};
use floe_world::disk::Real;
use floe_world::{Pool, random};
use parking_lot::{Condvar, Mutex};

#[derive(Default)]
struct Progress {
    ends: Mutex<Vec<u64>>,
    moved: Condvar,
}

impl Events for Progress {
    fn durable(&self, ends: &[Durable]) {
        let mut held = self.ends.lock();
        for one in ends {
            held[one.partition.partition.0 as usize] = one.end.0;
        }
        self.moved.notify_all();
    }

    fn failed(&self, failure: Failure) {
        println!("failed: {failure}");
    }
}

fn batch(bytes: usize) -> Vec<u8> {
    let mut builder = Builder::new(Codec::None);
    let value = vec![b'x'; 1000];
    loop {
        builder
            .record(Timestamp(1), None, Some(&value), &[])
            .unwrap();
        if builder.bytes_len() + 1024 > bytes {
            return builder.finish().unwrap();
        }
    }
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    (ticks(12).unwrap_or(0.0) + ticks(13).unwrap_or(0.0)) / 100.0
}

/// What is asked for on the command line.
struct Load {
    dir: PathBuf,
    partitions: usize,
    batch: Vec<u8>,
    batches: usize,
    in_flight: usize,
    ring_bytes: u64,
}

fn load() -> Load {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        let text = arguments.get(at);
        text.map_or(default, |text| text.parse().unwrap())
    };
    let batch = batch(number(2, 65536));
    Load {
        dir: PathBuf::from(
            arguments
                .first()
                .expect("the first argument is a directory"),
        ),
        partitions: number(1, 12),
        batches: (number(3, 4096) << 20) / batch.len(),
        in_flight: ((number(4, 32) << 20) / batch.len()).max(1),
        batch,
        ring_bytes: (number(5, 1024) as u64) << 20,
    }
}

fn open(load: &Load) -> (Log, LeaderEpoch) {
    let setup = Setup {
        disk: Arc::new(Real::new()),
        dir: load.dir.clone(),
        clock: Arc::new(System),
        random: Arc::new(random::System),
        tail: Pool::new(192 << 20),
        reads: Pool::new(64 << 20),
        config: Config {
            ring_bytes: load.ring_bytes,
            ..Config::default()
        },
    };
    let begun = System.monotonic();
    let (log, recovered) = Log::open(setup).unwrap();
    println!("open {:?}, boot {}", since(begun), recovered.boot);
    (log, LeaderEpoch(recovered.boot.0))
}

fn since(begun: Duration) -> Duration {
    System.monotonic().saturating_sub(begun)
}

fn partition(log: &Log, number: usize, epoch: LeaderEpoch) -> Arc<PartitionLog> {
    let partition = TopicPartition {
        topic: TopicId([1; 16]),
        partition: PartitionIndex(number as u32),
    };
    log.bind(partition).wait().unwrap();
    let held = log.partition(partition).unwrap();
    let opened = log.open_generation(&held, epoch, held.end(), Bytes::new());
    opened.wait().unwrap();
    held
}

/// Appends, trying again while there is no room; counts how often there was none.
fn append(
    log: &Log,
    held: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
    batch: &[u8],
    full: &mut u64,
) -> Offset {
    loop {
        match log.append(held, epoch, batch) {
            Ok(end) => return end,
            Err(AppendError::Full(_)) => {
                *full += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until the oldest of `waiting` is flushed, and takes all that are.
fn settle(
    progress: &Progress,
    waiting: &mut VecDeque<(usize, Offset, Duration)>,
    latencies: &mut Vec<Duration>,
) {
    let mut ends = progress.ends.lock();
    while let Some((partition, end, _)) = waiting.front()
        && ends[*partition] < end.0
    {
        progress.moved.wait(&mut ends);
    }
    while let Some((partition, end, begun)) = waiting.front()
        && ends[*partition] >= end.0
    {
        latencies.push(since(*begun));
        waiting.pop_front();
    }
}

fn main() {
    let load = load();
    let (log, epoch) = open(&load);
    let progress = Arc::new(Progress::default());
    progress.ends.lock().resize(load.partitions, 0);
    log.start(Arc::clone(&progress) as Arc<dyn Events>).unwrap();
    let held: Vec<_> = (0..load.partitions)
        .map(|number| partition(&log, number, epoch))
        .collect();
    let mut waiting = VecDeque::new();
    let mut latencies = Vec::new();
    let mut full = 0;
    let begun = System.monotonic();
    let cpu = cpu_seconds();
    for at in 0..load.batches {
        let number = at % load.partitions;
        let end = append(&log, &held[number], epoch, &load.batch, &mut full);
        waiting.push_back((number, end, System.monotonic()));
        while waiting.len() >= load.in_flight {
            settle(&progress, &mut waiting, &mut latencies);
        }
    }
    while !waiting.is_empty() {
        settle(&progress, &mut waiting, &mut latencies);
    }
    let took = since(begun);
    let mib = (load.batches * load.batch.len()) as f64 / f64::from(1 << 20);
    let cpu = cpu_seconds() - cpu;
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{mib:.0} MiB in {took:.2?}: {:.0} MiB/s, {} groups, {:.2} cpu s/GiB, p50 {:?} p99 {:?} max {:?}, {full} times full",
        mib / took.as_secs_f64(),
        log.groups(),
        cpu / mib * 1024.0,
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let begun = System.monotonic();
    log.close().unwrap();
    println!("close {:?}", since(begun));
}
