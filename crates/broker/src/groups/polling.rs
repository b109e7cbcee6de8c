//! One poll of an HTTP consumer: commit what it had, read on, wait if there is nothing, deliver.

use std::sync::Arc;
use std::time::Duration;

use floe_groups::Refusal;
use floe_groups::assigned::{Caller, Delivery, Plan, Range, Reading, Received};
use floe_model::{Offset, TopicPartition};
use tokio::sync::Notify;

use super::consumers::ends;
use super::directory::Place;
use super::load::base;
use super::shard::State;
use super::store::unavailable;
use super::{Chunk, Error, Groups, Inner, Polled};
use crate::{Fetch, FetchError, FetchPart, FetchedPart, Isolation};

/// The longest a poll waits without looking whether it is still wanted; also how often it gives a sign of life.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a partition that could not be read is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

impl Groups {
    /// The next chunks for an HTTP consumer: what it had before is committed first, unless `received` says
    /// otherwise. Waits up to `wait` for records or partitions. Whole batches of about `bytes_max` in sum.
    pub async fn poll(
        &self,
        caller: &Caller,
        received: Received,
        wait: Duration,
        bytes_max: usize,
    ) -> Result<Polled, Error> {
        let inner = &self.0;
        let until = inner.now() + wait;
        let place = inner.directory.lock().find(caller)?;
        let plan = inner.begin_poll(&place, received).await?;
        let poll = Poll {
            inner,
            place: &place,
            number: plan.poll,
            bytes_max,
        };
        match plan.reading {
            Reading::Again(delivery) => poll.again(delivery).await,
            Reading::Next => poll.next(until).await,
        }
    }
}

impl Inner {
    async fn begin_poll(&self, place: &Place, received: Received) -> Result<Plan, Error> {
        let shard = self.shard(&place.group);
        let step = |state: &mut State| {
            state.see_catalog(&self.node.catalog.load(), &place.group, false);
            let machine = state.assigned(&place.group, &place.consumer, place.registration)?;
            let plan = machine.begin_poll(self.now(), &place.consumer, received)?;
            let receipt = match &plan.commit {
                None => None,
                Some(delivery) => {
                    let ends = ends(delivery);
                    Some(self.store_positions(shard, state, &place.group, &ends)?)
                }
            };
            state.settle(&place.group);
            Ok((plan, receipt))
        };
        let (plan, receipt) = self.patiently(shard, step).await?;
        if let (Some(delivery), Some(receipt)) = (&plan.commit, receipt) {
            receipt.stored().await?;
            self.committed(place, delivery);
        }
        Ok(plan)
    }
}

/// A poll that has begun.
struct Poll<'a> {
    inner: &'a Arc<Inner>,
    place: &'a Place,
    number: u64,
    bytes_max: usize,
}

/// Where a partition is to be read.
#[derive(Clone, Copy)]
struct Start {
    partition: TopicPartition,
    offset: Offset,
}

impl Poll<'_> {
    /// Reads on until there is something, or time is up.
    async fn next(&self, until: Duration) -> Result<Polled, Error> {
        let mut catalog = self.inner.node.changed.subscribe();
        // What a consumer before this one committed counts, also if nobody waited for it.
        self.inner.shard(&self.place.group).caught_up().await;
        loop {
            catalog.mark_unchanged();
            let (starts, changed) = self.look()?;
            // Order: listens before it reads, so that no change in between is missed.
            let changed = changed.notified();
            let left = until.saturating_sub(self.inner.now());
            let chunks = tokio::select! {
                biased;
                chunks = self.read(&starts, left.min(LOOK_INTERVAL)) => chunks?,
                () = changed => continue,
                _ = catalog.changed() => continue,
            };
            if !chunks.is_empty()
                && let Some(polled) = self.deliver(chunks)?
            {
                return Ok(polled);
            }
            if until <= self.inner.now() || *self.inner.node.stopping.borrow() {
                return Ok(if starts.is_empty() {
                    Polled::Unassigned
                } else {
                    Polled::Nothing
                });
            }
        }
    }

    /// What the consumer may read now, and from where.
    fn look(&self) -> Result<(Vec<Start>, Arc<Notify>), Error> {
        let Place {
            group,
            consumer,
            registration,
        } = self.place;
        let catalog = self.inner.node.catalog.load();
        let mut state = self.inner.shard(group).lock();
        state.see_catalog(&catalog, group, false);
        let machine = state.assigned(group, consumer, *registration)?;
        machine.keep_waiting(self.inner.now(), consumer, self.number)?;
        let mut partitions = machine.readable(consumer);
        if !partitions.is_empty() {
            // A busy partition must not keep the ones behind it from their turn.
            let first = self.number as usize % partitions.len();
            partitions.rotate_left(first);
        }
        state.settle(group);
        let changed = state
            .groups
            .get(group)
            .map(|entry| Arc::clone(&entry.changed))
            .ok_or_else(|| Refusal::NotRegistered(consumer.clone()))?;
        let starts = partitions
            .into_iter()
            .filter_map(|partition| {
                let log_start = catalog.partition(partition)?.log_start;
                let position = state.position(group, partition);
                Some(Start {
                    partition,
                    offset: position.map_or(log_start, |position| position.offset),
                })
            })
            .collect();
        Ok((starts, changed))
    }

    /// One read of all of them; waits inside up to `wait`.
    async fn read(&self, starts: &[Start], wait: Duration) -> Result<Vec<Chunk>, Error> {
        if starts.is_empty() {
            floe_world::time::sleep(wait).await;
            return Ok(Vec::new());
        }
        let parts = self.fetch(starts, wait).await;
        let mut chunks = Vec::new();
        let mut broken = None;
        let has_failed = parts.iter().any(|part| part.error.is_some());
        for (start, part) in starts.iter().zip(parts) {
            match &part.error {
                None => chunks.extend(self.chunk(*start, part, None)),
                Some(error) => match go_on_at(start.offset, error) {
                    Some(offset) => chunks.extend(self.read_after_gap(*start, offset).await),
                    None => broken = Some(error.clone()),
                },
            }
        }
        if chunks.is_empty() && has_failed {
            // The read did not wait, so wait here.
            floe_world::time::sleep(wait.min(RETRY_PAUSE)).await;
        }
        match broken {
            // What can be read comes first; the rest says so when nothing else is left.
            Some(error) if chunks.is_empty() && !is_passing(&error) => Err(unavailable(&error)),
            Some(_) | None => Ok(chunks),
        }
    }

    /// Reads on behind records that are gone, and says which.
    async fn read_after_gap(&self, start: Start, offset: Offset) -> Option<Chunk> {
        let behind = Start { offset, ..start };
        let part = self.fetch(&[behind], Duration::ZERO).await.pop()?;
        if part.error.is_some() {
            return None;
        }
        self.chunk(behind, part, Some(start.offset..offset))
    }

    async fn fetch(&self, starts: &[Start], max_wait: Duration) -> Vec<FetchedPart> {
        let parts = starts
            .iter()
            .map(|start| FetchPart {
                partition: start.partition,
                offset: start.offset,
                max_bytes: self.bytes_max,
                current_epoch: None,
            })
            .collect();
        let fetch = Fetch {
            parts,
            min_bytes: 1,
            max_bytes: self.bytes_max,
            max_wait,
            isolation: Isolation::ReadCommitted,
        };
        self.inner.node.fetch(&fetch).await
    }

    fn chunk(
        &self,
        start: Start,
        part: FetchedPart,
        gone: Option<std::ops::Range<Offset>>,
    ) -> Option<Chunk> {
        if part.records.is_empty() {
            return None;
        }
        let catalog = self.inner.node.catalog.load();
        Some(Chunk {
            topic: catalog.names.get(&start.partition.topic)?.clone(),
            partition: start.partition,
            start: start.offset,
            end: part.next,
            batches: part.records,
            gone,
        })
    }

    /// Makes the chunks the consumer's delivery; `None` if it may read none of them any more.
    fn deliver(&self, mut chunks: Vec<Chunk>) -> Result<Option<Polled>, Error> {
        let place = self.place;
        let ranges = chunks
            .iter()
            .map(|chunk| Range {
                partition: chunk.partition,
                start: chunk.start,
                end: chunk.end,
            })
            .collect();
        let mut state = self.inner.shard(&place.group).lock();
        let machine = state.assigned(&place.group, &place.consumer, place.registration)?;
        let now = self.inner.now();
        let Some(delivery) = machine.deliver(now, &place.consumer, self.number, ranges)? else {
            return Ok(None);
        };
        chunks.retain(|chunk| {
            let is_delivered = |range: &Range| range.partition == chunk.partition;
            delivery.ranges.iter().any(is_delivered)
        });
        Ok(Some(Polled::Records(delivery.token, chunks)))
    }

    /// Exactly what was delivered, again.
    async fn again(&self, delivery: Delivery) -> Result<Polled, Error> {
        let mut chunks = Vec::new();
        for range in &delivery.ranges {
            if let Some(chunk) = self.read_range(*range).await? {
                chunks.push(chunk);
            }
        }
        let place = self.place;
        let mut state = self.inner.shard(&place.group).lock();
        let machine = state.assigned(&place.group, &place.consumer, place.registration)?;
        machine.redelivered(self.inner.now(), &place.consumer, self.number)?;
        Ok(Polled::Records(delivery.token, chunks))
    }

    /// The records of one range; what is gone of it by now is named. `None` if its topic is gone.
    async fn read_range(&self, range: Range) -> Result<Option<Chunk>, Error> {
        let mut whole: Option<Chunk> = None;
        let mut start = Start {
            partition: range.partition,
            offset: range.start,
        };
        let mut gone = None;
        while start.offset < range.end {
            let Some(part) = self.fetch(&[start], Duration::ZERO).await.pop() else {
                return Ok(None);
            };
            match &part.error {
                None => {}
                Some(FetchError::UnknownPartition(_)) => return Ok(None),
                Some(error) => {
                    let Some(offset) = go_on_at(start.offset, error) else {
                        return Err(unavailable(error));
                    };
                    gone = Some(start.offset..offset);
                    start.offset = offset;
                    continue;
                }
            }
            let next = part.next;
            let Some(chunk) = self.chunk(start, part, gone.take()) else {
                return Ok(whole);
            };
            match &mut whole {
                None => whole = Some(chunk),
                Some(whole) => {
                    whole.batches.extend(chunk.batches);
                    whole.end = chunk.end;
                }
            }
            start.offset = next;
        }
        match (&mut whole, gone) {
            (Some(whole), _) => cut(whole, range.end)?,
            (None, Some(gone)) => {
                // All of it is gone: say so, with no records.
                let catalog = self.inner.node.catalog.load();
                whole = catalog
                    .names
                    .get(&range.partition.topic)
                    .map(|topic| Chunk {
                        topic: topic.clone(),
                        partition: range.partition,
                        start: range.end,
                        end: range.end,
                        batches: Vec::new(),
                        gone: Some(gone.start..range.end),
                    });
            }
            (None, None) => {}
        }
        Ok(whole)
    }
}

/// Where reading goes on when records at `offset` are gone for good.
fn go_on_at(offset: Offset, error: &FetchError) -> Option<Offset> {
    match error {
        FetchError::OutOfRange { log_start, .. } if offset < *log_start => Some(*log_start),
        FetchError::Damaged { to, .. } if offset < *to => Some(*to),
        _ => None,
    }
}

/// Whether the next poll may find it otherwise without anybody's doing.
fn is_passing(error: &FetchError) -> bool {
    match error {
        FetchError::UnknownPartition(_)
        | FetchError::NotLeader(_)
        | FetchError::FencedEpoch { .. }
        | FetchError::UnknownEpoch { .. }
        | FetchError::Unavailable(_) => true,
        FetchError::OutOfRange { .. } | FetchError::Damaged { .. } => false,
    }
}

/// Takes out batches at or above `end`: more may have been read than was delivered.
fn cut(chunk: &mut Chunk, end: Offset) -> Result<(), Error> {
    chunk.end = chunk.end.min(end);
    let mut kept = Vec::with_capacity(chunk.batches.len());
    for bytes in std::mem::take(&mut chunk.batches) {
        let mut len = 0;
        for view in floe_wire::batch::batches(&bytes) {
            let view = view.map_err(|error| unavailable(&error))?;
            if base(&view) >= end {
                break;
            }
            len += view.bytes().len();
        }
        if len > 0 {
            kept.push(bytes.slice(..len));
        }
    }
    chunk.batches = kept;
    Ok(())
}
