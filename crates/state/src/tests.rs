//! P6: whatever happens between two steps, a table is the fold of its log up to its applied offset.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Snapshots, Table};
use floe_model::{Offset, PartitionIndex, Timestamp, TopicId, TopicPartition};
use floe_wire::batch::{Builder, View};
use floe_wire::codec::{Codec, Scratch};
use floe_world::disk::Simulated;
use floe_world::random::{Random, Seeded};

const PARTITION: TopicPartition = TopicPartition {
    topic: TopicId([1; 16]),
    partition: PartitionIndex(0),
};

type Change = (Vec<u8>, Option<Vec<u8>>);

/// A log of batches that never loses what it took; its prefix may be deleted.
#[derive(Default)]
struct Log {
    batches: Vec<(Offset, Vec<u8>)>,
    changes: Vec<Change>,
    start: Offset,
}

impl Log {
    fn end(&self) -> Offset {
        Offset(self.changes.len() as u64)
    }

    fn append(&mut self, changes: Vec<Change>) {
        let codec = [Codec::None, Codec::Zstd][changes.len() % 2];
        let mut batch = Builder::new(codec);
        for (key, value) in &changes {
            batch
                .record(Timestamp(1), Some(key), value.as_deref(), &[])
                .unwrap();
        }
        self.batches.push((self.end(), batch.finish().unwrap()));
        self.changes.extend(changes);
    }

    /// As a reader finds it: whole batches from the one that holds `from`.
    fn replay(&self, table: &mut Table, batches_max: usize) {
        assert!(table.applied() >= self.start, "the log no longer has it");
        let mut scratch = Scratch::default();
        let from = self
            .batches
            .partition_point(|(base, _)| *base <= table.applied())
            .saturating_sub(1);
        for (base, bytes) in self.batches[from..].iter().take(batches_max) {
            let view = View::first(bytes).unwrap();
            table.apply(&view, *base, &mut scratch).unwrap();
        }
    }

    fn fold(&self, up_to: Offset) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut rows = BTreeMap::new();
        for (key, value) in &self.changes[..up_to.0 as usize] {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }
}

fn assert_is_fold(table: &Table, log: &Log) {
    let rows: BTreeMap<_, _> = table
        .rows()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect();
    assert_eq!(rows, log.fold(table.applied()));
    let bytes: usize = rows.iter().map(|(k, v)| k.len() + v.len()).sum();
    assert_eq!((table.len(), table.bytes()), (rows.len(), bytes));
}

struct Run {
    random: Seeded,
    disk: Simulated,
    log: Log,
    table: Table,
    snapshots: Snapshots,
}

impl Run {
    fn new(seed: u64) -> Self {
        let disk = Simulated::new(seed);
        Self {
            random: Seeded::new(seed),
            snapshots: open(&disk),
            disk,
            log: Log::default(),
            table: Table::new(Offset::ZERO),
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn append(&mut self) {
        let changes = (0..=self.below(4))
            .map(|_| {
                let key = vec![b'k', self.below(6) as u8];
                let value = (self.below(3) > 0)
                    .then(|| vec![self.below(256) as u8; self.below(40) as usize]);
                (key, value)
            })
            .collect();
        self.log.append(changes);
    }

    fn snapshot(&mut self) {
        if self.below(3) == 0 {
            let fault = self.disk.operations() + 1 + self.below(6);
            if self.below(2) == 0 {
                self.disk.cut_power_at(fault);
            } else {
                self.disk.tear_at(fault, self.below(200) as usize);
            }
        }
        let written = self.snapshots.write(&self.table);
        if self.disk.is_cut() {
            // If the fault came with the last step, the caller may have been told that it is written.
            self.restart(true);
            return;
        }
        written.unwrap();
        self.disk.clear_faults();
        if self.below(2) == 0 {
            self.delete_prefix();
        }
    }

    fn delete_prefix(&mut self) {
        if let Some(below) = self.snapshots.deletable_below() {
            self.log.start = self.log.start.max(below);
        }
    }

    fn restart(&mut self, is_power_cut: bool) {
        self.disk = if is_power_cut {
            self.disk.after_power_cut()
        } else {
            self.disk.after_crash()
        };
        self.snapshots = open(&self.disk);
        self.table = self
            .snapshots
            .load(&(self.log.start..=self.log.end()))
            .unwrap();
        assert_is_fold(&self.table, &self.log);
        self.log.replay(&mut self.table, usize::MAX);
        assert_eq!(self.table.applied(), self.log.end());
    }
}

fn open(disk: &Simulated) -> Snapshots {
    let dir = PathBuf::from("/data/tables/positions");
    Snapshots::new(Arc::new(disk.clone()), dir, PARTITION)
}

#[test]
fn table_equals_the_fold_of_its_log_through_any_crash() {
    for seed in 0..1_500 {
        let mut run = Run::new(seed);
        for _ in 0..60 {
            match run.below(12) {
                0..=4 => run.append(),
                5..=7 => {
                    let some = 1 + run.below(3) as usize;
                    run.log.replay(&mut run.table, some);
                }
                8..=9 => run.snapshot(),
                10 => run.restart(false),
                _ => run.restart(true),
            }
            assert_is_fold(&run.table, &run.log);
        }
    }
}

#[test]
fn damage_of_one_snapshot_falls_back_to_the_other() {
    let mut run = Run::new(1);
    for _ in 0..2 {
        run.append();
        run.log.replay(&mut run.table, usize::MAX);
        run.snapshots.write(&run.table).unwrap();
    }
    run.delete_prefix();
    assert!(run.log.start > Offset::ZERO);
    let path = PathBuf::from("/data/tables/positions/b.table");
    run.disk.flip(&path, 44, 1).unwrap();
    run.restart(false);
    assert_eq!(run.snapshots.deletable_below(), None);
}

#[test]
fn a_log_that_begins_after_every_snapshot_is_a_gap_by_name() {
    let mut run = Run::new(1);
    for _ in 0..2 {
        run.append();
        run.log.replay(&mut run.table, usize::MAX);
        run.snapshots.write(&run.table).unwrap();
    }
    let end = run.log.end();
    let error = run
        .snapshots
        .load(&(end.plus(1)..=end.plus(9)))
        .unwrap_err();
    assert!(error.to_string().contains("no snapshot reaches"), "{error}");
}

#[test]
fn a_snapshot_ahead_of_the_log_is_not_used() {
    let mut run = Run::new(1);
    run.append();
    run.log.replay(&mut run.table, usize::MAX);
    run.snapshots.write(&run.table).unwrap();
    let table = run.snapshots.load(&(Offset::ZERO..=Offset::ZERO)).unwrap();
    assert_eq!(table, Table::new(Offset::ZERO));
}
