//! Segment files: run after run, from the first offset still here to the synced end of each generation.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_model::{LeaderEpoch, Offset, TopicPartition};
use floe_world::File;

use super::replay::{Generation, Partition, skip};
use super::{Check, GenerationReport, PartitionReport, Report, VerifyError};
use crate::format::identity::Identity;
use crate::format::index::{self, Entry};
use crate::format::segment::{FileHeader, RUN_HEADER, RunHeader};
use crate::format::{BLOCK, batch, crc};

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
    /// First free block, as far as checkpoint and journal say.
    limit: Option<u32>,
    entries: Vec<Entry>,
    base: u64,
    block: u32,
    next: u64,
}

impl Check<'_> {
    /// One partition: its generations, its files, and the files that belong to none.
    pub(super) fn partition(
        &mut self,
        identity: &Identity,
        partition: &Partition,
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
            let checked = self.generation(identity, name, generation, own, report)?;
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
        report: &mut Report,
    ) -> Result<GenerationReport, VerifyError> {
        // Files above the newest named one were made and never counted on.
        let unnamed = files.split_off(&(generation.file_base + 1));
        report.unnamed.extend(unnamed.into_values());
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
        let mut next = generation.start;
        let bases: Vec<u64> = files.keys().copied().collect();
        for (at, (base, path)) in files.iter().enumerate() {
            if at == 0 && *base > next {
                // Whole files below the log start have been deleted.
                checked.start = Offset(*base);
                next = *base;
            }
            let is_newest = *base == generation.file_base;
            let end = bases.get(at + 1).copied().unwrap_or(generation.synced);
            next = self.gap(path, partition, generation, next, *base);
            let mut walk = Walk {
                path,
                file: self.open(path)?,
                partition,
                generation,
                limit: is_newest.then_some(generation.next_block),
                entries: Vec::new(),
                base: *base,
                block: 1,
                next,
            };
            self.file_header(identity, &walk)?;
            self.runs(&mut walk, end, &mut checked)?;
            self.index(&walk)?;
            next = walk.next;
            let len = walk.file.len().map_err(|source| failed(path, source))?;
            report.dead_bytes += len.saturating_sub(u64::from(walk.block) * BLOCK as u64);
        }
        if skip(&generation.lost, next) < generation.synced {
            let path = segment_path(self.dir, partition, generation.epoch, generation.file_base);
            self.find_lost(
                &path,
                "flushed records are not in any file",
                partition,
                next..generation.synced,
            );
        }
        self.pointers(partition, generation, &files)?;
        Ok(checked)
    }

    /// The next expected offset once a file begins at `base`.
    fn gap(
        &mut self,
        path: &Path,
        partition: TopicPartition,
        generation: &Generation,
        next: u64,
        base: u64,
    ) -> u64 {
        let next = skip(&generation.lost, next);
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

    fn runs(
        &mut self,
        walk: &mut Walk<'_>,
        end: u64,
        checked: &mut GenerationReport,
    ) -> Result<(), VerifyError> {
        while skip(&walk.generation.lost, walk.next) < end {
            walk.next = skip(&walk.generation.lost, walk.next);
            let run = match walk.run()? {
                Ok(run) => run,
                Err(what) => {
                    let lost = walk.next..end;
                    let what = format!("block {}: {what}", walk.block);
                    self.find_lost(walk.path, what, walk.partition, lost.clone());
                    checked.lost.push(lost);
                    walk.next = end;
                    break;
                }
            };
            let (header, batches) = run;
            checked.runs += 1;
            checked.batches += batches;
            walk.step(&header);
        }
        Ok(())
    }

    /// The offset index, where it is there and readable, against the runs. It is a cache: a short one is fine.
    fn index(&mut self, walk: &Walk<'_>) -> Result<(), VerifyError> {
        let path = walk.path.with_extension("idx");
        if !self.disk.exists(&path) {
            return Ok(());
        }
        let bytes = self.read_whole(&path)?;
        let mut entries = Vec::new();
        for page in bytes.chunks_exact(BLOCK) {
            // A bad page is rebuilt when it is first needed.
            if index::decode_page(page, &mut entries).is_err() {
                break;
            }
        }
        let differs = entries
            .iter()
            .zip(&walk.entries)
            .any(|(written, built)| written != built);
        if differs {
            self.find(&path, "says something else than the runs it points at");
        }
        Ok(())
    }

    /// Pointers still in the journal against the bytes they vouch for.
    fn pointers(
        &mut self,
        partition: TopicPartition,
        generation: &Generation,
        files: &Files,
    ) -> Result<(), VerifyError> {
        for pointer in &generation.pointers {
            let path = segment_path(self.dir, partition, generation.epoch, pointer.file_base);
            let lost = pointer.base..pointer.end;
            let Some(path) = files.get(&pointer.file_base) else {
                // Deleted since with everything in it, or missing: then the walk has said so.
                if pointer.file_base == generation.file_base {
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
            if read < bytes.len() || crc(&[&bytes]) != pointer.bytes_crc {
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

    /// The run at the current block, checked to the last byte; its batches counted.
    fn run(&self) -> Result<Result<(RunHeader, u64), String>, VerifyError> {
        if self.limit.is_some_and(|limit| self.block >= limit) {
            return Ok(Err("flushed runs end before it".to_owned()));
        }
        let offset = u64::from(self.block) * BLOCK as u64;
        let header = match RunHeader::decode(&self.read(offset, RUN_HEADER)?) {
            Ok(header) if header.blocks <= RUN_BLOCKS_MAX => header,
            Ok(header) => return Ok(Err(format!("a run of {} blocks", header.blocks))),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let bytes = self.read(offset, header.blocks as usize * BLOCK)?;
        if let Err(error) = RunHeader::verify(&bytes, self.partition, self.block, true) {
            return Ok(Err(error.to_string()));
        }
        if bytes[header.table().end..].iter().any(|byte| *byte != 0) {
            return Ok(Err("the padding of the run is not zero".to_owned()));
        }
        let batches = &bytes[RUN_HEADER..header.table().start];
        let epoch = self.generation.epoch;
        let mut next = header.base;
        for (_, head) in batch::walk(batches) {
            if head.epoch() != epoch {
                return Ok(Err(format!("a batch of epoch {} in it", head.epoch())));
            }
            if skip(&self.generation.lost, next) != head.base() {
                return Ok(Err(format!("a batch at {} follows {next}", head.base())));
            }
            next = head.end();
        }
        if header.base != self.next {
            return Ok(Err(format!(
                "a run at {} where {} is due",
                header.base, self.next
            )));
        }
        Ok(Ok((header, u64::from(header.batches))))
    }

    fn step(&mut self, header: &RunHeader) {
        let so_far = self
            .entries
            .last()
            .map_or(i64::MIN, |entry| entry.max_timestamp);
        self.entries.push(Entry {
            delta: header.base.saturating_sub(self.base) as u32,
            block: self.block,
            max_timestamp: so_far.max(header.max_timestamp),
        });
        self.block += header.blocks;
        self.next = header.end();
    }
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
