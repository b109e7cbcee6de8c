//! The two checkpoint slots on disk: reading, checking, and writing one without ever leaving only a bad one behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use floe_world::disk::File;
use floe_world::{Disk, OpenOptions, Pool};

use crate::Failure;
use crate::engine::Engine;
use crate::format::checkpoint::{Body, SLOT_HEADER, SlotHeader};
use crate::format::{BLOCK, FormatError};

/// Bytes moved at once.
const PIECE: usize = 1 << 20;

/// Both slots. Held while a checkpoint is written.
pub(crate) struct Slots {
    files: [Arc<dyn File>; 2],
    paths: [PathBuf; 2],
    /// X of each; `None` when it is bad.
    pub(crate) x: [Option<u64>; 2],
    pub(crate) newest: usize,
    pub(crate) seq: u64,
    /// Carried by every checkpoint until the boot group after it has been written.
    pub(crate) scrub: bool,
    /// The newest one was written by an older release.
    pub(crate) is_old: bool,
    /// The older one may not lead to what the newest says of a catalog stream: it is to be written anew at start.
    pub(crate) is_behind: bool,
}

pub(crate) fn slot_path(dir: &Path, slot: usize) -> PathBuf {
    dir.join(format!("checkpoint.{slot}"))
}

fn options(create_new: bool) -> OpenOptions {
    OpenOptions {
        write: true,
        create_new,
        direct: true,
        dsync: true,
    }
}

fn piece() -> floe_world::Buffer {
    Pool::new(PIECE)
        .try_get(PIECE)
        .expect("a pool made for one piece has it")
}

/// What a slot says, or why it says nothing.
pub(crate) enum Slot {
    Good(SlotHeader, Body),
    Bad,
    Newer(u16),
}

/// Reads and checks one slot. Only a failing disk is an error.
pub(crate) fn read(file: &dyn File, path: &Path) -> Result<Slot, Failure> {
    let failed = || Engine::failed("read", path);
    let mut piece = piece();
    let len = file.len().map_err(failed())?;
    let read = file
        .read_at(&mut piece[..SLOT_HEADER], 0)
        .map_err(failed())?;
    let header = match SlotHeader::decode(&piece[..read]) {
        Ok(header) => header,
        Err(FormatError::Newer(version)) => return Ok(Slot::Newer(version)),
        Err(_) => return Ok(Slot::Bad),
    };
    if header.body_bytes > len.saturating_sub(SLOT_HEADER as u64) {
        return Ok(Slot::Bad);
    }
    // Bounded by the length of the file.
    let mut body = Vec::with_capacity(header.body_bytes as usize);
    while body.len() < header.body_bytes as usize {
        let offset = (SLOT_HEADER + body.len()) as u64;
        let want = (header.body_bytes as usize - body.len()).min(PIECE);
        let aligned = want.next_multiple_of(BLOCK);
        let read = file
            .read_at(&mut piece[..aligned], offset)
            .map_err(failed())?;
        if read < want {
            return Ok(Slot::Bad);
        }
        body.extend_from_slice(&piece[..want]);
    }
    let body = Bytes::from(body);
    Ok(match Body::decode(&header, &body) {
        Ok(body) => Slot::Good(header, body),
        Err(_) => Slot::Bad,
    })
}

impl Slots {
    /// Opens both files; a missing one is made and counts as bad.
    ///
    /// Durable: what a life renamed or wrote here and whose flush failed or was not waited for is made so before anything is
    /// concluded from it (rule ReliedIsDurable).
    pub(crate) fn open(disk: &dyn Disk, dir: &Path) -> Result<Self, Failure> {
        disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
        let paths = [slot_path(dir, 0), slot_path(dir, 1)];
        let open = |path: &PathBuf| {
            let there = disk.exists(path);
            let file = disk.open(path, options(!there));
            file.map_err(Engine::failed("open", path))
        };
        let files = [open(&paths[0])?, open(&paths[1])?];
        for (file, path) in files.iter().zip(&paths) {
            file.sync_data().map_err(Engine::failed("flush", path))?;
        }
        Ok(Self {
            files,
            paths,
            x: [None, None],
            newest: 0,
            seq: 0,
            scrub: false,
            is_old: false,
            is_behind: false,
        })
    }

    pub(crate) fn read(&self, slot: usize) -> Result<Slot, Failure> {
        read(&*self.files[slot], &self.paths[slot])
    }

    /// Writes a checkpoint. Order: the older slot, unless the newer one turns out bad (rules TwoSlots, CheckOtherSlot);
    /// body before header, so that a good header has its body. Durable when it returns.
    ///
    /// It is written beside the slot and renamed over it, so that both slots are whole at every moment: a power cut here and a
    /// flip in the other slot cost nothing. On a full disk it is written in place, which needs no room.
    pub(crate) fn write(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        mut header: SlotHeader,
        body: &[u8],
    ) -> Result<(), Failure> {
        let is_newest_good = match self.read(self.newest)? {
            Slot::Good(held, _) => held.seq == self.seq,
            Slot::Bad | Slot::Newer(_) => false,
        };
        let into = if is_newest_good {
            1 - self.newest
        } else {
            self.newest
        };
        if !is_newest_good {
            self.x[self.newest] = None;
        }
        header.seq = self.seq + 1;
        header.scrub = self.scrub;
        let needed = (SLOT_HEADER + body.len()).next_multiple_of(BLOCK) as u64;
        let len = self.files[into]
            .len()
            .map_err(Engine::failed("measure", &self.paths[into]))?;
        match self.replace(disk, dir, into, needed, &header, body) {
            Err(failure) if failure.is_full() && needed <= len => {
                put(&*self.files[into], &self.paths[into], &header, body)?;
            }
            replaced => replaced?,
        }
        self.x[into] = Some(header.x);
        self.newest = into;
        self.seq = header.seq;
        Ok(())
    }

    /// A new file, flushed, renamed over the slot.
    fn replace(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        into: usize,
        needed: u64,
        header: &SlotHeader,
        body: &[u8],
    ) -> Result<(), Failure> {
        let path = &self.paths[into];
        let fresh = path.with_extension(format!("{into}.new"));
        if disk.exists(&fresh) {
            disk.remove_file(&fresh)
                .map_err(Engine::failed("remove", &fresh))?;
        }
        let file = disk
            .open(&fresh, options(true))
            .map_err(Engine::failed("create", &fresh))?;
        let len = needed.next_power_of_two().max(64 << 10);
        if let Err(full) = file.allocate(len) {
            // What it took of the last room is given back.
            disk.remove_file(&fresh)
                .map_err(Engine::failed("remove", &fresh))?;
            return Err(Engine::failed("allocate", &fresh)(full));
        }
        put(&*file, &fresh, header, body)?;
        file.sync_data().map_err(Engine::failed("flush", &fresh))?;
        disk.rename(&fresh, path)
            .map_err(Engine::failed("rename", &fresh))?;
        disk.sync_dir(dir).map_err(Engine::failed("flush", dir))?;
        self.files[into] = file;
        Ok(())
    }

    /// Both slots' X are known to the journal from now on.
    pub(crate) fn publish(&self, ring: &crate::ring::Ring) {
        // A bad slot names no X: what it could have named is not recycled before it has been rewritten.
        let known = self.x.iter().flatten();
        let (low, high) = known.fold((u64::MAX, 0), |(low, high), x| (low.min(*x), high.max(*x)));
        if self.x.iter().all(Option::is_some) {
            ring.low.store(low, Ordering::Release);
        }
        ring.newest.store(high, Ordering::Release);
    }
}

fn put(file: &dyn File, path: &Path, header: &SlotHeader, body: &[u8]) -> Result<(), Failure> {
    let mut piece = piece();
    let mut offset = SLOT_HEADER as u64;
    for part in body.chunks(PIECE) {
        let aligned = part.len().next_multiple_of(BLOCK);
        piece[..part.len()].copy_from_slice(part);
        piece[part.len()..aligned].fill(0);
        let written = file.write_at(&piece[..aligned], offset);
        written.map_err(Engine::failed("write and flush", path))?;
        offset += aligned as u64;
    }
    header.encode(&mut piece);
    let written = file.write_at(&piece[..SLOT_HEADER], 0);
    written.map_err(Engine::failed("write and flush", path))
}

#[cfg(test)]
mod tests {
    use floe_world::disk::Simulated;

    use super::*;

    const DIR: &str = "/node";

    fn header(seq: u64) -> SlotHeader {
        SlotHeader {
            seq,
            body_crc: crate::format::crc(&[&[]]),
            ..SlotHeader::default()
        }
    }

    fn seq(slots: &Slots, slot: usize) -> u64 {
        match slots.read(slot) {
            Ok(Slot::Good(header, _)) => header.seq,
            _ => panic!("slot {slot} is bad"),
        }
    }

    #[test]
    fn a_slot_that_an_earlier_life_wrote_in_place_and_did_not_flush_is_durable_once_it_was_opened()
    {
        let mut read = [false; 2];
        for seed in 0..40 {
            let disk = Simulated::new(seed);
            let dir = Path::new(DIR);
            disk.create_dir_all(dir).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            let mut slots = Slots::open(&disk, dir).unwrap();
            slots.write(&disk, dir, header(0), &[]).unwrap();
            slots.write(&disk, dir, header(0), &[]).unwrap();
            let older = 1 - slots.newest;
            disk.set_capacity(0);
            disk.fail_flush_at(disk.flushes() + 1, floe_world::disk::Failure::Device);
            assert!(slots.write(&disk, dir, header(0), &[]).is_err());
            drop(slots);

            let disk = disk.after_crash();
            let found = Slots::open(&disk, dir).unwrap();
            let seen = seq(&found, older);
            read[usize::from(seen == 3)] = true;
            disk.cut_power();
            let found = Slots::open(&disk.after_power_cut(), dir).unwrap();
            assert_eq!(seq(&found, older), seen, "{seed}");
        }
        assert_eq!(read, [true; 2]);
    }

    #[test]
    fn a_slot_that_an_earlier_life_renamed_and_did_not_flush_is_durable_once_it_was_opened() {
        for seed in 0..40 {
            let disk = Simulated::new(seed);
            let dir = Path::new(DIR);
            disk.create_dir_all(dir).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            let mut slots = Slots::open(&disk, dir).unwrap();
            slots.write(&disk, dir, header(0), &[]).unwrap();
            slots.write(&disk, dir, header(0), &[]).unwrap();
            let older = 1 - slots.newest;
            let fresh = dir.join("fresh");
            let file = disk.open(&fresh, options(true)).unwrap();
            put(&*file, &fresh, &header(3), &[]).unwrap();
            disk.rename(&fresh, &slot_path(dir, older)).unwrap();
            drop(slots);

            let disk = disk.after_crash();
            let found = Slots::open(&disk, dir).unwrap();
            assert_eq!(seq(&found, older), 3);
            disk.cut_power();
            let found = Slots::open(&disk.after_power_cut(), dir).unwrap();
            assert_eq!(seq(&found, older), 3, "{seed}");
        }
    }
}
