//! One open generation of one partition on its leader: checks, assigns, appends; its commit offset and who waits for it.
//!
//! Guarantees: appends of one caller keep their order; an idempotent producer's batch is appended once; a batch is answered only
//! when the commit offset has passed it. Nothing here waits for a disk. A later generation is another value of
//! this type.

mod producers;
mod progress;
mod room;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use floe_cluster::TopicSettings;
use floe_log::{AppendError, Full, PartitionLog};
use floe_model::{LeaderEpoch, Offset, Timestamp, TopicName, TopicPartition};
use floe_wire::batch::{self, Checked, Class, Rules};
use floe_wire::codec::Scratch;
use parking_lot::Mutex;

pub(crate) use producers::{Producers, Sequenced};
pub(crate) use progress::{Ended, Progress, Ticket};
pub(crate) use room::Tally;

use crate::replica::Replica;
use crate::{Pending, ProduceError, ProduceOptions, Produced, Unavailable};

/// When a full journal or memory is worth another try: a checkpoint or a few flushes later.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// An open generation, led here.
pub(crate) struct Partition {
    pub(crate) address: TopicPartition,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) settings: TopicSettings,
    /// Name of the topic, if it is one of Floe's own.
    pub(crate) internal: Option<TopicName>,
    pub(crate) log: Arc<PartitionLog>,
    replica: Arc<Replica>,
    /// `message.decompressed.max.bytes`.
    decompressed_bytes_max: usize,
    pub(crate) progress: Progress,
    log_start: AtomicU64,
    appended_bytes: AtomicU64,
    /// Held over a check of sequences and its append, so that batches of a producer are appended in order.
    producers: Mutex<Producers>,
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partition({} epoch {})", self.address, self.epoch)
    }
}

/// What a thread keeps of its room for rewritten batches.
const REWRITTEN_KEPT_MAX: usize = 2 * 1024 * 1024;

/// What a thread that appends keeps at hand.
#[derive(Default)]
struct Bench {
    scratch: Scratch,
    rewritten: Vec<u8>,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::default();
}

/// What a new generation is made of.
pub(crate) struct Opened {
    pub(crate) replica: Arc<Replica>,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) start: Offset,
    pub(crate) log_start: Offset,
    pub(crate) settings: TopicSettings,
    /// Name of the topic, if it is one of Floe's own.
    pub(crate) internal: Option<TopicName>,
    pub(crate) decompressed_bytes_max: usize,
}

impl Partition {
    pub(crate) fn open(opened: Opened, producers: Producers) -> Self {
        let replica = opened.replica;
        Self {
            address: replica.address,
            epoch: opened.epoch,
            settings: opened.settings,
            internal: opened.internal,
            log: Arc::clone(&replica.log),
            replica,
            decompressed_bytes_max: opened.decompressed_bytes_max,
            progress: Progress::new(opened.start),
            log_start: AtomicU64::new(opened.log_start.0),
            appended_bytes: AtomicU64::new(0),
            producers: Mutex::new(producers),
        }
    }

    /// First offset kept.
    pub(crate) fn log_start(&self) -> Offset {
        Offset(self.log_start.load(Ordering::Acquire))
    }

    /// Offsets below `to` are not readable from now on.
    pub(crate) fn advance_log_start(&self, to: Offset) {
        self.log_start.fetch_max(to.0, Ordering::AcqRel);
    }

    /// First offset not committed.
    pub(crate) fn committed(&self) -> Offset {
        self.progress.committed()
    }

    /// Bytes appended since this generation opened.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.appended_bytes.load(Ordering::Relaxed)
    }

    /// The state of idempotent producers.
    pub(crate) fn producers(&self) -> &Mutex<Producers> {
        &self.producers
    }

    /// Checks and appends one batch.
    pub(crate) fn append(
        self: &Arc<Self>,
        batch: &Bytes,
        options: ProduceOptions,
        now: Now,
    ) -> Result<Pending, ProduceError> {
        if let Some(topic) = self.internal.as_ref().filter(|_| !options.internal) {
            return Err(ProduceError::NotWritable(topic.clone()));
        }
        BENCH.with_borrow_mut(|bench| {
            let checked = batch::check(batch, &self.rules(now.wall), &mut bench.scratch)?;
            if checked.is_transactional {
                return Err(ProduceError::Batch {
                    class: Class::Invalid,
                    record: None,
                    reason:
                        "transactions are not supported yet; produce without a transactional.id"
                            .to_owned(),
                });
            }
            let log_append_time = self.settings.log_append_time.then_some(now.wall);
            let bytes = rewrite(batch, &checked, log_append_time, &mut bench.rewritten);
            let max_timestamp = log_append_time.unwrap_or(checked.max_timestamp);
            let sequenced = self.sequence(bytes, &checked, max_timestamp, now);
            bench.rewritten.clear();
            bench.rewritten.shrink_to(REWRITTEN_KEPT_MAX);
            let sequenced = sequenced?;
            self.appended_bytes
                .fetch_add(batch.len() as u64, Ordering::Relaxed);
            let produced = Produced {
                base_offset: sequenced.base,
                log_append_time,
                log_start: self.log_start(),
                epoch: self.epoch,
            };
            Ok(Pending::new(Arc::clone(self), produced, sequenced.end))
        })
    }

    /// Takes the batch in its producer's order, once.
    fn sequence(
        &self,
        bytes: &[u8],
        checked: &Checked,
        max_timestamp: Timestamp,
        now: Now,
    ) -> Result<Sequenced, ProduceError> {
        let count = checked.record_count;
        let append = || -> Result<Sequenced, ProduceError> {
            let end = self
                .replica
                .append(self.epoch, bytes)
                .map_err(|error| self.refused(&error))?;
            Ok(Sequenced {
                base: Offset(end.0 - u64::from(count)),
                end,
            })
        };
        let Some(producer) = &checked.producer else {
            return append();
        };
        let mut producers = self.producers.lock();
        if let Some(known) = producers.check(producer, count)? {
            return Ok(known);
        }
        let sequenced = append()?;
        producers.record(
            producer,
            count,
            sequenced.base,
            max_timestamp,
            now.monotonic,
        );
        Ok(sequenced)
    }

    fn rules(&self, now: Timestamp) -> Rules {
        let (min, max) = if self.settings.log_append_time {
            (i64::MIN, i64::MAX)
        } else {
            let before = self.settings.timestamp_before_max_ms as i64;
            let after = self.settings.timestamp_after_max_ms as i64;
            (now.0.saturating_sub(before), now.0.saturating_add(after))
        };
        Rules {
            batch_bytes_max: self.settings.max_message_bytes as usize,
            decompressed_bytes_max: self.decompressed_bytes_max,
            keys_needed: self.settings.compact,
            timestamp_min: Timestamp(min),
            timestamp_max: Timestamp(max),
        }
    }

    fn refused(&self, error: &AppendError) -> ProduceError {
        match error {
            // The generation ended under the caller: it looks again where the partition is.
            AppendError::Fenced { .. }
            | AppendError::NotOpen { .. }
            | AppendError::NotHeld { .. }
            | AppendError::Truncated { .. }
            | AppendError::OutOfPlace { .. }
            | AppendError::NotABatch { .. } => {
                let ended = self.progress.ended().unwrap_or(Ended::Moved);
                crate::produce::ended(ended, self.address)
            }
            AppendError::Full(Full::Memory | Full::Journal) => Unavailable::Busy {
                retry_after: RETRY_AFTER,
            }
            .into(),
            AppendError::Full(Full::Disk) => Unavailable::DiskFull.into(),
            AppendError::TooLarge { .. } => ProduceError::Batch {
                class: Class::TooLarge,
                record: None,
                reason: error.to_string(),
            },
            AppendError::Poisoned => Unavailable::Stopping.into(),
        }
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) monotonic: Duration,
}

/// The bytes to append: as they came, or a copy with the times that hold here.
fn rewrite<'a>(
    batch: &'a [u8],
    checked: &Checked,
    log_append_time: Option<Timestamp>,
    copy: &'a mut Vec<u8>,
) -> &'a [u8] {
    if log_append_time.is_none() && checked.is_header_timestamp_right {
        return batch;
    }
    copy.clear();
    copy.extend_from_slice(batch);
    match log_append_time {
        Some(now) => batch::set_log_append_time(copy, now),
        None => batch::correct_max_timestamp(copy, checked.max_timestamp),
    }
    copy
}
