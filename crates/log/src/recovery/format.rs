//! The first start over an empty directory.
//!
//! Order: a marker; journal and slots; `node.id`, which makes the directory a node's; the marker goes. A crash in
//! between leaves the marker and no identity, so nothing was ever answered and formatting begins anew.

use std::path::{Path, PathBuf};

use floe_world::{Disk, OpenOptions, Pool, Random};

use crate::engine::Engine;
use crate::format::checkpoint::{SLOT_HEADER, SlotHeader};
use crate::format::identity::Identity;
use crate::format::sector::{GROUP_SECTORS_MAX, SECTOR};
use crate::format::{BLOCK, FormatError, VERSION, crc};
use crate::slots::slot_path;
use crate::{Config, Failure, OpenError};

const IDENTITY: &str = "node.id";
const LOCK: &str = "node.lock";
const MARKER: &str = "formatting";
/// The ring holds the largest group several times, so that a checkpoint can always keep up.
const RING_GROUPS_MIN: u64 = 8;

pub(crate) fn journal_path(dir: &Path) -> PathBuf {
    dir.join("journal")
}

/// Says that the whole ring has been filled with zeros.
pub(crate) fn filled_path(dir: &Path) -> PathBuf {
    dir.join("journal.filled")
}

/// Takes the directory for this process; makes it when it is not there.
pub(crate) fn lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn Send + Sync>, OpenError> {
    disk.create_dir_all(dir)
        .map_err(Engine::failed("make", dir))?;
    let path = dir.join(LOCK);
    if !disk.exists(&path) {
        create(disk, &path)?;
    }
    match disk.lock(&path) {
        Ok(guard) => Ok(guard),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(OpenError::InUse {
            dir: dir.to_owned(),
        }),
        Err(error) => Err(Engine::failed("lock", &path)(error).into()),
    }
}

fn create(disk: &dyn Disk, path: &Path) -> Result<(), Failure> {
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    match disk.open(path, options) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Engine::failed("create", path)(error))
        }
        _ => Ok(()),
    }
}

/// The identity of a formatted directory; `None` for one that has to be formatted.
pub(crate) fn identity(disk: &dyn Disk, dir: &Path) -> Result<Option<Identity>, OpenError> {
    let path = dir.join(IDENTITY);
    let marked = disk.exists(&dir.join(MARKER));
    if !disk.exists(&path) {
        return if marked || is_empty(disk, dir)? {
            Ok(None)
        } else {
            Err(OpenError::NoIdentity {
                dir: dir.to_owned(),
            })
        };
    }
    let options = OpenOptions {
        direct: true,
        ..OpenOptions::default()
    };
    let file = disk
        .open(&path, options)
        .map_err(Engine::failed("open", &path))?;
    if marked {
        // Rule ReliedIsDurable: a copy can be read though its flush failed.
        file.sync_data().map_err(Engine::failed("flush", &path))?;
    }
    let mut copies = piece(2 * BLOCK);
    let read = file
        .read_at(&mut copies[..2 * BLOCK], 0)
        .map_err(Engine::failed("read", &path))?;
    let found = [0, BLOCK].map(|at| Identity::decode(&copies[at.min(read)..read]));
    match found {
        // One is enough: a newer release may have been cut down between the two.
        [Err(FormatError::Newer(found)), _] | [_, Err(FormatError::Newer(found))] => {
            Err(OpenError::NewerFormat {
                path,
                found,
                known: VERSION,
            })
        }
        // Cut down between the two copies: nothing was answered yet.
        [Ok(_), Err(_)] if marked => Ok(None),
        [Ok(identity), _] | [_, Ok(identity)] => Ok(Some(identity)),
        _ if marked => Ok(None),
        _ => Err(OpenError::NoIdentity {
            dir: dir.to_owned(),
        }),
    }
}

fn is_empty(disk: &dyn Disk, dir: &Path) -> Result<bool, Failure> {
    let names = disk.list(dir).map_err(Engine::failed("list", dir))?;
    // A fresh file system has a folder of its own.
    let known = [LOCK, MARKER, "lost+found"];
    let mut others = names.iter().filter_map(|name| name.file_name());
    Ok(others.all(|name| known.iter().any(|known| name == *known)))
}

/// Removes the marker of a format that was completed.
pub(crate) fn finish(disk: &dyn Disk, dir: &Path) -> Result<(), Failure> {
    let marker = dir.join(MARKER);
    if disk.exists(&marker) {
        // Rule ReliedIsDurable: without the marker, the identity must be there.
        disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
        disk.remove_file(&marker)
            .map_err(Engine::failed("remove", &marker))?;
        disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
    }
    Ok(())
}

/// Makes a node of an empty directory.
pub(crate) fn format(
    disk: &dyn Disk,
    dir: &Path,
    config: &Config,
    random: &dyn Random,
) -> Result<Identity, OpenError> {
    let ring_sectors = config.ring_bytes / SECTOR as u64;
    if config.group_bytes_max > GROUP_SECTORS_MAX * SECTOR {
        return Err(OpenError::Config(format!(
            "a group of {} bytes is above {}; set less",
            config.group_bytes_max,
            GROUP_SECTORS_MAX * SECTOR,
        )));
    }
    let ring_bytes_min = RING_GROUPS_MIN * config.group_bytes_max as u64;
    if config.ring_bytes < ring_bytes_min || ring_sectors > u64::from(u32::MAX) {
        return Err(OpenError::Config(format!(
            "a journal of {} bytes is outside {} to {}; set a size between them",
            config.ring_bytes,
            ring_bytes_min,
            u64::from(u32::MAX) * SECTOR as u64,
        )));
    }
    let identity = Identity {
        cluster: match config.cluster {
            _ if config.joins => [0; 16],
            Some(cluster) => cluster,
            None => random.id(),
        },
        is_founder: false,
        node: config.node.0,
        ring_sectors: ring_sectors as u32,
        journal_id: random.next_u64(),
    };
    create(disk, &dir.join(MARKER))?;
    if let Some(parent) = dir.parent().filter(|parent| disk.exists(parent)) {
        disk.sync_dir(parent)
            .map_err(Engine::failed("flush", parent))?;
    }
    disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
    // Allocated, not written: reads as zeros at once, so that the first start does not wait. It is filled with zeros in
    // the background, because first writes into allocated blocks cost the file system more (about 150 instead of 85 µs).
    write_file(disk, &journal_path(dir), ring_sectors * SECTOR as u64, &[])?;
    for slot in 0..2 {
        let header = SlotHeader {
            seq: slot as u64 + 1,
            body_crc: crc(&[]),
            ..SlotHeader::default()
        };
        let mut bytes = piece(SLOT_HEADER);
        header.encode(&mut bytes);
        write_file(
            disk,
            &slot_path(dir, slot),
            64 << 10,
            &[&bytes[..SLOT_HEADER]],
        )?;
    }
    disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
    let mut copy = piece(BLOCK);
    identity.encode(&mut copy);
    let copy = &copy[..BLOCK];
    write_file(disk, &dir.join(IDENTITY), 2 * BLOCK as u64, &[copy, copy])?;
    disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
    Ok(identity)
}

/// Writes the identity anew, for a node that has found its cluster. Order: one copy is whole at every moment.
pub(crate) fn adopt(disk: &dyn Disk, dir: &Path, identity: Identity) -> Result<(), Failure> {
    let path = dir.join(IDENTITY);
    let options = OpenOptions {
        write: true,
        create_new: false,
        direct: true,
        dsync: true,
    };
    let file = disk
        .open(&path, options)
        .map_err(Engine::failed("open", &path))?;
    let mut copy = piece(BLOCK);
    identity.encode(&mut copy);
    for at in [0, BLOCK] {
        file.write_at(&copy[..BLOCK], at as u64)
            .map_err(Engine::failed("write and flush", &path))?;
    }
    file.sync_data().map_err(Engine::failed("flush", &path))
}

/// A fresh file of a length, with blocks written and flushed one after the other.
fn write_file(disk: &dyn Disk, path: &Path, len: u64, blocks: &[&[u8]]) -> Result<(), Failure> {
    if disk.exists(path) {
        disk.remove_file(path)
            .map_err(Engine::failed("remove", path))?;
    }
    let options = OpenOptions {
        write: true,
        create_new: true,
        direct: true,
        dsync: true,
    };
    let file = disk
        .open(path, options)
        .map_err(Engine::failed("create", path))?;
    file.allocate(len)
        .map_err(Engine::failed("allocate", path))?;
    for (at, block) in blocks.iter().enumerate() {
        let written = file.write_at(block, (at * BLOCK) as u64);
        written.map_err(Engine::failed("write and flush", path))?;
    }
    file.sync_data().map_err(Engine::failed("flush", path))
}

fn piece(len: usize) -> floe_world::Buffer {
    Pool::new(floe_world::memory::class(len))
        .try_get(len)
        .expect("a pool made for one piece has it")
}

#[cfg(test)]
mod tests {
    use floe_world::disk::{Failure, Simulated};
    use floe_world::random::Seeded;

    use super::*;

    const DIR: &str = "/node";

    fn formatted(seed: u64, failed: u64) -> (Simulated, bool) {
        let disk = Simulated::new(seed);
        let dir = Path::new(DIR);
        disk.create_dir_all(dir).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.fail_at(failed, Failure::Device);
        let made = format(&disk, dir, &Config::default(), &Seeded::new(seed));
        (disk, made.is_ok())
    }

    #[test]
    fn a_format_that_failed_at_its_last_flush_and_is_completed_never_ends_without_an_identity() {
        let last = formatted(0, u64::MAX).0.operations();
        for seed in 0..60 {
            let (disk, is_made) = formatted(seed, last);
            assert!(!is_made);
            let disk = disk.after_crash();
            let dir = Path::new(DIR);
            assert!(matches!(identity(&disk, dir), Ok(Some(_))));
            disk.cut_power_at(1 + seed % 3);
            let done = finish(&disk, dir);
            assert_eq!(done.is_err(), disk.is_cut());
            let found = identity(&disk.after_power_cut(), dir);
            assert!(found.is_ok(), "{seed}: {found:?}");
        }
    }

    #[test]
    fn a_node_has_its_cluster_or_none_wherever_power_goes_while_it_adopts_one() {
        let dir = Path::new(DIR);
        let joining = Config {
            joins: true,
            ..Config::default()
        };
        let mut found_in_both = [false; 2];
        for seed in 0..200 {
            let disk = Simulated::new(seed);
            disk.create_dir_all(dir).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            let before = format(&disk, dir, &joining, &Seeded::new(seed)).unwrap();
            finish(&disk, dir).unwrap();
            assert_eq!(before.cluster, [0; 16]);
            let after = Identity {
                cluster: [7; 16],
                is_founder: true,
                ..before
            };
            disk.cut_power_at(disk.operations() + 1 + seed % 6);
            let done = adopt(&disk, dir, after);
            let found = identity(&disk.after_power_cut(), dir).unwrap();
            assert!(found == Some(before) || found == Some(after), "{found:?}");
            assert!(done.is_err() || found == Some(after), "{seed}");
            found_in_both[usize::from(found == Some(after))] = true;
        }
        assert_eq!(found_in_both, [true; 2]);
    }

    #[test]
    fn a_format_that_failed_anywhere_and_counts_has_both_copies_of_the_identity_for_good() {
        let last = formatted(0, u64::MAX).0.operations();
        let mut completed = 0;
        for (failed, seed) in (1..=last).flat_map(|failed| (0..40).map(move |seed| (failed, seed)))
        {
            let disk = formatted(seed, failed).0.after_crash();
            let dir = Path::new(DIR);
            if identity(&disk, dir).unwrap().is_none() {
                continue;
            }
            completed += 1;
            finish(&disk, dir).unwrap();
            let file = disk.after_power_cut();
            let file = file.open(&dir.join(IDENTITY), OpenOptions::default());
            let mut copies = [0; 2 * BLOCK];
            file.unwrap().read_at(&mut copies, 0).unwrap();
            for copy in copies.chunks(BLOCK) {
                assert!(Identity::decode(copy).is_ok(), "{failed}, {seed}");
            }
        }
        assert!(completed > 0);
    }
}
