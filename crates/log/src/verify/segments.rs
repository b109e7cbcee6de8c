//! Segment files: run after run, from the log start or the first file still here to the synced end of each generation.
//!
//! Index files are not judged: they are caches, each hit of which is proved by the run it points at.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_model::{LeaderEpoch, Offset, TopicPartition};
use floe_world::File;

use super::replay::{Generation, Partition, skip};
use super::{Check, GenerationReport, PartitionReport, Report, VerifyError};
use crate::format::identity::Identity;
use crate::format::segment::{FileHeader, RUN_HEADER, RunHeader};
use crate::format::{BLOCK, batch};

/// Largest run that is believed before its checksum is known.
const RUN_BLOCKS_MAX: u32 = (64 << 20) / BLOCK as u32;

/// A generation's files by base offset.
type Files = BTreeMap<u64, PathBuf>;

/// A file being walked.
struct Walk<'a> {
    path: &'a Path,
    file: Arc<dyn File>,
    partition: TopicPartition,
    generation: &'a Generation,
    /// Offsets that need not be there: known to be lost, or below the log start.
    absent: &'a [Range<u64>],
    base: u64,
    /// First free block, as far as checkpoint and journal say.
    limit: Option<u32>,
}

/// A run that is there, whole or not.
struct Run {
    block: u32,
    header: RunHeader,
    /// What counts of it ends here: at the end of the generation, or where a later run takes over.
    end: u64,
    fault: Option<String>,
}

impl Check<'_> {
    /// One partition: its generations, its files, and the files that belong to none.
    pub(super) fn partition(
        &mut self,
        identity: &Identity,
        partition: &Partition,
        log_start: u64,
        report: &mut Report,
    ) -> Result<PartitionReport, VerifyError> {
        let name = partition.name;
        let dir = self
            .dir
            .join(name.topic.to_string())
            .join(name.partition.to_string());
        let mut files = self.files(&dir, report)?;
        let mut generations = Vec::new();
        for generation in &partition.generations {
            let own = files.remove(&generation.epoch).unwrap_or_default();
            let checked = self.generation(identity, name, generation, own, log_start, report)?;
            generations.push(checked);
        }
        for left in files.into_values() {
            report.unnamed.extend(left.into_values());
        }
        Ok(PartitionReport {
            partition: name,
            incarnation: partition.incarnation,
            fence: partition.fence,
            generations,
        })
    }

    /// Segment files of a partition directory, by epoch and base.
    fn files(
        &self,
        dir: &Path,
        report: &mut Report,
    ) -> Result<BTreeMap<LeaderEpoch, Files>, VerifyError> {
        let names = match self.disk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(|source| VerifyError::Read {
                path: dir.to_owned(),
                source,
            })?,
        };
        let mut files: BTreeMap<LeaderEpoch, Files> = BTreeMap::new();
        for name in names {
            let path = dir.join(&name);
            let extension = name.extension().and_then(|extension| extension.to_str());
            match (extension, parse(&name)) {
                (Some("seg"), Some((epoch, base))) => {
                    files.entry(epoch).or_default().insert(base, path);
                }
                (Some("idx" | "psn"), Some(_)) => {}
                _ => report.unnamed.push(path),
            }
        }
        Ok(files)
    }

    fn generation(
        &mut self,
        identity: &Identity,
        partition: TopicPartition,
        generation: &Generation,
        mut files: Files,
        log_start: u64,
        report: &mut Report,
    ) -> Result<GenerationReport, VerifyError> {
        // Files above the newest named one were made and never counted on.
        if let Some(above) = generation.file_base.checked_add(1) {
            let unnamed = files.split_off(&above);
            report.unnamed.extend(unnamed.into_values());
        }
        if generation.next_block == 0 {
            report
                .unnamed
                .extend(std::mem::take(&mut files).into_values());
        }
        let mut checked = GenerationReport {
            epoch: generation.epoch,
            start: Offset(generation.start),
            end: Offset(generation.end),
            synced: Offset(generation.synced),
            files: files.len(),
            runs: 0,
            batches: generation.batches,
            lost: generation.lost.clone(),
        };
        // Files at and above the flushed end hold only appends that were never acknowledged.
        let dead = files.split_off(&generation.synced);
        for path in dead.values() {
            let len = self.open(path)?.len();
            report.dead_bytes += len.map_err(|source| failed(path, source))?;
        }
        checked.files = files.len();
        let bases: Vec<u64> = files.keys().copied().collect();
        let first = bases.first().copied().unwrap_or(generation.synced);
        let mut next = generation.start.max(first.min(log_start));
        checked.start = Offset(next);
        let mut absent = generation.lost.clone();
        absent.push(0..log_start);
        for (at, (base, path)) in files.iter().enumerate() {
            let is_newest = *base == generation.file_base;
            let end = bases.get(at + 1).copied().unwrap_or(generation.synced);
            next = self.gap(path, partition, &absent, next..*base);
            let walk = Walk {
                path,
                file: self.open(path)?,
                partition,
                generation,
                absent: &absent,
                base: *base,
                limit: is_newest.then_some(generation.next_block),
            };
            self.file_header(identity, &walk)?;
            let (runs, stopped) = walk.scan()?;
            let last = runs
                .last()
                .map_or(1, |run| run.block.saturating_add(run.header.blocks));
            let len = walk.file.len().map_err(|source| failed(path, source))?;
            report.dead_bytes += len.saturating_sub(u64::from(last) * BLOCK as u64);
            next = self.runs(&walk, &live(runs, end), next..end, &stopped, &mut checked);
        }
        next = skip(&absent, next);
        if next < generation.synced {
            let path = segment_path(self.dir, partition, generation.epoch, generation.file_base);
            self.find_lost(
                &path,
                "flushed records are not in any file",
                partition,
                next..generation.synced,
            );
        }
        self.pointers(partition, generation, log_start, &files)?;
        Ok(checked)
    }

    /// The next expected offset once a file begins where `offsets` end; they are due before it.
    fn gap(
        &mut self,
        path: &Path,
        partition: TopicPartition,
        absent: &[Range<u64>],
        offsets: Range<u64>,
    ) -> u64 {
        let (next, base) = (skip(absent, offsets.start), offsets.end);
        if next < base {
            self.find_lost(
                path,
                "the file before it ends too early",
                partition,
                next..base,
            );
        }
        next.max(base)
    }

    fn file_header(&mut self, identity: &Identity, walk: &Walk<'_>) -> Result<(), VerifyError> {
        let block = walk.read(0, BLOCK)?;
        match FileHeader::decode(&block) {
            Err(error) => self.find(walk.path, error.to_string()),
            Ok(header) => {
                let expected = (
                    walk.partition,
                    walk.generation.epoch,
                    walk.base,
                    identity.journal_id,
                );
                if (
                    header.partition,
                    header.epoch,
                    header.base,
                    header.journal_id,
                ) != expected
                {
                    self.find(
                        walk.path,
                        "its header names another partition, generation, offset or journal",
                    );
                }
            }
        }
        Ok(())
    }

    /// The live runs of a file against the offsets it should hold; gives the offset it ends at.
    fn runs(
        &mut self,
        walk: &Walk<'_>,
        runs: &[Run],
        offsets: Range<u64>,
        stopped: &str,
        checked: &mut GenerationReport,
    ) -> u64 {
        let absent = walk.absent;
        let mut next = offsets.start;
        for run in runs {
            next = skip(absent, next);
            let (base, end) = (run.header.base, run.end);
            if base > next {
                let what = format!("block {}: a run at {base} where {next} is due", run.block);
                self.lose(walk, what, next..base, checked);
            }
            if let Some(fault) = &run.fault {
                let what = format!("block {}: {fault}", run.block);
                self.lose(walk, what, base..end, checked);
            }
            checked.runs += 1;
            checked.batches += u64::from(run.header.batches);
            next = end.max(next);
        }
        next = skip(absent, next);
        if next < offsets.end {
            self.lose(walk, stopped.to_owned(), next..offsets.end, checked);
            next = offsets.end;
        }
        next
    }

    fn lose(
        &mut self,
        walk: &Walk<'_>,
        what: String,
        offsets: Range<u64>,
        checked: &mut GenerationReport,
    ) {
        self.find_lost(walk.path, what, walk.partition, offsets.clone());
        checked.lost.push(offsets);
    }

    /// Pointers still in the journal against the bytes they vouch for.
    fn pointers(
        &mut self,
        partition: TopicPartition,
        generation: &Generation,
        log_start: u64,
        files: &Files,
    ) -> Result<(), VerifyError> {
        for pointer in &generation.pointers {
            let path = segment_path(self.dir, partition, generation.epoch, pointer.file_base);
            let lost = pointer.base..pointer.end;
            let Some(path) = files.get(&pointer.file_base) else {
                // Deleted since with everything in it, or missing.
                if pointer.end.min(generation.end) > log_start {
                    self.find_lost(
                        &path,
                        "a file that the journal names is missing",
                        partition,
                        lost,
                    );
                }
                continue;
            };
            let file = self.open(path)?;
            let mut bytes = vec![0; pointer.blocks.min(RUN_BLOCKS_MAX) as usize * BLOCK];
            let offset = u64::from(pointer.first_block) * BLOCK as u64;
            let read = file
                .read_at(&mut bytes, offset)
                .map_err(|source| failed(path, source))?;
            let run = RunHeader::verify(&bytes[..read], partition, pointer.first_block, true);
            if run.map_or(true, |header| header.crc != pointer.header_crc) {
                let what = format!(
                    "block {}: differs from what the journal says was flushed",
                    pointer.first_block
                );
                self.find_lost(path, what, partition, lost);
            }
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, VerifyError> {
        let mut bytes = vec![0; len];
        let read = self
            .file
            .read_at(&mut bytes, offset)
            .map_err(|source| failed(self.path, source))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The runs one after the other, each checked to the last byte, as far as they can be told; and why they end.
    fn scan(&self) -> Result<(Vec<Run>, String), VerifyError> {
        let mut runs = Vec::new();
        let mut stopped = String::new();
        let mut block = 1;
        loop {
            if self.limit.is_some_and(|limit| block >= limit) {
                if stopped.is_empty() {
                    stopped = format!("block {block}: flushed runs end before it");
                }
                return Ok((runs, stopped));
            }
            let offset = u64::from(block) * BLOCK as u64;
            let bytes = self.read(offset, RUN_HEADER)?;
            if bytes.is_empty() {
                return Ok((runs, stopped));
            }
            let header = match RunHeader::decode(&bytes) {
                Ok(header) if header.blocks <= RUN_BLOCKS_MAX => header,
                // Dead bytes, or a damaged run: the offsets of the runs around it tell.
                Ok(_) | Err(_) => {
                    if stopped.is_empty() {
                        stopped = format!("block {block}: no run");
                    }
                    block += 1;
                    continue;
                }
            };
            let bytes = self.read(offset, header.blocks as usize * BLOCK)?;
            let fault = self.fault(&bytes, block, &header);
            let end = header.end();
            runs.push(Run {
                block,
                header,
                end,
                fault,
            });
            block = block.saturating_add(header.blocks);
        }
    }

    fn fault(&self, bytes: &[u8], block: u32, header: &RunHeader) -> Option<String> {
        if let Err(error) = RunHeader::verify(bytes, self.partition, block, true) {
            return Some(error.to_string());
        }
        if bytes[header.table().end..].iter().any(|byte| *byte != 0) {
            return Some("the padding of the run is not zero".to_owned());
        }
        let lost = &self.generation.lost;
        let mut next = header.base;
        for (_, head) in batch::walk(&bytes[RUN_HEADER..header.table().start]) {
            if head.epoch() != self.generation.epoch {
                return Some(format!("a batch of epoch {} in it", head.epoch()));
            }
            if skip(lost, next) != head.base() && next != head.base() {
                return Some(format!("a batch at {} follows {next}", head.base()));
            }
            next = head.end();
        }
        None
    }
}

/// What counts of the runs below `end`: not appends that were never acknowledged, which a later run replaces or which
/// lie above the end.
fn live(mut runs: Vec<Run>, end: u64) -> Vec<Run> {
    let mut least = end;
    runs.reverse();
    runs.retain_mut(|run| {
        run.end = run.end.min(least);
        least = least.min(run.header.base);
        run.header.base < run.end
    });
    runs.reverse();
    runs
}

fn failed(path: &Path, source: io::Error) -> VerifyError {
    VerifyError::Read {
        path: path.to_owned(),
        source,
    }
}

/// `<epoch>-<base>` before the dot.
fn parse(name: &Path) -> Option<(LeaderEpoch, u64)> {
    let (epoch, base) = name.file_stem()?.to_str()?.split_once('-')?;
    Some((LeaderEpoch(epoch.parse().ok()?), base.parse().ok()?))
}

fn segment_path(dir: &Path, partition: TopicPartition, epoch: LeaderEpoch, base: u64) -> PathBuf {
    let dir = dir
        .join(partition.topic.to_string())
        .join(partition.partition.to_string());
    dir.join(format!("{epoch}-{base}.seg"))
}
