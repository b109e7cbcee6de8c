//! Reads from segments: on reader threads, into recycled memory, every byte checked before it is served.

use std::ops::Range;
use std::sync::Arc;

use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;

use super::chunks::Chunk;
use super::index::{self, RunPlace};
use super::{Wanted, from_memory, locate};
use crate::engine::Engine;
use crate::files::SegmentFile;
use crate::format::BLOCK;
use crate::format::batch;
use crate::format::segment::{RUN_HEADER, RunHeader};
use crate::generation::Version;
use crate::journal::Step;
use crate::partition::PartitionLog;
use crate::receipt::promise;
use crate::retention::load_table;
use crate::{ColdRead, ReadError, Slices};

/// Work of a reader thread.
pub(crate) struct ColdJob {
    /// Dropped without being run, it ends unanswered.
    run: Box<dyn FnOnce(&Engine) + Send>,
}

/// One job of a reader thread.
pub(crate) fn step(engine: &Engine) -> Step {
    let Some(job) = engine.cold.pop() else {
        return Step::Idle;
    };
    (job.run)(engine);
    Step::Worked
}

/// Runs `work` on a reader thread.
pub(crate) async fn on_reader<T: Send + 'static>(
    engine: &Arc<Engine>,
    work: impl FnOnce(&Engine) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    let (promise, receipt) = promise::<Result<T, ReadError>>();
    let run = Box::new(move |engine: &Engine| promise.resolve(Ok(work(engine))));
    engine.cold.push(ColdJob { run });
    if engine.is_closing() {
        // Its threads may have gone before this came.
        drop(engine.cold.drain());
    }
    receipt.await.map_err(|_| ReadError::Closed)?
}

/// Starts a read. Memory first, so that what waits holds no thread.
pub(crate) fn read(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    wanted: Wanted,
) -> ColdRead {
    let engine = Arc::clone(engine);
    let partition = Arc::clone(partition);
    ColdRead(Box::pin(async move {
        let buffer = engine.reads.get(engine.config.run_bytes_max).await;
        let max_bytes = wanted.max_bytes.min(buffer.len());
        let wanted = Wanted {
            max_bytes,
            ..wanted
        };
        on_reader(&engine, move |engine| {
            let (slices, goes_on) = serve(engine, &partition, wanted, buffer)?;
            if goes_on {
                read_ahead(engine, &partition, wanted.epoch, slices.next.0);
            }
            Ok(slices)
        })
        .await
    }))
}

/// Reads on after a reader that has come to `from`, so that it finds the next stretch in memory. Given up when memory
/// for reads is short.
pub(crate) fn read_ahead(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    epoch: Option<LeaderEpoch>,
    from: u64,
) {
    let Some(buffer) = engine.reads.try_get(engine.config.run_bytes_max) else {
        return;
    };
    let partition = Arc::clone(partition);
    let wanted = Wanted {
        epoch,
        from,
        up_to: u64::MAX,
        max_bytes: 0,
        at_least_one: true,
    };
    let run = Box::new(move |engine: &Engine| {
        if let Err(error) = serve(engine, &partition, wanted, buffer) {
            // Whoever reads there is told.
            tracing::debug!(%error, "nothing to read ahead");
        }
    });
    engine.cold.push(ColdJob { run });
}

/// From memory or from what was read lately; from disk if need be. Says whether the reader goes on from one stretch to the
/// next and has come to the end of this one.
fn serve(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    wanted: Wanted,
    buffer: Buffer,
) -> Result<(Slices, bool), ReadError> {
    let mut state = partition.state.lock();
    // It may have come to memory again, or gone by retention, while this waited.
    if let Some(slices) = from_memory(&mut state, wanted)? {
        drop(state);
        return Ok((copied(&slices, buffer), false));
    }
    let Some((generation, up_to)) = locate(&mut state, wanted)? else {
        let nothing = Slices {
            batches: Vec::new(),
            next: Offset(wanted.from),
        };
        return Ok((nothing, false));
    };
    let on_disk = generation.written;
    let (epoch, version) = (generation.epoch, generation.version);
    let is_sequential = std::mem::replace(&mut state.cold_next, u64::MAX) == wanted.from;
    drop(state);
    let wanted = Wanted { up_to, ..wanted };
    if let Some((slices, _)) = engine
        .chunks
        .lock()
        .serve(partition, (epoch, version), wanted)
    {
        return Ok((slices, false));
    }
    let mut cold = Cold {
        engine,
        partition,
        epoch,
        version,
        wanted,
        is_sequential,
        // A run on disk may go on with appends of an earlier life that were never acknowledged: what is not written in this
        // one is in memory only.
        limit: on_disk,
        buffer,
    };
    // The stored index may be stale; then the run headers decide.
    let found = match cold.attempt(false)? {
        None => cold.attempt(true)?,
        found => found,
    };
    let Some(mut chunk) = found else {
        return Err(cold.lose());
    };
    engine.metrics.cold_read(chunk.bytes.len());
    let slices = chunk.slices(wanted);
    partition.state.lock().cold_next = chunk.end;
    let goes_on = is_sequential && slices.next.0 >= chunk.end && chunk.end < on_disk;
    engine.chunks.lock().keep(chunk, engine.reads.limit() / 2);
    Ok((slices, goes_on))
}

/// What memory had, copied so that it pins nothing of the tail.
fn copied(slices: &Slices, mut buffer: Buffer) -> Slices {
    let len = slices.bytes();
    let mut at = 0;
    for part in &slices.batches {
        buffer[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    let batches = if len > 0 {
        vec![buffer.freeze(len)]
    } else {
        Vec::new()
    };
    Slices {
        batches,
        next: slices.next,
    }
}

/// One read under way.
struct Cold<'a> {
    engine: &'a Engine,
    partition: &'a Arc<PartitionLog>,
    epoch: LeaderEpoch,
    version: Version,
    wanted: Wanted,
    /// Where the last read of the partition from disk ended.
    is_sequential: bool,
    /// What lies above is not of this log.
    limit: u64,
    buffer: Buffer,
}

impl Cold<'_> {
    /// The file, and where the one after it begins.
    fn file(&self) -> Result<(Arc<SegmentFile>, u64), ReadError> {
        load_table(self.engine, self.partition)?;
        let table = self.partition.table.lock();
        let file = table.find(self.epoch, self.wanted.from).cloned();
        let next = table.next_base(self.epoch, self.wanted.from);
        drop(table);
        let file = file.map(|file| (file, next.unwrap_or(u64::MAX)));
        file.ok_or_else(|| {
            let state = self.partition.state.lock();
            let start = state.delete_below;
            let end = state.generations.last().map_or(0, |last| last.end);
            ReadError::OutOfRange {
                start: Offset(start),
                end: Offset(end),
            }
        })
    }

    /// `None`: what should be there is not, or is damaged.
    fn attempt(&mut self, is_fresh: bool) -> Result<Option<Chunk>, ReadError> {
        let (file, next) = self.file()?;
        self.limit = self.limit.min(next);
        let runs = index::runs(self.engine, self.partition.partition, &file, is_fresh)?;
        let after = runs.partition_point(|run| run.base <= self.wanted.from);
        let Some(first) = after.checked_sub(1) else {
            return Ok(None);
        };
        let (blocks, count) = self.extent(&runs[first..]);
        if blocks * BLOCK > self.buffer.len() {
            // Written with larger runs than are configured now.
            let pool = floe_world::Pool::new(floe_world::memory::class(blocks * BLOCK));
            self.buffer = pool.try_get(blocks * BLOCK).ok_or(ReadError::Closed)?;
        }
        let handle = file.handle(self.engine)?;
        let bytes = &mut self.buffer[..blocks * BLOCK];
        let read = handle.read_at(bytes, u64::from(runs[first].block) * BLOCK as u64);
        let read = read.map_err(Engine::failed("read", &file.path))?;
        let mut parts = Vec::new();
        let mut bounds = runs[first].base..runs[first].base;
        for run in &runs[first..first + count] {
            let start = (run.block - runs[first].block) as usize * BLOCK;
            // What lies between two runs is in none that can be read: the read of it says so.
            let part = self.part(start..read, run);
            let Some((range, end)) = part.filter(|_| run.base <= bounds.end) else {
                break;
            };
            parts.push(range);
            bounds.end = end;
        }
        if !bounds.contains(&self.wanted.from) {
            return Ok(None);
        }
        let held = self.buffer.len();
        let empty = floe_world::Pool::new(BLOCK).try_get(BLOCK);
        let empty = empty.expect("a pool made for one piece has it");
        let bytes = std::mem::replace(&mut self.buffer, empty).freeze(read);
        Ok(Some(Chunk::new(
            self.partition,
            (self.epoch, self.version),
            bounds,
            bytes,
            parts,
            held,
        )))
    }

    /// Blocks and runs to read at once: enough for the bytes asked for, or, for a reader that goes on, as much as the
    /// buffer takes.
    fn extent(&self, runs: &[RunPlace]) -> (usize, usize) {
        let mut blocks = 0;
        let mut count = 0;
        for run in runs {
            let with = blocks + run.blocks as usize;
            let is_enough = !self.is_sequential && blocks * BLOCK > self.wanted.max_bytes;
            let is_past = run.base >= self.wanted.up_to;
            if count > 0 && (is_enough || is_past || with * BLOCK > self.buffer.len()) {
                break;
            }
            blocks = with;
            count += 1;
        }
        (blocks, count)
    }

    /// The batches of one run, by place in the buffer, with the offset after them; `None`: it is damaged.
    fn part(&self, place: Range<usize>, run: &RunPlace) -> Option<(Range<usize>, u64)> {
        let start = place.start;
        let bytes = self.buffer.get(place)?;
        let header = RunHeader::decode(bytes).ok()?;
        let bytes = bytes.get(..header.blocks as usize * BLOCK)?;
        let partition = self.partition.partition;
        let header = RunHeader::verify(bytes, partition, run.block, true).ok()?;
        if header.base != run.base {
            // The stored index is of another time.
            return None;
        }
        let batches = start + RUN_HEADER..start + header.table().start;
        // What a later run of the file says anew is dead here.
        let next = run
            .next_base
            .map_or(self.limit, |next| next.min(self.limit));
        if header.end() <= next {
            return Some((batches, header.end()));
        }
        let (mut to, mut end) = (batches.start, header.base);
        for (place, head) in batch::walk(&self.buffer[batches.clone()]) {
            if head.end() > next {
                break;
            }
            (to, end) = (batches.start + place.end, head.end());
        }
        Some((batches.start..to, end))
    }

    /// What cannot be read is named and remembered (rule LossIsRecorded).
    fn lose(&self) -> ReadError {
        let mut offsets = self.wanted.from..self.wanted.up_to.min(self.limit);
        if let Ok((file, _)) = self.file()
            && let Ok(runs) = index::runs(self.engine, self.partition.partition, &file, false)
        {
            let next = runs
                .iter()
                .map(|run| run.base)
                .find(|base| *base > self.wanted.from);
            offsets.end = next.map_or(offsets.end, |next| next.min(offsets.end));
        }
        let name = self.partition.partition;
        tracing::error!(%name, ?offsets, "a segment is damaged; the range is lost on this disk");
        self.engine.metrics.lost();
        let mut state = self.partition.state.lock();
        if let Some(generation) = state.same(self.epoch, self.version) {
            generation.lost.push((offsets.start, offsets.end));
            generation.lost.sort_unstable();
        }
        ReadError::Lost { offsets }
    }
}
