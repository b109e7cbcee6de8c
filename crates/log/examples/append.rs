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
use floe_log::{AppendError, Config, Durable, Events, Failure, Log, Setup};
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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(arguments.first().expect("the first argument is a directory"));
    let number = |at: usize, default: usize| {
        arguments
            .get(at)
            .map_or(default, |text| text.parse().unwrap())
    };
    let partitions = number(1, 12);
    let batch = batch(number(2, 65536));
    let total = number(3, 4096) << 20;
    let in_flight = number(4, 32) << 20;
    let clock = Arc::new(System);
    let setup = Setup {
        disk: Arc::new(Real::new()),
        dir,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        random: Arc::new(random::System),
        tail: Pool::new(192 << 20),
        reads: Pool::new(64 << 20),
        config: Config {
            ring_bytes: (number(5, 1024) as u64) << 20,
            ..Config::default()
        },
    };
    let begun = clock.monotonic();
    let (log, recovered) = Log::open(setup).unwrap();
    println!("open {:?}, boot {}", clock.monotonic() - begun, recovered.boot);
    let progress = Arc::new(Progress::default());
    progress.ends.lock().resize(partitions, 0);
    log.start(Arc::clone(&progress) as Arc<dyn Events>).unwrap();
    let epoch = LeaderEpoch(recovered.boot.0);
    let held: Vec<_> = (0..partitions)
        .map(|partition| {
            let partition = TopicPartition {
                topic: TopicId([1; 16]),
                partition: PartitionIndex(partition as u32),
            };
            log.bind(partition).wait().unwrap();
            let held = log.partition(partition).unwrap();
            let start = held.end();
            log.open_generation(&held, epoch, start, Bytes::new())
                .wait()
                .unwrap();
            held
        })
        .collect();
    let mut waiting: VecDeque<(usize, Offset, Duration)> = VecDeque::new();
    let mut latencies = Vec::new();
    let mut full = 0;
    let begun = clock.monotonic();
    let cpu = cpu_seconds();
    let most = (in_flight / batch.len()).max(1);
    for at in 0..total / batch.len() {
        let end = loop {
            match log.append(&held[at % partitions], epoch, &batch) {
                Ok(end) => break end,
                Err(AppendError::Full(_)) => {
                    full += 1;
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("{error}"),
            }
        };
        waiting.push_back((at % partitions, end, clock.monotonic()));
        while waiting.len() >= most {
            let mut ends = progress.ends.lock();
            while waiting
                .front()
                .is_some_and(|(partition, end, _)| ends[*partition] < end.0)
            {
                progress.moved.wait(&mut ends);
            }
            while let Some((partition, end, since)) = waiting.front()
                && ends[*partition] >= end.0
            {
                latencies.push(clock.monotonic() - *since);
                waiting.pop_front();
            }
        }
    }
    for (partition, end, _) in waiting {
        let mut ends = progress.ends.lock();
        while ends[partition] < end.0 {
            progress.moved.wait(&mut ends);
        }
    }
    let took = clock.monotonic() - begun;
    let mib = total as f64 / f64::from(1 << 20);
    let cpu = cpu_seconds() - cpu;
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{mib} MiB in {took:.2?}: {:.0} MiB/s, {} groups, {:.2} cpu s/GiB, p50 {:?} p99 {:?} max {:?}, {full} times full",
        mib / took.as_secs_f64(),
        log.groups(),
        cpu / mib * 1024.0,
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let begun = clock.monotonic();
    log.close().unwrap();
    println!("close {:?}", clock.monotonic() - begun);
}
