//! Records that belong to no partition's order: local numbers, catalog entries, votes.

use std::sync::Arc;

use floe_model::Incarnation;

use super::Room;
use crate::engine::Engine;
use crate::format::record::Record;
use crate::format::sector::GroupWriter;
use crate::partition::PartitionLog;
use crate::receipt::Promise;
use crate::{CatalogEntry, Failure, Vote};

/// A record that belongs to no partition's order.
pub(crate) enum Command {
    Bind {
        partition: Arc<PartitionLog>,
        promise: Promise<Incarnation>,
    },
    Catalog {
        group: u32,
        entries: Vec<CatalogEntry>,
        promise: Promise,
    },
    Vote {
        group: u32,
        vote: Vote,
        promise: Promise,
    },
}

impl Command {
    /// Puts all of it, or nothing.
    pub(super) fn put(&self, room: Room, group: &mut GroupWriter<'_>) -> bool {
        match self {
            Self::Bind { partition, .. } => {
                let record = Record::Bind {
                    topic: partition.partition.topic,
                    partition: partition.partition.partition.0,
                    incarnation: partition.incarnation().0,
                };
                Self::put_all(room, group, partition.local, &[record])
            }
            Self::Catalog {
                group: number,
                entries,
                ..
            } => {
                let records = entries.iter().map(|entry| Record::Catalog {
                    group: *number,
                    index: entry.index,
                    term: entry.term,
                    data: &entry.data,
                });
                Self::put_all(room, group, 0, &records.collect::<Vec<_>>())
            }
            Self::Vote {
                group: number,
                vote,
                ..
            } => {
                let record = Record::Vote {
                    group: *number,
                    term: vote.term,
                    node: vote.node,
                    incarnation: vote.incarnation,
                };
                Self::put_all(room, group, 0, &[record])
            }
        }
    }

    fn put_all(
        room: Room,
        group: &mut GroupWriter<'_>,
        local: u32,
        records: &[Record<'_>],
    ) -> bool {
        let bytes = records.iter().map(Record::encoded_len).sum();
        let fits = Room::takes(room.all, group, bytes);
        if fits {
            for record in records {
                record.encode(local, |part| group.put(part));
            }
        }
        fits
    }

    pub(super) fn take_effect(self, engine: &Engine) {
        match self {
            Self::Bind { partition, promise } => {
                let mut state = partition.state.lock();
                state.is_bound = true;
                state.is_forgotten = false;
                let incarnation = state.incarnation;
                drop(state);
                promise.resolve(Ok(incarnation));
            }
            Self::Catalog {
                group,
                entries,
                promise,
            } => {
                let mut streams = engine.streams.lock();
                for entry in entries {
                    streams.append(group, entry);
                }
                drop(streams);
                promise.resolve(Ok(()));
            }
            Self::Vote {
                group,
                vote,
                promise,
            } => {
                engine.streams.lock().vote(group, vote);
                promise.resolve(Ok(()));
            }
        }
    }

    pub(crate) fn fail(self, failure: &Failure) {
        match self {
            Self::Bind { promise, .. } => promise.resolve(Err(failure.clone())),
            Self::Catalog { promise, .. } | Self::Vote { promise, .. } => {
                promise.resolve(Err(failure.clone()));
            }
        }
    }
}
