//! A checkpoint: what a replay would have to do for everything before X, done once and written down.
//!
//! Order: (1) X and the state as of X, between two groups; (2) what is large goes to segments and is flushed (rule
//! SyncBeforeCheckpoint); (3) the rest goes into the slot as tail (TailInCheckpoint), with all fences, incarnations and
//! losses (FenceInCheckpoint); (4) the slot is flushed; (5) sectors below the older slot's X are free again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::engine::Engine;
use crate::format::checkpoint::{GenerationEntry, PartitionEntry, SlotHeader, encode_stream};
use crate::format::{BLOCK, crc};
use crate::generation::{GenerationState, Part, Record, Version};
use crate::partition::{PartitionLog, State};
use crate::segment::{self, Wish};
use crate::{Failure, Stream};

/// A partition with so many bytes in no segment is written to its segment.
const TAIL_BYTES_MAX: usize = BLOCK;
/// Producer snapshots up to here are kept in the checkpoint.
pub(crate) const PRODUCERS_BYTES_MAX: usize = 512;
/// Bound of all tails in a slot, whatever the ring's size.
const TAILS_BYTES_MAX: u64 = 16 << 20;

/// The state as of X.
struct Snapshot {
    x: u64,
    partitions: Vec<PartitionSnapshot>,
    streams: Vec<Stream>,
}

struct PartitionSnapshot {
    partition: Arc<PartitionLog>,
    entry: PartitionEntry,
    tails: Vec<Tail>,
    /// Bytes of it that were in no segment.
    unwritten: usize,
    needs_sync: bool,
}

/// The runs of a generation that were in no segment.
struct Tail {
    version: Version,
    runs: Vec<(u64, Part)>,
}

/// Writes a checkpoint, if anything is new or `even_if_clean`; two when a stream gets a snapshot. `false`: nothing was new, or
/// there is no room.
pub(crate) fn step(engine: &Engine, even_if_clean: bool) -> Result<bool, Failure> {
    let installs = std::mem::take(&mut *engine.installs.lock());
    if installs.is_empty() {
        return write(engine, even_if_clean);
    }
    for install in &installs {
        let snapshot = install.snapshot.clone();
        engine.streams.lock().install(install.group, snapshot);
    }
    let mut result = Ok(true);
    // Durable: in both slots, since the journal does not have it.
    for _ in 0..2 {
        if matches!(result, Ok(true)) {
            result = write(engine, true);
        }
    }
    match &result {
        Ok(true) => installs
            .into_iter()
            .for_each(|install| install.promise.resolve(Ok(()))),
        Ok(false) => {
            engine.installs.lock().extend(installs);
            engine.checkpoint_wanted.set();
        }
        Err(failure) => installs
            .into_iter()
            .for_each(|install| install.promise.resolve(Err(failure.clone()))),
    }
    result
}

/// After a failure nothing is put in place any more.
pub(crate) fn give_up(engine: &Engine, failure: &Failure) {
    let installs = std::mem::take(&mut *engine.installs.lock());
    for install in installs {
        install.promise.resolve(Err(failure.clone()));
    }
}

fn write(engine: &Engine, even_if_clean: bool) -> Result<bool, Failure> {
    let mut slots = engine.slots.lock();
    let newest = engine.ring.newest.load(Ordering::Acquire);
    // Taken before the snapshot: what is kept from here on is for the next one.
    let has_kept = engine.has_kept.swap(false, Ordering::AcqRel);
    let is_clean = !has_kept && engine.ring.head.load(Ordering::Acquire) == newest;
    // The older slot holds the ring up; when room is short it is brought up to the newer one.
    let has_room = engine.ring.used() < engine.ring.sectors / 2;
    if !even_if_clean && is_clean && has_room {
        return Ok(false);
    }
    let mut snapshot = take(engine);
    copy(engine, &snapshot)?;
    // Rule FailedFlushStops: what a failed write left behind is unknown, so nothing is concluded from it.
    if let Some(failure) = engine.failure() {
        return Err(failure.clone());
    }
    if engine.is_disk_full.load(Ordering::Relaxed) {
        // What could not be copied is too much for a slot.
        return Ok(false);
    }
    let mut body = Vec::new();
    let partitions = snapshot.partitions.len() as u32;
    for one in snapshot.partitions.drain(..) {
        one.encode(&mut body);
    }
    for stream in &snapshot.streams {
        encode_stream(stream, &mut body);
    }
    let header = SlotHeader {
        x: snapshot.x,
        boot: engine.boot,
        body_crc: crc(&[&body]),
        body_bytes: body.len() as u64,
        partitions,
        streams: snapshot.streams.len() as u32,
        ..SlotHeader::default()
    };
    match slots.write(&*engine.disk, &engine.dir, header, &body) {
        Ok(()) => {}
        // A slot that cannot grow leaves the old one valid: no recycling, then refusals.
        Err(failure) if failure.is_full() => {
            tracing::error!(%failure, "no room for a checkpoint; the journal is not recycled until there is");
            return Ok(false);
        }
        Err(failure) => return Err(failure),
    }
    slots.publish(&engine.ring);
    engine.metrics.checkpoint(body.len());
    // The journal and others may have waited for room.
    engine.room.ring();
    drop(engine.inbox.mail.lock());
    engine.inbox.arrived.notify_all();
    Ok(true)
}

/// Between two groups everything composed is flushed, so the state is that of X = head.
fn take(engine: &Engine) -> Snapshot {
    let journal = engine.journal.lock();
    let all = engine.all_partitions();
    let snapshot = Snapshot {
        x: engine.ring.head.load(Ordering::Acquire),
        partitions: all
            .into_iter()
            .filter_map(PartitionSnapshot::take)
            .collect(),
        streams: engine.streams.lock().all(),
    };
    drop(journal);
    snapshot
}

/// Everything large, and everything written but not flushed, goes to disk.
fn copy(engine: &Engine, snapshot: &Snapshot) -> Result<(), Failure> {
    let mut small = Vec::new();
    let mut total = 0;
    for one in &snapshot.partitions {
        if one.unwritten >= TAIL_BYTES_MAX {
            segment::write(
                engine,
                &one.partition,
                Wish {
                    all: true,
                    sync: true,
                },
            )?;
            continue;
        }
        if one.needs_sync {
            segment::write(
                engine,
                &one.partition,
                Wish {
                    all: false,
                    sync: true,
                },
            )?;
        }
        total += one.unwritten as u64;
        small.push(one);
    }
    let bound = (engine.ring.sectors * BLOCK as u64 / 16).min(TAILS_BYTES_MAX);
    small.sort_by_key(|one| one.unwritten);
    while total > bound {
        let Some(largest) = small.pop() else { break };
        segment::write(
            engine,
            &largest.partition,
            Wish {
                all: true,
                sync: true,
            },
        )?;
        total -= largest.unwritten as u64;
    }
    Ok(())
}

impl PartitionSnapshot {
    fn take(partition: Arc<PartitionLog>) -> Option<Self> {
        let state = partition.state.lock();
        if !state.is_bound && !state.is_forgotten {
            return None;
        }
        let producers = state.producers.clone();
        let entry = PartitionEntry {
            local: partition.local,
            partition: partition.partition,
            incarnation: state.incarnation.0,
            fence: state.fence,
            is_forgotten: state.is_forgotten,
            has_left_over: state.left_over > 0,
            generations: opened(&state).map(entry).collect(),
            producers: producers.filter(|(_, bytes)| bytes.len() <= PRODUCERS_BYTES_MAX),
        };
        let tails = opened(&state).map(Tail::take).collect();
        let unwritten = opened(&state).map(GenerationState::unwritten_bytes).sum();
        let needs_sync = opened(&state).any(|one| one.written > one.synced);
        drop(state);
        Some(Self {
            partition,
            entry,
            tails,
            unwritten,
            needs_sync,
        })
    }

    fn encode(mut self, body: &mut Vec<u8>) {
        let mut state = self.partition.state.lock();
        let mut tails = Vec::new();
        for (entry, tail) in self.entry.generations.iter_mut().zip(&self.tails) {
            let now = state.same(entry.epoch, tail.version);
            if let Some(place) = now.as_ref().and_then(|now| now.file) {
                (entry.file_base, entry.next_block) = (place.base, place.next_block);
            }
            entry.synced = match now {
                Some(now) if now.synced < now.end.min(entry.end) => now.synced,
                // Cut or dropped since: that is in the journal above X and will be replayed, so what it took needs no bytes.
                Some(now) if now.version == tail.version => now.synced.min(entry.end),
                _ => entry.end,
            };
            let held = tail.runs.iter().filter(|(base, _)| *base >= entry.synced);
            tails.push(
                held.map(|(_, (view, range))| view.bytes(range.clone()))
                    .collect(),
            );
        }
        drop(state);
        self.entry.encode(&tails, body);
    }
}

/// Those that the journal below X has opened.
fn opened(state: &State) -> impl Iterator<Item = &GenerationState> {
    let held = state.generations.iter();
    held.filter(|generation| generation.record == Record::Durable)
}

fn entry(generation: &GenerationState) -> GenerationEntry {
    GenerationEntry {
        epoch: generation.epoch,
        start: generation.start,
        end: generation.durable,
        synced: generation.synced,
        file_base: 0,
        next_block: 0,
        lost: generation.lost.clone(),
        descriptor: generation.descriptor.clone(),
        last: generation.checksum_at(generation.durable),
        tail: Bytes::new(),
    }
}

impl Tail {
    fn take(generation: &GenerationState) -> Self {
        let durable = generation.durable;
        let unwritten = generation.runs.iter().filter(|run| !run.is_written());
        let runs = unwritten
            .filter(|run| run.base < durable)
            .map(|run| (run.base, (run.view.clone(), run.journaled_range())));
        Self {
            version: generation.version,
            runs: runs.collect(),
        }
    }
}
