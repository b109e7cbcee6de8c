//! `floe verify`: an offline check of a data directory.
//!
//! Guarantees: reads everything, writes nothing. The exit code says whether data is damaged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use floe_log::verify::{self, Condition, GenerationReport, Report, VerifyError};
use floe_world::disk;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::exit::{Code, Failure, Outcome};
use crate::output::{Output, grouped};

/// `floe verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The data directory; its node must be stopped.
    directory: PathBuf,
    /// Print JSON for programs.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self) -> Outcome {
        let progress = ProgressBar::new_spinner().with_message("checking");
        progress.enable_steady_tick(Duration::from_millis(200));
        let checked = verify::verify(&disk::Real::new(), &self.directory, floe_broker::log_starts);
        progress.finish_and_clear();
        let report = checked.map_err(|error| cannot(&self.directory, &error))?;
        let mut out = Output::stdout();
        if self.json {
            out.json(&as_json(&report))?;
        } else {
            print(&mut out, &self.directory, &report)?;
        }
        out.flush()?;
        match report.condition() {
            Condition::Whole | Condition::TornTail => Ok(()),
            Condition::Damage => Err(Failure::new(
                Code::Damaged,
                format!(
                    "{} is damaged: {} finding{}",
                    self.directory.display(),
                    report.findings.len(),
                    if report.findings.len() == 1 { "" } else { "s" }
                ),
            )),
        }
    }
}

fn cannot(directory: &Path, error: &VerifyError) -> Failure {
    let code = match error {
        VerifyError::InUse { .. } => Code::DirectoryInUse,
        VerifyError::NoIdentity { .. } => Code::Damaged,
        VerifyError::Read { source, path } => {
            if source.kind() == std::io::ErrorKind::NotFound && path.ends_with("node.id") {
                return Failure::new(
                    Code::DirectoryUnusable,
                    format!(
                        "{} is not a data directory of Floe: it has no node.id",
                        directory.display()
                    ),
                );
            }
            Code::DirectoryUnusable
        }
    };
    Failure::new(code, error.to_string())
}

fn generations(report: &Report) -> impl Iterator<Item = (String, &GenerationReport)> {
    report.partitions.iter().flat_map(|partition| {
        let of = partition.generations.iter();
        of.map(move |generation| (partition.partition.to_string(), generation))
    })
}

fn lost(generation: &GenerationReport) -> String {
    let ranges = generation.lost.iter();
    let ranges: Vec<String> = ranges.map(|r| format!("{}..{}", r.start, r.end)).collect();
    if ranges.is_empty() {
        return "-".to_owned();
    }
    ranges.join(" ")
}

fn print(out: &mut Output, directory: &Path, report: &Report) -> Outcome {
    let journal = &report.journal;
    let (mut records, mut batches) = (0, 0);
    for (_, generation) in generations(report) {
        records += generation.end.0.saturating_sub(generation.start.0);
        batches += generation.batches;
    }
    out.line(format!(
        "{}: node {}, {} partitions, {} records in {} batches checked",
        directory.display(),
        report.node,
        report.partitions.len(),
        grouped(records),
        grouped(batches)
    ))?;
    out.line(format!(
        "journal: {} whole groups with {} records from sector {} to {} of a ring of {}; boot {}",
        grouped(journal.groups),
        grouped(journal.records),
        journal.from,
        journal.end,
        journal.ring_sectors,
        journal.boot
    ))?;
    out.line("")?;
    // A generation per start and partition: those without a record say nothing to people. JSON has them all.
    let told = |one: &(String, &GenerationReport)| {
        one.1.start < one.1.end || !one.1.lost.is_empty() || one.1.files > 0
    };
    let rows = generations(report)
        .filter(told)
        .map(|(partition, generation)| {
            vec![
                partition,
                generation.epoch.to_string(),
                generation.start.to_string(),
                generation.end.to_string(),
                generation.synced.to_string(),
                generation.files.to_string(),
                grouped(generation.batches),
                lost(generation),
            ]
        });
    let heading = [
        "partition",
        "epoch",
        "start",
        "end",
        "in segments",
        "files",
        "batches",
        "lost",
    ];
    out.table(&heading, rows.collect(), "There are no records.")?;
    out.line("")?;
    for finding in &report.findings {
        out.line(format!("damage: {finding}"))?;
    }
    for path in &report.unnamed {
        out.line(format!("not named by anything: {}", path.display()))?;
    }
    out.line(match report.condition() {
        Condition::Whole => "Whole: nothing is missing.",
        Condition::TornTail => {
            "Whole, with a torn tail: what a crash cut off was not acknowledged; the next start takes it away."
        }
        Condition::Damage => "Damaged: what was acknowledged is missing or cannot be read.",
    })
}

fn as_json(report: &Report) -> Value {
    let partitions: Vec<Value> = generations(report)
        .map(|(partition, generation)| {
            json!({
                "partition": partition,
                "epoch": generation.epoch.0,
                "start": generation.start.0,
                "end": generation.end.0,
                "synced": generation.synced.0,
                "files": generation.files,
                "runs": generation.runs,
                "batches": generation.batches,
                "lost": generation.lost.iter().map(|r| json!([r.start, r.end])).collect::<Vec<_>>(),
            })
        })
        .collect();
    let findings = report.findings.iter().map(ToString::to_string);
    json!({
        "condition": match report.condition() {
            Condition::Whole => "whole",
            Condition::TornTail => "torn-tail",
            Condition::Damage => "damage",
        },
        "cluster": hex(&report.cluster),
        "node": report.node.0,
        "journal": {
            "groups": report.journal.groups,
            "records": report.journal.records,
            "boot": report.journal.boot,
            "isTorn": report.journal.is_torn,
        },
        "generations": partitions,
        "deadBytes": report.dead_bytes,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_none_of_floes_is_named_as_such() {
        let directory = tempfile::tempdir().unwrap();
        let verify = Verify {
            directory: directory.path().to_owned(),
            json: false,
        };
        let failure = verify.run().unwrap_err();
        assert_eq!(failure.code, Code::DirectoryUnusable);
        assert!(failure.message.contains("no node.id"), "{failure}");
    }
}
