//! The journal's sectors and the groups they carry.
//!
//! ```text
//! sector   0 u32 crc of 4..S, started from the journal id    8 u64 lsn         18 u16 payload bytes used   24 payload
//!          4 u32 boot                                       16 u16 index       20 u32 zero
//! group    first 24 payload bytes of index 0:  u8 version | u8 flags | u16 sectors | u32 record bytes | u64 known
//!          | u64 first lsn of the group before.   Then the records, packed, through the sectors' payloads.
//! ```
//! Rules LapInStamp (the lsn is absolute; place = lsn mod ring), BootInStamp (in every sector), KnownFlushed (`known` =
//! lowest lsn not known flushed when the group was composed; with one write in flight its own).

use crc_fast::{CrcAlgorithm, Digest};

use super::{Fields, VERSION};

/// Bytes of a sector: what the device writes whole or not at all (assumption SectorAtomic).
pub const SECTOR: usize = 4096;
/// Bytes of its header.
pub const STAMP: usize = 24;
/// Bytes of records in a sector.
pub const PAYLOAD: usize = SECTOR - STAMP;
/// Bytes of the group header.
pub const GROUP_HEADER: usize = 24;
/// Sectors of the largest group. Recovery looks so far ahead for what a lost write left behind.
pub const GROUP_SECTORS_MAX: usize = 2064;
/// Record bytes that fit into the largest group.
pub const GROUP_BYTES_MAX: usize = GROUP_SECTORS_MAX * PAYLOAD - GROUP_HEADER;

/// The checksum state that every sector of one journal starts from.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64);

impl Seed {
    /// From the journal's id.
    pub fn new(journal_id: u64) -> Self {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(&journal_id.to_le_bytes());
        Self(digest.get_state())
    }

    fn crc(self, sector: &[u8]) -> u32 {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, self.0);
        digest.update(&sector[4..SECTOR]);
        digest.finalize() as u32
    }
}

/// What is found at a place of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Never written, or wiped.
    Zero,
    /// Fails its checksum.
    Bad,
    /// A sector of this journal.
    Good(Stamp),
}

/// A sector's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Life of the process that wrote it.
    pub boot: u32,
    /// Number of the sector since the journal was made.
    pub lsn: u64,
    /// Place in its group.
    pub index: u16,
    /// Payload bytes used.
    pub used: u16,
}

/// The header of a group, in the payload of its first sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// Sectors of the group.
    pub sectors: u16,
    /// Bytes of records.
    pub record_bytes: u32,
    /// Lowest lsn not known flushed when it was composed.
    pub known: u64,
    /// First lsn of the group before.
    pub previous: u64,
}

/// Whether others follow these numbers of a sector and of a life: what no node ever reaches was not written by one.
pub(super) fn is_countable(lsn: u64, boot: u32) -> bool {
    lsn <= u64::MAX / 2 && boot < u32::MAX
}

/// Compared with at once: a recovery looks at thousands of sectors that were never written.
static ZEROS: [u8; SECTOR] = [0; SECTOR];

/// Reads one sector.
pub fn inspect(sector: &[u8], seed: Seed) -> Found {
    let mut fields = Fields(sector);
    let stamp = (|| {
        let crc = fields.u32()?;
        let stamp = Stamp {
            boot: fields.u32()?,
            lsn: fields.u64()?,
            index: fields.u16()?,
            used: fields.u16()?,
        };
        (sector.len() == SECTOR && crc == seed.crc(sector)).then_some(stamp)
    })();
    match stamp {
        Some(stamp)
            if usize::from(stamp.used) <= PAYLOAD && is_countable(stamp.lsn, stamp.boot) =>
        {
            Found::Good(stamp)
        }
        _ if ZEROS.get(..sector.len()) == Some(sector) => Found::Zero,
        _ => Found::Bad,
    }
}

impl GroupHeader {
    /// From the payload of a first sector.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let version = fields.u8()?;
        let _flags = fields.u8()?;
        let header = Self {
            sectors: fields.u16()?,
            record_bytes: fields.u32()?,
            known: fields.u64()?,
            previous: fields.u64()?,
        };
        let room = usize::from(header.sectors) * PAYLOAD;
        let fits = room >= GROUP_HEADER + header.record_bytes as usize
            && usize::from(header.sectors) <= GROUP_SECTORS_MAX;
        (u16::from(version) <= VERSION && header.sectors > 0 && fits).then_some(header)
    }
}

/// Sectors that a group of so many record bytes takes.
pub fn sectors_for(record_bytes: usize) -> usize {
    (GROUP_HEADER + record_bytes).div_ceil(PAYLOAD)
}

/// Composes one group in a staging buffer, payload by payload, and stamps it.
#[derive(Debug)]
pub struct GroupWriter<'a> {
    staging: &'a mut [u8],
    used: usize,
}

impl<'a> GroupWriter<'a> {
    /// An empty group in `staging`, whose length is a multiple of [`SECTOR`].
    pub fn new(staging: &'a mut [u8]) -> Self {
        Self {
            staging,
            used: GROUP_HEADER,
        }
    }

    /// Bytes of records so far.
    pub fn record_bytes(&self) -> usize {
        self.used - GROUP_HEADER
    }

    /// Packs bytes behind what is there.
    ///
    /// # Panics
    /// If the staging buffer has no room; callers ask [`sectors_for`] first.
    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let sector = self.used / PAYLOAD;
            let inside = self.used % PAYLOAD;
            let now = bytes.len().min(PAYLOAD - inside);
            let at = sector * SECTOR + STAMP + inside;
            self.staging[at..at + now].copy_from_slice(&bytes[..now]);
            bytes = &bytes[now..];
            self.used += now;
        }
    }

    /// Stamps all sectors; gives how many there are. `known` and `previous` as in [`GroupHeader`].
    pub fn finish(self, lsn: u64, boot: u32, known: u64, previous: u64, seed: Seed) -> usize {
        let sectors = self.used.div_ceil(PAYLOAD);
        let record_bytes = self.record_bytes() as u32;
        let header = &mut self.staging[STAMP..STAMP + GROUP_HEADER];
        header[0] = VERSION as u8;
        header[1] = 0;
        header[2..4].copy_from_slice(&(sectors as u16).to_le_bytes());
        header[4..8].copy_from_slice(&record_bytes.to_le_bytes());
        header[8..16].copy_from_slice(&known.to_le_bytes());
        header[16..24].copy_from_slice(&previous.to_le_bytes());
        for index in 0..sectors {
            let used = PAYLOAD.min(self.used - index * PAYLOAD);
            let sector = &mut self.staging[index * SECTOR..(index + 1) * SECTOR];
            sector[4..8].copy_from_slice(&boot.to_le_bytes());
            sector[8..16].copy_from_slice(&(lsn + index as u64).to_le_bytes());
            sector[16..18].copy_from_slice(&(index as u16).to_le_bytes());
            sector[18..20].copy_from_slice(&(used as u16).to_le_bytes());
            sector[20..24].fill(0);
            sector[STAMP + used..].fill(0);
            let crc = seed.crc(sector);
            sector[..4].copy_from_slice(&crc.to_le_bytes());
        }
        sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_laid_out_as_drawn() {
        let seed = Seed::new(7);
        let mut staging = vec![0xee; 2 * SECTOR];
        let mut group = GroupWriter::new(&mut staging);
        group.put(&[1; 5000]);
        group.put(b"end");
        let sectors = group.finish(41, 6, 40, 39, seed);
        assert_eq!(sectors, 2);
        assert_eq!(sectors, sectors_for(5003));
        assert_eq!(
            &staging[4..24],
            b"\x06\0\0\0\x29\0\0\0\0\0\0\0\0\0\xe8\x0f\0\0\0\0"
        );
        assert_eq!(
            &staging[24..48],
            b"\x02\0\x02\0\x8b\x13\0\0\x28\0\0\0\0\0\0\0\x27\0\0\0\0\0\0\0"
        );
        let second = &staging[SECTOR..];
        assert_eq!(
            &second[4..24],
            b"\x06\0\0\0\x2a\0\0\0\0\0\0\0\x01\0\xbb\x03\0\0\0\0"
        );
        assert_eq!(&second[24 + 952..24 + 956], b"end\0");
        let stamp = Stamp {
            boot: 6,
            lsn: 41,
            index: 0,
            used: PAYLOAD as u16,
        };
        assert_eq!(inspect(&staging[..SECTOR], seed), Found::Good(stamp));
        let header = GroupHeader {
            sectors: 2,
            record_bytes: 5003,
            known: 40,
            previous: 39,
        };
        assert_eq!(GroupHeader::decode(&staging[STAMP..SECTOR]), Some(header));
    }

    #[test]
    fn a_number_that_nothing_follows_is_bad() {
        let seed = Seed::new(1);
        for (lsn, boot, is_good) in [
            (u64::MAX / 2, u32::MAX - 1, true),
            (u64::MAX / 2 + 1, 1, false),
            (1, u32::MAX, false),
        ] {
            let mut staging = vec![0; SECTOR];
            GroupWriter::new(&mut staging).finish(lsn, boot, 0, 0, seed);
            let found = inspect(&staging, seed);
            assert_eq!(matches!(found, Found::Good(_)), is_good, "{lsn} {boot}");
            assert_eq!(found == Found::Bad, !is_good, "{lsn} {boot}");
        }
    }

    #[test]
    fn another_journals_sector_is_bad_here() {
        let mut staging = vec![0; SECTOR];
        GroupWriter::new(&mut staging).finish(0, 1, 0, 0, Seed::new(1));
        assert_eq!(inspect(&staging, Seed::new(2)), Found::Bad);
        assert_eq!(inspect(&[0; SECTOR], Seed::new(2)), Found::Zero);
    }

    #[test]
    fn a_header_that_contradicts_itself_is_refused() {
        let mut payload = [0; PAYLOAD];
        payload[0] = 1;
        assert_eq!(GroupHeader::decode(&payload), None, "no sectors");
        payload[2] = 1;
        payload[4..8].copy_from_slice(&(PAYLOAD as u32).to_le_bytes());
        assert_eq!(GroupHeader::decode(&payload), None, "more bytes than room");
    }
}
