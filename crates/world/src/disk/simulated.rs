//! A disk in memory that loses what a real one may lose; the same seed and the same calls give the same disk.
//!
//! Guarantees, as `LOG.md` assumes them of a device: a sector is old or new after a power cut, never a mixture;
//! unsynced sectors survive in any subset, whatever the order of writing; a flush that returned is true; entries of a
//! directory are durable once it is synced, and nothing else makes them so.
//!
//! Deliberately harsher than most file systems: syncing a file does not keep its name, and a failed flush leaves any
//! subset behind and calls the rest clean. A durable write that failed may be readable and gone with the power, unless
//! a later flush of the file returns. One fault bends the first guarantee on purpose: [`Simulated::tear_at`].

mod contents;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::{Disk, File, OpenOptions, check_aligned};
use crate::random::{Random, Seeded};
use contents::{Contents, SECTOR};
use names::{Entry, Names};

/// A simulated disk; clones are the same disk.
#[derive(Clone, Debug)]
pub struct Simulated {
    state: Arc<Mutex<State>>,
}

/// What a planned failure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// EIO.
    Device,
    /// ENOSPC.
    NoRoom,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    PowerCut,
    Tear { bytes: usize },
    Fails(Failure),
}

#[derive(Debug)]
struct State {
    random: Seeded,
    names: Names,
    files: BTreeMap<u64, Contents>,
    next_file: u64,
    locks: BTreeSet<u64>,
    capacity: u64,
    operations: u64,
    flushes: u64,
    faults: BTreeMap<u64, Fault>,
    flush_faults: BTreeMap<u64, Failure>,
    is_cut: bool,
}

impl Simulated {
    /// An empty disk of 1 TiB. The directory `/` is there.
    pub fn new(seed: u64) -> Self {
        Self::from_state(State {
            random: Seeded::new(seed),
            names: Names::default(),
            files: BTreeMap::new(),
            next_file: 1,
            locks: BTreeSet::new(),
            capacity: 1 << 40,
            operations: 0,
            flushes: 0,
            faults: BTreeMap::new(),
            flush_faults: BTreeMap::new(),
            is_cut: false,
        })
    }

    fn from_state(state: State) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Operations that change something, so far.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Flushes so far: of files, of directories, and writes that are durable when they return.
    pub fn flushes(&self) -> u64 {
        self.state.lock().flushes
    }

    /// Power goes during operation number `operation` (the next is [`Simulated::operations`] + 1): what it wrote may be
    /// there in part, it fails, and so does every later call.
    pub fn cut_power_at(&self, operation: u64) {
        self.plan(operation, Fault::PowerCut);
    }

    /// As [`Simulated::cut_power_at`], but if it is a write its first `bytes` bytes are on the device, a part of a sector too.
    pub fn tear_at(&self, operation: u64, bytes: usize) {
        self.plan(operation, Fault::Tear { bytes });
    }

    /// Operation number `operation` fails. If it is a flush, what it should have made durable is so in part.
    pub fn fail_at(&self, operation: u64, failure: Failure) {
        self.plan(operation, Fault::Fails(failure));
    }

    /// As [`Simulated::fail_at`], counted in flushes.
    pub fn fail_flush_at(&self, flush: u64, failure: Failure) {
        self.state.lock().flush_faults.insert(flush, failure);
    }

    fn plan(&self, operation: u64, fault: Fault) {
        self.state.lock().faults.insert(operation, fault);
    }

    /// Takes back what was planned and has not happened.
    pub fn clear_faults(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.flush_faults.clear();
    }

    /// Power goes now.
    pub fn cut_power(&self) {
        self.state.lock().is_cut = true;
    }

    /// Whether power has gone.
    pub fn is_cut(&self) -> bool {
        self.state.lock().is_cut
    }

    /// The disk as it is found after power has gone: what was synced, and by chance any part of the rest.
    #[must_use]
    pub fn after_power_cut(&self) -> Self {
        let mut state = self.state.lock().copied();
        // Sometimes all of it is lost, sometimes none, so that both ends are met often.
        let survival = [0, 25, 50, 75, 100][(state.random.next_u64() % 5) as usize];
        let random = &state.random;
        let mut survives = || random.next_u64() % 100 < survival;
        state.names.lose_unsynced(&mut survives);
        let named = state.names.files();
        state.files.retain(|file, _| named.contains(file));
        for contents in state.files.values_mut() {
            contents.lose_unsynced(&mut survives, random);
        }
        Self::from_state(state)
    }

    /// The disk as the next process finds it when only the process ended: nothing is lost, nothing becomes durable.
    /// The old process's handles no longer reach it.
    #[must_use]
    pub fn after_crash(&self) -> Self {
        Self::from_state(self.state.lock().copied())
    }

    /// From here on the disk is full at this many bytes; what is there stays.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = bytes;
    }

    /// Changes one byte on the device, silently: `mask` is exclusive-ored to it.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.names.file(path)?;
        state.contents(file).flip(offset, mask);
        Ok(())
    }

    /// All files with their lengths, by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        let files = state.names.current_files();
        files
            .map(|(path, file)| (path.clone(), state.files[&file].len()))
            .collect()
    }
}

impl State {
    fn copied(&self) -> Self {
        Self {
            random: Seeded::new(self.random.next_u64()),
            names: self.names.clone(),
            files: self.files.clone(),
            next_file: self.next_file,
            locks: BTreeSet::new(),
            capacity: self.capacity,
            operations: 0,
            flushes: 0,
            faults: BTreeMap::new(),
            flush_faults: BTreeMap::new(),
            is_cut: false,
        }
    }

    fn contents(&mut self, file: u64) -> &mut Contents {
        self.files
            .get_mut(&file)
            .expect("a file's contents stay while it has a name or a handle")
    }

    fn check_power(&self) -> io::Result<()> {
        if self.is_cut {
            return Err(io::Error::other("power is cut (simulated)"));
        }
        Ok(())
    }

    /// Counts an operation and gives the fault planned for it.
    fn begin(&mut self, is_flush: bool) -> io::Result<Option<Fault>> {
        self.check_power()?;
        self.operations += 1;
        let mut fault = self.faults.remove(&self.operations);
        if is_flush {
            self.flushes += 1;
            let failed = self.flush_faults.remove(&self.flushes);
            fault = fault.or(failed.map(Fault::Fails));
        }
        if matches!(fault, Some(Fault::PowerCut | Fault::Tear { .. })) {
            self.is_cut = true;
        }
        Ok(fault)
    }

    /// Ends an operation whose effect, not yet durable, has been noted.
    fn end(&self, fault: Option<Fault>) -> io::Result<()> {
        match fault {
            None => Ok(()),
            Some(Fault::Fails(failure)) => Err(failure.into()),
            Some(Fault::PowerCut | Fault::Tear { .. }) => self.check_power(),
        }
    }

    /// A change of names: a planned failure prevents it, a power cut leaves it undecided.
    fn change_names(
        &mut self,
        change: impl FnOnce(&mut Names) -> io::Result<()>,
    ) -> io::Result<()> {
        let fault = self.begin(false)?;
        if let Some(Fault::Fails(failure)) = fault {
            return Err(failure.into());
        }
        change(&mut self.names)?;
        self.end(fault)
    }

    fn used(&self) -> u64 {
        let files = self.names.current_files();
        files.map(|(_, file)| self.files[&file].reserved()).sum()
    }

    fn check_room(&mut self, file: u64, len: u64) -> io::Result<()> {
        let reserved = self.contents(file).reserved();
        let needed = len.next_multiple_of(SECTOR as u64);
        if needed > reserved && self.used() + (needed - reserved) > self.capacity {
            return Err(Failure::NoRoom.into());
        }
        Ok(())
    }

    fn write(&mut self, file: u64, buffer: &[u8], offset: u64, dsync: bool) -> io::Result<()> {
        let fault = self.begin(dsync)?;
        self.check_room(file, offset + buffer.len() as u64)?;
        if let (Some(Fault::Fails(_)), false) = (fault, dsync) {
            return self.end(fault);
        }
        let contents = self
            .files
            .get_mut(&file)
            .expect("a file's contents stay while it has a name or a handle");
        let end = contents.write(buffer, offset);
        match fault {
            None if dsync => contents.sync_range(offset, end),
            Some(Fault::Tear { bytes }) => contents.tear(offset, end, offset + bytes as u64),
            Some(Fault::Fails(_)) => contents.fail_range(offset, end, &self.random),
            _ => {}
        }
        self.end(fault)
    }

    fn sync(&mut self, file: u64) -> io::Result<()> {
        let fault = self.begin(true)?;
        let contents = self
            .files
            .get_mut(&file)
            .expect("a file's contents stay while it has a name or a handle");
        match fault {
            None => contents.sync(),
            Some(Fault::Fails(_)) => contents.fail_sync(&self.random),
            Some(Fault::PowerCut | Fault::Tear { .. }) => {}
        }
        self.end(fault)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Device => Errno::IO.into(),
            Failure::NoRoom => Errno::NOSPC.into(),
        }
    }
}

#[derive(Debug)]
struct Handle {
    disk: Simulated,
    file: u64,
    options: OpenOptions,
}

struct Lock {
    disk: Simulated,
    file: u64,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.state.lock().locks.remove(&self.file);
    }
}

impl Disk for Simulated {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        state.check_power()?;
        let file = if options.create_new {
            let file = state.next_file;
            state.next_file += 1;
            state.files.insert(file, Contents::default());
            state.change_names(|names| names.create(path, Entry::File(file)))?;
            file
        } else {
            state.names.file(path)?
        };
        drop(state);
        Ok(Arc::new(Handle {
            disk: self.clone(),
            file,
            options,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change_names(|names| names.create_directories(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.begin(true)?;
        let directory = state.names.directory(path)?;
        if fault.is_none() {
            state.names.sync(directory);
        }
        state.end(fault)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change_names(|names| names.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change_names(|names| {
            names.file(path)?;
            names.remove(path)
        })
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.change_names(|names| names.remove_tree(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state.lock();
        state.check_power()?;
        state.names.list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.state.lock().names.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.state.lock();
        state.check_power()?;
        let file = state.names.file(path)?;
        if !state.locks.insert(file) {
            return Err(Errno::AGAIN.into());
        }
        Ok(Box::new(Lock {
            disk: self.clone(),
            file,
        }))
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let state = self.state.lock();
        state.check_power()?;
        Ok(state.capacity.saturating_sub(state.used()))
    }
}

impl Handle {
    fn check(&self, buffer: &[u8], offset: u64, writes: bool) -> io::Result<()> {
        if writes && !self.options.write {
            return Err(Errno::BADF.into());
        }
        // Reserving room transfers nothing.
        if self.options.direct && !buffer.is_empty() {
            check_aligned(buffer, offset)?;
        }
        Ok(())
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check(buffer, offset, false)?;
        let mut state = self.disk.state.lock();
        state.check_power()?;
        Ok(state.contents(self.file).read(buffer, offset))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.check(buffer, offset, true)?;
        let mut state = self.disk.state.lock();
        state.write(self.file, buffer, offset, self.options.dsync)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.state.lock().sync(self.file)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.check(&[], 0, true)?;
        let mut state = self.disk.state.lock();
        let fault = state.begin(false)?;
        if let Some(Fault::Fails(failure)) = fault {
            return Err(failure.into());
        }
        state.check_room(self.file, len)?;
        state.contents(self.file).extend(len);
        state.end(fault)
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        self.check(&[], 0, true)?;
        let mut state = self.disk.state.lock();
        let fault = state.begin(false)?;
        if let Some(Fault::Fails(failure)) = fault {
            return Err(failure.into());
        }
        state.contents(self.file).shrink(len);
        state.end(fault)
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.state.lock();
        state.check_power()?;
        Ok(state.contents(self.file).len())
    }
}

#[cfg(test)]
mod tests;
