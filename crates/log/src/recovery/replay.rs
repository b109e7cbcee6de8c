//! From a checkpoint and the ring to what the node held: LOG.md section 4, steps 2 to 6.
//!
//! Decides where the valid journal ends and whether that end is a torn write or damage; reads no segment (rules
//! EndFromJournal, JudgeAfterReplay).

use std::collections::BTreeMap;

use bytes::Bytes;
use floe_model::{LeaderEpoch, PartitionIndex, TopicPartition};

use crate::format::batch::BatchHead;
use crate::format::checkpoint::{GenerationEntry, PartitionEntry};
use crate::format::record::{Pointer, Record, Records};
use crate::format::sector::{
    Found, GROUP_HEADER, GROUP_SECTORS_MAX, GroupHeader, PAYLOAD, STAMP, Stamp,
};
use crate::ring::Reader;
use crate::streams::Streams;
use crate::{CatalogEntry, Failure, Vote};

/// What a replay starts from and ends with.
pub(crate) struct Replay {
    /// By local number.
    pub(crate) partitions: BTreeMap<u32, PartitionEntry>,
    pub(crate) streams: Streams,
    /// First lsn of every group that was applied, in order.
    pub(crate) groups: Vec<u64>,
    /// First lsn of the last group.
    pub(crate) previous: u64,
    /// E: where the next group goes.
    pub(crate) end: u64,
    /// Boot of the last group.
    pub(crate) boot: u32,
    /// Whether a group was cut at the end.
    pub(crate) is_torn: bool,
    /// Empty: no damage.
    pub(crate) findings: Vec<String>,
}

/// What stands at a place where a group may start.
enum Group {
    /// All of it; its records are in the scratch buffer.
    Whole { sectors: u64, boot: u32 },
    /// Not all of it.
    Missing {
        /// A sector of it fails its checksum.
        is_bad: bool,
        /// Some of it is there.
        is_partial: bool,
        /// Boot that a later header has at least.
        boot: u32,
    },
}

/// Reads groups by their first lsn.
pub(crate) struct Groups<'a> {
    reader: Reader<'a>,
    ring_sectors: u64,
    records: Vec<u8>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(ring: &'a crate::ring::Ring) -> Self {
        Self {
            reader: Reader::new(ring),
            ring_sectors: ring.sectors,
            records: Vec::new(),
        }
    }

    /// The records of the group that was read last.
    pub(crate) fn records(&self) -> Records<'_> {
        Records::new(&self.records)
    }

    /// Reads a group that has been found whole before; `false` if it no longer is.
    pub(crate) fn read_again(&mut self, lsn: u64) -> Result<bool, Failure> {
        Ok(matches!(self.read(lsn, 0)?, Group::Whole { .. }))
    }

    fn read(&mut self, lsn: u64, boot: u32) -> Result<Group, Failure> {
        let first = self.reader.inspect(lsn)?;
        let header = match first {
            Found::Good(stamp) if fits_header(stamp, lsn, boot) => {
                let sector = self.reader.sector(lsn)?;
                GroupHeader::decode(&sector[STAMP..]).map(|header| (stamp, header))
            }
            _ => None,
        };
        let Some((stamp, header)) = header else {
            // A good sector whose header says nonsense is as bad as one that fails its checksum.
            let is_bad = match first {
                Found::Good(stamp) => fits_header(stamp, lsn, boot),
                found => found == Found::Bad,
            };
            let is_partial = self.is_begun(lsn, boot)?;
            return Ok(Group::Missing {
                is_bad,
                is_partial,
                boot,
            });
        };
        let mut is_bad = false;
        let mut is_whole = true;
        self.records.clear();
        for index in 0..header.sectors {
            let at = lsn + u64::from(index);
            let wanted =
                |found: Stamp| (found.lsn, found.index, found.boot) == (at, index, stamp.boot);
            match self.reader.inspect(at)? {
                Found::Good(found) if wanted(found) => {
                    let sector = self.reader.sector(at)?;
                    self.records
                        .extend_from_slice(&sector[STAMP..STAMP + PAYLOAD]);
                }
                found => {
                    is_whole = false;
                    is_bad |= found == Found::Bad;
                }
            }
        }
        if !is_whole {
            return Ok(Group::Missing {
                is_bad,
                is_partial: true,
                boot: stamp.boot,
            });
        }
        self.records.drain(..GROUP_HEADER);
        self.records.truncate(header.record_bytes as usize);
        Ok(Group::Whole {
            sectors: u64::from(header.sectors),
            boot: stamp.boot,
        })
    }

    /// Whether any later sector of a group that would start at `lsn` is there: only for the operator's information.
    fn is_begun(&mut self, lsn: u64, boot: u32) -> Result<bool, Failure> {
        for index in 1..64.min(self.ring_sectors) {
            if let Found::Good(stamp) = self.reader.inspect(lsn + index)?
                && (stamp.lsn, u64::from(stamp.index)) == (lsn + index, index)
                && stamp.boot >= boot
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first header after `lsn`, within one largest group (one write is in flight), not of a dead boot; and what it
    /// knew flushed.
    fn later(&mut self, lsn: u64, boot: u32, limit: u64) -> Result<Option<(u64, u64)>, Failure> {
        let last = (lsn + GROUP_SECTORS_MAX as u64).min(limit.saturating_sub(1));
        for at in lsn + 1..=last {
            if let Found::Good(stamp) = self.reader.inspect(at)?
                && fits_header(stamp, at, boot)
                && let Some(header) = GroupHeader::decode(&self.reader.sector(at)?[STAMP..])
            {
                return Ok(Some((at, header.known)));
            }
        }
        Ok(None)
    }

    /// Rule SparseProbe: one sector in every largest group of the rest of the ring. A current lap there means that a long
    /// stretch before it was erased.
    fn far(&mut self, lsn: u64, boot: u32, limit: u64) -> Result<Option<u64>, Failure> {
        let mut at = lsn + GROUP_SECTORS_MAX as u64;
        while at < limit {
            if let Found::Good(stamp) = self.reader.probe(at)?
                && stamp.lsn == at
                && stamp.boot >= boot
            {
                return Ok(Some(at));
            }
            at += GROUP_SECTORS_MAX as u64;
        }
        Ok(None)
    }

    /// The highest lsn and boot of any good sector in the ring.
    pub(crate) fn highest(&mut self) -> Result<(u64, u32), Failure> {
        let mut highest = (0, 0);
        for place in 0..self.ring_sectors {
            if let Found::Good(stamp) = self.reader.inspect(place)? {
                highest = (highest.0.max(stamp.lsn), highest.1.max(stamp.boot));
            }
        }
        Ok(highest)
    }

    /// Places in `from..to` (lsns) that fail their checksum.
    pub(crate) fn bad(&mut self, from: u64, to: u64) -> Result<Vec<u64>, Failure> {
        let mut bad = Vec::new();
        for at in from..to {
            if self.reader.inspect(at)? == Found::Bad {
                bad.push(at);
            }
        }
        Ok(bad)
    }
}

fn fits_header(stamp: Stamp, lsn: u64, boot: u32) -> bool {
    stamp.lsn == lsn && stamp.index == 0 && stamp.boot >= boot
}

impl Replay {
    /// From X on, to the end of the valid journal.
    pub(crate) fn run(&mut self, groups: &mut Groups<'_>, x: u64) -> Result<(), Failure> {
        let limit = x + groups.ring_sectors;
        let mut at = x;
        while at < limit {
            match groups.read(at, self.boot)? {
                Group::Whole { sectors, boot } => {
                    self.boot = boot;
                    self.previous = at;
                    self.groups.push(at);
                    self.apply_group(groups, at);
                    at += sectors;
                }
                Group::Missing {
                    is_bad,
                    is_partial,
                    boot,
                } => {
                    let later = self.missing(groups, at, boot, is_bad, limit)?;
                    let Some(later) = later else {
                        self.is_torn = is_partial;
                        break;
                    };
                    at = later;
                }
            }
        }
        self.end = at;
        Ok(())
    }

    /// Step 3: torn, or damage; after damage, where to go on.
    fn missing(
        &mut self,
        groups: &mut Groups<'_>,
        at: u64,
        boot: u32,
        is_bad: bool,
        limit: u64,
    ) -> Result<Option<u64>, Failure> {
        let later = groups.later(at, boot, limit)?;
        let is_gap = later.is_some_and(|(_, known)| known > at);
        if is_bad || is_gap {
            self.findings.push(if is_bad {
                format!("journal sector at or after {at} fails its checksum")
            } else {
                format!("journal sector {at} was flushed and is missing")
            });
            return Ok(later.map(|(later, _)| later));
        }
        let Some(far) = groups.far(at, boot, limit)? else {
            return Ok(None);
        };
        self.findings.push(format!(
            "journal sectors from {at} to about {far} are missing"
        ));
        let later = groups.later(far - 1, boot, limit)?;
        Ok(later.map(|(later, _)| later))
    }

    fn apply_group(&mut self, groups: &Groups<'_>, lsn: u64) {
        let mut records = groups.records();
        for (local, record) in records.by_ref() {
            if !self.apply(local, record) {
                self.findings
                    .push(format!("a record of the group at {lsn} cannot be placed"));
            }
        }
        if !records.is_whole() {
            self.findings
                .push(format!("the group at {lsn} ends in no record"));
        }
    }

    /// Step 4. `false`: the record contradicts what is known.
    fn apply(&mut self, local: u32, record: Record<'_>) -> bool {
        match record {
            Record::Vote {
                group,
                term,
                node,
                incarnation,
            } => {
                self.streams.vote(
                    group,
                    Vote {
                        term,
                        node,
                        incarnation,
                    },
                );
                return true;
            }
            Record::Catalog {
                group,
                index,
                term,
                data,
            } => {
                let data = Bytes::copy_from_slice(data);
                return self
                    .streams
                    .append(group, CatalogEntry { index, term, data });
            }
            Record::Boot { .. } => return true,
            Record::Bind {
                topic,
                partition,
                incarnation,
            } => {
                let partition = TopicPartition {
                    topic,
                    partition: PartitionIndex(partition),
                };
                return self.bind(local, partition, incarnation);
            }
            _ => {}
        }
        let Some(entry) = self.partitions.get_mut(&local) else {
            return false;
        };
        match record {
            Record::Batch(bytes) => batch(entry, bytes, &mut self.findings),
            Record::Pointer(pointer) => point(entry, &pointer, &mut self.findings),
            Record::Generation {
                epoch,
                start,
                descriptor,
            } => open(entry, epoch, start, descriptor),
            Record::Fence(epoch) => {
                entry.fence = entry.fence.max(epoch);
                true
            }
            Record::Truncate { epoch, end } => {
                if let Some(generation) = find(entry, epoch) {
                    cut(generation, end);
                }
                true
            }
            Record::Drop(epoch) => drop_generation(entry, epoch),
            Record::Forget(epoch) => {
                entry.fence = entry.fence.max(epoch);
                entry.is_forgotten = true;
                entry.has_left_over = true;
                entry.generations.clear();
                entry.producers = None;
                true
            }
            _ => true,
        }
    }

    fn bind(&mut self, local: u32, partition: TopicPartition, incarnation: u64) -> bool {
        if let Some(entry) = self.partitions.get_mut(&local) {
            let is_same = entry.partition == partition;
            if is_same {
                entry.incarnation = incarnation;
                entry.is_forgotten = false;
            }
            return is_same;
        }
        if local == u32::MAX {
            return false;
        }
        let entry = PartitionEntry {
            local,
            partition,
            incarnation,
            fence: LeaderEpoch(0),
            is_forgotten: false,
            has_left_over: false,
            generations: Vec::new(),
            producers: None,
        };
        self.partitions.insert(local, entry);
        true
    }
}

fn find(entry: &mut PartitionEntry, epoch: LeaderEpoch) -> Option<&mut GenerationEntry> {
    let mut held = entry.generations.iter_mut();
    held.find(|generation| generation.epoch == epoch)
}

fn cut(generation: &mut GenerationEntry, end: u64) {
    let end = end.max(generation.start);
    if end < generation.end {
        generation.last = None;
    }
    generation.end = generation.end.min(end);
    generation.synced = generation.synced.min(end);
    generation.lost.retain(|(from, _)| *from < end);
}

/// Named gaps: what was acknowledged between the end and `base` is lost.
fn lose(
    partition: TopicPartition,
    generation: &mut GenerationEntry,
    base: u64,
    findings: &mut Vec<String>,
) {
    let from = generation.end;
    findings.push(format!("{partition}: offsets {from} to {base} are lost"));
    generation.lost.push((from, base));
    generation.end = base;
}

fn batch(entry: &mut PartitionEntry, bytes: &[u8], findings: &mut Vec<String>) -> bool {
    let partition = entry.partition;
    let Some(head) = BatchHead::first(bytes).filter(|head| head.bytes().len() == bytes.len())
    else {
        return false;
    };
    let Some(generation) = find(entry, head.epoch()) else {
        return false;
    };
    if head.base() < generation.start {
        return false;
    }
    if head.base() > generation.end {
        lose(partition, generation, head.base(), findings);
    } else if head.base() < generation.end {
        // Rule OffsetImpliesCut: a truncation was lost.
        let (base, end) = (head.base(), generation.end);
        findings.push(format!(
            "{partition}: a truncation from {end} to {base} is missing"
        ));
        cut(generation, base);
    }
    generation.end = head.end();
    generation.last = head.crc_to_keep();
    true
}

fn point(entry: &mut PartitionEntry, pointer: &Pointer, findings: &mut Vec<String>) -> bool {
    let partition = entry.partition;
    let Some(generation) = find(entry, pointer.epoch) else {
        return false;
    };
    if pointer.base < generation.start || pointer.end <= pointer.base {
        return false;
    }
    if pointer.base > generation.end {
        lose(partition, generation, pointer.base, findings);
    } else if pointer.end <= generation.end {
        let (base, end) = (pointer.base, generation.end);
        findings.push(format!(
            "{partition}: a truncation from {end} to {base} is missing"
        ));
        cut(generation, base);
    }
    // A pointer is a checkpoint of its partition (rule PointerCoversAll).
    generation.end = pointer.end;
    generation.last = (pointer.last_crc != 0).then_some(pointer.last_crc);
    generation.synced = pointer.end;
    generation.file_base = pointer.file_base;
    generation.next_block = pointer.first_block.saturating_add(pointer.blocks);
    true
}

fn open(entry: &mut PartitionEntry, epoch: LeaderEpoch, start: u64, descriptor: &[u8]) -> bool {
    let held = &mut entry.generations;
    let at = held.partition_point(|generation| generation.epoch < epoch);
    if held.get(at).is_some_and(|above| above.epoch == epoch) {
        return false;
    }
    let opened = GenerationEntry {
        epoch,
        start,
        end: start,
        synced: start,
        file_base: 0,
        next_block: 0,
        lost: Vec::new(),
        descriptor: Bytes::copy_from_slice(descriptor),
        last: None,
        tail: Bytes::new(),
    };
    held.insert(at, opened);
    true
}

fn drop_generation(entry: &mut PartitionEntry, epoch: LeaderEpoch) -> bool {
    let mut held = entry.generations.iter();
    let Some(at) = held.position(|generation| generation.epoch == epoch) else {
        return false;
    };
    let gone = entry.generations.remove(at);
    entry.has_left_over |= gone.end > gone.start || gone.next_block > 0;
    true
}
