//! Gathers the figures of all rounds, prints medians and ratios, and keeps them in `bench/results/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::repository;

/// The figures of a run.
pub(crate) struct Report {
    rounds: BTreeMap<String, Vec<Value>>,
    order: Vec<String>,
    date: String,
    commit: String,
}

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Report {
    pub(crate) fn new() -> Result<Self> {
        let commit = repository::output(repository::git().args(["rev-parse", "--short", "HEAD"]))?;
        let date = repository::output(Command::new("date").args(["-u", "+%Y-%m-%dT%H%M"]))?;
        let (date, commit) = (date.trim().to_owned(), commit.trim().to_owned());
        Ok(Self {
            rounds: BTreeMap::new(),
            order: Vec::new(),
            date,
            commit,
        })
    }

    /// Adds the figures of one round of a workload.
    pub(crate) fn round(&mut self, name: &str, round: usize, figures: &Value) {
        println!("{name} #{round}: {}", short(figures));
        if !self.rounds.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.rounds
            .entry(name.to_owned())
            .or_default()
            .push(figures.clone());
    }

    /// Adds a figure that is taken once.
    pub(crate) fn put(&mut self, name: &str, figures: &Value) {
        self.round(name, 0, figures);
    }

    /// The median of one figure, where the workload ran.
    fn figure(&self, name: &str, field: &str) -> Option<f64> {
        let values: Vec<f64> = self
            .rounds
            .get(name)?
            .iter()
            .filter_map(|round| round[field].as_f64())
            .collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// Prints the comparison and keeps all of it.
    pub(crate) fn write(&self) -> Result<()> {
        let page = self.page()?;
        println!("\n{page}");
        let folder = repository::root().join("bench/results");
        std::fs::create_dir_all(&folder)?;
        let all: Map<String, Value> = self
            .order
            .iter()
            .map(|name| (name.clone(), json!(self.rounds[name])))
            .collect();
        let kept = json!({"date": self.date, "commit": self.commit, "rounds": all});
        let stem = format!("{}-{}", self.date, self.commit);
        std::fs::write(
            folder.join(format!("{stem}.json")),
            serde_json::to_string_pretty(&kept)? + "\n",
        )?;
        std::fs::write(folder.join(format!("{stem}.md")), page)?;
        println!("kept as bench/results/{stem}.json and .md");
        Ok(())
    }

    fn page(&self) -> Result<String> {
        let mut page = format!(
            "# Floe beside Apache Kafka 4.4.0, {}, commit {}\n\nOne machine, one sitting, turn about; medians of the \
             rounds. Floe flushes before it answers, Kafka with its defaults does not.\n\n\
             | workload | figure | Floe | Kafka | Floe / Kafka |\n|---|---|--:|--:|--:|\n",
            self.date, self.commit
        );
        let floe = " floe";
        for name in self.order.iter().filter(|name| name.ends_with(floe)) {
            let workload = name.trim_end_matches(floe);
            let peer = format!("{workload} kafka");
            for field in [
                "mib_per_s",
                "cpu_s_per_gib",
                "p50_us",
                "p99_us",
                "p999_us",
                "ms",
                "mib",
            ] {
                let Some(ours) = self.figure(name, field) else {
                    continue;
                };
                let theirs = self.figure(&peer, field);
                let shown = |value: Option<f64>| {
                    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
                };
                let ratio = theirs.map(|theirs| ours / theirs);
                writeln!(
                    page,
                    "| {workload} | {field} | {ours:.2} | {} | {} |",
                    shown(theirs),
                    shown(ratio)
                )?;
            }
        }
        if let Some(probe) = self.figure("flush probe 4 KiB", "p99_us") {
            let p50 = self
                .figure("flush probe 4 KiB", "p50_us")
                .unwrap_or(f64::NAN);
            writeln!(
                page,
                "\nFlush probe (4 KiB, O_DIRECT and O_DSYNC, same run): p50 {p50:.0} µs, p99 {probe:.0} µs."
            )?;
            if let Some(ours) = self.figure("acknowledge 10,000/s x 256 B floe", "p99_us") {
                let less_linger = ours - 1000.0;
                let floor = self.figure("load tool alone", "p99_us").unwrap_or(f64::NAN);
                writeln!(
                    page,
                    "Acknowledgement p99 less the client's linger of 1 ms: {less_linger:.0} µs, {:.1} times the probe's.\n\
                     The load tool alone, against a broker in its own process that keeps nothing: p99 {floor:.0} µs; \
                     Floe adds {:.0} µs, {:.1} times the probe's.",
                    less_linger / probe,
                    ours - floor,
                    (ours - floor) / probe
                )?;
            }
        }
        writeln!(
            page,
            "\nProof of the flush, Floe: writes the device completed, groups the journal flushed, answers per group\n"
        )?;
        for name in self.order.iter().filter(|name| name.ends_with(floe)) {
            if let (Some(writes), Some(groups)) = (
                self.figure(name, "device_writes"),
                self.figure(name, "journal_groups"),
            ) {
                let answers = self.figure(name, "answers_per_group").unwrap_or(f64::NAN);
                writeln!(page, "- {name}: {writes:.0}, {groups:.0}, {answers:.1}")?;
            }
        }
        Ok(page)
    }
}

fn short(figures: &Value) -> String {
    let fields = figures.as_object().into_iter().flatten();
    let shown: Vec<String> = fields
        .filter_map(|(name, value)| Some(format!("{name} {:.2}", value.as_f64()?)))
        .collect();
    shown.join(", ")
}
