//! What was asked of the node, what it has acknowledged, and so what may and what must be there after a fall.
//!
//! Every change in flight leaves room for both outcomes; everything acknowledged leaves room for one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::log_starts;
use bytes::Bytes;
use floe_log::{CatalogEntry, Snapshot, Vote};
use floe_model::{Incarnation, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};

/// All partitions and catalog streams of the node.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    pub(crate) partitions: BTreeMap<TopicPartition, Partition>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    /// What was asked and answered last.
    pub(crate) notes: VecDeque<String>,
    trace: DefaultHasher,
}

/// Notes kept.
const NOTES: usize = 3000;

/// One partition.
#[derive(Clone, Default)]
pub(crate) struct Partition {
    /// The node has said it is bound, so it knows at least its fence for ever.
    pub(crate) is_kept: bool,
    /// Bound and not forgotten.
    pub(crate) is_usable: bool,
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) fence_kept: LeaderEpoch,
    pub(crate) fence_asked: LeaderEpoch,
    pub(crate) generations: Vec<Generation>,
    /// Once there, wholly below the log start, and gone: an older checkpoint may still know them.
    pub(crate) deleted: BTreeSet<LeaderEpoch>,
    pub(crate) is_forgetting: bool,
    /// In the catalog: below this nothing need be there any more.
    pub(crate) log_start: u64,
}

/// One generation.
#[derive(Clone)]
pub(crate) struct Generation {
    pub(crate) epoch: LeaderEpoch,
    pub(crate) start: u64,
    pub(crate) descriptor: Bytes,
    pub(crate) is_kept: bool,
    pub(crate) batches: Vec<Batch>,
    /// Acknowledged below this.
    pub(crate) durable: u64,
    /// Truncations asked and not acknowledged, in order: any of them may have reached the disk. More than one when the log
    /// failed at the first and was asked again.
    pub(crate) cuts: Vec<u64>,
}

/// One batch as it lies in the log.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) bytes: Bytes,
}

/// One catalog stream: entries in the order asked, of which a prefix is acknowledged.
#[derive(Clone, Default)]
pub(crate) struct Stream {
    pub(crate) entries: Vec<CatalogEntry>,
    pub(crate) entries_kept: usize,
    pub(crate) votes: Vec<Vote>,
    pub(crate) votes_kept: usize,
    pub(crate) snapshots: Vec<Snapshot>,
}

/// The partition with a small number; every fourth belongs to the same topic.
pub(crate) fn partition(number: u64) -> TopicPartition {
    let mut topic = [0x11; 16];
    topic[0] = (number / 4) as u8;
    TopicPartition {
        topic: TopicId(topic),
        partition: PartitionIndex((number % 4) as u32),
    }
}

impl Partition {
    /// End of what was accepted.
    pub(crate) fn end(&self) -> u64 {
        self.generations.last().map_or(0, Generation::end)
    }

    /// Everything asked so far may have raised the fence so high.
    pub(crate) fn epoch_asked(&self) -> LeaderEpoch {
        let last = self.generations.last().map_or(LeaderEpoch(0), |g| g.epoch);
        self.fence_asked.max(last)
    }

    pub(crate) fn generation(&mut self, epoch: LeaderEpoch) -> Option<&mut Generation> {
        self.generations.iter_mut().find(|g| g.epoch == epoch)
    }
}

impl Generation {
    pub(crate) fn end(&self) -> u64 {
        self.batches.last().map_or(self.start, |batch| batch.end)
    }

    /// A truncation is asked; those before it may still be what reached the disk.
    pub(crate) fn ask_cut(&mut self, end: u64) {
        self.cuts.push(end);
    }

    /// Drops what lies at or above `end`.
    pub(crate) fn cut_to(&mut self, end: u64) {
        self.batches.retain(|batch| batch.end <= end);
        self.durable = self.durable.min(end);
    }

    /// Whether the node may come up with this end.
    pub(crate) fn may_end_at(&self, end: u64) -> Result<(), String> {
        let is_boundary = end == self.start || self.batches.iter().any(|batch| batch.end == end);
        if !is_boundary {
            return Err(format!(
                "ends at {end}, inside a batch or above {}",
                self.end()
            ));
        }
        if self.cuts.contains(&end) {
            return Ok(());
        }
        if end < self.durable {
            return Err(format!(
                "ends at {end}, acknowledged up to {}",
                self.durable
            ));
        }
        Ok(())
    }
}

impl Stream {
    /// Index of the last entry, all asked ones taken.
    pub(crate) fn last(&self) -> u64 {
        fold(&self.entries)
            .last_key_value()
            .map_or(0, |(index, _)| *index)
    }

    /// Index of the last entry, acknowledged ones taken.
    pub(crate) fn last_kept(&self) -> u64 {
        let kept = fold(&self.entries[..self.entries_kept]);
        kept.last_key_value().map_or(0, |(index, _)| *index)
    }

    /// Whether the node may come up with this stream.
    pub(crate) fn may_be(&self, found: &floe_log::Stream) -> Result<(), String> {
        let below = match &found.snapshot {
            None => 0,
            Some(snapshot) if self.snapshots.contains(snapshot) => snapshot.index,
            Some(snapshot) => {
                return Err(format!("a snapshot at {} nobody gave", snapshot.index));
            }
        };
        let entries: BTreeMap<_, _> = found.entries.iter().map(|e| (e.index, e)).collect();
        let fits = (self.entries_kept..=self.entries.len()).any(|asked| {
            let mut expected = fold(&self.entries[..asked]);
            let last = expected.last_key_value().map_or(0, |(index, _)| *index);
            expected.retain(|index, _| *index > below);
            last >= below && expected == entries
        });
        if !fits {
            let indexes: Vec<_> = found.entries.iter().map(|e| (e.index, e.term)).collect();
            let asked: Vec<_> = self.entries.iter().map(|e| (e.index, e.term)).collect();
            let kept = self.entries_kept;
            return Err(format!(
                "entries {indexes:?} above {below} of asked {asked:?}, {kept} acknowledged"
            ));
        }
        let votes = (self.votes_kept..=self.votes.len()).map(|asked| highest(&self.votes[..asked]));
        if !votes.into_iter().any(|vote| vote == found.vote) {
            let asked = (&self.votes, self.votes_kept);
            return Err(format!("vote {:?} of asked {asked:?}", found.vote));
        }
        Ok(())
    }

    /// What the node came up with is what holds from now on.
    pub(crate) fn adopt(&mut self, found: &floe_log::Stream) {
        let below = found.snapshot.as_ref().map_or(0, |snapshot| snapshot.index);
        let mut entries = fold(&self.entries);
        entries.retain(|index, _| *index <= below);
        let mut entries: Vec<_> = entries.into_values().cloned().collect();
        entries.extend(found.entries.iter().cloned());
        self.entries_kept = entries.len();
        self.entries = entries;
        self.votes = vec![found.vote];
        self.votes_kept = 1;
    }
}

/// The log that a sequence of entries leads to: one at a known place replaces it and all above.
fn fold(entries: &[CatalogEntry]) -> BTreeMap<u64, &CatalogEntry> {
    let mut folded = BTreeMap::new();
    for entry in entries {
        drop(folded.split_off(&entry.index));
        folded.insert(entry.index, entry);
    }
    folded
}

fn highest(votes: &[Vote]) -> Vote {
    let by_term = votes
        .iter()
        .max_by_key(|vote| (vote.term, vote.node, vote.incarnation));
    by_term.copied().unwrap_or_default()
}

/// Offsets as the log's surface has them.
pub(crate) fn offset(at: u64) -> Offset {
    Offset(at)
}

/// What the node acknowledges.
impl Truth {
    pub(crate) fn note(&mut self, what: String) {
        what.hash(&mut self.trace);
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(what);
    }

    /// A print of everything noted so far.
    pub(crate) fn trace(&self) -> u64 {
        self.trace.finish()
    }

    fn known(&mut self, partition: TopicPartition) -> &mut Partition {
        self.partitions.entry(partition).or_default()
    }

    pub(crate) fn bound(
        &mut self,
        partition: TopicPartition,
        incarnation: Incarnation,
    ) -> Result<(), String> {
        let known = self.known(partition);
        if known.is_usable && known.incarnation != Some(incarnation) {
            return Err(format!(
                "{partition} is bound again with another incarnation"
            ));
        }
        known.is_kept = true;
        known.is_usable = true;
        known.incarnation = Some(incarnation);
        Ok(())
    }

    pub(crate) fn opened(
        &mut self,
        partition: TopicPartition,
        epoch: LeaderEpoch,
    ) -> Result<(), String> {
        let opened = self.known(partition).generation(epoch);
        let opened =
            opened.ok_or_else(|| format!("{partition} opens {epoch}, which nobody asked"))?;
        opened.is_kept = true;
        Ok(())
    }

    pub(crate) fn fenced(&mut self, partition: TopicPartition, epoch: LeaderEpoch) {
        let known = self.known(partition);
        known.fence_kept = known.fence_kept.max(epoch);
    }

    pub(crate) fn truncated(
        &mut self,
        partition: TopicPartition,
        epoch: LeaderEpoch,
        end: u64,
    ) -> Result<(), String> {
        let cut = self.known(partition).generation(epoch);
        let cut =
            cut.ok_or_else(|| format!("{partition} truncates {epoch}, which is not there"))?;
        cut.cut_to(end);
        cut.cuts.clear();
        Ok(())
    }

    /// The first so many entries of a catalog stream are kept.
    pub(crate) fn entered(&mut self, group: u32, upto: usize) {
        let stream = self.streams.entry(group).or_default();
        stream.entries_kept = stream.entries_kept.max(upto);
    }

    pub(crate) fn starts_at(&mut self, partition: TopicPartition, to: u64) {
        self.known(partition).log_start = to;
    }

    /// The entry that says where a partition's log starts.
    pub(crate) fn next_log_start(&mut self, partition: TopicPartition, to: u64) -> CatalogEntry {
        let stream = self.streams.entry(log_starts::GROUP).or_default();
        CatalogEntry {
            index: stream.last() + 1,
            term: stream.entries.len() as u64 + 1,
            data: log_starts::encode(partition, to),
        }
    }

    pub(crate) fn forgotten(&mut self, partition: TopicPartition) {
        let known = self.known(partition);
        known.generations.clear();
        known.deleted.clear();
        known.is_usable = false;
        known.is_forgetting = false;
        known.log_start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_truncation_that_was_asked_and_not_acknowledged_may_be_what_is_found() {
        let batches = (0..4).map(|at| Batch {
            base: at * 10,
            end: at * 10 + 10,
            bytes: Bytes::new(),
        });
        let mut generation = Generation {
            epoch: LeaderEpoch(1),
            start: 0,
            descriptor: Bytes::new(),
            is_kept: true,
            batches: batches.collect(),
            durable: 40,
            cuts: Vec::new(),
        };
        // The log failed at the first, which reached the disk, and was asked again.
        generation.ask_cut(30);
        generation.ask_cut(10);
        let allowed: Vec<_> = (0..=4)
            .map(|at| generation.may_end_at(at * 10).is_ok())
            .collect();
        assert_eq!(allowed, [false, true, false, true, true]);
    }
}
