//! `floe verify`: an offline check of a data directory.
//!
//! Guarantees: reads everything, writes nothing. The exit code says whether data is damaged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use floe_broker::{Topics, Undecodable};
use floe_log::Stream;
use floe_log::verify::{self, Condition, GenerationReport, Report, VerifyError};
use floe_model::{TopicId, TopicName, TopicPartition};
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
        check_is_there(&self.directory)?;
        let progress = ProgressBar::new_spinner().with_message("checking");
        progress.enable_steady_tick(Duration::from_millis(200));
        let mut names = Names::default();
        let topics = |streams: &[Stream]| {
            let topics = Topics::read(streams)?;
            names.0 = topics.names;
            Ok::<_, Undecodable>(topics.log_starts)
        };
        let checked = verify::verify(&disk::Real::new(), &self.directory, topics);
        progress.finish_and_clear();
        let report = checked.map_err(|error| cannot(&self.directory, &error))?;
        let mut out = Output::stdout();
        if self.json {
            out.json(&as_json(&report, &names))?;
        } else {
            print(&mut out, &self.directory, &report, &names)?;
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

/// What the topics are called, if the catalog could be read.
#[derive(Default)]
struct Names(BTreeMap<TopicId, TopicName>);

impl Names {
    fn topic(&self, partition: TopicPartition) -> Option<&str> {
        self.0.get(&partition.topic).map(TopicName::as_str)
    }

    /// `events/0 (7e1a8575d18c54013e864e08f61dabc7/0)`: by name, and as its files are called.
    fn both(&self, partition: TopicPartition) -> String {
        match self.topic(partition) {
            Some(name) => format!("{name}/{} ({partition})", partition.partition),
            None => partition.to_string(),
        }
    }
}

fn check_is_there(directory: &Path) -> Outcome {
    let problem = match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is a file, not a directory",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist",
        // What else is wrong, reading it will say.
        Err(_) => return Ok(()),
    };
    Err(Failure::new(
        Code::DirectoryUnusable,
        format!(
            "{} {problem}; give the data directory of a stopped node (--data-dir of floe dev)",
            directory.display()
        ),
    ))
}

fn cannot(directory: &Path, error: &VerifyError) -> Failure {
    let code = match error {
        VerifyError::InUse { .. } => Code::DirectoryInUse,
        VerifyError::NewerFormat { .. } => Code::NewerFormat,
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

fn generations(report: &Report) -> impl Iterator<Item = (TopicPartition, &GenerationReport)> {
    report.partitions.iter().flat_map(|partition| {
        let of = partition.generations.iter();
        of.map(move |generation| (partition.partition, generation))
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

fn print(out: &mut Output, directory: &Path, report: &Report, names: &Names) -> Outcome {
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
    let told = |one: &(TopicPartition, &GenerationReport)| {
        one.1.start < one.1.end || !one.1.lost.is_empty() || one.1.files > 0
    };
    let rows = generations(report)
        .filter(told)
        .map(|(partition, generation)| {
            vec![
                names.both(partition),
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
        let told = finding.told(|partition| names.both(partition));
        out.line(format!("damage: {told}"))?;
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

fn as_json(report: &Report, names: &Names) -> Value {
    let partitions: Vec<Value> = generations(report)
        .map(|(partition, generation)| {
            json!({
                "topic": names.topic(partition),
                "partition": partition.to_string(),
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
    let findings = report.findings.iter();
    let findings = findings.map(|finding| finding.told(|partition| names.both(partition)));
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
    use floe_model::PartitionIndex;

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
        let cannot = |path: PathBuf| check_is_there(&path).unwrap_err().message;
        let absent = cannot(directory.path().join("nope"));
        assert!(absent.contains("nope does not exist"), "{absent}");
        let file = directory.path().join("README.md");
        std::fs::write(&file, "").unwrap();
        let file = cannot(file);
        assert!(file.contains("README.md is a file"), "{file}");
    }

    #[test]
    fn a_partition_is_called_by_its_topic_and_as_its_files_are() {
        let topic = TopicId([7; 16]);
        let name = TopicName::parse("events").unwrap();
        let names = Names(BTreeMap::from([(topic, name)]));
        let partition = PartitionIndex(2);
        let id = "07070707070707070707070707070707";
        let both = names.both(TopicPartition { topic, partition });
        assert_eq!(both, format!("events/2 ({id}/2)"));
        let topic = TopicId::ZERO;
        let unknown = TopicPartition { topic, partition };
        assert_eq!(names.both(unknown), unknown.to_string());
    }
}
