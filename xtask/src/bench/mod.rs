//! Compares Floe with Apache Kafka on this machine, in one sitting: the same outside load tool, the same settings,
//! the two brokers turn about, so that what else the machine does falls on both.
//!
//! Guarantees: every figure is the median over the rounds, with all rounds kept in `bench/results/`; the run fails
//! where the device completed fewer writes than Floe says it flushed, since then nothing else here means anything.
//! Deliberately not here: tuning. Kafka runs with its defaults and 1 GiB of heap, Floe with a budget of 384 MiB.

mod brokers;
mod host;
mod load;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::repository;
use brokers::{Broker, Floe, Kafka};
pub(crate) use load::{Load, build_librdkafka};
use report::Report;

/// What one run does.
struct Plan {
    rounds: usize,
    /// Share of the full amount of records.
    share: f64,
    only: Option<String>,
}

const USAGE: &str =
    "cargo xtask bench [--rounds N] [--share F] [--only produce|fetch|ack|start] [--floe-alone]";

/// Runs the bench.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let mut plan = Plan {
        rounds: 3,
        share: 1.0,
        only: None,
    };
    let mut has_peer = true;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--floe-alone" => has_peer = false,
            "--rounds" => plan.rounds = rest.next().context(USAGE)?.parse()?,
            "--share" => plan.share = rest.next().context(USAGE)?.parse()?,
            "--only" => plan.only = Some((*rest.next().context(USAGE)?).to_owned()),
            _ => bail!("{USAGE}"),
        }
    }
    let home = repository::target().join("bench");
    std::fs::create_dir_all(&home)?;
    let load = Load::build(&home)?;
    let mut brokers: Vec<Box<dyn Broker>> = vec![Box::new(Floe::new(&home)?)];
    if has_peer {
        brokers.push(Box::new(Kafka::new(&home)?));
    }
    Bench {
        plan,
        load,
        brokers,
        report: Report::new()?,
        home,
        topics: 0,
        loaded: BTreeMap::new(),
    }
    .run()
}

struct Bench {
    plan: Plan,
    load: Load,
    brokers: Vec<Box<dyn Broker>>,
    report: Report,
    home: PathBuf,
    topics: usize,
    /// Largest resident memory seen behind a workload, per broker.
    loaded: BTreeMap<&'static str, u64>,
}

impl Bench {
    fn run(mut self) -> Result<()> {
        let is_wanted =
            |plan: &Plan, part: &str| plan.only.as_ref().is_none_or(|only| only == part);
        for broker in &mut self.brokers {
            broker.start()?;
            self.report.put(
                &format!("rss idle {}", broker.name()),
                &json!({"mib": mib(broker.resident_bytes()?)}),
            );
        }
        if is_wanted(&self.plan, "start") {
            self.start_up()?;
        }
        self.warm_up()?;
        if is_wanted(&self.plan, "produce") {
            for (size, count) in [(1024, 1_000_000), (100, 4_000_000)] {
                for partitions in [12, 1] {
                    for keys in [0, 1000] {
                        self.produce(size, count, partitions, keys)?;
                    }
                }
            }
        }
        if is_wanted(&self.plan, "ack") {
            self.acknowledgement()?;
        }
        if is_wanted(&self.plan, "fetch") {
            self.fetch()?;
        }
        for broker in &mut self.brokers {
            let loaded = self.loaded.get(broker.name()).copied().unwrap_or_default();
            self.report.put(
                &format!("rss loaded {}", broker.name()),
                &json!({"mib": mib(loaded)}),
            );
            broker.stop()?;
        }
        self.report.write()
    }

    fn topic(&mut self, word: &str) -> String {
        self.topics += 1;
        format!("bench-{word}-{}", self.topics)
    }

    fn records(&self, full: u64) -> u64 {
        ((full as f64 * self.plan.share) as u64).max(1000)
    }

    /// A JVM needs its methods compiled before its figures mean anything.
    fn warm_up(&mut self) -> Result<()> {
        for index in 0..self.brokers.len() {
            let topic = self.topic("warm");
            let address = self.brokers[index].address();
            self.load.create(&address, &topic, 12)?;
            for _ in 0..if self.brokers[index].name() == "kafka" {
                3
            } else {
                1
            } {
                self.load
                    .produce(&address, &topic, self.records(1_000_000), 1024, 1000, 0)?;
            }
            self.load
                .consume(&address, &topic, self.records(1_000_000), 12, 1)?;
            self.brokers[index].delete_topic(&topic)?;
        }
        Ok(())
    }

    fn produce(&mut self, size: u64, full: u64, partitions: u64, keys: u64) -> Result<()> {
        let count = self.records(full);
        for round in 0..self.plan.rounds {
            for index in 0..self.brokers.len() {
                let topic = self.topic("produce");
                let broker = &mut self.brokers[index];
                let address = broker.address();
                self.load.create(&address, &topic, partitions)?;
                let before = Snapshot::take(broker.as_ref())?;
                let outcome = self.load.produce(&address, &topic, count, size, keys, 0)?;
                let spent = before.until(broker.as_ref(), count * size)?;
                let name = format!(
                    "produce {size} B x {partitions} keys {keys} {}",
                    broker.name()
                );
                let figures = spent.with_rate(&outcome, count * size)?;
                self.report.round(&name, round, &figures);
                note(&mut self.loaded, broker.as_ref())?;
                broker.delete_topic(&topic)?;
            }
        }
        Ok(())
    }

    fn acknowledgement(&mut self) -> Result<()> {
        let count = self.records(200_000);
        for round in 0..self.plan.rounds {
            let probe = host::flush_probe(&self.home, 2000)?;
            self.report.round("flush probe 4 KiB", round, &probe);
            let floor = self.load.floor(count / 4, 256, 10_000)?;
            self.report.round("load tool alone", round, &floor);
            for index in 0..self.brokers.len() {
                let topic = self.topic("ack");
                let broker = &mut self.brokers[index];
                let address = broker.address();
                self.load.create(&address, &topic, 12)?;
                let before = Snapshot::take(broker.as_ref())?;
                let outcome = self.load.produce(&address, &topic, count, 256, 0, 10_000)?;
                let spent = before.until(broker.as_ref(), count * 256)?;
                let name = format!("acknowledge 10,000/s x 256 B {}", broker.name());
                self.report
                    .round(&name, round, &spent.with_latency(&outcome));
                note(&mut self.loaded, broker.as_ref())?;
                broker.delete_topic(&topic)?;
            }
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        // A tail's worth, read again and again: it never left memory.
        let (warm, passes) = (64 << 10, self.records(32_000) / 1000);
        let cold = self.records(1_000_000);
        for round in 0..self.plan.rounds {
            for index in 0..self.brokers.len() {
                let topic = self.topic("fetch");
                let broker = &mut self.brokers[index];
                let (address, name) = (broker.address(), broker.name());
                self.load.create(&address, &topic, 12)?;
                self.load.produce(&address, &topic, warm, 1024, 0, 0)?;
                let before = Snapshot::take(broker.as_ref())?;
                let outcome = self.load.consume(&address, &topic, warm, 12, passes)?;
                let spent = before.until(broker.as_ref(), warm * 1024 * passes)?;
                self.report.round(
                    &format!("fetch 1 KiB x 12 from memory {name}"),
                    round,
                    &spent.with_rate(&outcome, bytes(&outcome)?)?,
                );
                self.load
                    .produce(&address, &topic, cold - warm.min(cold), 1024, 0, 0)?;
                broker.stop()?;
                host::drop_caches()?;
                broker.start()?;
                let before = Snapshot::take(broker.as_ref())?;
                let outcome = self.load.consume(&address, &topic, cold, 12, 1)?;
                let spent = before.until(broker.as_ref(), cold * 1024)?;
                self.report.round(
                    &format!("fetch 1 KiB x 12 from disk {name}"),
                    round,
                    &spent.with_rate(&outcome, bytes(&outcome)?)?,
                );
                note(&mut self.loaded, broker.as_ref())?;
                broker.delete_topic(&topic)?;
            }
        }
        Ok(())
    }

    fn start_up(&mut self) -> Result<()> {
        for round in 0..self.plan.rounds.max(3) {
            for broker in &mut self.brokers {
                broker.stop()?;
                let started = Instant::now();
                broker.start()?;
                let figures = json!({"ms": started.elapsed().as_secs_f64() * 1e3});
                self.report
                    .round(&format!("start-up {}", broker.name()), round, &figures);
            }
        }
        Ok(())
    }
}

/// What a broker and the device had done at one moment.
struct Snapshot {
    cpu_seconds: f64,
    device_writes: u64,
    groups: Option<u64>,
    records: Option<u64>,
}

/// What was done between two moments.
struct Spent {
    cpu_seconds_per_gib: f64,
    device_writes: u64,
    groups: Option<u64>,
    answers_per_group: Option<f64>,
}

impl Snapshot {
    fn take(broker: &dyn Broker) -> Result<Self> {
        Ok(Self {
            cpu_seconds: host::cpu_seconds(broker.process_id()?)?,
            device_writes: host::device_writes(&broker.data())?,
            groups: broker.journal_groups()?,
            records: broker.appended_batches()?,
        })
    }

    fn until(&self, broker: &dyn Broker, bytes: u64) -> Result<Spent> {
        let after = Self::take(broker)?;
        let groups = after
            .groups
            .zip(self.groups)
            .map(|(after, before)| after - before);
        let device_writes = after.device_writes - self.device_writes;
        if let Some(groups) = groups
            && device_writes < groups
        {
            bail!(
                "the device completed {device_writes} writes while the journal says it flushed {groups} groups"
            );
        }
        let answers = after
            .records
            .zip(self.records)
            .map(|(after, before)| after - before);
        Ok(Spent {
            cpu_seconds_per_gib: (after.cpu_seconds - self.cpu_seconds)
                / (bytes as f64 / (1_u64 << 30) as f64),
            device_writes,
            groups,
            answers_per_group: answers
                .zip(groups)
                .map(|(answers, groups)| answers as f64 / groups.max(1) as f64),
        })
    }
}

impl Spent {
    fn with_rate(&self, outcome: &Value, bytes: u64) -> Result<Value> {
        let seconds = outcome["seconds"]
            .as_f64()
            .context("seconds of the load tool")?;
        Ok(json!({
            "mib_per_s": bytes as f64 / f64::from(1 << 20) / seconds,
            "cpu_s_per_gib": self.cpu_seconds_per_gib,
            "device_writes": self.device_writes,
            "journal_groups": self.groups,
            "answers_per_group": self.answers_per_group,
        }))
    }

    fn with_latency(&self, outcome: &Value) -> Value {
        json!({
            "p50_us": outcome["p50_us"],
            "p99_us": outcome["p99_us"],
            "p999_us": outcome["p999_us"],
            "cpu_s_per_gib": self.cpu_seconds_per_gib,
            "device_writes": self.device_writes,
            "journal_groups": self.groups,
            "answers_per_group": self.answers_per_group,
        })
    }
}

/// Keeps the largest resident memory of a broker.
fn note(loaded: &mut BTreeMap<&'static str, u64>, broker: &dyn Broker) -> Result<()> {
    let most = loaded.entry(broker.name()).or_default();
    *most = broker.resident_bytes()?.max(*most);
    Ok(())
}

fn bytes(outcome: &Value) -> Result<u64> {
    outcome["bytes"].as_u64().context("bytes of the load tool")
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
