//! An offline check of a data directory: reads everything, writes nothing, trusts nothing.
//!
//! Guarantees: a second reading of the layouts, apart from recovery's, so that the two can contradict each other. Each
//! finding names its file and, where records are concerned, the offsets. Bytes above an end are counted, not judged. Below a
//! partition's log start nothing need be there any more; what is there is checked. Anything else that is missing is damage.
//!
//! What the log starts are, the catalog says: its streams are read here, and the caller, who knows what they mean, tells.
//!
//! Deliberately does not repair, delete or lock out a newer release's format: what it does not know it names.

mod journal;
mod replay;
mod segments;
mod slots;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_model::{Incarnation, LeaderEpoch, NodeId, Offset, TopicPartition};
use floe_world::{Disk, File, OpenOptions};

use crate::Stream;
use crate::format::identity::Identity;
use crate::format::{BLOCK, FormatError, VERSION};
use journal::Replayed;

/// The first offset kept of each partition, as the catalog says; a partition that it does not name keeps all it has.
pub type LogStarts = BTreeMap<TopicPartition, Offset>;

/// What an offline check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The cluster this data belongs to.
    pub cluster: [u8; 16],
    /// The node this data belongs to.
    pub node: NodeId,
    /// The journal after the older checkpoint.
    pub journal: JournalReport,
    /// Partitions that are not forgotten, by topic id and number.
    pub partitions: Vec<PartitionReport>,
    /// Catalog streams: group, last index.
    pub streams: Vec<(u32, u64)>,
    /// Files in partition directories that nothing names; not judged, never deleted.
    pub unnamed: Vec<PathBuf>,
    /// Bytes of segments above the ends: left of cut groups or preallocated.
    pub dead_bytes: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// The journal as checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Sectors in the ring.
    pub ring_sectors: u64,
    /// First sector replayed.
    pub from: u64,
    /// First sector after the last whole group.
    pub end: u64,
    /// Whole groups.
    pub groups: u64,
    /// Records in them.
    pub records: u64,
    /// Boot of the last group.
    pub boot: u32,
    /// Whether a group in flight was cut at the end.
    pub is_torn: bool,
}

/// One partition as checked.
#[derive(Clone, Debug)]
pub struct PartitionReport {
    /// Which.
    pub partition: TopicPartition,
    /// Life of its data.
    pub incarnation: Incarnation,
    /// Its fence.
    pub fence: LeaderEpoch,
    /// In order of epoch.
    pub generations: Vec<GenerationReport>,
}

/// One generation as checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationReport {
    /// Its leader epoch.
    pub epoch: LeaderEpoch,
    /// First offset still here.
    pub start: Offset,
    /// Its end.
    pub end: Offset,
    /// Of which in segments, flushed.
    pub synced: Offset,
    /// Segment files.
    pub files: usize,
    /// Runs in them, below the end.
    pub runs: u64,
    /// Batches checked, wherever they lie.
    pub batches: u64,
    /// Offsets known to be lost or found to be.
    pub lost: Vec<Range<u64>>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
    /// Whose records it costs.
    pub partition: Option<TopicPartition>,
    /// Which.
    pub offsets: Option<Range<u64>>,
}

/// The check in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing is missing.
    Whole,
    /// A group in flight was cut: nothing acknowledged is missing. The next start takes it away.
    TornTail,
    /// Bytes that were flushed are gone or bad; or a loss of before is on record.
    Damage,
}

/// Why a directory cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A node has it open.
    #[error("{dir} is in use by another process; stop that one first")]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// Written by a newer release.
    #[error("{path} has format {found}; this release reads up to {VERSION}: use a newer release")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its number.
        found: u16,
    },
    /// Nothing says what the data is.
    #[error("{path} has no readable identity: {source}")]
    NoIdentity {
        /// The file.
        path: PathBuf,
        /// Why its first copy cannot be read.
        source: FormatError,
    },
    /// The disk failed.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Report {
    /// The check in one word.
    pub fn condition(&self) -> Condition {
        let mut generations = self.partitions.iter().flat_map(|p| &p.generations);
        if !self.findings.is_empty() || generations.any(|g| !g.lost.is_empty()) {
            Condition::Damage
        } else if self.journal.is_torn {
            Condition::TornTail
        } else {
            Condition::Whole
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|partition| partition.to_string()))
    }
}

impl Finding {
    /// For people, with the partition as `name` calls it.
    pub fn told(&self, name: impl Fn(TopicPartition) -> String) -> String {
        let mut told = format!("{}: {}", self.path.display(), self.what);
        if let Some(partition) = self.partition {
            told.push_str("; partition ");
            told.push_str(&name(partition));
        }
        if let Some(offsets) = &self.offsets {
            let place = format!(", offsets {} to {}", offsets.start, offsets.end);
            told.push_str(&place);
        }
        told
    }
}

/// Checks the data directory `dir`; `log_starts` reads the catalog in the streams that are found there, or says why it
/// cannot. Blocks; reads every flushed byte once.
pub fn verify<E: fmt::Display>(
    disk: &dyn Disk,
    dir: &Path,
    log_starts: impl FnOnce(&[Stream]) -> Result<LogStarts, E>,
) -> Result<Report, VerifyError> {
    let check = Check {
        disk,
        dir,
        findings: Vec::new(),
    };
    check.run(log_starts)
}

/// A check under way.
struct Check<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn run<E: fmt::Display>(
        mut self,
        log_starts: impl FnOnce(&[Stream]) -> Result<LogStarts, E>,
    ) -> Result<Report, VerifyError> {
        let _lock = self.lock()?;
        let path = self.dir.join("node.id");
        let identity = self.identity(&path)?;
        let slots = self.slots()?;
        let replayed = self.journal(&identity, &slots)?;
        let streams = replayed.newest.streams();
        let log_starts = log_starts(&streams).unwrap_or_else(|error| {
            let journal = self.dir.join("journal");
            self.find(&journal, format!("the catalog cannot be read: {error}"));
            LogStarts::new()
        });
        self.compare(&replayed, &log_starts);
        let mut report = Report {
            cluster: identity.cluster,
            node: NodeId(identity.node),
            journal: replayed.report,
            partitions: Vec::new(),
            streams: streams.iter().map(|s| (s.group, s.last())).collect(),
            unnamed: Vec::new(),
            dead_bytes: 0,
            findings: Vec::new(),
        };
        self.partitions(&identity, &replayed, &log_starts, &mut report)?;
        report.partitions.sort_by_key(|p| p.partition);
        report.findings = self.findings;
        Ok(report)
    }

    /// Keeps a node from starting meanwhile. A copy of a directory may be without the file: nobody starts there.
    fn lock(&self) -> Result<Option<Box<dyn Send + Sync>>, VerifyError> {
        let path = self.dir.join("node.lock");
        match self.disk.lock(&path) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(VerifyError::InUse {
                dir: self.dir.to_owned(),
            }),
            Err(source) => Err(VerifyError::Read { path, source }),
        }
    }

    fn identity(&mut self, path: &Path) -> Result<Identity, VerifyError> {
        let bytes = self.read_whole(path)?;
        let first = Identity::decode(&bytes);
        let second = bytes
            .get(BLOCK..)
            .map_or(Err(FormatError::Inconsistent("node.id")), Identity::decode);
        match (first, second) {
            (Err(FormatError::Newer(found)), _) | (_, Err(FormatError::Newer(found))) => {
                let path = path.to_owned();
                Err(VerifyError::NewerFormat { path, found })
            }
            (Ok(first), Ok(second)) => {
                if first != second {
                    self.find(path, "the two copies differ");
                }
                Ok(first)
            }
            (Ok(good), Err(error)) => {
                self.find(path, format!("the second copy is bad: {error}"));
                Ok(good)
            }
            (Err(error), Ok(good)) => {
                self.find(path, format!("the first copy is bad: {error}"));
                Ok(good)
            }
            (Err(source), Err(_)) => Err(VerifyError::NoIdentity {
                path: path.to_owned(),
                source,
            }),
        }
    }

    fn partitions(
        &mut self,
        identity: &Identity,
        replayed: &Replayed,
        log_starts: &LogStarts,
        report: &mut Report,
    ) -> Result<(), VerifyError> {
        for partition in replayed.newest.partitions() {
            let log_start = log_starts.get(&partition.name);
            let log_start = log_start.map_or(0, |log_start| log_start.0);
            let checked = self.partition(identity, partition, log_start, report)?;
            report.partitions.push(checked);
        }
        Ok(())
    }

    fn find(&mut self, path: &Path, what: impl Into<String>) {
        self.findings.push(Finding {
            path: path.to_owned(),
            what: what.into(),
            partition: None,
            offsets: None,
        });
    }

    fn find_lost(
        &mut self,
        path: &Path,
        what: impl Into<String>,
        partition: TopicPartition,
        offsets: Range<u64>,
    ) {
        self.findings.push(Finding {
            path: path.to_owned(),
            what: what.into(),
            partition: Some(partition),
            offsets: Some(offsets),
        });
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>, VerifyError> {
        let opened = self.disk.open(path, OpenOptions::default());
        opened.map_err(|source| VerifyError::Read {
            path: path.to_owned(),
            source,
        })
    }

    fn read_whole(&self, path: &Path) -> Result<Vec<u8>, VerifyError> {
        let file = self.open(path)?;
        let failed = |source| VerifyError::Read {
            path: path.to_owned(),
            source,
        };
        let len = file.len().map_err(failed)?;
        let mut bytes = vec![0; len as usize];
        let read = file.read_at(&mut bytes, 0).map_err(failed)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
