//! Records by time, to the record: the index finds the run, the batch headers the batch, a walk the record.

use std::sync::Arc;

use bytes::Bytes;
use floe_model::{LeaderEpoch, Offset, Timestamp};
use floe_wire::batch::{View, first_at_or_after as first_in, greatest_timestamp};
use floe_wire::codec::Scratch;

use super::cold::on_reader;
use super::index::{self, RunPlace};
use crate::engine::Engine;
use crate::files::SegmentFile;
use crate::format::BLOCK;
use crate::format::batch;
use crate::format::segment::{RUN_HEADER, RunHeader};
use crate::partition::PartitionLog;
use crate::retention::load_table;
use crate::{ReadError, TimeLookup};

/// A run and what is known of its times without reading it.
struct Candidate {
    epoch: LeaderEpoch,
    source: Source,
    /// An upper bound of its largest timestamp, exact in memory and where the index rises.
    max: i64,
    /// What lies above is of an append that was never acknowledged, or was cut.
    end: u64,
}

enum Source {
    Memory(Bytes),
    Disk(Arc<SegmentFile>, RunPlace),
}

pub(crate) async fn first_at_or_after(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    at: Timestamp,
    up_to: u64,
) -> Result<Option<TimeLookup>, ReadError> {
    let partition = Arc::clone(partition);
    on_reader(engine, move |engine| {
        let from = partition.state.lock().delete_below;
        let mut scratch = Scratch::new(engine.config.decompressed_bytes_max);
        for candidate in candidates(engine, &partition)? {
            if candidate.max < at.0 {
                continue;
            }
            let bytes = candidate.bytes(engine, &partition)?;
            for (_, head) in batch::walk(&bytes) {
                if head.end() <= from || head.end() > candidate.end {
                    continue;
                }
                if head.base() >= up_to {
                    return Ok(None);
                }
                if head.max_timestamp() < at {
                    continue;
                }
                let Some((offset, timestamp)) = first(head.bytes(), from, at, &mut scratch) else {
                    continue;
                };
                let epoch = candidate.epoch;
                let found = TimeLookup {
                    offset,
                    timestamp,
                    epoch,
                };
                return Ok((offset.0 < up_to).then_some(found));
            }
        }
        Ok(None)
    })
    .await
}

pub(crate) async fn greatest(
    engine: &Arc<Engine>,
    partition: &Arc<PartitionLog>,
    up_to: u64,
) -> Result<Option<TimeLookup>, ReadError> {
    let partition = Arc::clone(partition);
    on_reader(engine, move |engine| {
        let from = partition.state.lock().delete_below;
        let mut scratch = Scratch::new(engine.config.decompressed_bytes_max);
        let mut best: Option<TimeLookup> = None;
        for candidate in candidates(engine, &partition)? {
            let is_above = |best: &TimeLookup| candidate.max > best.timestamp.0;
            if !best.as_ref().is_none_or(is_above) {
                continue;
            }
            let bytes = candidate.bytes(engine, &partition)?;
            for (_, head) in batch::walk(&bytes) {
                let is_better = best.is_none_or(|best| head.max_timestamp() > best.timestamp);
                let is_outside = head.end() <= from || head.end() > candidate.end.min(up_to);
                if is_outside || !is_better {
                    continue;
                }
                let Some((offset, timestamp)) = last(head.bytes(), &mut scratch) else {
                    continue;
                };
                if best.is_none_or(|best| timestamp > best.timestamp) {
                    best = Some(TimeLookup {
                        offset,
                        timestamp,
                        epoch: candidate.epoch,
                    });
                }
            }
        }
        Ok(best)
    })
    .await
}

/// A batch that cannot be walked answers by its header, so that it can be found and stepped over.
fn first(
    bytes: &[u8],
    from: u64,
    at: Timestamp,
    scratch: &mut Scratch,
) -> Option<(Offset, Timestamp)> {
    let view = View::first(bytes).ok()?;
    let base = batch::BatchHead::first(bytes)?.base();
    first_in(&view, Offset(from), at, scratch)
        .unwrap_or(Some((Offset(base), Timestamp(view.max_timestamp()))))
}

fn last(bytes: &[u8], scratch: &mut Scratch) -> Option<(Offset, Timestamp)> {
    let view = View::first(bytes).ok()?;
    if view.is_control() {
        return None;
    }
    let base = batch::BatchHead::first(bytes)?.base();
    greatest_timestamp(&view, scratch)
        .unwrap_or(Some((Offset(base), Timestamp(view.max_timestamp()))))
}

/// All runs in order of offset, from disk as the index knows them, then from memory.
fn candidates(engine: &Engine, partition: &Arc<PartitionLog>) -> Result<Vec<Candidate>, ReadError> {
    load_table(engine, partition)?;
    let mut memory = Vec::new();
    let state = partition.state.lock();
    for (at, generation) in state.generations.iter().enumerate() {
        // What a generation has above the start of the next one is not of the partition.
        let next = state.generations.get(at + 1);
        let bound = next.map_or(u64::MAX, |next| next.start);
        let runs = generation.runs.iter().filter(|run| !run.is_empty());
        let runs = runs.map(|run| (run.base, run.max_timestamp, run.all()));
        memory.push((
            generation.epoch,
            generation.written,
            bound,
            runs.collect::<Vec<_>>(),
        ));
    }
    drop(state);
    let files: Vec<_> = partition.table.lock().files.values().cloned().collect();
    let mut all = Vec::new();
    for (epoch, written, bound, runs) in memory {
        let disk_end = runs.first().map_or(written, |(base, ..)| *base);
        let own = files.iter().filter(|file| file.epoch == epoch);
        let own: Vec<_> = own.filter(|file| file.base < disk_end).collect();
        for (at, file) in own.iter().enumerate() {
            let file_end = own.get(at + 1).map_or(disk_end, |next| next.base);
            for place in index::runs(engine, partition.partition, file, false)? {
                if place.base < disk_end {
                    // Where the index does not rise, the run's own largest is not above what came before.
                    let rises = place.max_so_far > place.max_before;
                    let max = if rises {
                        place.max_so_far
                    } else {
                        place.max_before
                    };
                    let end = place.next_base.unwrap_or(file_end).min(file_end).min(bound);
                    let source = Source::Disk(Arc::clone(file), place);
                    all.push(Candidate {
                        epoch,
                        source,
                        max,
                        end,
                    });
                }
            }
        }
        for (_, max, bytes) in runs {
            all.push(Candidate {
                epoch,
                source: Source::Memory(bytes),
                max,
                end: bound,
            });
        }
    }
    Ok(all)
}

impl Candidate {
    /// Its batches; from disk checked.
    fn bytes(&self, engine: &Engine, partition: &Arc<PartitionLog>) -> Result<Bytes, ReadError> {
        let (file, place) = match &self.source {
            Source::Memory(bytes) => return Ok(bytes.clone()),
            Source::Disk(file, place) => (file, place),
        };
        let len = place.blocks as usize * BLOCK;
        let pool = floe_world::Pool::new(floe_world::memory::class(len));
        let mut buffer = engine.reads.try_get(len).or_else(|| pool.try_get(len));
        let buffer = buffer.as_mut().ok_or(ReadError::Closed)?;
        let handle = file.handle(engine)?;
        let read = handle.read_at(&mut buffer[..len], u64::from(place.block) * BLOCK as u64);
        let read = read.map_err(Engine::failed("read", &file.path))?;
        let lost = || ReadError::Lost {
            offsets: place.base..place.next_base.unwrap_or(place.base + 1),
        };
        let header = RunHeader::decode(&buffer[..read]).map_err(|_| lost())?;
        let run = buffer[..read]
            .get(..header.blocks as usize * BLOCK)
            .ok_or_else(lost)?;
        let verified = RunHeader::verify(run, partition.partition, place.block, true);
        let header = verified.map_err(|_| lost())?;
        Ok(Bytes::copy_from_slice(
            &run[RUN_HEADER..header.table().start],
        ))
    }
}
