//! What the log counts. Nothing here accumulates when nobody asks.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Handles of the log's metrics; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    groups: Counter,
    group_bytes: Counter,
    flush: Histogram,
    runs: Counter,
    run_bytes: Counter,
    segment_flush: Histogram,
    checkpoints: Counter,
    checkpoint_bytes: Counter,
    ring_used: Gauge,
    ring_sectors: Gauge,
    cold_reads: Counter,
    cold_bytes: Counter,
    lost_ranges: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        // 50 µs to 1.6 s: a flush takes 85 µs on an idle disk.
        let flushes = || Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        Self {
            groups: Counter::default(),
            group_bytes: Counter::default(),
            flush: flushes(),
            runs: Counter::default(),
            run_bytes: Counter::default(),
            segment_flush: flushes(),
            checkpoints: Counter::default(),
            checkpoint_bytes: Counter::default(),
            ring_used: Gauge::default(),
            ring_sectors: Gauge::default(),
            cold_reads: Counter::default(),
            cold_bytes: Counter::default(),
            lost_ranges: Counter::default(),
        }
    }
}

impl Metrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let log = registry.sub_registry_with_prefix("log");
        let mut counter = |name: &str, help: &str, counter: &Counter| {
            log.register(name, help, counter.clone());
        };
        counter(
            "journal_groups",
            "Groups written to the journal, each flushed",
            &self.groups,
        );
        counter("segment_runs", "Runs written to segments", &self.runs);
        counter("checkpoints", "Checkpoints written", &self.checkpoints);
        counter("cold_reads", "Reads from disk", &self.cold_reads);
        counter(
            "lost_ranges",
            "Damaged ranges met by readers",
            &self.lost_ranges,
        );
        let mut bytes = |name: &str, help: &str, counter: &Counter| {
            log.register_with_unit(name, help, Unit::Bytes, counter.clone());
        };
        bytes(
            "journal_written",
            "Bytes written to the journal",
            &self.group_bytes,
        );
        bytes(
            "segments_written",
            "Bytes written to segments",
            &self.run_bytes,
        );
        bytes(
            "checkpoints_written",
            "Bytes of checkpoints written",
            &self.checkpoint_bytes,
        );
        bytes("cold_read", "Bytes read from disk", &self.cold_bytes);
        let seconds = Unit::Seconds;
        let help = "Time to write and flush one group of the journal";
        log.register_with_unit("journal_flush", help, seconds.clone(), self.flush.clone());
        let help = "Time to flush one partition's segment";
        log.register_with_unit("segment_flush", help, seconds, self.segment_flush.clone());
        let help = "Sectors of the journal not yet free for reuse";
        log.register("journal_used_sectors", help, self.ring_used.clone());
        let help = "Sectors of the journal";
        log.register("journal_sectors", help, self.ring_sectors.clone());
    }

    pub(crate) fn groups(&self) -> u64 {
        self.groups.get()
    }

    pub(crate) fn group(&self, bytes: usize, took: Duration) {
        self.groups.inc();
        self.group_bytes.inc_by(bytes as u64);
        self.flush.observe(took.as_secs_f64());
    }

    pub(crate) fn ring(&self, used: u64, sectors: u64) {
        self.ring_used.set(used as i64);
        self.ring_sectors.set(sectors as i64);
    }

    pub(crate) fn run(&self, bytes: usize) {
        self.runs.inc();
        self.run_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn segment_flush(&self, took: Duration) {
        self.segment_flush.observe(took.as_secs_f64());
    }

    pub(crate) fn checkpoint(&self, bytes: usize) {
        self.checkpoints.inc();
        self.checkpoint_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn cold_read(&self, bytes: usize) {
        self.cold_reads.inc();
        self.cold_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn lost(&self) {
        self.lost_ranges.inc();
    }
}
