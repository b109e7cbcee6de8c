//! Writing runs to segments: copies of what the journal has, and large appends before the journal points at them.
//!
//! Durable: a pointer is made only after the flush of everything of its partition up to its end (rules
//! PointerAfterBytes, PointerCoversAll). A run starts on a fresh block and is written once (NoRewriteInPlace).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use floe_model::LeaderEpoch;
use floe_world::memory::Growing;

use crate::Failure;
use crate::engine::{Engine, Job};
use crate::files::{Files, Wanted};
use crate::format::BLOCK;
use crate::format::index::Entry;
use crate::format::record::Pointer;
use crate::format::segment::{RUN_HEADER, RunHeader, TABLE_ENTRY, blocks_for, write_table};
use crate::generation::{FilePlace, Version};
use crate::journal::Step;
use crate::partition::{Large, PartitionLog, State};
use crate::retention;
use crate::run::Place;

/// What the caller of [`write`] needs beyond what is closed already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    /// Close the open run and write it too.
    pub(crate) all: bool,
    /// Flush.
    pub(crate) sync: bool,
}

/// A run taken out of its partition to be written.
struct Closing {
    epoch: LeaderEpoch,
    version: Version,
    base: u64,
    end: u64,
    batches: u32,
    max_timestamp: i64,
    writer: Growing,
    descriptor: Bytes,
    place: Option<FilePlace>,
}

/// Where a run went.
struct Written {
    epoch: LeaderEpoch,
    version: Version,
    base: u64,
    end: u64,
    place: Place,
    file: FilePlace,
}

/// One job of a segment thread.
pub(crate) fn step(engine: &Engine) -> Step {
    let Some(job) = engine.jobs.pop() else {
        return Step::Idle;
    };
    if engine.failure().is_some() {
        return Step::Worked;
    }
    let done = match job {
        Job::Write(partition) => write(engine, &partition, Wish::default()),
        Job::Producers(partition) => retention::store_producers(engine, &partition),
    };
    if let Err(failure) = done {
        engine.poison(failure);
    }
    if engine.is_disk_full.load(Ordering::Relaxed) {
        return Step::Blocked;
    }
    Step::Worked
}

/// Why a run was not written.
enum Unwritten {
    /// It has no place; the run comes back.
    NoPlace(Box<Closing>, Failure),
    Failed(Failure),
}

/// Writes what is closed (all, if wished or if a large append waits) of one partition; flushes if wished or needed.
///
/// A full disk is reported in [`Engine::is_disk_full`] and leaves everything as it was, to be tried again.
pub(crate) fn write(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    wish: Wish,
) -> Result<(), Failure> {
    let mut files = partition.files.lock();
    let (is_large, next) = take(engine, partition, wish);
    let mut written = Vec::new();
    let mut next = next.into_iter();
    for closing in next.by_ref() {
        match write_run(engine, partition, &mut files, closing, &written) {
            Ok(one) => written.push(one),
            Err(Unwritten::Failed(failure)) => return Err(failure),
            Err(Unwritten::NoPlace(closing, failure)) => {
                give_back(partition, *closing);
                next.for_each(|closing| give_back(partition, closing));
                // What was written is flushed as asked for, or a checkpoint would count on neither copy of it.
                if wish.sync {
                    files.sync(engine, partition.partition)?;
                }
                let how = Settle {
                    is_synced: wish.sync,
                    is_large: false,
                };
                settle(engine, partition, &written, how);
                return full_or_failed(engine, partition, is_large, failure);
            }
        }
    }
    engine.is_disk_full.store(false, Ordering::Relaxed);
    let is_synced = wish.sync || is_large;
    if is_synced {
        let begun = engine.clock.monotonic();
        files.sync(engine, partition.partition)?;
        let took = engine.clock.monotonic().saturating_sub(begun);
        engine.metrics.segment_flush(took);
    }
    settle(
        engine,
        partition,
        &written,
        Settle {
            is_synced,
            is_large,
        },
    );
    Ok(())
}

/// Out of space: everything stays in memory, appends are refused, a later attempt goes on. Anything else poisons.
fn full_or_failed(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    is_large: bool,
    failure: Failure,
) -> Result<(), Failure> {
    if !failure.is_full() {
        return Err(failure);
    }
    if !engine.is_disk_full.swap(true, Ordering::Relaxed) {
        tracing::error!(%failure, "the disk is full; appends are refused until there is room");
    }
    let mut state = partition.state.lock();
    if is_large {
        state.large = Large::Wanted;
    }
    engine.queue_write(partition, &mut state.has_job);
    Ok(())
}

/// Takes the closed runs out, oldest first, and says whether a large append waits for this.
fn take(engine: &Engine, partition: &PartitionLog, wish: Wish) -> (bool, Vec<Closing>) {
    let mut state = partition.state.lock();
    let state = &mut *state;
    state.has_job = false;
    let is_large = matches!(state.large, Large::Wanted);
    if is_large {
        state.large = Large::Writing;
    }
    let all = wish.all || is_large;
    let mut next = Vec::new();
    let mut used = None;
    for generation in &mut state.generations {
        if all {
            if let Some(run) = generation.runs.back().filter(|run| run.is_open) {
                used = Some((
                    run.view.published(),
                    run.writer.as_ref().map_or(0, Growing::capacity),
                ));
            }
            generation.seal_run();
        }
        for run in generation.runs.iter_mut().filter(|run| !run.is_open) {
            if let Some(writer) = run.writer.take() {
                next.push(Closing {
                    epoch: generation.epoch,
                    version: generation.version,
                    base: run.base,
                    end: run.end,
                    batches: run.batches,
                    max_timestamp: run.max_timestamp,
                    writer,
                    descriptor: generation.descriptor.clone(),
                    place: generation.file,
                });
            }
        }
    }
    if let Some((used, capacity)) = used {
        state.size_next_run(used, capacity, engine.config.run_bytes_max);
    }
    (is_large, next)
}

/// A run that could not be placed goes back where it was.
fn give_back(partition: &PartitionLog, closing: Closing) {
    let mut state = partition.state.lock();
    let held = state.same(closing.epoch, closing.version);
    let run = held.and_then(|generation| {
        generation
            .runs
            .iter_mut()
            .find(|run| run.base == closing.base)
    });
    if let Some(run) = run {
        run.writer = Some(closing.writer);
    }
}

fn roll(engine: &Engine, partition: &PartitionLog) -> (u64, Duration) {
    let bytes = match partition.segment_bytes.load(Ordering::Relaxed) {
        0 => engine.config.segment_bytes,
        bytes => bytes,
    };
    let age = match partition.segment_age_ms.load(Ordering::Relaxed) {
        0 => engine.config.segment_age,
        ms => Duration::from_millis(ms),
    };
    (bytes, age)
}

fn write_run(
    engine: &Engine,
    partition: &PartitionLog,
    files: &mut Files,
    mut closing: Closing,
    before: &[Written],
) -> Result<Written, Unwritten> {
    let position = closing.writer.position();
    let blocks = blocks_for(position - RUN_HEADER, closing.batches as usize) as u32;
    let (bytes_max, age_max) = roll(engine, partition);
    let latest = before.iter().rev().find(|one| one.epoch == closing.epoch);
    let wanted = Wanted {
        partition: partition.partition,
        epoch: closing.epoch,
        base: closing.base,
        blocks,
        descriptor: &closing.descriptor,
        place: latest.map_or(closing.place, |one| Some(one.file)),
        bytes_max,
        age_max,
        table: &partition.table,
    };
    let open = match files.place(engine, &wanted) {
        Ok(open) => open,
        Err(failure) => return Err(Unwritten::NoPlace(Box::new(closing), failure)),
    };
    let block = open.next_block;
    let header = finish(&mut closing, partition, block, blocks);
    let Closing {
        epoch,
        version,
        base,
        end,
        writer,
        max_timestamp,
        ..
    } = closing;
    let image = writer.close(blocks as usize * BLOCK);
    let handle = open.file.handle(engine).map_err(Unwritten::Failed)?;
    let written = handle.write_at(&image, u64::from(block) * BLOCK as u64);
    let failed = Engine::failed("write", &open.file.path);
    written.map_err(|error| Unwritten::Failed(failed(error)))?;
    engine.metrics.run(image.len());
    open.is_dirty = true;
    open.next_block += blocks;
    let mut index = open.file.index.lock();
    let so_far = index
        .entries
        .last()
        .map_or(i64::MIN, |entry| entry.max_timestamp);
    index.entries.push(Entry {
        delta: (base - open.file.base) as u32,
        block,
        max_timestamp: max_timestamp.max(so_far),
    });
    index.to_block = Some(open.next_block);
    drop(index);
    Ok(Written {
        epoch,
        version,
        base,
        end,
        place: Place {
            file_base: open.file.base,
            block,
            blocks,
            header_crc: header.crc,
        },
        file: FilePlace {
            base: open.file.base,
            next_block: open.next_block,
        },
    })
}

/// Table, padding and header of a run, in its own memory.
fn finish(closing: &mut Closing, partition: &PartitionLog, block: u32, blocks: u32) -> RunHeader {
    let bytes = closing.writer.position() - RUN_HEADER;
    let batches = closing.batches as usize;
    let mut table = vec![0; batches * TABLE_ENTRY];
    let count = write_table(closing.writer.published(), |at, crc| {
        if let Some(entry) = table.get_mut(at * TABLE_ENTRY..(at + 1) * TABLE_ENTRY) {
            entry.copy_from_slice(&crc);
        }
    });
    assert_eq!(count, batches, "a run's batches are those that were pushed");
    let rest = closing.writer.rest_mut();
    rest[..table.len()].copy_from_slice(&table);
    let used = RUN_HEADER + bytes + table.len();
    rest[table.len()..table.len() + blocks as usize * BLOCK - used].fill(0);
    let mut header = RunHeader {
        crc: 0,
        base: closing.base,
        batches: closing.batches,
        bytes: bytes as u32,
        blocks,
        last_delta: (closing.end - closing.base - 1) as u32,
        max_timestamp: closing.max_timestamp,
    };
    header.crc = header.checksum(partition.partition, block, &table);
    header.encode(closing.writer.front_mut());
    header
}

/// How a write ended.
#[derive(Clone, Copy, Default)]
struct Settle {
    is_synced: bool,
    is_large: bool,
}

/// Notes where the runs went. After a large append, pointers for everything that is written and flushed and not in the
/// journal, which takes them next. What is written may from now on leave memory.
fn settle(engine: &Engine, partition: &Arc<PartitionLog>, written: &[Written], how: Settle) {
    let mut state = partition.state.lock();
    for one in written {
        // It may have been dropped meanwhile, and opened again.
        let Some(generation) = state.same(one.epoch, one.version) else {
            continue;
        };
        generation.written = generation.written.max(one.end.min(generation.end));
        generation.file = Some(one.file);
        let run = generation.runs.iter_mut().find(|run| run.base == one.base);
        if let Some(run) = run {
            run.place = Some(one.place);
        }
    }
    if how.is_synced {
        for generation in &mut state.generations {
            generation.synced = generation.written;
        }
    }
    if how.is_large {
        let pointers = pointers(&mut state);
        state.large = if pointers.is_empty() {
            Large::Idle
        } else {
            Large::Ready(pointers)
        };
        engine.queue(partition, &mut state.is_queued);
    }
    drop(state);
    let mut evictable = engine.evictable.lock();
    for one in written {
        evictable.push_back((Arc::clone(partition), one.epoch, one.base));
    }
    drop(evictable);
    engine.room.ring();
}

fn pointers(state: &mut State) -> Vec<Pointer> {
    let mut pointers = Vec::new();
    for generation in &mut state.generations {
        if !generation.is_composed() {
            continue;
        }
        let epoch = generation.epoch;
        for run in generation.runs.iter_mut().filter(|run| run.pending().0 > 0) {
            let Some(place) = run.place else { continue };
            run.take_pending();
            pointers.push(Pointer {
                epoch,
                file_base: place.file_base,
                first_block: place.block,
                blocks: place.blocks,
                base: run.base,
                end: run.end,
                header_crc: place.header_crc,
                last_crc: run.checksum_at(run.end).unwrap_or(0),
            });
        }
    }
    pointers
}
