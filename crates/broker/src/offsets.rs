//! Looking up offsets: ends, times, epochs.

mod scan;

use std::sync::Arc;

use floe_log::{ReadError, TimeLookup};
use floe_model::{LeaderEpoch, Offset, Timestamp, TopicPartition};

use self::scan::Wanted;
use crate::fetch::{check, failed};
use crate::node::Node;
use crate::partition::Partition;
use crate::{EpochEnd, OffsetError};

/// What is looked for (Kafka's ListOffsets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// -1: the next offset a reader will see.
    Latest,
    /// -2: the first offset kept.
    Earliest,
    /// -3: the record with the largest time (KIP-734).
    MaxTimestamp,
    /// -4: the first offset kept on local disks (KIP-405).
    EarliestLocal,
    /// -5: the last offset in tiered storage (KIP-1005).
    LatestTiered,
    /// -6: the first offset that waits for tiering (KIP-1023).
    EarliestPendingUpload,
    /// The first record at or after this time.
    Time(Timestamp),
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset.
    pub offset: Offset,
    /// The record's own time, when a record was looked for; else none.
    pub timestamp: Timestamp,
    /// The epoch that holds for this offset.
    pub epoch: LeaderEpoch,
}

impl Node {
    /// The partition, if it is led here and the caller's epoch is the current one.
    pub(crate) fn led(
        &self,
        address: TopicPartition,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Arc<Partition>, OffsetError> {
        let partition = self.partition(address).ok_or_else(|| {
            if self.is_elsewhere(address) {
                OffsetError::NotLeader(address)
            } else {
                OffsetError::UnknownPartition(address)
            }
        })?;
        check(&partition, current_epoch)?;
        Ok(partition)
    }

    /// See [`Broker::list_offset`](crate::Broker::list_offset).
    pub(crate) async fn list_offset(
        &self,
        address: TopicPartition,
        spec: OffsetSpec,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<FoundOffset>, OffsetError> {
        let partition = self.led(address, current_epoch)?;
        let committed = partition.committed();
        match spec {
            OffsetSpec::Latest => Ok(Some(self.bound(&partition, committed))),
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                Ok(Some(self.bound(&partition, partition.log_start())))
            }
            // Nothing is tiered.
            OffsetSpec::LatestTiered | OffsetSpec::EarliestPendingUpload => Ok(None),
            OffsetSpec::MaxTimestamp => {
                let found = self.log.max_timestamp(&partition.log, committed).await;
                self.kept(&partition, found, Wanted::Largest, committed)
                    .await
            }
            OffsetSpec::Time(at) => {
                let log = &partition.log;
                let found = self.log.offset_for_time(log, at, committed).await;
                self.kept(&partition, found, Wanted::From(at), committed)
                    .await
            }
        }
    }

    /// What the log found, if it is still to be seen; else the right answer among what is.
    async fn kept(
        &self,
        partition: &Partition,
        found: Result<Option<TimeLookup>, ReadError>,
        wanted: Wanted,
        up_to: Offset,
    ) -> Result<Option<FoundOffset>, OffsetError> {
        let found = match found.map_err(failed)? {
            Some(below) if below.offset < partition.log_start() => {
                scan::from_log_start(self, partition, wanted, up_to).await?
            }
            other => other,
        };
        Ok(found.map(Into::into))
    }

    /// An end of the log, with the epoch that holds there.
    fn bound(&self, partition: &Partition, offset: Offset) -> FoundOffset {
        let catalog = self.catalog.load();
        let epoch = catalog
            .partition(partition.address)
            .map_or(partition.epoch, |known| known.chain().epoch_at(offset));
        FoundOffset {
            offset,
            timestamp: Timestamp::NONE,
            epoch,
        }
    }

    /// See [`Broker::offset_for_epoch`](crate::Broker::offset_for_epoch).
    pub(crate) fn offset_for_epoch(
        &self,
        address: TopicPartition,
        epoch: LeaderEpoch,
        current_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<EpochEnd>, OffsetError> {
        let partition = self.led(address, current_epoch)?;
        let catalog = self.catalog.load();
        let known = catalog
            .partition(address)
            .ok_or(OffsetError::UnknownPartition(address))?;
        Ok(known.chain().epoch_end(epoch, partition.committed()))
    }
}

impl From<TimeLookup> for FoundOffset {
    fn from(found: TimeLookup) -> Self {
        Self {
            offset: found.offset,
            timestamp: found.timestamp,
            epoch: found.epoch,
        }
    }
}
