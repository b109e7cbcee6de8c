//! A simulated disk from outside: a file's bytes, and everything on it as one number.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

use floe_log::format::crc;
use floe_world::disk::Simulated;
use floe_world::{Disk, OpenOptions};

/// All bytes of a file.
pub(crate) fn read(disk: &Simulated, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenOptions::default())?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A print of every file's name and bytes.
pub(crate) fn print(disk: &Simulated) -> io::Result<u64> {
    let mut print = DefaultHasher::new();
    for (path, _) in disk.files() {
        let bytes = read(disk, &path)?;
        (&path, bytes.len(), crc(&[&bytes])).hash(&mut print);
    }
    Ok(print.finish())
}
