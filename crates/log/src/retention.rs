//! What is kept beside the log: the list of segment files that retention decides by, and producer snapshots.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use floe_model::{Offset, Timestamp};
use floe_world::OpenOptions;

use crate::checkpoint::PRODUCERS_BYTES_MAX;
use crate::engine::{Engine, Job};
use crate::files::SegmentFile;
use crate::format::BLOCK;
use crate::format::index::{decode_producers, encode_producers};
use crate::partition::PartitionLog;
use crate::read::index;
use crate::{Failure, SegmentInfo};

/// The newest producer snapshot that is too large for a checkpoint.
const PRODUCERS: &str = "producers.psn";
/// Largest producer snapshot that is read back.
const PRODUCERS_FILE_BYTES_MAX: u64 = 64 << 20;

/// Lists the partition's files once, then answers from memory.
pub(crate) fn load_table(engine: &Engine, partition: &PartitionLog) -> Result<(), Failure> {
    let state = partition.state.lock();
    let each = state.generations.iter();
    let places: Vec<_> = each
        .map(|generation| (generation.epoch, generation.file))
        .collect();
    drop(state);
    partition
        .table
        .lock()
        .load(engine, partition.partition, &places)
}

/// A file and where the next one, or its generation, begins.
pub(crate) fn files(
    engine: &Engine,
    partition: &PartitionLog,
) -> Result<Vec<(Arc<SegmentFile>, u64)>, Failure> {
    load_table(engine, partition)?;
    let state = partition.state.lock();
    let written: Vec<_> = state
        .generations
        .iter()
        .map(|generation| (generation.epoch, generation.written))
        .collect();
    drop(state);
    let table = partition.table.lock();
    let all: Vec<_> = table.files.values().cloned().collect();
    drop(table);
    let ends = all.iter().enumerate().map(|(at, file)| {
        let next = all.get(at + 1).filter(|next| next.epoch == file.epoch);
        let end = written.iter().find(|(epoch, _)| *epoch == file.epoch);
        next.map_or_else(|| end.map_or(file.base, |(_, end)| *end), |next| next.base)
    });
    let ends: Vec<u64> = ends.collect();
    Ok(all.into_iter().zip(ends).collect())
}

pub(crate) fn segments(
    engine: &Engine,
    partition: &PartitionLog,
) -> Result<Vec<SegmentInfo>, Failure> {
    let mut segments = Vec::new();
    for (file, end) in files(engine, partition)? {
        // Retention by time asks for the largest timestamp of every file.
        index::runs(engine, partition.partition, &file, false)?;
        let index = file.index.lock();
        let is_known = index.from_block == 1;
        let newest = index.entries.last().filter(|_| is_known);
        let max_timestamp = newest.map(|entry| Timestamp(entry.max_timestamp));
        let blocks = index.to_block;
        drop(index);
        let bytes = if let Some(blocks) = blocks {
            u64::from(blocks) * BLOCK as u64
        } else {
            let len = file.handle(engine)?.len();
            len.map_err(Engine::failed("measure", &file.path))?
        };
        segments.push(SegmentInfo {
            epoch: file.epoch,
            base: Offset(file.base),
            end: Offset(end),
            bytes,
            max_timestamp,
            is_open: false,
        });
    }
    let state = partition.state.lock();
    for generation in &state.generations {
        let unwritten = generation.runs.iter().filter(|run| !run.is_written());
        let newest = unwritten.clone().map(|run| run.max_timestamp).max();
        let bytes: usize = unwritten.map(crate::run::Run::bytes).sum();
        let last = segments
            .iter_mut()
            .rev()
            .find(|one| one.epoch == generation.epoch);
        let is_newest = state.generations.last().map(|last| last.epoch) == Some(generation.epoch);
        if let Some(last) = last {
            last.is_open = is_newest;
        }
        if bytes > 0 {
            segments.push(SegmentInfo {
                epoch: generation.epoch,
                base: Offset(generation.written),
                end: Offset(generation.end),
                bytes: bytes as u64,
                max_timestamp: newest.map(Timestamp),
                is_open: is_newest,
            });
        }
    }
    segments.sort_by_key(|one| (one.epoch, one.base));
    Ok(segments)
}

pub(crate) fn keep_producers(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    at: u64,
    snapshot: Bytes,
) {
    let is_large = snapshot.len() > PRODUCERS_BYTES_MAX;
    partition.state.lock().producers = Some((at, snapshot));
    engine.has_kept.store(true, Ordering::Release);
    if is_large {
        engine.jobs.push(Job::Producers(Arc::clone(partition)));
    }
}

fn producers_path(engine: &Engine, partition: &PartitionLog) -> PathBuf {
    engine.partition_dir(partition.partition).join(PRODUCERS)
}

/// Writes the newest one beside the old and renames it over. A cache: not flushed.
pub(crate) fn store_producers(engine: &Engine, partition: &PartitionLog) -> Result<(), Failure> {
    // Nothing else makes or removes the directory meanwhile.
    let files = partition.files.lock();
    let state = partition.state.lock();
    let newest = state.producers.clone().filter(|_| !state.is_forgotten);
    drop(state);
    let Some((at, snapshot)) = newest else {
        return Ok(());
    };
    let path = producers_path(engine, partition);
    let fresh = path.with_extension("new");
    let directory = engine.partition_dir(partition.partition);
    let made = engine.disk.create_dir_all(&directory);
    made.map_err(Engine::failed("make", &directory))?;
    if engine.disk.exists(&fresh) {
        let removed = engine.disk.remove_file(&fresh);
        removed.map_err(Engine::failed("remove", &fresh))?;
    }
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    let file = engine.disk.open(&fresh, options);
    let file = file.map_err(Engine::failed("create", &fresh))?;
    let mut bytes = encode_producers(at, &snapshot).to_vec();
    bytes.extend_from_slice(&snapshot);
    file.write_at(&bytes, 0)
        .map_err(Engine::failed("write", &fresh))?;
    file.sync_data().map_err(Engine::failed("flush", &fresh))?;
    let renamed = engine.disk.rename(&fresh, &path);
    renamed.map_err(Engine::failed("rename", &fresh))?;
    drop(files);
    Ok(())
}

pub(crate) fn producers(engine: &Engine, partition: &PartitionLog) -> Option<(Offset, Bytes)> {
    let state = partition.state.lock();
    let held = state.producers.clone();
    let end = state.generations.last().map_or(0, |last| last.end);
    drop(state);
    let stored = read_producers(engine, partition).filter(|(at, _)| *at <= end);
    let newest = held.into_iter().chain(stored).max_by_key(|(at, _)| *at);
    newest.map(|(at, bytes)| (Offset(at), bytes))
}

fn read_producers(engine: &Engine, partition: &PartitionLog) -> Option<(u64, Bytes)> {
    let path = producers_path(engine, partition);
    let file = engine.disk.open(&path, OpenOptions::default()).ok()?;
    let len = file
        .len()
        .ok()
        .filter(|len| *len <= PRODUCERS_FILE_BYTES_MAX)?;
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    let bytes = Bytes::from(bytes);
    let (at, snapshot) = decode_producers(&bytes).ok()?;
    Some((at, bytes.slice_ref(snapshot)))
}
