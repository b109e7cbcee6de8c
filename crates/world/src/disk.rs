//! Files, as the log needs them: positioned reads and writes of whole blocks, explicit durability.
//!
//! All calls block; callers own their threads. Two implementations ship: a real and a simulated one, held to one
//! conformance suite.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Also for writing.
    pub write: bool,
    /// Make it; fails with `AlreadyExists` if it is there.
    pub create_new: bool,
    /// Around the page cache (O_DIRECT) where the file system can; buffers, lengths and offsets are then
    /// multiples of 4096. Where it cannot, buffered with the same guarantees.
    pub direct: bool,
    /// Every write is durable when it returns (O_DSYNC).
    pub dsync: bool,
}

/// A disk: the directory tree under a node's data directory.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn File>>;
    /// Makes a directory and its parents; present is fine. Not durable before [`Disk::sync_dir`] of its parent.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames a file over another; not durable before [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all in it; absent is fine.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted; absent gives `NotFound`.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether something is there.
    fn exists(&self, path: &Path) -> bool;
    /// Takes the one lock of a file for the life of the returned guard; `WouldBlock` if another process has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// Free bytes of the file system.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// An open file.
pub trait File: Send + Sync + 'static {
    /// Reads into `buffer` from `offset`; fewer bytes only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buffer` at `offset`.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes written bytes, and the length needed to read them, durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Reserves room up to `len` and makes the file at least that long; new bytes read as zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether nothing is in it.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
