//! A whole data directory with a foreign journal: what recovery makes of it.
//!
//! Checksums of batches, groups and sectors are made right, then bytes are flipped as the input says, so that both
//! lies that are whole and damage reach the code.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use floe_log::format::batch;
use floe_log::format::checkpoint::{SLOT_HEADER, SlotHeader};
use floe_log::format::identity::Identity;
use floe_log::format::record::{Record, Records};
use floe_log::format::sector::{GroupWriter, SECTOR, Seed, sectors_for};
use floe_log::format::{BLOCK, crc};
use floe_log::verify::{LogStarts, verify};
use floe_log::{Config, Generation, Log, Recovered, Setup, Stream, Verdict};
use floe_model::{LeaderEpoch, NodeId, Timestamp, TopicPartition};
use floe_wire::batch::crc32c;
use floe_world::clock::Manual;
use floe_world::disk::Simulated;
use floe_world::{Disk as _, OpenOptions, Pool, random};

const DIR: &str = "/data";
const RING: usize = 64;
const IDENTITY: Identity = Identity {
    is_founder: false,
    cluster: [7; 16],
    node: 1,
    ring_sectors: RING as u32,
    journal_id: 99,
};

/// The journal is told by `{u8 flags | u16 bytes | records}*`, then 255, then `{u8 sector | u16 place | u8 mask}*` for
/// bytes that flip. Flags: how many sectors are left out before the group (0 to 3), 4: by a later boot. As in the
/// journal, all before a group was flushed when it was written. Recovery refuses it or comes to an end that a second
/// recovery comes to as well.
pub(crate) fn directory(bytes: &[u8]) {
    let disk = disk(&ring(bytes));
    let verified = verify(&disk, Path::new(DIR), |_| {
        Ok::<_, Infallible>(LogStarts::new())
    });
    let Ok((first, disk)) = open(&disk, 1) else {
        return;
    };
    if let Ok(report) = verified
        && report.findings.is_empty()
    {
        let damage = matches!(first.verdict, Verdict::Damage { .. });
        assert!(!damage, "the offline check found none: {:?}", first.verdict);
        let checked: Vec<_> = report
            .partitions
            .iter()
            .map(|p| (p.partition, p.fence, ends(&p.generations)))
            .collect();
        let recovered: Vec<_> = first
            .partitions
            .iter()
            .filter(|p| checked.iter().any(|(name, ..)| *name == p.partition))
            .map(|p| (p.partition, p.fence, ends_of(&p.generations)))
            .collect();
        assert_eq!(recovered, checked, "two readings of one journal");
    }
    let (second, _) = open(&disk, 2).expect("what was recovered can be recovered again");
    assert_eq!(second.verdict, Verdict::Clean, "damage is closed once");
    assert!(
        second.boot > first.boot,
        "each life has a number of its own"
    );
    assert_eq!(held(&second), held(&first), "recovery has one result");
}

fn ends(generations: &[floe_log::verify::GenerationReport]) -> Vec<(LeaderEpoch, u64)> {
    generations.iter().map(|g| (g.epoch, g.end.0)).collect()
}

fn ends_of(generations: &[Generation]) -> Vec<(LeaderEpoch, u64)> {
    generations.iter().map(|g| (g.epoch, g.end.0)).collect()
}

type Held<'a> = (
    Vec<(TopicPartition, LeaderEpoch, &'a [Generation])>,
    &'a [Stream],
);

fn held(recovered: &Recovered) -> Held<'_> {
    let partitions = recovered.partitions.iter();
    let partitions = partitions.map(|p| (p.partition, p.fence, &p.generations[..]));
    (partitions.collect(), &recovered.streams)
}

/// Opens the log, and gives the disk as the next process finds it.
fn open(disk: &Simulated, seed: u64) -> Result<(Recovered, Simulated), floe_log::OpenError> {
    let config = Config {
        node: NodeId(IDENTITY.node),
        group_bytes_max: 8 * SECTOR,
        batch_bytes_max: 8 << 10,
        run_bytes_max: 32 << 10,
        large_append_bytes: 4 << 10,
        segment_bytes: 1 << 20,
        ..Config::default()
    };
    let setup = Setup {
        disk: Arc::new(disk.clone()),
        dir: DIR.into(),
        clock: Arc::new(Manual::at(Timestamp(1_000_000))),
        random: Arc::new(random::Seeded::new(seed)),
        tail: Pool::new(4 << 20),
        reads: Pool::new(1 << 20),
        config,
    };
    let (log, recovered) = Log::open(setup)?;
    drop(log);
    Ok((recovered, disk.after_crash()))
}

fn disk(ring: &[u8]) -> Simulated {
    let disk = Simulated::new(1);
    let dir = Path::new(DIR);
    disk.create_dir_all(dir).expect("a fresh disk takes it");
    let mut identity = vec![0; 2 * BLOCK];
    IDENTITY.encode(&mut identity);
    IDENTITY.encode(&mut identity[BLOCK..]);
    put(&disk, "node.id", &identity);
    put(&disk, "journal", ring);
    for slot in 0..2 {
        let header = SlotHeader {
            seq: slot + 1,
            body_crc: crc(&[]),
            ..SlotHeader::default()
        };
        let mut bytes = vec![0; SLOT_HEADER];
        header.encode(&mut bytes);
        put(&disk, &format!("checkpoint.{slot}"), &bytes);
    }
    disk
}

fn put(disk: &Simulated, name: &str, bytes: &[u8]) {
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    let file = disk
        .open(&Path::new(DIR).join(name), options)
        .expect("a fresh disk takes it");
    file.write_at(bytes, 0).expect("a fresh disk takes it");
}

fn ring(mut bytes: &[u8]) -> Vec<u8> {
    let seed = Seed::new(IDENTITY.journal_id);
    let mut ring = vec![0; RING * SECTOR];
    let (mut at, mut boot, mut previous) = (0, 1, 0);
    while let Some((&[flags, low, high], rest)) = bytes.split_first_chunk::<3>() {
        if flags == 255 {
            bytes = &bytes[1..];
            break;
        }
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (records, rest) = rest.split_at(length);
        bytes = rest;
        at += usize::from(flags & 3);
        boot += u32::from(flags >> 2 & 1);
        let records = repaired(records);
        let sectors = sectors_for(records.len());
        let Some(place) = ring.get_mut(at * SECTOR..(at + sectors) * SECTOR) else {
            break;
        };
        let mut group = GroupWriter::new(place);
        group.put(&records);
        let lsn = at as u64;
        group.finish(lsn, boot, lsn, previous, seed);
        previous = lsn;
        at += sectors;
    }
    for flip in bytes.chunks_exact(4) {
        let sector = usize::from(flip[0]) % RING;
        let place = usize::from(u16::from_le_bytes([flip[1], flip[2]])) % SECTOR;
        ring[sector * SECTOR + place] ^= flip[3];
    }
    ring
}

/// The same records with batches that are whole; what is behind them stays as it is.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut taken = 0;
    for (local, record) in Records::new(bytes) {
        taken += record.encoded_len();
        let mut whole = Vec::new();
        let record = match record {
            Record::Batch(batch) if batch.len() >= batch::HEADER_BYTES => {
                whole.extend_from_slice(batch);
                let length = (batch.len() - floe_wire::batch::LENGTH_END) as u32;
                whole[8..12].copy_from_slice(&length.to_be_bytes());
                whole[16] = floe_wire::batch::MAGIC as u8;
                let crc = crc32c(&whole[batch::HEAD_BYTES..]);
                whole[17..21].copy_from_slice(&crc.to_be_bytes());
                Record::Batch(&whole)
            }
            other => other,
        };
        record.encode(local, |part| all.extend_from_slice(part));
    }
    all.extend_from_slice(bytes.get(taken..).unwrap_or_default());
    all
}
