//! A table's two snapshot files: one is written while the other stays good.
//!
//! Guarantees: [`Snapshots::load`] gives the newest whole snapshot its log can carry on from;
//! [`Snapshots::deletable_below`] is never beyond what two durable snapshots hold. Blocks: callers own their threads.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_model::{Offset, TopicPartition};
use floe_world::{Disk, File, OpenOptions};

use crate::snapshot::{self, HEADER, Unusable};
use crate::table::Table;

const NAMES: [&str; 2] = ["a.table", "b.table"];

/// Why a table's snapshots cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error("table snapshot {}: {source}", .path.display())]
    Failed {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A newer release has written it, so this one must not go on without it.
    #[error("table snapshot {}: {source}", .path.display())]
    NewerFormat {
        /// Which file.
        path: PathBuf,
        /// The format found.
        source: Unusable,
    },
    /// No snapshot reaches back to where the log begins: rows are missing.
    #[error(
        "table {partition} in {}: its log begins at offset {log_start} and no snapshot reaches there; restore the directory from a copy",
        .dir.display()
    )]
    Gap {
        /// Which table.
        partition: TopicPartition,
        /// Where its snapshots lie.
        dir: PathBuf,
        /// The first offset the log still has.
        log_start: Offset,
    },
}

/// The snapshots of one table.
pub struct Snapshots {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    partition: TopicPartition,
    /// Applied offset of each slot that is whole and durable.
    good: [Option<Offset>; 2],
}

impl Snapshots {
    /// Those in `dir`; nothing is touched yet.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf, partition: TopicPartition) -> Self {
        Self {
            disk,
            dir,
            partition,
            good: [None; 2],
        }
    }

    /// The newest table the log, which holds offsets from `log.start()` up to before `log.end()`, can carry on from.
    pub fn load(&mut self, log: &RangeInclusive<Offset>) -> Result<Table, Error> {
        let mut newest: Option<Table> = None;
        for slot in 0..NAMES.len() {
            self.good[slot] = None;
            let Some(table) = self.load_slot(slot)? else {
                continue;
            };
            if !log.contains(&table.applied()) {
                continue;
            }
            self.good[slot] = Some(table.applied());
            if newest
                .as_ref()
                .is_none_or(|newest| newest.applied() < table.applied())
            {
                newest = Some(table);
            }
        }
        match newest {
            Some(table) => Ok(table),
            None if *log.start() == Offset::ZERO => Ok(Table::new(Offset::ZERO)),
            None => Err(Error::Gap {
                partition: self.partition,
                dir: self.dir.clone(),
                log_start: *log.start(),
            }),
        }
    }

    /// Writes the table over the slot that is not good, or the older one.
    pub fn write(&mut self, table: &Table) -> Result<(), Error> {
        let slot = match self.good {
            [None, _] => 0,
            [_, None] => 1,
            [Some(a), Some(b)] => usize::from(b < a),
        };
        // Order: no longer good before the first byte is overwritten.
        self.good[slot] = None;
        let path = self.dir.join(NAMES[slot]);
        self.write_file(&path, &snapshot::encode(self.partition, table))
            .map_err(|source| Error::Failed { path, source })?;
        self.good[slot] = Some(table.applied());
        Ok(())
    }

    /// Records below this are in both snapshots: the log need not keep them. `None` while there are not two.
    pub fn deletable_below(&self) -> Option<Offset> {
        let [a, b] = self.good;
        a?.min(b?).into()
    }

    fn load_slot(&self, slot: usize) -> Result<Option<Table>, Error> {
        let path = self.dir.join(NAMES[slot]);
        match self.read_file(&path) {
            Ok(Ok(table)) => Ok(Some(table)),
            Ok(Err(source @ Unusable::NewerFormat(_))) => Err(Error::NewerFormat { path, source }),
            Ok(Err(Unusable::NotWhole | Unusable::OtherPartition)) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Failed { path, source }),
        }
    }

    fn read_file(&self, path: &Path) -> io::Result<Result<Table, Unusable>> {
        let options = OpenOptions {
            write: true,
            ..OpenOptions::default()
        };
        let file = self.disk.open(path, options)?;
        let mut header = [0; HEADER];
        if file.read_at(&mut header, 0)? < HEADER {
            return Ok(Err(Unusable::NotWhole));
        }
        let len = match snapshot::whole_len(&header, file.len()?) {
            Ok(len) => len,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let mut bytes = vec![0; len];
        if file.read_at(&mut bytes, 0)? < len {
            return Ok(Err(Unusable::NotWhole));
        }
        // Durable: an earlier process may have ended between its write and its flush; what reads well may not be on
        // the device yet, and the other slot will be overwritten on the strength of this one.
        file.sync_data()?;
        self.disk.sync_dir(&self.dir)?;
        Ok(snapshot::decode(self.partition, &bytes))
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open_for_writing(path)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        self.disk.sync_dir(&self.dir)
    }

    fn open_for_writing(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if !self.disk.exists(path) {
            self.disk.create_dir_all(&self.dir)?;
            // Every directory on the way may be new.
            for parent in self.dir.ancestors().skip(1) {
                if parent.as_os_str().is_empty() {
                    break;
                }
                self.disk.sync_dir(parent)?;
            }
        }
        let options = OpenOptions {
            write: true,
            create_new: !self.disk.exists(path),
            ..OpenOptions::default()
        };
        self.disk.open(path, options)
    }
}
