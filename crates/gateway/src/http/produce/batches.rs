//! Records of one body become batches, per partition, none above `max.message.bytes`.
//!
//! Guarantees: a record that fits no batch refuses the body before anything is appended; where the records of the body
//! came to lie can be told in the body's order.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use floe_broker::{Pending, ProduceError, ProduceOptions, Topic};
use floe_model::{Offset, PartitionIndex, Timestamp};
use floe_wire::batch::{Builder, Class, HEADER_BYTES};
use tokio::time::{Instant, timeout_at};

use super::super::Api;
use super::{Problem, written};

/// Consecutive records of a body that lie one behind the other in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) partition: PartitionIndex,
    pub(crate) offset: Offset,
    pub(crate) count: u64,
}

/// Batches under construction.
pub(super) struct Batches {
    limit: usize,
    building: BTreeMap<PartitionIndex, Builder>,
    finished: Vec<(PartitionIndex, Vec<u8>, u64)>,
    /// Partitions in the body's order, with how many records went there in a row.
    order: Vec<(PartitionIndex, u64)>,
    records: u64,
}

impl Batches {
    /// `limit` is the topic's `max.message.bytes`.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            building: BTreeMap::new(),
            finished: Vec::new(),
            order: Vec::new(),
            records: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Adds a record.
    pub(super) fn add(
        &mut self,
        partition: PartitionIndex,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> Result<(), Problem> {
        self.records += 1;
        let builder = self.building.entry(partition).or_default();
        let more = Builder::record_bytes(key, value, headers);
        if !builder.is_empty() && builder.bytes_len() + more > self.limit {
            let full = std::mem::take(builder);
            let count = full.len() as u64;
            if let Some(bytes) = full.finish() {
                self.finished.push((partition, bytes, count));
            }
        }
        let payload = payload_bytes(key, value, headers);
        let added = builder.record(timestamp, key, value, headers);
        if added.is_err() || builder.bytes_len() > self.limit {
            let batch = builder.bytes_len().max(HEADER_BYTES + payload);
            let problem = Problem::from(too_large(batch, payload, self.limit));
            return Err(problem
                .with("record", self.records)
                .with("limit", self.limit));
        }
        match self.order.last_mut() {
            Some((last, count)) if *last == partition => *count += 1,
            _ => self.order.push((partition, 1)),
        }
        Ok(())
    }

    fn finish(&mut self) {
        for (partition, builder) in std::mem::take(&mut self.building) {
            let count = builder.len() as u64;
            if let Some(bytes) = builder.finish() {
                self.finished.push((partition, bytes, count));
            }
        }
    }

    /// All of them as they would be appended, each with its number of records.
    pub(super) fn finished(&mut self) -> impl Iterator<Item = (&[u8], u64)> {
        self.finish();
        self.finished
            .iter()
            .map(|(_, bytes, count)| (&bytes[..], *count))
    }

    /// Appends all of them and waits until they are durable, or for what is left of the caller's time.
    pub(super) async fn append(
        mut self,
        api: &Api,
        topic: &Topic,
        deadline: Instant,
    ) -> Result<Vec<Run>, Problem> {
        self.finish();
        let mut failure = None;
        let mut pending: Vec<(PartitionIndex, u64, Pending)> = Vec::new();
        for (partition, bytes, count) in self.finished.drain(..) {
            let address = topic.address(partition);
            match api
                .broker
                .produce(address, &Bytes::from(bytes), ProduceOptions::default())
            {
                Ok(waits) => pending.push((partition, count, waits)),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let mut landed: BTreeMap<PartitionIndex, VecDeque<(Offset, u64)>> = BTreeMap::new();
        for (partition, count, waits) in pending {
            let outcome = timeout_at(deadline, waits).await;
            match outcome.unwrap_or_else(|_| Err(api.broker.undecided())) {
                Ok(produced) => {
                    api.metrics.batch_records.observe(count as f64);
                    api.metrics.produce_records.inc_by(count);
                    landed
                        .entry(partition)
                        .or_default()
                        .push_back((produced.base_offset, count));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(runs(&self.order, landed)),
            Some(error) => {
                let durable: Vec<Run> = landed
                    .into_iter()
                    .flat_map(|(partition, all)| {
                        all.into_iter().map(move |(offset, count)| Run {
                            partition,
                            offset,
                            count,
                        })
                    })
                    .collect();
                let problem = Problem::from(error);
                Err(if durable.is_empty() {
                    problem
                } else {
                    problem.with("written", written(&durable))
                })
            }
        }
    }
}

/// What the caller gave of a record.
fn payload_bytes(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&[u8], Option<&[u8]>)],
) -> usize {
    let bytes = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let of_headers: usize = headers.iter().map(|(name, v)| name.len() + bytes(*v)).sum();
    bytes(key) + bytes(value) + of_headers
}

/// A record that no batch of the topic can hold: of how many bytes its batch would be, and how many of them were given.
pub(super) fn too_large(batch: usize, payload: usize, limit: usize) -> ProduceError {
    ProduceError::Batch {
        class: Class::TooLarge,
        record: None,
        reason: format!(
            "a record of {payload} bytes takes {batch} as a batch of its own, and the topic's max.message.bytes is {limit}; send \
             smaller records or raise it"
        ),
    }
}

/// Goes through the body's order once more, now with offsets.
fn runs(
    order: &[(PartitionIndex, u64)],
    mut landed: BTreeMap<PartitionIndex, VecDeque<(Offset, u64)>>,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (partition, count) in order {
        let mut missing = *count;
        let Some(batches) = landed.get_mut(partition) else {
            continue;
        };
        while missing > 0 {
            let Some((offset, left)) = batches.front_mut() else {
                break;
            };
            let take = missing.min(*left);
            let run = Run {
                partition: *partition,
                offset: *offset,
                count: take,
            };
            match runs.last_mut() {
                Some(last)
                    if last.partition == run.partition
                        && last.offset.plus(last.count) == run.offset =>
                {
                    last.count += take;
                }
                _ => runs.push(run),
            }
            *offset = offset.plus(take);
            *left -= take;
            missing -= take;
            if *left == 0 {
                batches.pop_front();
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(index: u32) -> PartitionIndex {
        PartitionIndex(index)
    }

    #[test]
    fn a_batch_is_filled_up_to_the_limit_and_a_record_above_it_is_refused() {
        let mut batches = Batches::new(200);
        for _ in 0..5 {
            batches
                .add(p(0), Timestamp(1), None, Some(&[7; 50]), &[])
                .unwrap();
        }
        assert!(!batches.is_empty());
        assert!(
            batches
                .finished
                .iter()
                .all(|(_, bytes, _)| bytes.len() <= 200)
        );
        let problem = batches
            .add(p(0), Timestamp(1), None, Some(&[7; 200]), &[])
            .unwrap_err();
        assert_eq!(
            (problem.status.as_u16(), problem.kind),
            (413, "record-too-large")
        );
        assert_eq!(problem.members["record"], 6);
        let told = "a record of 200 bytes takes 270 as a batch of its own, and the topic's max.message.bytes is 200; send \
                    smaller records or raise it";
        assert!(problem.detail.contains(told), "{}", problem.detail);
    }

    #[test]
    fn a_record_that_fills_its_batch_to_the_byte_is_accepted() {
        let mut exact = Builder::default();
        exact
            .record(Timestamp(1), None, Some(&[7; 100]), &[])
            .unwrap();
        let limit = exact.bytes_len();
        assert!(
            Batches::new(limit)
                .add(p(0), Timestamp(1), None, Some(&[7; 100]), &[])
                .is_ok()
        );
        assert!(
            Batches::new(limit - 1)
                .add(p(0), Timestamp(1), None, Some(&[7; 100]), &[])
                .is_err()
        );
    }

    #[test]
    fn offsets_are_told_in_the_bodys_order() {
        let order = [(p(0), 2), (p(1), 1), (p(0), 3)];
        let landed = BTreeMap::from([
            (p(0), VecDeque::from([(Offset(10), 4), (Offset(50), 1)])),
            (p(1), VecDeque::from([(Offset(7), 1)])),
        ]);
        let run = |partition, offset, count| Run {
            partition: p(partition),
            offset: Offset(offset),
            count,
        };
        assert_eq!(
            runs(&order, landed),
            [run(0, 10, 2), run(1, 7, 1), run(0, 12, 2), run(0, 50, 1)]
        );
    }
}
