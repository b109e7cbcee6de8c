//! Files, as the log needs them: positioned reads and writes of whole blocks, explicit durability.
//!
//! All calls block; callers own their threads. Two implementations ship: [`Real`] and [`Simulated`], held to one
//! conformance suite.
//!
//! Deliberately says nothing of the order in which unsynced writes reach the device: any subset may.

mod real;
mod simulated;

#[cfg(test)]
mod conformance;

pub use real::Real;
pub use simulated::{Failure, Simulated};

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
    /// Makes a directory and its parents; present is fine. Not durable before [`Disk::sync_dir`] of each parent.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames a file over another in the same directory; not durable before [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all in it; absent is fine.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted; absent gives `NotFound`.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether something is there.
    fn exists(&self, path: &Path) -> bool;
    /// Takes the one lock of a file for the life of the returned guard; `WouldBlock` if another guard has it, in this
    /// process or another, `NotFound` if there is no such file.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// Free bytes of the file system.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// Unit of offset, length and address on a file opened with [`OpenOptions::direct`].
pub const BLOCK: usize = 4096;

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
    /// Gives the room behind `len` back to the file system; a shorter file stays as it is. For a file whose name is gone: what
    /// a power cut leaves of it is not defined.
    fn shrink(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether nothing is in it.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Refuses what O_DIRECT would, on every file system, so that a caller's slip shows everywhere.
fn check_aligned(buffer: &[u8], offset: u64) -> io::Result<()> {
    let aligned = (buffer.is_empty() || (buffer.as_ptr() as usize).is_multiple_of(BLOCK))
        && buffer.len().is_multiple_of(BLOCK)
        && offset.is_multiple_of(BLOCK as u64);
    if aligned {
        return Ok(());
    }
    let text = format!(
        "direct transfer of {} bytes at {offset} from {:p} is not aligned to {BLOCK}",
        buffer.len(),
        buffer.as_ptr()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}
