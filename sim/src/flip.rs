//! A byte that flips while the node is down, and what it may cost: the group or run it lies in, nothing else.
//!
//! The layouts are read here with the log's own decoders, before the flip, to name what shares its fate.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use floe_log::format::BLOCK;
use floe_log::format::batch::BatchHead;
use floe_log::format::checkpoint::{Body, SLOT_HEADER, SlotHeader};
use floe_log::format::identity::Identity;
use floe_log::format::record::{Record, Records};
use floe_log::format::sector::{
    self, Found, GROUP_HEADER, GroupHeader, SECTOR, STAMP, Seed, Stamp,
};
use floe_log::format::segment::{RUN_HEADER, RunHeader};
use floe_model::{PartitionIndex, TopicPartition};
use floe_world::disk::Simulated;

use crate::check::Hit;
use crate::disk::read;
use crate::node::DIR;
use crate::run::Run;
use crate::truth::Truth;

/// Sectors of the journal by number.
type Sectors = BTreeMap<u64, (Stamp, Vec<u8>)>;

/// Local numbers, as far as journal and slots still tell.
type Locals = BTreeMap<u32, TopicPartition>;

/// Flips a byte and says what that may cost.
pub(crate) fn flip(run: &mut Run) -> Result<Hit, String> {
    let disk = run.world.disk.clone();
    let chance = &run.chance;
    let (path, place, hit) =
        choose(&disk, chance, &run.truth).map_err(|error| error.to_string())?;
    let mask = 1 << chance.number(0..8);
    run.truth.note(format!(
        "flip {} at {place}, mask {mask}: {hit:?}",
        path.display()
    ));
    disk.flip(&path, place, mask)
        .map_err(|error| error.to_string())?;
    Ok(hit)
}

fn choose(
    disk: &Simulated,
    chance: &crate::chance::Chance,
    truth: &Truth,
) -> io::Result<(PathBuf, u64, Hit)> {
    let files = disk.files();
    let of = |extension: &str| -> Vec<_> {
        let matching = files.iter().filter(|(path, len)| {
            *len > 0 && path.extension().is_some_and(|found| found == extension)
        });
        matching.cloned().collect()
    };
    let mut hit = Hit {
        is_any: true,
        ..Hit::default()
    };
    let segments = of("seg");
    match chance.number(0..10) {
        0..5 => {
            let (place, hit) = in_journal(disk, chance, hit)?;
            Ok((Path::new(DIR).join("journal"), place, hit))
        }
        5..8 if !segments.is_empty() => {
            let (path, len) = &segments[chance.number(0..segments.len() as u64) as usize];
            let place = chance.number(0..*len);
            in_segment(disk, path, place, truth, &mut hit)?;
            Ok((path.clone(), place, hit))
        }
        8 => Ok((
            Path::new(DIR).join("node.id"),
            chance.number(0..2 * BLOCK as u64),
            hit,
        )),
        _ => {
            let name = chance.of(&["checkpoint.0", "checkpoint.1"]);
            let path = Path::new(DIR).join(name);
            let bytes = read(disk, &path)?;
            // Bytes beyond the body are in no checksum.
            let used = SlotHeader::decode(&bytes)
                .map_or(56, |header| SLOT_HEADER as u64 + header.body_bytes);
            let place = chance.number(0..used.min(bytes.len() as u64));
            Ok((path, place, hit))
        }
    }
}

fn in_journal(
    disk: &Simulated,
    chance: &crate::chance::Chance,
    mut hit: Hit,
) -> io::Result<(u64, Hit)> {
    let identity = read(disk, &Path::new(DIR).join("node.id"))?;
    let identity = Identity::decode(&identity).map_err(io::Error::other)?;
    let seed = Seed::new(identity.journal_id);
    let ring = read(disk, &Path::new(DIR).join("journal"))?;
    let mut sectors = Sectors::new();
    for bytes in ring.chunks_exact(SECTOR) {
        if let Found::Good(stamp) = sector::inspect(bytes, seed) {
            sectors.insert(stamp.lsn, (stamp, bytes.to_vec()));
        }
    }
    let Some(newest) = sectors.keys().next_back().copied() else {
        return Ok((0, hit));
    };
    // Mostly near the end, where it hurts.
    let near = chance.number(1..40);
    let lsn = if chance.percent(80) {
        newest.saturating_sub(near)
    } else {
        chance.of(&sectors.keys().copied().collect::<Vec<_>>())
    };
    let lsn = if sectors.contains_key(&lsn) {
        lsn
    } else {
        newest
    };
    let locals = locals(disk, &sectors)?;
    if let Some(records) = group(&sectors, lsn) {
        for (local, record) in &mut Records::new(&records) {
            share(&mut hit, locals.get(&local).copied(), &record);
        }
    }
    let place =
        lsn % u64::from(identity.ring_sectors) * SECTOR as u64 + chance.number(0..SECTOR as u64);
    Ok((place, hit))
}

/// The record bytes of the group around a sector, if all of it is there.
fn group(sectors: &Sectors, lsn: u64) -> Option<Vec<u8>> {
    let (stamp, _) = sectors.get(&lsn)?;
    let first = lsn.checked_sub(u64::from(stamp.index))?;
    let header = GroupHeader::decode(&sectors.get(&first)?.1[STAMP..])?;
    let mut payload = Vec::new();
    for at in first..first + u64::from(header.sectors) {
        let (other, bytes) = sectors.get(&at)?;
        if other.boot != stamp.boot {
            return None;
        }
        payload.extend_from_slice(&bytes[STAMP..]);
    }
    let range = GROUP_HEADER..GROUP_HEADER + header.record_bytes as usize;
    payload.get(range).map(<[u8]>::to_vec)
}

fn share(hit: &mut Hit, partition: Option<TopicPartition>, record: &Record<'_>) {
    match (record, partition) {
        (Record::Batch(bytes), Some(partition)) => {
            if let Some(head) = BatchHead::first(bytes) {
                hit.records.push((partition, head.base()..head.end()));
            }
        }
        (Record::Pointer(pointer), Some(partition)) => {
            hit.records.push((partition, pointer.base..pointer.end));
        }
        (
            Record::Bind {
                topic, partition, ..
            },
            _,
        ) => {
            let partition = PartitionIndex(*partition);
            hit.changes.insert(TopicPartition {
                topic: *topic,
                partition,
            });
        }
        (Record::Vote { group, .. } | Record::Catalog { group, .. }, _) => {
            hit.streams.insert(*group);
        }
        (Record::Boot { .. } | Record::Commit { .. }, _) | (_, None) => {}
        (_, Some(partition)) => {
            hit.changes.insert(partition);
        }
    }
}

fn locals(disk: &Simulated, sectors: &Sectors) -> io::Result<Locals> {
    let mut locals = Locals::new();
    for name in ["checkpoint.0", "checkpoint.1"] {
        let bytes = Bytes::from(read(disk, &Path::new(DIR).join(name))?);
        let Ok(header) = SlotHeader::decode(&bytes) else {
            continue;
        };
        let end = SLOT_HEADER + header.body_bytes as usize;
        if end > bytes.len() {
            continue;
        }
        if let Ok(body) = Body::decode(&header, &bytes.slice(SLOT_HEADER..end)) {
            locals.extend(
                body.partitions
                    .iter()
                    .map(|entry| (entry.local, entry.partition)),
            );
        }
    }
    for (lsn, (stamp, _)) in sectors {
        if stamp.index != 0 {
            continue;
        }
        let records = group(sectors, *lsn).unwrap_or_default();
        for (local, record) in &mut Records::new(&records) {
            if let Record::Bind {
                topic, partition, ..
            } = record
            {
                let partition = PartitionIndex(partition);
                locals.insert(local, TopicPartition { topic, partition });
            }
        }
    }
    Ok(locals)
}

/// Names the run around a byte of a segment, if it is one.
fn in_segment(
    disk: &Simulated,
    path: &Path,
    place: u64,
    truth: &Truth,
    hit: &mut Hit,
) -> io::Result<()> {
    let owner = truth.partitions.keys().find(|name| {
        let dir = Path::new(DIR)
            .join(name.topic.to_string())
            .join(name.partition.to_string());
        path.starts_with(dir)
    });
    let Some(owner) = owner else {
        return Ok(());
    };
    let bytes = read(disk, path)?;
    let mut at = BLOCK;
    while let Some(header) = bytes.get(at..at + RUN_HEADER) {
        let Ok(header) = RunHeader::decode(header) else {
            break;
        };
        let end = at + header.blocks as usize * BLOCK;
        if (at as u64..end as u64).contains(&place) {
            hit.records.push((*owner, header.base..header.end()));
        }
        at = end;
    }
    Ok(())
}
