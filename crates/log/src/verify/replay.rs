//! What checkpoint and journal say, record by record: the fold behind the check. Knows nothing of files.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use floe_model::{Incarnation, LeaderEpoch, PartitionIndex, TopicPartition};

use super::LogStarts;
use crate::format::batch;
use crate::format::checkpoint::{Body, GenerationEntry};
use crate::format::record::{Pointer, Record};
use crate::{CatalogEntry, Stream, Vote};

/// What a node holds, as told so far.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    by_local: BTreeMap<u32, Partition>,
    streams: BTreeMap<u32, Stream>,
}

#[derive(Clone, Debug)]
pub(super) struct Partition {
    pub(super) name: TopicPartition,
    pub(super) incarnation: Incarnation,
    pub(super) fence: LeaderEpoch,
    pub(super) generations: Vec<Generation>,
}

#[derive(Clone, Debug)]
pub(super) struct Generation {
    pub(super) epoch: LeaderEpoch,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) synced: u64,
    pub(super) file_base: u64,
    pub(super) next_block: u32,
    pub(super) lost: Vec<Range<u64>>,
    /// Batches checked in checkpoint and journal.
    pub(super) batches: u64,
    /// Runs whose bytes were flushed before these were written to the journal.
    pub(super) pointers: Vec<Pointer>,
}

/// What a record contradicts.
pub(super) struct Contradiction {
    pub(super) what: String,
    pub(super) partition: Option<TopicPartition>,
    pub(super) offsets: Option<Range<u64>>,
}

fn plain(what: impl Into<String>) -> Contradiction {
    Contradiction {
        what: what.into(),
        partition: None,
        offsets: None,
    }
}

impl State {
    /// As of a checkpoint; tails are checked.
    pub(super) fn from_checkpoint(body: &Body, found: &mut Vec<Contradiction>) -> Self {
        let mut state = Self::default();
        for entry in &body.partitions {
            let generations = entry.generations.iter();
            let generations = generations
                .map(|generation| Generation::from_entry(entry.partition, generation, found))
                .collect();
            let partition = Partition {
                name: entry.partition,
                incarnation: Incarnation(entry.incarnation),
                fence: entry.fence,
                generations,
            };
            state.by_local.insert(entry.local, partition);
        }
        for stream in &body.streams {
            let dense = stream
                .entries
                .windows(2)
                .all(|two| two[0].index.checked_add(1) == Some(two[1].index));
            if !dense {
                let what = format!("entries of catalog {} are not dense", stream.group);
                found.push(plain(what));
            }
            state.streams.insert(stream.group, stream.clone());
        }
        state
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.by_local.values()
    }

    pub(super) fn streams(&self) -> Vec<Stream> {
        self.streams.values().cloned().collect()
    }

    /// Whether both tell the same, `self` being the newer; else where they differ.
    pub(super) fn differs(&self, other: &Self, log_starts: &LogStarts) -> Option<String> {
        for (local, mine) in &self.by_local {
            let Some(theirs) = other.by_local.get(local) else {
                return Some(format!("partition {} is missing", mine.name));
            };
            let ends = |partition: &Partition| -> Vec<_> {
                // An older release dropped one that holds nothing when the next one opened: the newer slot may lack it.
                let generations = partition.generations.iter();
                let held = generations.filter(|g| g.start < g.end || !g.lost.is_empty());
                held.map(|g| (g.epoch, g.start, g.end)).collect()
            };
            let (newer, older) = (ends(mine), ends(theirs));
            // Retention drops generations that lie below the log start whole; the older one may still have them.
            let log_start = log_starts.get(&mine.name).map_or(0, |start| start.0);
            let mut dropped = older.iter().filter(|held| !newer.contains(held));
            let same = mine.name == theirs.name
                && mine.fence == theirs.fence
                && (newer.is_empty() || mine.incarnation == theirs.incarnation)
                && newer.iter().all(|generation| older.contains(generation))
                && dropped.all(|(_, _, end)| *end <= log_start);
            if !same {
                return Some(format!(
                    "partition {}: fence {}, incarnation {:x}, generations {:?} against fence {}, incarnation {:x}, generations {:?}",
                    mine.name,
                    mine.fence,
                    mine.incarnation.0,
                    ends(mine),
                    theirs.fence,
                    theirs.incarnation.0,
                    ends(theirs),
                ));
            }
        }
        if self.by_local.len() != other.by_local.len() {
            return Some("a partition is missing".to_owned());
        }
        for (group, mine) in &self.streams {
            let theirs = other.streams.get(group);
            // A power cut may leave a snapshot in the newer slot alone: nobody was told of it yet.
            let vote = theirs.map_or(Vote::default(), |theirs| theirs.vote);
            let is_put_in_place = mine.snapshot.as_ref().is_some_and(|snapshot| {
                vote == mine.vote && !theirs.is_some_and(|theirs| theirs.leads_to(snapshot))
            });
            if is_put_in_place {
                continue;
            }
            let theirs = theirs.map(|stream| (stream.vote, stream.last()));
            let mine = (mine.vote, mine.last());
            if theirs != Some(mine) {
                return Some(format!("catalog {group}: {mine:?} against {theirs:?}"));
            }
        }
        None
    }

    /// One record of the journal.
    pub(super) fn apply(&mut self, local: u32, record: Record<'_>) -> Result<(), Contradiction> {
        match record {
            Record::Boot { .. } => Ok(()),
            Record::Bind {
                topic,
                partition,
                incarnation,
            } => {
                let partition = TopicPartition {
                    topic,
                    partition: PartitionIndex(partition),
                };
                self.bind(local, partition, incarnation)
            }
            Record::Vote {
                group,
                term,
                node,
                incarnation,
            } => {
                let vote = Vote {
                    term,
                    node,
                    incarnation,
                };
                let held = &mut self.stream(group).vote;
                let order = |vote: &Vote| (vote.term, vote.node, vote.incarnation);
                if order(&vote) > order(held) {
                    *held = vote;
                }
                Ok(())
            }
            Record::Catalog {
                group,
                index,
                term,
                data,
            } => {
                let data = Bytes::copy_from_slice(data);
                self.enter(group, CatalogEntry { index, term, data })
            }
            Record::Fence(epoch) => self.at(local).map(|partition| {
                partition.fence = partition.fence.max(epoch);
            }),
            Record::Forget(epoch) => self.at(local).map(|partition| {
                partition.fence = partition.fence.max(epoch);
                partition.generations.clear();
            }),
            Record::Drop(epoch) => self.at(local)?.drop_generation(epoch),
            Record::Generation { epoch, start, .. } => self.at(local)?.open(epoch, start),
            Record::Truncate { epoch, end } => self.at(local)?.truncate(epoch, end),
            Record::Batch(bytes) => self.at(local)?.append(bytes),
            Record::Pointer(pointer) => self.at(local)?.point(pointer),
            Record::Commit { .. } => self.at(local).map(|_| ()),
        }
    }

    fn stream(&mut self, group: u32) -> &mut Stream {
        self.streams.entry(group).or_insert_with(|| Stream {
            group,
            ..Stream::default()
        })
    }

    /// An entry of a catalog: it replaces what is at its place and above, unless the snapshot has it already.
    fn enter(&mut self, group: u32, entry: CatalogEntry) -> Result<(), Contradiction> {
        let stream = self.stream(group);
        let (index, last) = (entry.index, stream.last());
        if index > last.saturating_add(1) {
            let what = format!("entry {index} of catalog {group} comes after {last}");
            return Err(plain(what));
        }
        if stream
            .snapshot
            .as_ref()
            .is_none_or(|snapshot| snapshot.index < index)
        {
            stream.entries.retain(|held| held.index < index);
            stream.entries.push(entry);
        }
        Ok(())
    }

    fn at(&mut self, local: u32) -> Result<&mut Partition, Contradiction> {
        let unbound = || plain(format!("local partition {local} is not bound"));
        self.by_local.get_mut(&local).ok_or_else(unbound)
    }

    fn bind(
        &mut self,
        local: u32,
        partition: TopicPartition,
        incarnation: u64,
    ) -> Result<(), Contradiction> {
        if let Some(known) = self.by_local.get_mut(&local) {
            if known.name != partition || !known.generations.is_empty() {
                return Err(plain(format!("local partition {local} is bound twice")));
            }
            // A forgotten partition comes back: its fence has stayed.
            known.incarnation = Incarnation(incarnation);
            return Ok(());
        }
        if self.by_local.values().any(|other| other.name == partition) {
            return Err(plain(format!("{partition} has two local numbers")));
        }
        if local == u32::MAX {
            return Err(plain(format!(
                "{partition} has a local number that none follows"
            )));
        }
        self.by_local.insert(
            local,
            Partition {
                name: partition,
                incarnation: Incarnation(incarnation),
                fence: LeaderEpoch(0),
                generations: Vec::new(),
            },
        );
        Ok(())
    }
}

impl Partition {
    fn wrong(&self, what: String, offsets: Option<Range<u64>>) -> Contradiction {
        Contradiction {
            what,
            partition: Some(self.name),
            offsets,
        }
    }

    fn generation(&mut self, epoch: LeaderEpoch) -> Result<usize, Contradiction> {
        let place = self.generations.iter().rposition(|g| g.epoch == epoch);
        place.ok_or_else(|| self.wrong(format!("generation {epoch} is not open"), None))
    }

    fn open(&mut self, epoch: LeaderEpoch, start: u64) -> Result<(), Contradiction> {
        let at = self.generations.partition_point(|held| held.epoch < epoch);
        if self
            .generations
            .get(at)
            .is_some_and(|held| held.epoch == epoch)
        {
            return Err(self.wrong(format!("generation {epoch} opens twice"), None));
        }
        let opened = Generation {
            epoch,
            start,
            end: start,
            synced: start,
            file_base: start,
            next_block: 0,
            lost: Vec::new(),
            batches: 0,
            pointers: Vec::new(),
        };
        self.generations.insert(at, opened);
        Ok(())
    }

    fn drop_generation(&mut self, epoch: LeaderEpoch) -> Result<(), Contradiction> {
        let at = self.generation(epoch)?;
        drop(self.generations.remove(at));
        Ok(())
    }

    fn truncate(&mut self, epoch: LeaderEpoch, end: u64) -> Result<(), Contradiction> {
        let at = self.generation(epoch)?;
        let generation = &mut self.generations[at];
        let end = end.max(generation.start);
        generation.end = generation.end.min(end);
        generation.synced = generation.synced.min(end);
        generation.pointers.retain(|pointer| pointer.base < end);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Contradiction> {
        let Some(head) = batch::BatchHead::first(bytes).filter(|head| head.bytes() == bytes) else {
            return Err(self.wrong("a record is not a whole batch".to_owned(), None));
        };
        let at = self.generation(head.epoch())?;
        let (base, end) = (head.base(), head.end());
        let expected = self.generations[at].end;
        self.generations[at].end = end.max(expected);
        self.generations[at].batches += 1;
        if base != expected {
            let lost = expected.min(base)..base;
            return Err(self.wrong(format!("a batch at {base} follows {expected}"), Some(lost)));
        }
        if !head.crc_holds() {
            return Err(self.wrong("a batch fails its checksum".to_owned(), Some(base..end)));
        }
        Ok(())
    }

    fn point(&mut self, pointer: Pointer) -> Result<(), Contradiction> {
        let at = self.generation(pointer.epoch)?;
        let generation = &mut self.generations[at];
        let expected = generation.end;
        // A run may take batches along that the journal holds already, so it may begin below the end.
        let is_gap = pointer.base > expected;
        generation.end = generation.end.max(pointer.end);
        generation.synced = generation.synced.max(pointer.end);
        generation.file_base = pointer.file_base;
        generation.next_block = pointer.first_block.saturating_add(pointer.blocks);
        generation.pointers.push(pointer);
        if is_gap {
            let what = format!("a run at {} follows {expected}", pointer.base);
            return Err(self.wrong(what, Some(expected..pointer.base)));
        }
        Ok(())
    }
}

impl Generation {
    fn from_entry(
        partition: TopicPartition,
        entry: &GenerationEntry,
        found: &mut Vec<Contradiction>,
    ) -> Self {
        let lost: Vec<_> = entry.lost.iter().map(|(from, to)| *from..*to).collect();
        let mut next = entry.synced;
        let (mut batches, mut seen) = (0, 0);
        let mut wrong = |what: String, offsets| {
            found.push(Contradiction {
                what,
                partition: Some(partition),
                offsets: Some(offsets),
            });
        };
        for (place, head) in batch::walk(&entry.tail) {
            let known = skip(&lost, next);
            if head.base() != known || head.epoch() != entry.epoch {
                wrong(
                    format!("the tail has a batch at {} after {next}", head.base()),
                    next..head.base().max(next),
                );
            }
            if !head.crc_holds() {
                wrong(
                    "a batch of the tail fails its checksum".to_owned(),
                    head.base()..head.end(),
                );
            }
            next = head.end();
            batches += 1;
            seen = place.end;
        }
        if seen != entry.tail.len() || skip(&lost, next) != entry.end {
            wrong(
                format!("the tail ends at {next}"),
                next..entry.end.max(next),
            );
        }
        Self {
            epoch: entry.epoch,
            start: entry.start,
            end: entry.end,
            synced: entry.synced,
            file_base: entry.file_base,
            next_block: entry.next_block,
            lost,
            batches,
            pointers: Vec::new(),
        }
    }
}

/// The first offset at or after `at` that is not known to be lost.
pub(super) fn skip(lost: &[Range<u64>], mut at: u64) -> u64 {
    while let Some(range) = lost.iter().find(|range| range.contains(&at)) {
        at = range.end;
    }
    at
}
