//! The journal: gathers what waits, writes it as one group, flushed, and lets it take effect.
//!
//! One step is one group. While it is written the next one gathers: load makes groups larger, not queues longer.
//! Order: a partition's bytes, then its changes (fence, truncation, next generation), so that each stands behind
//! everything accepted before it; the bytes of a generation behind the record that opens it. Durable: nothing is answered before its group's flush (rule AckAfterFlush).

mod command;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use floe_model::{LeaderEpoch, Offset};
use floe_world::Buffer;

use crate::control::Control;
use crate::engine::Engine;
use crate::format::batch;
use crate::format::record::{RECORD_HEADER, Record};
use crate::format::sector::{GroupWriter, SECTOR, sectors_for};
use crate::generation::Part;
use crate::partition::{Large, PartitionLog, State};
use crate::{Durable, Failure};
pub(crate) use command::Command;

/// What a step has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something; there may be more.
    Worked,
    /// There is nothing to do.
    Idle,
    /// There is, but the journal has no room before the next checkpoint.
    Blocked,
}

/// What is in the group being written, to be answered after its flush.
enum Flight {
    Bytes(Arc<PartitionLog>, LeaderEpoch, u64),
    Control(Arc<PartitionLog>, Control),
    Command(Command),
}

/// See the module.
pub(crate) struct Journal {
    staging: Buffer,
    /// First lsn of the group before.
    previous: u64,
    work: VecDeque<Arc<PartitionLog>>,
    commands: VecDeque<Command>,
    mail: (Vec<Arc<PartitionLog>>, Vec<Command>),
    flights: Vec<Flight>,
    durable: Vec<Durable>,
    parts: Vec<Part>,
}

/// What fits into the group: bounds in sectors for data and for everything.
#[derive(Clone, Copy)]
struct Room {
    data: usize,
    all: usize,
}

impl Room {
    fn takes(sectors: usize, group: &GroupWriter<'_>, bytes: usize) -> bool {
        sectors_for(group.record_bytes() + bytes) <= sectors
    }
}

impl Journal {
    pub(crate) fn new(staging: Buffer, previous: u64) -> Self {
        Self {
            staging,
            previous,
            work: VecDeque::new(),
            commands: VecDeque::new(),
            mail: (Vec::new(), Vec::new()),
            flights: Vec::new(),
            durable: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The group before is the one at `lsn`.
    pub(crate) fn start_after(&mut self, lsn: u64) {
        self.previous = lsn;
    }

    fn collect(&mut self, engine: &Engine) {
        let mut mail = engine.inbox.mail.lock();
        std::mem::swap(&mut mail.partitions, &mut self.mail.0);
        std::mem::swap(&mut mail.commands, &mut self.mail.1);
        drop(mail);
        self.work.extend(self.mail.0.drain(..));
        self.commands.extend(self.mail.1.drain(..));
    }

    fn room(&self, engine: &Engine) -> Room {
        let head = engine.ring.head.load(Ordering::Acquire);
        let claim = engine.fill_claim.load(Ordering::Acquire);
        let most = (self.staging.len() / SECTOR) as u64;
        let free = |limit: u64| limit.min(claim).saturating_sub(head).min(most) as usize;
        Room {
            data: free(engine.ring.data_end()),
            all: free(engine.ring.end()),
        }
    }

    /// One group: composed, written, flushed, answered.
    pub(crate) fn step(&mut self, engine: &Engine) -> Step {
        if engine.failure().is_some() {
            self.give_up(engine);
            return Step::Idle;
        }
        self.collect(engine);
        if self.work.is_empty() && self.commands.is_empty() {
            return Step::Idle;
        }
        let sectors = self.compose(engine);
        if self.flights.is_empty() {
            let is_stuck = !self.work.is_empty() || !self.commands.is_empty();
            return if is_stuck { Step::Blocked } else { Step::Idle };
        }
        let lsn = engine.ring.head.load(Ordering::Acquire);
        let begun = engine.clock.monotonic();
        // Above 0, which says that nothing is under way.
        let since = begun.as_micros() as u64 + 1;
        engine.flushing_since.store(since, Ordering::Release);
        let written = engine.ring.write(lsn, &self.staging[..sectors * SECTOR]);
        engine.flushing_since.store(0, Ordering::Release);
        match written {
            Ok(()) => {
                self.previous = lsn;
                let took = engine.clock.monotonic().saturating_sub(begun);
                engine.metrics.group(sectors * SECTOR, took);
                let head = lsn + sectors as u64;
                engine.ring.head.store(head, Ordering::Release);
                self.complete(engine);
                engine.metrics.ring(engine.ring.used(), engine.ring.sectors);
                let newest = engine.ring.newest.load(Ordering::Acquire);
                if head - newest >= engine.ring.sectors / 8 {
                    engine.checkpoint_wanted.set();
                }
                Step::Worked
            }
            Err(failure) => {
                engine.poison(failure);
                self.give_up(engine);
                Step::Idle
            }
        }
    }

    fn compose(&mut self, engine: &Engine) -> usize {
        let room = self.room(engine);
        let lsn = engine.ring.head.load(Ordering::Acquire);
        let Self {
            staging,
            work,
            commands,
            flights,
            parts,
            ..
        } = self;
        let mut group = GroupWriter::new(staging);
        while let Some(command) = commands.pop_front() {
            if !command.put(room, &mut group) {
                // Commands keep their order: the rest waits behind it.
                commands.push_front(command);
                break;
            }
            flights.push(Flight::Command(command));
        }
        for _ in 0..work.len() {
            let Some(partition) = work.pop_front() else {
                break;
            };
            let mut compose = Compose {
                engine,
                room,
                group: &mut group,
                flights,
                parts,
            };
            if !compose.partition(&partition) {
                work.push_back(partition);
            }
        }
        // One write is in flight: everything below this group is flushed (rule KnownFlushed).
        group.finish(lsn, engine.boot, lsn, self.previous, engine.ring.seed)
    }

    /// Order: durable ends are reported before any change of the group takes effect and is answered, so that whoever has a
    /// fence, a truncation or a drop answered has heard of everything that lies before it.
    fn complete(&mut self, engine: &Engine) {
        for flight in &self.flights {
            let Flight::Bytes(partition, epoch, end) = flight else {
                continue;
            };
            let mut state = partition.state.lock();
            if let Some(generation) = state.generation(*epoch) {
                generation.durable = generation.durable.max((*end).min(generation.end));
            }
            partition.publish(&state);
            drop(state);
            self.durable.push(Durable {
                partition: partition.partition,
                epoch: *epoch,
                end: Offset(*end),
            });
        }
        if !self.durable.is_empty() {
            let now = engine.clock.monotonic().as_millis() as u64;
            engine.last_append.store(now, Ordering::Relaxed);
            if let Some(events) = engine.events.get() {
                events.durable(&self.durable);
            }
            self.durable.clear();
        }
        for flight in self.flights.drain(..) {
            match flight {
                Flight::Bytes(..) => {}
                Flight::Control(partition, control) => control.take_effect(&partition, engine),
                Flight::Command(command) => command.take_effect(engine),
            }
        }
        // What has been written before may leave memory now.
        engine.room.ring();
    }

    /// After a failure nothing is answered: every promise ends with it.
    fn give_up(&mut self, engine: &Engine) {
        let failure = engine.failure().cloned().unwrap_or_else(Failure::closed);
        self.collect(engine);
        for flight in self.flights.drain(..) {
            match flight {
                Flight::Bytes(..) => {}
                Flight::Control(_, control) => control.fail(&failure),
                Flight::Command(command) => command.fail(&failure),
            }
        }
        for command in self.commands.drain(..) {
            command.fail(&failure);
        }
        for partition in self.work.drain(..) {
            let mut state = partition.state.lock();
            let controls = std::mem::take(&mut state.controls);
            drop(state);
            for control in controls {
                control.fail(&failure);
            }
        }
    }
}

/// Composing one partition's share.
struct Compose<'a, 'b> {
    engine: &'a Engine,
    room: Room,
    group: &'a mut GroupWriter<'b>,
    flights: &'a mut Vec<Flight>,
    parts: &'a mut Vec<Part>,
}

impl Compose<'_, '_> {
    /// Puts what can be put; `false` if some of it has to wait for another group.
    fn partition(&mut self, partition: &Arc<PartitionLog>) -> bool {
        let mut state = partition.state.lock();
        state.is_queued = false;
        if matches!(state.large, Large::Wanted | Large::Writing) {
            // The segment thread queues the partition again (rule PointerAfterBytes).
            return true;
        }
        let is_done = self.pointers(partition, &mut state)
            && self.bytes(partition, &mut state)
            && self.controls(partition, &mut state);
        state.is_queued = !is_done;
        is_done
    }

    fn pointers(&mut self, partition: &Arc<PartitionLog>, state: &mut State) -> bool {
        let Large::Ready(pointers) = &mut state.large else {
            return true;
        };
        let each = Record::Pointer(pointers[0]).encoded_len();
        if !Room::takes(self.room.data, self.group, each * pointers.len()) {
            return false;
        }
        for pointer in std::mem::take(pointers) {
            Record::Pointer(pointer).encode(partition.local, |part| self.group.put(part));
            let flight = Flight::Bytes(Arc::clone(partition), pointer.epoch, pointer.end);
            self.flights.push(flight);
        }
        state.large = Large::Idle;
        true
    }

    /// The bytes that are pending: as batches, or, when there are many, by way of the segment.
    fn bytes(&mut self, partition: &Arc<PartitionLog>, state: &mut State) -> bool {
        let (bytes, batches) = state.pending();
        if bytes == 0 {
            return true;
        }
        if bytes >= self.engine.config.large_append_bytes {
            state.large = Large::Wanted;
            self.engine.queue_write(partition, &mut state.has_job);
            // Changes wait behind it, too; the segment thread queues the partition again.
            return true;
        }
        if !Room::takes(self.room.data, self.group, bytes + batches * RECORD_HEADER) {
            return false;
        }
        for generation in &mut state.generations {
            if generation.pending().0 == 0 {
                continue;
            }
            generation.take_pending(self.parts);
            let flight = Flight::Bytes(Arc::clone(partition), generation.epoch, generation.end);
            self.flights.push(flight);
            for (view, range) in self.parts.drain(..) {
                for (_, head) in batch::walk(view.slice(range)) {
                    Record::Batch(head.bytes())
                        .encode(partition.local, |part| self.group.put(part));
                }
            }
        }
        true
    }

    fn controls(&mut self, partition: &Arc<PartitionLog>, state: &mut State) -> bool {
        while matches!(state.large, Large::Idle) {
            let Some(control) = state.controls.front() else {
                return true;
            };
            if let Some(record) = control.record() {
                if !Room::takes(self.room.all, self.group, record.encoded_len()) {
                    return false;
                }
                record.encode(partition.local, |part| self.group.put(part));
            }
            let Some(control) = state.controls.pop_front() else {
                return true;
            };
            let opens = control.composed(state);
            let flight = Flight::Control(Arc::clone(partition), control);
            self.flights.push(flight);
            // What has been appended to the new generation stands behind its record and before the next change.
            if opens && !self.bytes(partition, state) {
                return false;
            }
        }
        true
    }
}
