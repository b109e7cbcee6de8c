//! Reads from segments: on reader threads, into recycled memory, every byte checked before it is served.

use std::sync::Arc;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;

use super::index::{self, RunPlace};
use super::{Wanted, from_memory, locate};
use crate::engine::Engine;
use crate::files::SegmentFile;
use crate::format::BLOCK;
use crate::format::batch;
use crate::format::segment::{RUN_HEADER, RunHeader};
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
        on_reader(&engine, move |engine| {
            serve(engine, &partition, wanted, buffer)
        })
        .await
    }))
}

fn serve(
    engine: &Engine,
    partition: &Arc<PartitionLog>,
    wanted: Wanted,
    buffer: Buffer,
) -> Result<Slices, ReadError> {
    let mut state = partition.state.lock();
    // It may have come to memory again (a run cut while it waited), or gone by retention.
    if let Some(slices) = from_memory(&mut state, wanted)? {
        return Ok(slices);
    }
    let Some((generation, up_to)) = locate(&mut state, wanted)? else {
        return Ok(Slices {
            batches: Vec::new(),
            next: Offset(wanted.from),
        });
    };
    let epoch = generation.epoch;
    drop(state);
    let wanted = Wanted { up_to, ..wanted };
    let mut cold = Cold {
        engine,
        partition,
        epoch,
        wanted,
        buffer,
    };
    match cold.attempt(false)? {
        Some(slices) => Ok(slices),
        // The stored index may be stale; the run headers decide.
        None => match cold.attempt(true)? {
            Some(slices) => Ok(slices),
            None => Err(cold.lose()),
        },
    }
}

/// One read under way.
struct Cold<'a> {
    engine: &'a Engine,
    partition: &'a Arc<PartitionLog>,
    epoch: LeaderEpoch,
    wanted: Wanted,
    buffer: Buffer,
}

impl Cold<'_> {
    fn file(&self) -> Result<Arc<SegmentFile>, ReadError> {
        load_table(self.engine, self.partition)?;
        let table = self.partition.table.lock();
        let file = table.find(self.epoch, self.wanted.from).cloned();
        drop(table);
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
    fn attempt(&mut self, is_fresh: bool) -> Result<Option<Slices>, ReadError> {
        let file = self.file()?;
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
        let mut found = Vec::new();
        for run in &runs[first..first + count] {
            let start = (run.block - runs[first].block) as usize * BLOCK;
            let Some(bytes) = self.buffer.get(start..read) else {
                break;
            };
            let bytes = &bytes[..bytes.len().min(run.blocks as usize * BLOCK)];
            match self.slice(bytes, start, run, &found) {
                Part::Found(part) => found.push(part),
                Part::Damaged if found.is_empty() => return Ok(None),
                Part::Nothing | Part::Damaged => break,
            }
        }
        if found.is_empty() {
            return Ok(Some(Slices {
                batches: Vec::new(),
                next: Offset(self.wanted.from),
            }));
        }
        Ok(Some(self.slices(&found, read)))
    }

    /// Blocks and runs to read at once: enough for the bytes asked for, within the buffer.
    fn extent(&self, runs: &[RunPlace]) -> (usize, usize) {
        let mut blocks = 0;
        let mut count = 0;
        for run in runs {
            let with = blocks + run.blocks as usize;
            let is_enough = count > 0 && blocks * BLOCK >= self.wanted.max_bytes;
            let is_past = run.base >= self.wanted.up_to;
            if count > 0 && (is_enough || is_past || with * BLOCK > self.buffer.len()) {
                break;
            }
            blocks = with;
            count += 1;
        }
        (blocks, count)
    }

    /// The part of a run that is asked for.
    fn slice(&self, bytes: &[u8], start: usize, run: &RunPlace, found: &[Found]) -> Part {
        let Some((header, bytes)) = self.verified(bytes, run.block) else {
            return Part::Damaged;
        };
        // What a later run of the file says anew is dead here.
        let up_to = run
            .next_base
            .map_or(self.wanted.up_to, |next| next.min(self.wanted.up_to));
        let taken: usize = found.iter().map(|found| found.range.len()).sum();
        let mut range = 0..0;
        let mut next = found.last().map_or(self.wanted.from, |found| found.next);
        if header.base > next && found.is_empty() {
            return Part::Damaged;
        }
        for (place, head) in batch::walk(&bytes[RUN_HEADER..header.table().start]) {
            if head.end() <= next {
                continue;
            }
            let end = start + RUN_HEADER + place.end;
            if range.is_empty() {
                range = start + RUN_HEADER + place.start..start + RUN_HEADER + place.start;
            }
            let is_first = found.is_empty() && range.is_empty() && self.wanted.at_least_one;
            let fits = taken + (end - range.start) <= self.wanted.max_bytes;
            if head.end() > up_to || !(fits || is_first) {
                break;
            }
            range.end = end;
            next = head.end();
        }
        if range.is_empty() {
            return Part::Nothing;
        }
        Part::Found(Found { range, next })
    }

    fn verified<'b>(&self, bytes: &'b [u8], block: u32) -> Option<(RunHeader, &'b [u8])> {
        let header = RunHeader::decode(bytes).ok()?;
        let bytes = bytes.get(..header.blocks as usize * BLOCK)?;
        let header = RunHeader::verify(bytes, self.partition.partition, block, true).ok()?;
        Some((header, bytes))
    }

    fn slices(&mut self, found: &[Found], read: usize) -> Slices {
        let empty = floe_world::Pool::new(BLOCK).try_get(BLOCK);
        let empty = empty.expect("a pool made for one piece has it");
        let all: Bytes = std::mem::replace(&mut self.buffer, empty).freeze(read);
        Slices {
            batches: found
                .iter()
                .map(|found| all.slice(found.range.clone()))
                .collect(),
            next: Offset(found.last().map_or(self.wanted.from, |found| found.next)),
        }
    }

    /// What cannot be read is named and remembered (rule LossIsRecorded).
    fn lose(&self) -> ReadError {
        let mut offsets = self.wanted.from..self.wanted.up_to;
        if let Ok(file) = self.file()
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
        let mut state = self.partition.state.lock();
        if let Some(generation) = state.generation(self.epoch) {
            generation.lost.push((offsets.start, offsets.end));
            generation.lost.sort_unstable();
        }
        ReadError::Lost { offsets }
    }
}

/// What a run has of what is asked for.
enum Part {
    Found(Found),
    Nothing,
    Damaged,
}

/// A part of the buffer, and the offset after it.
struct Found {
    range: std::ops::Range<usize>,
    next: u64,
}
