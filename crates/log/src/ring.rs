//! The journal's file: a ring of sectors, written a group at a time, read a window at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_world::disk::File;
use floe_world::{Buffer, Pool};

use crate::Failure;
use crate::engine::Engine;
use crate::format::sector::{Found, SECTOR, Seed, inspect};

/// Bytes read at once.
const WINDOW: usize = 4 << 20;

/// The file and how much of it is free.
pub(crate) struct Ring {
    pub(crate) file: Arc<dyn File>,
    pub(crate) path: PathBuf,
    pub(crate) sectors: u64,
    pub(crate) seed: Seed,
    /// lsn of the next group.
    pub(crate) head: AtomicU64,
    /// The lower X of both slots (rule RecycleBelowOlderSlot).
    pub(crate) low: AtomicU64,
    /// The higher X of both.
    pub(crate) newest: AtomicU64,
}

impl Ring {
    pub(crate) fn used(&self) -> u64 {
        let low = self.low.load(Ordering::Acquire);
        self.head.load(Ordering::Acquire).saturating_sub(low)
    }

    /// Whether new appends are refused: 7/8 of the ring above the older slot is used.
    pub(crate) fn is_short(&self) -> bool {
        self.used() >= self.sectors / 8 * 7
    }

    /// lsn up to which appended bytes may reach. What was accepted before [`Self::is_short`] has room above it; the last
    /// 1/16 is for fences, votes and truncations.
    pub(crate) fn data_end(&self) -> u64 {
        self.low.load(Ordering::Acquire) + self.sectors / 16 * 15
    }

    /// Everything above the older slot.
    pub(crate) fn end(&self) -> u64 {
        self.low.load(Ordering::Acquire) + self.sectors
    }

    fn offset(&self, lsn: u64) -> u64 {
        lsn % self.sectors * SECTOR as u64
    }

    /// Durable: writes sectors from `lsn` on; they are on stable storage when this returns. The ring wraps inside.
    pub(crate) fn write(&self, lsn: u64, sectors: &[u8]) -> Result<(), Failure> {
        let until_wrap = self.sectors - lsn % self.sectors;
        let first = sectors.len().min(until_wrap as usize * SECTOR);
        let (before, after) = sectors.split_at(first);
        self.write_at(before, self.offset(lsn))?;
        if after.is_empty() {
            return Ok(());
        }
        self.write_at(after, 0)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        self.file
            .write_at(bytes, offset)
            .map_err(Engine::failed("write and flush", &self.path))
    }
}

/// Reads sectors by lsn through a window.
pub(crate) struct Reader<'a> {
    ring: &'a Ring,
    window: Buffer,
    /// Places in the window.
    held: std::ops::Range<u64>,
}

impl<'a> Reader<'a> {
    /// With memory of its own, for the time of recovery.
    pub(crate) fn new(ring: &'a Ring) -> Self {
        let bytes = WINDOW.min((ring.sectors as usize).saturating_mul(SECTOR));
        let window = Pool::new(floe_world::memory::class(bytes))
            .try_get(bytes)
            .expect("a pool made for one piece has it");
        Self {
            ring,
            window,
            held: 0..0,
        }
    }

    /// The sector at the place of `lsn`, reading on from there when it is not in the window.
    pub(crate) fn sector(&mut self, lsn: u64) -> Result<&[u8], Failure> {
        self.load(lsn, WINDOW / SECTOR)
    }

    /// As [`Self::sector`], for a look at one place only.
    pub(crate) fn probe(&mut self, lsn: u64) -> Result<Found, Failure> {
        let seed = self.ring.seed;
        Ok(inspect(self.load(lsn, 1)?, seed))
    }

    /// What is at the place of `lsn`.
    pub(crate) fn inspect(&mut self, lsn: u64) -> Result<Found, Failure> {
        let seed = self.ring.seed;
        Ok(inspect(self.sector(lsn)?, seed))
    }

    fn load(&mut self, lsn: u64, most: usize) -> Result<&[u8], Failure> {
        let place = lsn % self.ring.sectors;
        if !self.held.contains(&place) {
            let sectors = most
                .min((self.ring.sectors - place) as usize)
                .min(self.window.len() / SECTOR);
            let bytes = &mut self.window[..sectors * SECTOR];
            let offset = place * SECTOR as u64;
            let read = self.ring.file.read_at(bytes, offset);
            let read = read.map_err(Engine::failed("read", &self.ring.path))?;
            // A file cut short from outside reads as sectors that were never written.
            bytes[read..].fill(0);
            self.held = place..place + sectors as u64;
        }
        let at = (place - self.held.start) as usize * SECTOR;
        Ok(&self.window[at..at + SECTOR])
    }
}
