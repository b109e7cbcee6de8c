//! Segment files of one partition: names, the one that is written to, and what is known of the others.
//!
//! `<topic id>/<partition>/<epoch>-<base>.seg`, epoch and base in decimal. Which of them count is said by checkpoint and
//! journal: a file with a higher base than the one named there is a left-over and is replaced when its name is needed.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use floe_model::{LeaderEpoch, TopicPartition};
use floe_world::OpenOptions;
use floe_world::disk::File;
use parking_lot::Mutex;

use crate::Failure;
use crate::engine::Engine;
use crate::format::BLOCK;
use crate::format::index::Entry;
use crate::format::segment::FileHeader;
use crate::generation::FilePlace;
use crate::read::index;
use crate::removal::{self, Gone, Removal};

/// Most segment files held open.
const HANDLES_MAX: usize = 512;
/// Least and most that a file grows by.
const GROWTH: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 20;

/// What one partition has on disk. Held while its segments are written.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) open: Option<OpenFile>,
    /// Written to since their last flush, and no longer open.
    pub(crate) dirty: Vec<Arc<SegmentFile>>,
    /// Whether a directory entry is not durable yet.
    pub(crate) is_directory_dirty: bool,
}

/// The known files of one partition, by epoch and base. Locked for moments, but for the first listing.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) files: BTreeMap<(LeaderEpoch, u64), Arc<SegmentFile>>,
    is_loaded: bool,
}

/// The file that the next run goes to.
pub(crate) struct OpenFile {
    pub(crate) file: Arc<SegmentFile>,
    pub(crate) next_block: u32,
    allocated: u64,
    opened: Duration,
    pub(crate) is_dirty: bool,
}

/// One segment file.
pub(crate) struct SegmentFile {
    pub(crate) epoch: LeaderEpoch,
    pub(crate) base: u64,
    pub(crate) path: PathBuf,
    /// Made by this process, so that nothing lies in it but what this process has written.
    is_of_this_life: bool,
    handle: Mutex<Option<Arc<dyn File>>>,
    pub(crate) index: Mutex<Index>,
}

/// What is known of a file's runs: those at and after `from_block`; a reader loads the ones before.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Entry>,
    pub(crate) from_block: u32,
    /// First block after the known ones; `None`: up to the end of the file.
    pub(crate) to_block: Option<u32>,
}

impl SegmentFile {
    /// One that an earlier life has left.
    fn found(directory: &Path, epoch: LeaderEpoch, base: u64, index: Index) -> Self {
        Self {
            epoch,
            base,
            path: directory.join(format!("{}-{base}.seg", epoch.0)),
            is_of_this_life: false,
            handle: Mutex::new(None),
            index: Mutex::new(index),
        }
    }

    /// One that is to be made.
    fn new(directory: &Path, epoch: LeaderEpoch, base: u64) -> Self {
        let index = Index {
            entries: Vec::new(),
            from_block: 1,
            to_block: Some(1),
        };
        Self {
            is_of_this_life: true,
            ..Self::found(directory, epoch, base, index)
        }
    }

    /// Its index file.
    pub(crate) fn index_path(&self) -> PathBuf {
        self.path.with_extension("idx")
    }

    /// The open file, opening it when it is not.
    pub(crate) fn handle(self: &Arc<Self>, engine: &Engine) -> Result<Arc<dyn File>, Failure> {
        let mut handle = self.handle.lock();
        if let Some(file) = handle.as_ref() {
            return Ok(Arc::clone(file));
        }
        let options = OpenOptions {
            write: true,
            direct: true,
            ..OpenOptions::default()
        };
        let file = engine.disk.open(&self.path, options);
        let file = file.map_err(Engine::failed("open", &self.path))?;
        *handle = Some(Arc::clone(&file));
        drop(handle);
        engine.handles.lock().opened(self);
        Ok(file)
    }

    /// Closes it until it is needed again.
    pub(crate) fn release(&self) {
        drop(self.handle.lock().take());
    }
}

/// The files that are open, so that they can be bounded: the one opened first is closed first and opened again when it
/// is needed. Nothing is lost by closing: a flush by any handle covers the file.
#[derive(Default)]
pub(crate) struct Handles(VecDeque<Weak<SegmentFile>>);

impl Handles {
    fn opened(&mut self, file: &Arc<SegmentFile>) {
        self.0.push_back(Arc::downgrade(file));
        while self.0.len() > HANDLES_MAX {
            if let Some(oldest) = self.0.pop_front().and_then(|oldest| oldest.upgrade()) {
                oldest.release();
            }
        }
    }
}

/// Epoch and base from a file's name.
pub(crate) fn parse_name(name: &Path) -> Option<(LeaderEpoch, u64)> {
    let stem = name.file_name()?.to_str()?.strip_suffix(".seg")?;
    let (epoch, base) = stem.split_once('-')?;
    Some((LeaderEpoch(epoch.parse().ok()?), base.parse().ok()?))
}

impl Table {
    /// Lists the directory at the first call. `places` says for each generation which file is its newest, and how far it
    /// is used.
    pub(crate) fn load(
        &mut self,
        engine: &Engine,
        partition: TopicPartition,
        places: &[(LeaderEpoch, Option<FilePlace>)],
    ) -> Result<(), Failure> {
        if self.is_loaded {
            return Ok(());
        }
        let directory = engine.partition_dir(partition);
        let names = match engine.disk.list(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(Engine::failed("list", &directory))?,
        };
        for (epoch, base) in names.iter().filter_map(|name| parse_name(name)) {
            let place = places.iter().find(|(held, _)| *held == epoch);
            let newest = place.and_then(|(_, place)| *place);
            // Others are left-overs of lives whose journal never named them.
            if let Some(newest) = newest.filter(|newest| base <= newest.base) {
                let to_block = (base == newest.base).then_some(newest.next_block);
                let index = Index {
                    entries: Vec::new(),
                    from_block: to_block.unwrap_or(u32::MAX),
                    to_block,
                };
                self.files.entry((epoch, base)).or_insert_with(|| {
                    Arc::new(SegmentFile::found(&directory, epoch, base, index))
                });
            }
        }
        self.is_loaded = true;
        Ok(())
    }

    /// The file of a generation that an offset is in.
    pub(crate) fn find(&self, epoch: LeaderEpoch, offset: u64) -> Option<&Arc<SegmentFile>> {
        let (_, file) = self.files.range((epoch, 0)..=(epoch, offset)).next_back()?;
        Some(file)
    }

    /// Where the first file after an offset begins.
    pub(crate) fn next_base(&self, epoch: LeaderEpoch, offset: u64) -> Option<u64> {
        let after = (epoch, offset.saturating_add(1));
        let ((_, base), _) = self.files.range(after..=(epoch, u64::MAX)).next()?;
        Some(*base)
    }
}

impl Files {
    /// The file for a run of so many blocks of a generation, with room allocated for it: the one in use, or a new one.
    pub(crate) fn place(
        &mut self,
        engine: &Engine,
        wanted: &Wanted<'_>,
    ) -> Result<&mut OpenFile, Failure> {
        let bytes = |blocks: u64| blocks * BLOCK as u64;
        if wanted.place.is_none() {
            // What there is of this epoch is of a generation that was dropped, and goes when the first file is made.
            self.forget(wanted.epoch);
        }
        let is_right = self
            .open
            .as_ref()
            .is_some_and(|open| open.file.epoch == wanted.epoch);
        if !is_right {
            self.put_aside(engine);
            if let Some(place) = wanted.place {
                self.reopen(engine, wanted, place)?;
            }
        }
        if let Some(open) = &self.open {
            let end = bytes(u64::from(open.next_block) + u64::from(wanted.blocks));
            let age = engine.clock.monotonic().saturating_sub(open.opened);
            let is_full = open.next_block > 1 && (end > wanted.bytes_max || age >= wanted.age_max);
            if is_full {
                self.put_aside(engine);
            }
        }
        if self.open.is_none() {
            self.create(engine, wanted)?;
        }
        let open = self.open.as_mut().expect("opened or created just now");
        open.reserve(engine, wanted)?;
        Ok(open)
    }

    /// Nothing is written or flushed any more of an epoch's files.
    pub(crate) fn forget(&mut self, epoch: LeaderEpoch) {
        drop(self.open.take_if(|open| open.file.epoch == epoch));
        self.dirty.retain(|dirty| dirty.epoch != epoch);
    }

    /// The open file takes no more runs.
    pub(crate) fn put_aside(&mut self, engine: &Engine) {
        if let Some(open) = self.open.take() {
            index::store(engine, &open.file);
            if open.is_dirty {
                self.dirty.push(open.file);
            } else {
                open.file.release();
            }
        }
    }

    fn reopen(
        &mut self,
        engine: &Engine,
        wanted: &Wanted<'_>,
        place: FilePlace,
    ) -> Result<(), Failure> {
        // Rule NoRewriteInPlace, from one life to the next: behind what an earlier life is known to have written there may lie
        // whole runs that were never acknowledged, and a later run of the file is the one that counts. What is left over of an
        // earlier life gets a file of its own; everything at or above its base in the older file is dead.
        let key = (wanted.epoch, place.base);
        let own = wanted.table.lock().files.get(&key).cloned();
        let Some(file) = own.filter(|file| file.is_of_this_life && place.base <= wanted.base)
        else {
            return Ok(());
        };
        let dirty = self.dirty.iter().position(|held| Arc::ptr_eq(held, &file));
        let is_dirty = dirty.map(|at| self.dirty.swap_remove(at)).is_some();
        let len = file.handle(engine)?.len();
        let allocated = len.map_err(Engine::failed("measure", &file.path))?;
        self.open = Some(OpenFile {
            file,
            next_block: place.next_block,
            allocated,
            opened: engine.clock.monotonic(),
            is_dirty,
        });
        Ok(())
    }

    fn create(&mut self, engine: &Engine, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let directory = engine.partition_dir(wanted.partition);
        let made = engine.disk.create_dir_all(&directory);
        made.map_err(Engine::failed("make", &directory))?;
        let file = Arc::new(SegmentFile::new(&directory, wanted.epoch, wanted.base));
        remove_left_over(engine, wanted, &directory)?;
        let options = OpenOptions {
            write: true,
            create_new: true,
            direct: true,
            dsync: false,
        };
        let handle = engine.disk.open(&file.path, options);
        let handle = handle.map_err(Engine::failed("create", &file.path))?;
        *file.handle.lock() = Some(Arc::clone(&handle));
        engine.handles.lock().opened(&file);
        let mut open = OpenFile {
            file,
            next_block: 1,
            allocated: 0,
            opened: engine.clock.monotonic(),
            is_dirty: true,
        };
        self.is_directory_dirty = true;
        if let Err(failure) = open.reserve(engine, wanted) {
            // Nothing names it, and it would be made anew at each attempt.
            let removed = engine.disk.remove_file(&open.file.path);
            removed.map_err(Engine::failed("remove", &open.file.path))?;
            return Err(failure);
        }
        let header = FileHeader {
            partition: wanted.partition,
            epoch: wanted.epoch,
            base: wanted.base,
            journal_id: engine.identity.journal_id,
            descriptor: wanted.descriptor.to_vec(),
        };
        let mut block = floe_world::Pool::new(BLOCK)
            .try_get(BLOCK)
            .expect("a pool made for one piece has it");
        header.encode(&mut block);
        let written = handle.write_at(&block, 0);
        written.map_err(Engine::failed("write", &open.file.path))?;
        let key = (open.file.epoch, open.file.base);
        wanted
            .table
            .lock()
            .files
            .insert(key, Arc::clone(&open.file));
        self.open = Some(open);
        Ok(())
    }

    /// Durable: everything written to any file of the partition so far, and its directories (rules PointerCoversAll,
    /// DirectoryBeforePointer).
    pub(crate) fn sync(
        &mut self,
        engine: &Engine,
        partition: TopicPartition,
    ) -> Result<(), Failure> {
        let open = self.open.as_ref().filter(|open| open.is_dirty);
        for file in self.dirty.iter().chain(open.map(|open| &open.file)) {
            let synced = file.handle(engine)?.sync_data();
            synced.map_err(Engine::failed("flush", &file.path))?;
        }
        if self.is_directory_dirty {
            let directory = engine.partition_dir(partition);
            for directory in directory.ancestors().take(3) {
                let synced = engine.disk.sync_dir(directory);
                synced.map_err(Engine::failed("flush", directory))?;
            }
            self.is_directory_dirty = false;
        }
        for file in self.dirty.drain(..) {
            file.release();
        }
        if let Some(open) = self.open.as_mut() {
            open.is_dirty = false;
        }
        Ok(())
    }
}

impl OpenFile {
    /// Allocates room before anything is written there: a full disk is found here, where it is a refusal.
    fn reserve(&mut self, engine: &Engine, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let needed = (u64::from(self.next_block) + u64::from(wanted.blocks)) * BLOCK as u64;
        if needed <= self.allocated {
            return Ok(());
        }
        let growth = (self.allocated / 2).clamp(*GROWTH.start(), *GROWTH.end());
        let least_growth = self.allocated.saturating_add(growth).min(wanted.bytes_max);
        let len = needed.max(least_growth).next_multiple_of(BLOCK as u64);
        let allocated = self.file.handle(engine)?.allocate(len);
        allocated.map_err(Engine::failed("allocate", &self.file.path))?;
        self.allocated = len;
        Ok(())
    }
}

/// Files above the newest one that is named, or at and above the offset that is written next, hold only what was never
/// acknowledged; where none is named, all are of a generation of this epoch that was dropped. Once a file is named they would
/// be taken for a part of the generation.
fn remove_left_over(engine: &Engine, wanted: &Wanted<'_>, directory: &Path) -> Result<(), Failure> {
    let names = engine.disk.list(directory);
    for name in names.map_err(Engine::failed("list", directory))? {
        let Some((epoch, base)) = parse_name(&name) else {
            continue;
        };
        let is_above = wanted.place.is_none_or(|place| base > place.base);
        if epoch != wanted.epoch || !(is_above || base >= wanted.base) {
            continue;
        }
        let known = wanted.table.lock().files.remove(&(epoch, base));
        let gone = removal::remove_file(engine, known.as_ref(), &directory.join(&name))?;
        if let Gone::Large(file) = gone {
            engine.removals.push(Removal::Room(file));
        }
    }
    Ok(())
}

/// A run that needs a place.
pub(crate) struct Wanted<'a> {
    pub(crate) partition: TopicPartition,
    pub(crate) epoch: LeaderEpoch,
    /// Its first offset, which a new file is named by.
    pub(crate) base: u64,
    pub(crate) blocks: u32,
    pub(crate) descriptor: &'a Bytes,
    /// Where its generation's file ends, if it has one.
    pub(crate) place: Option<FilePlace>,
    pub(crate) bytes_max: u64,
    pub(crate) age_max: Duration,
    pub(crate) table: &'a Mutex<Table>,
}
