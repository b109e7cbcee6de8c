//! What was written, acknowledged and read, and what must hold of it.

use std::collections::{BTreeMap, HashMap};

use floe_model::{Boot, LeaderEpoch, Offset};

use crate::Member;
use crate::message::{Batch, Checksum};

/// What a run has broken, in words.
pub(super) type Broken = String;

#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    /// Who appended first in an epoch.
    writers: HashMap<LeaderEpoch, (Member, Boot)>,
    /// The batch that the leader put at an offset of its generation.
    written: HashMap<(LeaderEpoch, Offset), Batch>,
    /// Acknowledged batches by where they begin.
    pub(super) acked: BTreeMap<Offset, (LeaderEpoch, Batch)>,
    /// Batches that a reader could have seen, by where they begin.
    pub(super) seen: BTreeMap<Offset, Checksum>,
    /// Per generation, where what was seen of it ends.
    pub(super) seen_end: HashMap<LeaderEpoch, Offset>,
    /// How often what was compared.
    pub(super) compared: u64,
}

impl Truth {
    /// P3: one writer per epoch. P2: it gives each offset once.
    pub(super) fn written(
        &mut self,
        by: (Member, Boot),
        epoch: LeaderEpoch,
        base: Offset,
        batch: Batch,
    ) -> Result<(), Broken> {
        self.compared += 1;
        if *self.writers.entry(epoch).or_insert(by) != by {
            return Err(format!("epoch {epoch} has two writers"));
        }
        if self.written.insert((epoch, base), batch).is_some() {
            return Err(format!("{base} is given twice in epoch {epoch}"));
        }
        Ok(())
    }

    /// A follower stores what the leader wrote there.
    pub(super) fn stored(
        &mut self,
        epoch: LeaderEpoch,
        base: Offset,
        batch: Batch,
        follows: Offset,
    ) -> Result<(), Broken> {
        self.compared += 1;
        if base != follows {
            return Err(format!("a gap from {follows} to {base} in epoch {epoch}"));
        }
        if self.written.get(&(epoch, base)) != Some(&batch) {
            return Err(format!("other bytes at {base} of epoch {epoch}"));
        }
        Ok(())
    }

    /// P1 and P2: what is acknowledged at an offset stays what is there.
    pub(super) fn acked(
        &mut self,
        epoch: LeaderEpoch,
        base: Offset,
        batch: Batch,
    ) -> Result<(), Broken> {
        self.compared += 1;
        if *self.acked.entry(base).or_insert((epoch, batch)) != (epoch, batch) {
            return Err(format!("{base} is acknowledged twice"));
        }
        self.seen(epoch, base, batch)
    }

    /// P2: what could be read at an offset once is what can be read there ever after.
    pub(super) fn seen(
        &mut self,
        epoch: LeaderEpoch,
        base: Offset,
        batch: Batch,
    ) -> Result<(), Broken> {
        self.compared += 1;
        let end = self.seen_end.entry(epoch).or_insert(batch.end);
        *end = batch.end.max(*end);
        if *self.seen.entry(base).or_insert(batch.checksum) != batch.checksum {
            return Err(format!("a reader has seen something else at {base}"));
        }
        Ok(())
    }

    pub(super) fn acked_end(&self) -> Offset {
        let last = self.acked.last_key_value();
        last.map_or(Offset(0), |(_, (_, batch))| batch.end)
    }

    /// Nothing acknowledged or read in `epoch` lies at or above `end`.
    pub(super) fn sealed(&mut self, epoch: LeaderEpoch, end: Offset) -> Result<(), Broken> {
        self.compared += 1;
        match self.seen_end.get(&epoch) {
            Some(seen) if *seen > end => Err(format!(
                "epoch {epoch} is sealed at {end}, seen up to {seen}"
            )),
            _ => Ok(()),
        }
    }
}
