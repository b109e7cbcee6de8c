//! From a directory to a log that may answer: LOG.md section 4.
//!
//! Order: journal and slots are flushed (rule ReliedIsDurable); replay; after damage a checkpoint in both slots (rules
//! DamageClosesWithCheckpoint, BothSlotsAfterDamage); bad sectors ahead are wiped (WipeBadAhead); the boot group is
//! flushed (BootGroupFirst). Only then may the node speak. A crash before that repeats all with the same result.

pub(crate) mod format;
mod load;
mod replay;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use floe_model::{Boot, Incarnation, NodeId};
use floe_world::{Disk, OpenOptions};
use parking_lot::{Mutex, RwLock};

use crate::engine::{Engine, Inbox, Queue, Signal};
use crate::format::checkpoint::{Body, PartitionEntry};
use crate::format::identity::Identity;
use crate::format::record::Record;
use crate::format::sector::{GROUP_SECTORS_MAX, GroupWriter, SECTOR, Seed};
use crate::journal::Journal;
use crate::removal::Removal;
use crate::ring::Ring;
use crate::slots::{Slot, Slots};
use crate::streams::Streams;
use crate::{
    Config, Failure, Generation, LostRange, OpenError, Recovered, RecoveredPartition, Setup,
    Verdict,
};
use replay::{Groups, Replay};

/// Opens or formats a directory and recovers what is in it.
pub(crate) fn open(setup: Setup) -> Result<(Arc<Engine>, Recovered), OpenError> {
    let disk = Arc::clone(&setup.disk);
    let dir = setup.dir.clone();
    let lock = format::lock(&*disk, &dir)?;
    let found = format::identity(&*disk, &dir)?;
    let is_new = found.is_none();
    let identity = match found {
        Some(identity) => identity,
        None => format::format(&*disk, &dir, &setup.config, &*setup.random)?,
    };
    check_identity(&dir, &setup.config, &identity)?;
    format::finish(&*disk, &dir)?;
    let ring = open_ring(&*disk, &dir, &identity)?;
    let mut slots = Slots::open(&*disk, &dir)?;
    let read = [slots.read(0)?, slots.read(1)?];
    for (slot, read) in read.iter().enumerate() {
        if let Slot::Newer(found) = read {
            return Err(OpenError::NewerFormat {
                path: crate::slots::slot_path(&dir, slot),
                found: *found,
                known: crate::format::VERSION,
            });
        }
    }
    let mut groups = Groups::new(&ring);
    let (mut replay, x) = start(&mut slots, read, &mut groups)?;
    match x {
        Some(x) => replay.run(&mut groups, x)?,
        None => slots.x = [None, None],
    }
    let mut boot = replay.boot;
    if !replay.findings.is_empty() {
        // Rule BootAboveAll.
        boot = boot.max(groups.highest()?.1);
    }
    ring.head.store(replay.end, Ordering::Release);
    ring.low.store(
        x.map_or(replay.end, |_| lowest(&slots, replay.end)),
        Ordering::Release,
    );
    ring.newest
        .store(x.unwrap_or(replay.end), Ordering::Release);
    drop(groups);
    let engine = engine(setup, identity, boot + 1, ring, slots, &replay, lock)?;
    let mut groups = Groups::new(&engine.ring);
    let missing = load::load(&engine, &mut replay, &mut groups)?;
    replay.findings.extend(missing);
    finish(&engine, &replay, &mut groups)?;
    drop(groups);
    let recovered = recovered(&engine, &replay, is_new);
    report(&recovered);
    Ok((Arc::new(engine), recovered))
}

fn check_identity(dir: &Path, config: &Config, identity: &Identity) -> Result<(), OpenError> {
    let is_ours = config
        .cluster
        .is_none_or(|cluster| cluster == identity.cluster || identity.cluster == [0; 16]);
    if is_ours && config.node.0 == identity.node {
        return Ok(());
    }
    let name = |cluster: [u8; 16], node: u32| {
        format!("cluster {}, node {node}", floe_model::TopicId(cluster))
    };
    Err(OpenError::OtherIdentity {
        dir: dir.to_owned(),
        found: name(identity.cluster, identity.node),
        expected: name(config.cluster.unwrap_or(identity.cluster), config.node.0),
    })
}

fn open_ring(disk: &dyn Disk, dir: &Path, identity: &Identity) -> Result<Ring, OpenError> {
    let path = format::journal_path(dir);
    let expected = u64::from(identity.ring_sectors) * SECTOR as u64;
    let cut = |path, found| OpenError::JournalCut {
        path,
        found,
        expected,
    };
    if !disk.exists(&path) {
        return Err(cut(path, 0));
    }
    let options = OpenOptions {
        write: true,
        create_new: false,
        direct: true,
        dsync: true,
    };
    let file = disk
        .open(&path, options)
        .map_err(Engine::failed("open", &path))?;
    // It was made whole before the identity was.
    let found = file.len().map_err(Engine::failed("measure", &path))?;
    if found < expected {
        return Err(cut(path, found));
    }
    // Rule ReliedIsDurable: the last group can be read though its flush failed; from here on what is read stays.
    file.sync_data().map_err(Engine::failed("flush", &path))?;
    Ok(Ring {
        file,
        path,
        sectors: u64::from(identity.ring_sectors),
        seed: Seed::new(identity.journal_id),
        head: AtomicU64::new(0),
        low: AtomicU64::new(0),
        newest: AtomicU64::new(0),
    })
}

/// Step 1: from the newest good slot; without one, an empty log above everything in the ring.
fn start(
    slots: &mut Slots,
    read: [Slot; 2],
    groups: &mut Groups<'_>,
) -> Result<(Replay, Option<u64>), Failure> {
    let mut good = Vec::new();
    for (slot, read) in read.into_iter().enumerate() {
        if let Slot::Good(header, body) = read {
            slots.x[slot] = Some(header.x);
            good.push((slot, header, body));
        }
    }
    good.sort_by_key(|(_, header, _)| header.seq);
    let Some((slot, header, body)) = good.pop() else {
        let (lsn, boot) = groups.highest()?;
        let end = lsn + GROUP_SECTORS_MAX as u64;
        let finding = "both checkpoints are unreadable: nothing on this disk can be trusted";
        let replay = Replay::new(BTreeMap::new(), Streams::default(), end, boot);
        return Ok((
            Replay {
                findings: vec![finding.to_owned()],
                ..replay
            },
            None,
        ));
    };
    let older = good.pop();
    slots.is_behind = older.is_some_and(|(_, _, before)| lacks_snapshot(&before, &body));
    slots.newest = slot;
    slots.seq = header.seq;
    slots.scrub = header.scrub;
    slots.is_old = header.version < crate::format::VERSION;
    let entries = body
        .partitions
        .into_iter()
        .map(|entry| (entry.local, entry));
    let replay = Replay::new(
        entries.collect(),
        Streams::new(body.streams),
        header.x,
        header.boot,
    );
    Ok((replay, Some(header.x)))
}

/// Whether a stream's snapshot may have been put in place by the newer checkpoint alone, which a power cut leaves behind: the
/// journal after the older one may not lead to it, so that one is written anew.
fn lacks_snapshot(older: &Body, newer: &Body) -> bool {
    newer.streams.iter().any(|stream| {
        let mut before = older.streams.iter();
        let before = before.find(|held| held.group == stream.group);
        let mut snapshot = stream.snapshot.iter();
        snapshot.any(|snapshot| !before.is_some_and(|before| before.leads_to(snapshot)))
    })
}

fn lowest(slots: &Slots, end: u64) -> u64 {
    slots.x.iter().flatten().copied().min().unwrap_or(end)
}

fn engine(
    setup: Setup,
    identity: Identity,
    boot: u32,
    ring: Ring,
    slots: Slots,
    replay: &Replay,
    lock: Box<dyn Send + Sync>,
) -> Result<Engine, OpenError> {
    let Setup {
        disk,
        dir,
        clock,
        random,
        tail,
        reads,
        config,
    } = setup;
    let group_bytes = floe_world::memory::class(config.group_bytes_max);
    let staging = floe_world::Pool::new(group_bytes)
        .try_get(group_bytes)
        .ok_or_else(|| OpenError::Config("no memory for the journal".to_owned()))?;
    let smallest = floe_world::memory::class(crate::run::Run::bytes_for(config.batch_bytes_max));
    if config.run_bytes_max < smallest || tail.limit() < 2 * smallest {
        return Err(OpenError::Config(format!(
            "runs of {} bytes in {} bytes of memory cannot hold batches of {}; allow {smallest} and twice that",
            config.run_bytes_max,
            tail.limit(),
            config.batch_bytes_max
        )));
    }
    let next_local = replay.partitions.keys().next_back();
    let next_local = next_local.map_or(0, |local| local + 1);
    Ok(Engine {
        disk,
        dir,
        clock,
        random,
        tail,
        reads,
        config,
        identity,
        boot,
        ring,
        partitions: RwLock::new(HashMap::new()),
        next_local: AtomicU32::new(next_local),
        inbox: Inbox::default(),
        journal: Mutex::new(Journal::new(staging, replay.previous)),
        streams: Mutex::new(replay.streams.clone()),
        installs: Mutex::default(),
        jobs: Queue::default(),
        removals: Queue::default(),
        cold: Queue::default(),
        chunks: Mutex::default(),
        metrics: crate::metrics::Metrics::default(),
        slots: Mutex::new(slots),
        checkpoint_wanted: Signal::default(),
        flushing_since: AtomicU64::new(0),
        fill_claim: AtomicU64::new(u64::MAX),
        fill: Mutex::default(),
        evictable: Mutex::new(VecDeque::new()),
        handles: Mutex::default(),
        room: crate::admission::Bell::default(),
        held: crate::run::Held::default(),
        is_disk_full: AtomicBool::new(false),
        has_kept: AtomicBool::new(false),
        last_append: AtomicU64::new(0),
        events: OnceLock::new(),
        poison: OnceLock::new(),
        is_closing: AtomicBool::new(false),
        threads: Mutex::new(Vec::new()),
        lock: Mutex::new(Some(lock)),
    })
}

/// Steps 7 to 9.
fn finish(engine: &Engine, replay: &Replay, groups: &mut Groups<'_>) -> Result<(), Failure> {
    let is_damaged = !replay.findings.is_empty();
    if is_damaged {
        // The lost sector may have held any fence or truncation.
        for partition in engine.all_partitions() {
            partition.state.lock().incarnation = Incarnation(engine.random.next_u64().max(1));
        }
        engine.slots.lock().scrub = true;
        close(engine)?;
        close(engine)?;
    }
    // A release that does not know what may follow in the journal is to refuse the directory.
    if engine.slots.lock().is_old {
        close(engine)?;
    }
    while engine.slots.lock().x.iter().any(Option::is_none) {
        close(engine)?;
    }
    // The older one serves only if the newer is lost: a full disk keeps no node from starting for it.
    if engine.slots.lock().is_behind {
        crate::checkpoint::step(engine, true)?;
    }
    while replay.end + 1 > engine.ring.end() {
        close(engine)?;
    }
    let ahead = if engine.slots.lock().scrub {
        engine.ring.sectors
    } else {
        engine.ring.sectors.min(GROUP_SECTORS_MAX as u64)
    };
    let to = (replay.end + ahead).min(engine.ring.end());
    for lsn in groups.bad(replay.end, to)? {
        engine.ring.write(lsn, &zeros()[..SECTOR])?;
    }
    boot_group(engine, replay)?;
    engine.slots.lock().scrub = false;
    remove_forgotten(engine);
    Ok(())
}

/// A checkpoint at E.
fn close(engine: &Engine) -> Result<(), Failure> {
    if crate::checkpoint::step(engine, true)? {
        return Ok(());
    }
    Err(Failure::refused(
        "write",
        "a checkpoint",
        "no room on the disk",
    ))
}

fn zeros() -> floe_world::Buffer {
    let mut zeros = sector();
    zeros.fill(0);
    zeros
}

fn sector() -> floe_world::Buffer {
    floe_world::Pool::new(SECTOR)
        .try_get(SECTOR)
        .expect("a pool made for one piece has it")
}

fn boot_group(engine: &Engine, replay: &Replay) -> Result<(), Failure> {
    let record = Record::Boot {
        release: u32::from(crate::format::VERSION),
        sector: SECTOR as u32,
        wall: engine.clock.now().0,
        ring: engine.ring.sectors,
    };
    let lsn = replay.end;
    let mut staging = sector();
    let mut group = GroupWriter::new(&mut staging);
    record.encode(0, |part| group.put(part));
    group.finish(lsn, engine.boot, lsn, replay.previous, engine.ring.seed);
    engine.ring.write(lsn, &staging[..SECTOR])?;
    engine.ring.head.store(lsn + 1, Ordering::Release);
    engine.journal.lock().start_after(lsn);
    Ok(())
}

/// A crash may have come between the record and the files.
fn remove_forgotten(engine: &Engine) {
    for partition in engine.all_partitions() {
        let has_left_over = {
            let state = partition.state.lock();
            state.is_forgotten || state.left_over > 0
        };
        if has_left_over {
            engine.removals.push(Removal::Forgotten(partition));
        }
    }
}

fn recovered(engine: &Engine, replay: &Replay, is_new: bool) -> Recovered {
    let mut partitions = engine.all_partitions();
    partitions.sort_by_key(|partition| partition.partition);
    let partitions = partitions.iter().map(|partition| {
        let generations: Vec<Generation> = partition.generations();
        let state = partition.state.lock();
        let lost = state.generations.iter().flat_map(|generation| {
            let epoch = generation.epoch;
            generation.lost.iter().map(move |(from, to)| LostRange {
                epoch,
                offsets: *from..*to,
            })
        });
        RecoveredPartition {
            partition: partition.partition,
            incarnation: state.incarnation,
            fence: state.fence,
            generations,
            lost: lost.collect(),
        }
    });
    let verdict = match (replay.findings.is_empty(), replay.is_torn) {
        (false, _) => Verdict::Damage {
            findings: replay.findings.clone(),
        },
        (true, true) => Verdict::Torn,
        (true, false) => Verdict::Clean,
    };
    Recovered {
        boot: Boot(engine.boot),
        verdict,
        cluster: engine.identity.cluster,
        is_founder: engine.identity.is_founder,
        node: NodeId(engine.identity.node),
        is_new,
        partitions: partitions.collect(),
        streams: engine.streams.lock().all(),
    }
}

fn report(recovered: &Recovered) {
    if let Verdict::Damage { findings } = &recovered.verdict {
        for finding in findings.iter().take(100) {
            tracing::error!(finding, "the disk is damaged");
        }
    }
}

impl Replay {
    fn new(
        partitions: BTreeMap<u32, PartitionEntry>,
        streams: Streams,
        end: u64,
        boot: u32,
    ) -> Self {
        Self {
            partitions,
            streams,
            groups: Vec::new(),
            previous: end.saturating_sub(1),
            end,
            boot,
            is_torn: false,
            findings: Vec::new(),
        }
    }
}
