//! What is in a simulated file: by sector what a read gives, what is durable, and what may have become so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::random::{Random, Seeded};

/// The unit that is written whole or not at all.
pub(super) const SECTOR: usize = 4096;

/// One version of a sector; `None` is zeros.
type Version = Option<Arc<[u8; SECTOR]>>;

#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    sectors: BTreeMap<u64, Sector>,
    dirty: BTreeSet<u64>,
    /// In the device's cache: a durable write put it there and failed. Gone with the power, kept by the next flush.
    cached: BTreeSet<u64>,
    len: u64,
    durable_len: u64,
}

#[derive(Clone, Debug, Default)]
struct Sector {
    current: Version,
    durable: Version,
    /// Written and not synced, oldest first; each may be what the device holds.
    unsynced: Vec<Version>,
}

fn byte_range(sector: u64) -> std::ops::Range<u64> {
    let start = sector * SECTOR as u64;
    start..start + SECTOR as u64
}

fn sectors(from: u64, to: u64) -> std::ops::Range<u64> {
    from / SECTOR as u64..to.div_ceil(SECTOR as u64)
}

fn bytes_of(version: &Version) -> [u8; SECTOR] {
    version.as_deref().copied().unwrap_or([0; SECTOR])
}

impl Contents {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn reserved(&self) -> u64 {
        self.len.next_multiple_of(SECTOR as u64)
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let len = buffer.len().min(self.len.saturating_sub(offset) as usize);
        let end = offset + len as u64;
        let buffer = &mut buffer[..len];
        buffer.fill(0);
        for (number, sector) in self.sectors.range(sectors(offset, end)) {
            let Some(bytes) = &sector.current else {
                continue;
            };
            let range = byte_range(*number);
            let (from, to) = (range.start.max(offset), range.end.min(end));
            if from < to {
                buffer[(from - offset) as usize..(to - offset) as usize].copy_from_slice(
                    &bytes[(from - range.start) as usize..(to - range.start) as usize],
                );
            }
        }
        len
    }

    /// Writes without making durable; gives the end of what was written.
    pub(super) fn write(&mut self, buffer: &[u8], offset: u64) -> u64 {
        let end = offset + buffer.len() as u64;
        for number in sectors(offset, end) {
            let range = byte_range(number);
            let (from, to) = (range.start.max(offset), range.end.min(end));
            let sector = self.sectors.entry(number).or_default();
            let mut bytes = bytes_of(&sector.current);
            bytes[(from - range.start) as usize..(to - range.start) as usize]
                .copy_from_slice(&buffer[(from - offset) as usize..(to - offset) as usize]);
            sector.current = Some(Arc::new(bytes));
            sector.unsynced.push(sector.current.clone());
            self.dirty.insert(number);
        }
        self.len = self.len.max(end);
        end
    }

    pub(super) fn extend(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    pub(super) fn shrink(&mut self, len: u64) {
        if len < self.len {
            self.len = len;
            self.durable_len = self.durable_len.min(len);
            self.cut_at_end();
            let behind = sectors(0, len).end;
            drop(self.dirty.split_off(&behind));
        }
    }

    pub(super) fn sync(&mut self) {
        for set in [&mut self.dirty, &mut self.cached] {
            for number in std::mem::take(set) {
                if let Some(sector) = self.sectors.get_mut(&number) {
                    sector.sync();
                }
            }
        }
        self.durable_len = self.len;
    }

    pub(super) fn sync_range(&mut self, from: u64, to: u64) {
        for number in sectors(from, to) {
            if let Some(sector) = self.sectors.get_mut(&number) {
                sector.sync();
            }
            self.dirty.remove(&number);
            self.cached.remove(&number);
        }
        self.durable_len = self.len;
    }

    /// A flush that failed: each sector is durable or not by chance, and no later flush will know of it.
    pub(super) fn fail_sync(&mut self, random: &Seeded) {
        for number in std::mem::take(&mut self.dirty) {
            if let Some(sector) = self.sectors.get_mut(&number) {
                sector.settle(|| random.next_u64().is_multiple_of(2), random);
            }
        }
        if random.next_u64().is_multiple_of(2) {
            self.durable_len = self.len;
        }
    }

    /// A durable write that failed: each sector is old or new by chance, and that is also what a read gives; new, it is
    /// durable or no more than in the device's cache.
    pub(super) fn fail_range(&mut self, from: u64, to: u64, random: &Seeded) {
        for number in sectors(from, to) {
            self.dirty.remove(&number);
            self.cached.remove(&number);
            let Some(sector) = self.sectors.get_mut(&number) else {
                continue;
            };
            let chance = random.next_u64();
            let old = sector.durable.clone();
            sector.settle(|| chance.is_multiple_of(2), random);
            sector.current.clone_from(&sector.durable);
            if chance.is_multiple_of(4) {
                sector.durable = old;
                sector.unsynced = vec![sector.current.clone()];
                self.cached.insert(number);
            }
        }
        self.durable_len = self.len;
    }

    /// A write that was cut at byte `cut`: below it new, above it old, to the byte.
    pub(super) fn tear(&mut self, from: u64, to: u64, cut: u64) {
        for number in sectors(from, to) {
            let range = byte_range(number);
            let Some(sector) = self.sectors.get_mut(&number) else {
                continue;
            };
            let mut bytes = bytes_of(&sector.durable);
            let new = bytes_of(&sector.current);
            let kept = cut.clamp(range.start, range.end) - range.start;
            bytes[..kept as usize].copy_from_slice(&new[..kept as usize]);
            sector.durable = Some(Arc::new(bytes));
            sector.unsynced.clear();
            self.dirty.remove(&number);
            self.cached.remove(&number);
        }
        self.durable_len = self.durable_len.max(self.len.min(cut));
    }

    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        let number = offset / SECTOR as u64;
        let at = (offset % SECTOR as u64) as usize;
        let sector = self.sectors.entry(number).or_default();
        let flipped = |version: &Version| {
            let mut bytes = bytes_of(version);
            bytes[at] ^= mask;
            Some(Arc::new(bytes))
        };
        sector.current = flipped(&sector.current);
        sector.durable = flipped(&sector.durable);
        for version in &mut sector.unsynced {
            *version = flipped(version);
        }
    }

    pub(super) fn lose_unsynced(&mut self, survives: &mut impl FnMut() -> bool, random: &Seeded) {
        for set in [&mut self.dirty, &mut self.cached] {
            for number in std::mem::take(set) {
                if let Some(sector) = self.sectors.get_mut(&number) {
                    sector.settle(&mut *survives, random);
                }
            }
        }
        for sector in self.sectors.values_mut() {
            sector.current.clone_from(&sector.durable);
        }
        if self.durable_len != self.len && !survives() {
            self.len = self.durable_len;
            self.cut_at_end();
        }
        self.durable_len = self.len;
    }

    /// Nothing is left beyond the end, also should the file grow again.
    fn cut_at_end(&mut self) {
        let last = self.len / SECTOR as u64;
        let kept = (self.len % SECTOR as u64) as usize;
        drop(self.sectors.split_off(&(last + u64::from(kept > 0))));
        if kept > 0
            && let Some(sector) = self.sectors.get_mut(&last)
        {
            let mut bytes = bytes_of(&sector.current);
            bytes[kept..].fill(0);
            sector.current = Some(Arc::new(bytes));
            sector.durable.clone_from(&sector.current);
        }
    }
}

impl Sector {
    fn sync(&mut self) {
        self.durable.clone_from(&self.current);
        self.unsynced.clear();
    }

    /// Decides what the device holds: as it was, or one of the versions written since.
    fn settle(&mut self, mut survives: impl FnMut() -> bool, random: &Seeded) {
        let versions = std::mem::take(&mut self.unsynced);
        if versions.is_empty() || !survives() {
            return;
        }
        // Mostly the newest; an older one now and then.
        let newest = versions.len() - 1;
        let at = if random.next_u64().is_multiple_of(4) {
            (random.next_u64() % versions.len() as u64) as usize
        } else {
            newest
        };
        self.durable.clone_from(&versions[at]);
    }
}
