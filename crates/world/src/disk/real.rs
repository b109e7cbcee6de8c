//! The machine's file systems.
//!
//! Guarantees: a file opened as direct bypasses the page cache where its file system can do that, found out once per
//! file system by writing and reading a block; elsewhere the same calls go through the cache with the same promises of
//! durability. Interrupted calls are taken up again; a short write is never mistaken for a whole one.
//!
//! Deliberately never retries a write or flush that failed: what it left behind is unknown.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{BLOCK, Disk, File, OpenOptions, check_aligned};
use crate::memory::Pool;

/// Bytes of zeros written at a time where the file system cannot reserve room.
const ZEROS: usize = 1 << 20;

/// The machine's file systems.
#[derive(Debug, Default)]
pub struct Real {
    /// By device: whether O_DIRECT works.
    direct: Mutex<BTreeMap<u64, bool>>,
}

#[derive(Debug)]
struct Handle {
    fd: OwnedFd,
    path: PathBuf,
    /// Asked for direct, so held to its rules of alignment even where the cache is used.
    aligned: bool,
}

impl Real {
    /// Nothing is touched before the first call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether files in this directory, opened as direct, bypass the page cache. On a full disk, where it cannot be found
    /// out, they are taken to; it is asked again when there is room.
    pub fn bypasses_cache(&self, directory: &Path) -> io::Result<bool> {
        let device = retry_on_intr(|| rustix::fs::stat(directory))?.st_dev;
        if let Some(known) = self.direct.lock().get(&device) {
            return Ok(*known);
        }
        let Some(works) = probe(directory)? else {
            return Ok(true);
        };
        self.direct.lock().insert(device, works);
        Ok(works)
    }
}

/// Writes and reads one block of a nameless-to-be file around the cache; `None` if there is no room for it.
fn probe(directory: &Path) -> io::Result<Option<bool>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".direct-{}-{number}", std::process::id()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::DIRECT;
    let opened = retry_on_intr(|| rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR));
    let works = match opened {
        Ok(fd) => transfers_block(&fd),
        // Some kernels make the file before they refuse the flag.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Some(false),
        // Nothing may be written here; a reader through the cache is right in any case.
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => return Ok(Some(false)),
        Err(Errno::NOSPC | Errno::DQUOT) => None,
        Err(error) => return Err(error.into()),
    };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(works),
    }
}

fn transfers_block(fd: &OwnedFd) -> Option<bool> {
    let pool = Pool::new(BLOCK);
    let mut block = pool
        .try_get(BLOCK)
        .expect("a pool of one block has one block");
    block.fill(0xa5);
    let written = retry_on_intr(|| rustix::io::pwrite(fd, &block, 0));
    let read = retry_on_intr(|| rustix::io::pread(fd, &mut block[..], 0));
    match (written, read) {
        (Ok(BLOCK), Ok(BLOCK)) => Some(true),
        (Err(Errno::NOSPC | Errno::DQUOT), _) => None,
        _ => Some(false),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// An error that says which file it is about.
fn at(path: &Path, what: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(
        error.kind(),
        Located {
            text: format!("{what} {}", path.display()),
            source: error,
        },
    )
}

#[derive(Debug, thiserror::Error)]
#[error("{text}: {source}")]
struct Located {
    text: String,
    source: io::Error,
}

impl Disk for Real {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Arc<dyn File>> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        if options.create_new {
            flags |= OFlags::CREATE | OFlags::EXCL;
        }
        if options.dsync {
            flags |= OFlags::DSYNC;
        }
        if options.direct && self.bypasses_cache(parent(path))? {
            flags |= OFlags::DIRECT;
        }
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
        let fd = retry_on_intr(|| rustix::fs::open(path, flags, mode))
            .map_err(|error| at(path, "open", error))?;
        Ok(Arc::new(Handle {
            fd,
            path: path.to_owned(),
            aligned: options.direct,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|error| at(path, "open directory", error))?;
        retry_on_intr(|| rustix::fs::fsync(&directory))
            .map_err(|error| at(path, "flush directory", error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = std::fs::read_dir(path)?
            .map(|entry| Ok(PathBuf::from(entry?.file_name())))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|error| at(path, "open", error))?;
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        retry_on_intr(|| rustix::fs::flock(&fd, exclusive))
            .map_err(|error| at(path, "lock", error))?;
        // Closing the descriptor gives the lock up.
        Ok(Box::new(fd))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = retry_on_intr(|| rustix::fs::statvfs(path))
            .map_err(|error| at(path, "ask for free room at", error))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl Handle {
    fn check(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        if self.aligned {
            check_aligned(buffer, offset)?;
        }
        Ok(())
    }

    fn fill_with_zeros(&self, len: u64) -> io::Result<()> {
        let pool = Pool::new(ZEROS);
        let mut zeros = pool
            .try_get(ZEROS)
            .expect("a pool of one piece has one piece");
        zeros.fill(0);
        let mut end = self.len()?;
        while end < len {
            let piece = (len - end).min(ZEROS as u64) as usize;
            self.write_at(&zeros[..piece], end)?;
            end += piece as u64;
        }
        Ok(())
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check(buffer, offset)?;
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            let read =
                retry_on_intr(|| rustix::io::pread(&self.fd, &mut *rest, offset + done as u64))
                    .map_err(|error| at(&self.path, "read", error))?;
            done += read;
            // The end of the file; direct reads end there with part of a block and cannot go on from it.
            if read == 0 || (self.aligned && !read.is_multiple_of(BLOCK)) {
                break;
            }
        }
        Ok(done)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.check(buffer, offset)?;
        let mut done = 0;
        while done < buffer.len() {
            let written = retry_on_intr(|| {
                rustix::io::pwrite(&self.fd, &buffer[done..], offset + done as u64)
            })
            .map_err(|error| at(&self.path, "write", error))?;
            if written == 0 || (self.aligned && !written.is_multiple_of(BLOCK)) {
                return Err(at(&self.path, "write in full", Errno::IO));
            }
            done += written;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.fd))
            .map_err(|error| at(&self.path, "flush", error))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len)) {
            Err(Errno::OPNOTSUPP) => self.fill_with_zeros(len),
            other => other.map_err(|error| at(&self.path, "reserve room in", error)),
        }
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        if self.len()? <= len {
            return Ok(());
        }
        retry_on_intr(|| rustix::fs::ftruncate(&self.fd, len))
            .map_err(|error| at(&self.path, "give room back of", error))
    }

    fn len(&self) -> io::Result<u64> {
        let stat = retry_on_intr(|| rustix::fs::fstat(&self.fd))
            .map_err(|error| at(&self.path, "ask the length of", error))?;
        Ok(stat.st_size as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn real_disk_conforms() {
        let directory = tempfile::tempdir().unwrap();
        conformance::run(&Real::new(), directory.path());
    }

    #[test]
    fn real_disk_conforms_without_bypass() {
        let directory = tempfile::tempdir().unwrap();
        let device = rustix::fs::stat(directory.path()).unwrap().st_dev;
        let disk = Real::new();
        disk.direct.lock().insert(device, false);
        conformance::run(&disk, directory.path());
    }

    #[test]
    fn memory_file_system_conforms() {
        let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        conformance::run(&Real::new(), directory.path());
    }

    #[test]
    fn the_probe_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Real::new();
        let _known = disk.bypasses_cache(directory.path()).unwrap();
        assert!(disk.list(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_file_and_keeps_its_kind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("absent");
        let Err(error) = Real::new().open(&path, OpenOptions::default()) else {
            panic!("an absent file opened");
        };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("absent"), "{error}");
    }
}
