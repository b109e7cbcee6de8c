//! What goes: generations and whole segment files below an offset, and everything of what was forgotten.
//!
//! Guarantees: a file's name goes first, whole; its room follows in pieces with pauses between them. A file system that
//! tells the device of every freed block holds up every write of the node while it does, and a whole segment takes that
//! long. Nobody reads a file any more once it is cut.

use std::path::Path;
use std::sync::Arc;

use floe_model::LeaderEpoch;
use floe_world::OpenOptions;
use floe_world::disk::File;

use crate::Failure;
use crate::control;
use crate::engine::Engine;
use crate::files::{Files, SegmentFile, Table, parse_name};
use crate::journal::Step;
use crate::partition::PartitionLog;
use crate::retention;

/// Given back at once.
const PIECE: u64 = 4 << 20;

/// Work of the removing thread.
pub(crate) enum Removal {
    /// Remove the files of what was forgotten of a partition.
    Forgotten(Arc<PartitionLog>),
    /// Remove generations and whole files below an offset.
    Below(Arc<PartitionLog>),
    /// Give the room of a nameless file back.
    Room(Arc<dyn File>),
}

/// What a removal has come to.
pub(crate) enum Gone {
    /// There was nothing left to remove.
    Nothing,
    /// A file of one piece, whole.
    Small,
    /// A file's name; its room is to be given back.
    Large(Arc<dyn File>),
}

/// One file's name, or one piece of its room. A file's room goes before the next file's name, so that few are open.
pub(crate) fn step(engine: &Engine) -> Step {
    let Some(removal) = engine.removals.pop() else {
        return Step::Idle;
    };
    if engine.failure().is_some() {
        return Step::Worked;
    }
    let done = match removal {
        Removal::Forgotten(partition) => {
            let gone = forgotten(engine, &partition);
            go_on(engine, gone, || Removal::Forgotten(partition))
        }
        Removal::Below(partition) => {
            let gone = below(engine, &partition);
            go_on(engine, gone, || Removal::Below(partition))
        }
        Removal::Room(file) => room(engine, file),
    };
    done.unwrap_or_else(|failure| {
        engine.poison(failure);
        Step::Worked
    })
}

/// The room of what has gone comes next, then the rest of the job.
fn go_on(
    engine: &Engine,
    gone: Result<Gone, Failure>,
    rest: impl FnOnce() -> Removal,
) -> Result<Step, Failure> {
    let gone = gone?;
    if !matches!(gone, Gone::Nothing) {
        engine.removals.push_front(rest());
    }
    if let Gone::Large(file) = gone {
        engine.removals.push_front(Removal::Room(file));
    }
    Ok(Step::Worked)
}

fn room(engine: &Engine, file: Arc<dyn File>) -> Result<Step, Failure> {
    if Arc::strong_count(&file) > 1 {
        // A read that found it in time ends first.
        engine.removals.push(Removal::Room(file));
        return Ok(Step::Blocked);
    }
    // Closing gives the rest back, too.
    if engine.is_closing() {
        return Ok(Step::Worked);
    }
    let failed = |action| Engine::failed(action, Path::new("a removed segment"));
    let len = file.len().map_err(failed("measure"))?;
    let rest = len.saturating_sub(PIECE);
    file.shrink(rest).map_err(failed("shrink"))?;
    // Or a file system with a journal would collect the pieces and give them back together.
    file.sync_data().map_err(failed("flush"))?;
    if rest > 0 {
        engine.removals.push_front(Removal::Room(file));
    }
    Ok(Step::Worked)
}

/// Drops the generations that lie below what was asked for, whatever of them is held, and removes the oldest file of the others
/// that ends at or below it. A file that is written to stays.
fn below(engine: &Engine, partition: &Arc<PartitionLog>) -> Result<Gone, Failure> {
    let (offset, leaving) = drop_below(engine, partition);
    let mut oldest = retention::files(engine, partition)?.into_iter();
    let oldest = oldest.find(|(file, _)| !leaving.contains(&file.epoch));
    let Some((file, _)) = oldest.filter(|(file, end)| is_over(partition, file, *end, offset))
    else {
        return Ok(Gone::Nothing);
    };
    let mut files = partition.files.lock();
    if files
        .open
        .as_ref()
        .is_some_and(|open| Arc::ptr_eq(&open.file, &file))
    {
        files.open = None;
    }
    files.dirty.retain(|dirty| !Arc::ptr_eq(dirty, &file));
    drop(files);
    let key = (file.epoch, file.base);
    partition.table.lock().files.remove(&key);
    let gone = remove_file(engine, Some(&file), &file.path)?;
    // Order: the oldest is gone for good before the next one goes, so that a power cut leaves no hole.
    let directory = engine.partition_dir(partition.partition);
    let synced = engine.disk.sync_dir(&directory);
    synced.map_err(Engine::failed("flush", &directory))?;
    Ok(gone)
}

fn is_over(partition: &PartitionLog, file: &SegmentFile, end: u64, offset: u64) -> bool {
    // What a sealed generation still has in memory goes to its newest file.
    let (newest, is_written) = {
        let mut state = partition.state.lock();
        let generation = state.generation(file.epoch);
        generation.map_or((None, true), |generation| {
            (generation.file, generation.written >= generation.end)
        })
    };
    let is_sealed = partition
        .generations()
        .last()
        .is_some_and(|open| open.epoch > file.epoch);
    let is_newest = newest.is_some_and(|newest| newest.base == file.base);
    end <= offset && (!is_newest || (is_sealed && is_written))
}

/// The offset below which everything goes, and the generations that go or are going whole: those whose successor starts at or
/// below it. Their files go behind the record.
fn drop_below(engine: &Engine, partition: &Arc<PartitionLog>) -> (u64, Vec<LeaderEpoch>) {
    let state = partition.state.lock();
    let offset = state.delete_below;
    let pairs = state.generations.windows(2);
    let below = pairs.filter(|pair| pair[1].start <= offset && !pair[0].is_leaving);
    let below: Vec<_> = below.map(|pair| pair[0].epoch).collect();
    drop(state);
    for epoch in below {
        // Nobody waits for it.
        drop(control::forget_generation(engine, partition, epoch));
    }
    let state = partition.state.lock();
    let leaving = state.generations.iter().filter(|held| held.is_leaving);
    (offset, leaving.map(|held| held.epoch).collect())
}

/// Removes one file of what was forgotten: of generations that were dropped, or of the whole partition.
fn forgotten(engine: &Engine, partition: &Arc<PartitionLog>) -> Result<Gone, Failure> {
    // Nothing is written meanwhile, so that a generation without a file has none.
    let mut files = partition.files.lock();
    let state = partition.state.lock();
    let (is_forgotten, seen) = (state.is_forgotten, state.left_over);
    let held = state.generations.iter().filter(|held| held.file.is_some());
    let named: Vec<_> = held.map(|held| held.epoch).collect();
    drop(state);
    let gone = if is_forgotten {
        whole(engine, partition, &mut files)?
    } else {
        dropped(engine, partition, &mut files, &named)?
    };
    if matches!(gone, Gone::Nothing) {
        let mut state = partition.state.lock();
        state.left_over = state.left_over.saturating_sub(seen);
    }
    Ok(gone)
}

/// Durable: when there is nothing left, the segment files of all epochs but those named are gone.
fn dropped(
    engine: &Engine,
    partition: &PartitionLog,
    files: &mut Files,
    named: &[LeaderEpoch],
) -> Result<Gone, Failure> {
    let directory = engine.partition_dir(partition.partition);
    let names = match engine.disk.list(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Gone::Nothing),
        names => names.map_err(Engine::failed("list", &directory))?,
    };
    let segments = names
        .iter()
        .filter_map(|name| Some((name, parse_name(name)?)));
    let left = |(_, (epoch, _)): &(_, (LeaderEpoch, u64))| !named.contains(epoch);
    if let Some((name, key)) = segments.into_iter().find(left) {
        files.forget(key.0);
        let known = partition.table.lock().files.remove(&key);
        return remove_file(engine, known.as_ref(), &directory.join(name));
    }
    let synced = engine.disk.sync_dir(&directory);
    synced.map_err(Engine::failed("flush", &directory))?;
    Ok(Gone::Nothing)
}

/// One file of a forgotten partition; with the last one everything else, its topic's directory too once that is empty.
fn whole(engine: &Engine, partition: &PartitionLog, files: &mut Files) -> Result<Gone, Failure> {
    *files = Files::default();
    let directory = engine.partition_dir(partition.partition);
    if !engine.disk.exists(&directory) {
        *partition.table.lock() = Table::default();
        return Ok(Gone::Nothing);
    }
    let names = engine.disk.list(&directory);
    let names = names.map_err(Engine::failed("list", &directory))?;
    let segment = names
        .iter()
        .find_map(|name| Some((name, parse_name(name)?)));
    if let Some((name, key)) = segment {
        let key: (LeaderEpoch, u64) = key;
        let known = partition.table.lock().files.remove(&key);
        return remove_file(engine, known.as_ref(), &directory.join(name));
    }
    *partition.table.lock() = Table::default();
    let removed = engine.disk.remove_dir_all(&directory);
    removed.map_err(Engine::failed("remove", &directory))?;
    let Some(topic) = directory.parent() else {
        return Ok(Gone::Nothing);
    };
    let is_empty = engine.disk.list(topic).is_ok_and(|names| names.is_empty());
    if is_empty {
        let removed = engine.disk.remove_dir_all(topic);
        removed.map_err(Engine::failed("remove", topic))?;
    }
    Ok(Gone::Nothing)
}

/// Takes a segment's name and index away, and its room too if it is small. `known` is how readers know the file: they
/// share its handle, so that it is seen when they have done.
pub(crate) fn remove_file(
    engine: &Engine,
    known: Option<&Arc<SegmentFile>>,
    path: &Path,
) -> Result<Gone, Failure> {
    let options = OpenOptions {
        write: true,
        direct: true,
        ..OpenOptions::default()
    };
    let room = if let Some(file) = known {
        file.handle(engine)?
    } else {
        let file = engine.disk.open(path, options);
        file.map_err(Engine::failed("open", path))?
    };
    for path in [path.with_extension("idx"), path.to_owned()] {
        if engine.disk.exists(&path) {
            let removed = engine.disk.remove_file(&path);
            removed.map_err(Engine::failed("remove", &path))?;
        }
    }
    if let Some(file) = known {
        file.release();
    }
    let len = room.len().map_err(Engine::failed("measure", path))?;
    if len <= PIECE {
        // Closing it, or the read that has it, gives it back.
        return Ok(Gone::Small);
    }
    Ok(Gone::Large(room))
}

#[cfg(test)]
mod tests {
    use floe_model::Timestamp;
    use floe_world::clock::Manual;
    use floe_world::disk::Simulated;
    use floe_world::{Disk, Pool, random};

    use super::*;
    use crate::{Config, Log, Setup};

    #[test]
    fn a_file_is_cut_once_nobody_reads_it() {
        let disk = Simulated::new(1);
        let setup = Setup {
            disk: Arc::new(disk.clone()),
            dir: "/data".into(),
            clock: Arc::new(Manual::at(Timestamp(0))),
            random: Arc::new(random::Seeded::new(1)),
            tail: Pool::new(8 << 20),
            reads: Pool::new(8 << 20),
            config: Config {
                ring_bytes: 40 << 20,
                ..Config::default()
            },
        };
        let (log, _) = Log::open(setup).unwrap();
        let options = OpenOptions {
            write: true,
            create_new: true,
            ..OpenOptions::default()
        };
        let file = disk.open(Path::new("/file"), options).unwrap();
        file.allocate(2 * PIECE).unwrap();
        let reader = Arc::clone(&file);
        log.engine.removals.push(Removal::Room(file));
        assert_eq!(log.step_removals(), Step::Blocked);
        assert_eq!(reader.len().unwrap(), 2 * PIECE);
        drop(reader);
        let witness = disk.open(Path::new("/file"), OpenOptions::default());
        let witness = witness.unwrap();
        for left in [PIECE, 0] {
            assert_eq!(log.step_removals(), Step::Worked);
            assert_eq!(witness.len().unwrap(), left);
        }
        assert_eq!(log.step_removals(), Step::Idle);
    }
}
