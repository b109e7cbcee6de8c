//! A log on the simulated disk, stepped in one thread.

#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test ends at the first thing that is not as it should be, and takes what it needs"
)]

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use floe_log::format::batch::BatchHead;
use floe_log::{
    Config, Durable, Events, Failure, Log, OpenError, Outcome, PartitionLog, ReadError, Recovered,
    Setup, Slices, Step,
};
use floe_model::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId, TopicPartition};
use floe_wire::batch::Builder;
use floe_wire::codec::Codec;
use floe_world::clock::Manual;
use floe_world::disk::Simulated;
use floe_world::{Pool, random};
use parking_lot::Mutex;

#[derive(Default)]
pub struct Seen {
    pub durable: Mutex<Vec<Durable>>,
    pub failed: Mutex<Option<Failure>>,
    /// Asked at the first report, with its answer.
    pub at_report: Mutex<Option<Box<dyn Fn() -> bool + Send + Sync>>>,
    pub answered_first: Mutex<Option<bool>>,
}

impl Events for Seen {
    fn durable(&self, ends: &[Durable]) {
        self.durable.lock().extend_from_slice(ends);
        if let Some(ask) = &*self.at_report.lock() {
            self.answered_first.lock().get_or_insert_with(ask);
        }
    }

    fn failed(&self, failure: Failure) {
        *self.failed.lock() = Some(failure);
    }
}

pub fn config() -> Config {
    Config {
        ring_bytes: 40 << 20,
        segment_bytes: 1 << 20,
        large_append_bytes: 16 << 10,
        batch_bytes_max: 200 << 10,
        run_bytes_max: 256 << 10,
        checkpoint_idle: Duration::from_secs(1),
        ..Config::default()
    }
}

pub struct Node {
    pub log: Log,
    pub seen: Arc<Seen>,
    pub recovered: Recovered,
}

pub fn open(disk: &Simulated, seed: u64) -> Node {
    open_with(disk, seed, config(), 16 << 20)
}

pub fn open_with(disk: &Simulated, seed: u64, config: Config, memory: usize) -> Node {
    try_open_with(disk, seed, config, memory).unwrap()
}

pub fn try_open(disk: &Simulated, seed: u64) -> Result<Node, OpenError> {
    try_open_with(disk, seed, config(), 16 << 20)
}

pub fn try_open_with(
    disk: &Simulated,
    seed: u64,
    config: Config,
    memory: usize,
) -> Result<Node, OpenError> {
    let setup = Setup {
        disk: Arc::new(disk.clone()),
        dir: PathBuf::from("/data"),
        clock: Arc::new(Manual::at(Timestamp(1_000_000))),
        random: Arc::new(random::Seeded::new(seed)),
        tail: Pool::new(memory),
        reads: Pool::new(8 << 20),
        config,
    };
    let (log, recovered) = Log::open(setup)?;
    let seen = Arc::new(Seen::default());
    log.attach(Arc::clone(&seen) as Arc<dyn Events>);
    Ok(Node {
        log,
        seen,
        recovered,
    })
}

impl Node {
    pub fn steps(&self) {
        while self.log.step_journal() == Step::Worked
            || self.log.step_segments() == Step::Worked
            || self.log.step_reads() == Step::Worked
            || self.log.step_removals() == Step::Worked
        {}
    }

    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        for _ in 0..1000 {
            if let Poll::Ready(value) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return value;
            }
            self.steps();
        }
        panic!("the log does not answer");
    }

    pub fn topic(&self, number: u8) -> Arc<PartitionLog> {
        let partition = tp(number);
        let receipt = self.log.bind(partition);
        self.wait(receipt).unwrap();
        let held = self.log.partition(partition).unwrap();
        let receipt =
            self.log
                .open_generation(&held, LeaderEpoch(0), Offset(0), Bytes::from_static(b"who"));
        self.wait(receipt).unwrap();
        held
    }

    pub fn append(&self, held: &Arc<PartitionLog>, epoch: u32, batch: &[u8]) -> u64 {
        self.log.append(held, LeaderEpoch(epoch), batch).unwrap().0
    }

    pub fn read(
        &self,
        held: &Arc<PartitionLog>,
        from: u64,
        max_bytes: usize,
    ) -> Result<Slices, ReadError> {
        match self
            .log
            .read(held, Offset(from), held.durable_end(), max_bytes, true)?
        {
            Outcome::Memory(slices) => Ok(slices),
            Outcome::Cold(read) => self.wait(read),
        }
    }

    /// Everything from `from` to the durable end: offsets are dense; gives the values.
    pub fn values(&self, held: &Arc<PartitionLog>, from: u64) -> Vec<Vec<u8>> {
        let mut next = from;
        let mut values = Vec::new();
        while next < held.durable_end().0 {
            let slices = self.read(held, next, 100_000).unwrap();
            assert!(slices.next.0 > next, "no progress at {next}");
            for bytes in &slices.batches {
                let mut rest = &bytes[..];
                while let Some(head) = BatchHead::first(rest) {
                    assert_eq!(head.base(), next);
                    next = head.end();
                    rest = &rest[head.bytes().len()..];
                    let view = floe_wire::batch::View::first(head.bytes()).unwrap();
                    let mut scratch = floe_wire::codec::Scratch::default();
                    let mut records = floe_wire::batch::records(&view, &mut scratch).unwrap();
                    while let Some(record) = records.try_next().unwrap() {
                        values.push(record.value.unwrap().to_vec());
                    }
                }
                assert!(rest.is_empty());
            }
            assert_eq!(next, slices.next.0);
        }
        values
    }
}

pub fn tp(number: u8) -> TopicPartition {
    TopicPartition {
        topic: TopicId([number; 16]),
        partition: PartitionIndex(0),
    }
}

pub fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut value = format!("{number}:").into_bytes();
    value.resize(bytes.max(value.len()), b'.');
    value
}

/// One batch with one record of each number.
pub fn batch(numbers: std::ops::Range<u64>, bytes: usize) -> Vec<u8> {
    let mut builder = Builder::new(Codec::None);
    for number in numbers {
        builder
            .record(
                Timestamp(number as i64 * 10),
                None,
                Some(&value(number, bytes)),
                &[],
            )
            .unwrap();
    }
    builder.finish().unwrap()
}

pub fn values(range: std::ops::Range<u64>, bytes: usize) -> Vec<Vec<u8>> {
    range.map(|number| value(number, bytes)).collect()
}
