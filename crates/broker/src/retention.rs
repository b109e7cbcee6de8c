//! Deleting old data: whole segments, by time and by size.
//!
//! Guarantees: a segment goes only when every record in it is older than `retention.ms`, or when the partition stays at or above
//! `retention.bytes` without it; never anything above the commit offset; the log start is in the catalog before a file
//! goes, so a file never goes that the catalog still promises. What is old is judged by the node's clock.

use std::sync::Arc;

use floe_cluster::{Command, TopicSettings};
use floe_log::SegmentInfo;
use floe_model::{Offset, Timestamp, TopicPartition};
use floe_world::tasks;

use crate::fetch::check;
use crate::node::Node;
use crate::{OffsetError, Unavailable};

/// Log starts that share one entry of the catalog.
const STARTS_PER_ENTRY: usize = 1_000;

impl Node {
    /// See [`Broker::enforce_retention`](crate::Broker::enforce_retention).
    pub(crate) async fn enforce_retention(self: &Arc<Self>) -> Result<(), Unavailable> {
        let node = Arc::clone(self);
        let starts = tasks::blocking(move || node.starts_due()).await;
        for chunk in starts.chunks(STARTS_PER_ENTRY) {
            self.propose(Command::AdvanceLogStart(chunk.to_vec()))
                .await?;
        }
        Ok(())
    }

    /// Partitions whose log start may rise, and to where. Blocks: the log may look at its directories.
    fn starts_due(&self) -> Vec<(TopicPartition, Offset)> {
        let now = self.world.clock.now();
        let mut starts = Vec::new();
        for partition in self.all_partitions() {
            let segments = self.log.segments(&partition.log);
            let kept_from = partition.log_start();
            let committed = partition.committed();
            let to = retained_from(&segments, &partition.settings, now, kept_from, committed);
            if to > kept_from {
                starts.push((partition.address, to));
            }
        }
        starts
    }

    /// See [`Broker::advance_log_start`](crate::Broker::advance_log_start).
    pub(crate) async fn advance_log_start(
        &self,
        address: TopicPartition,
        to: Offset,
    ) -> Result<Offset, OffsetError> {
        let partition = self.led(address, None)?;
        let committed = partition.committed();
        if to > committed {
            return Err(OffsetError::OutOfRange {
                offset: to,
                log_start: partition.log_start(),
                end: committed,
            });
        }
        if to > partition.log_start() {
            self.propose(Command::AdvanceLogStart(vec![(address, to)]))
                .await?;
        }
        check(&partition, None)?;
        Ok(partition.log_start())
    }
}

/// The first offset to keep.
fn retained_from(
    segments: &[SegmentInfo],
    settings: &TopicSettings,
    now: Timestamp,
    log_start: Offset,
    committed: Offset,
) -> Offset {
    let mut left: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut kept_from = log_start;
    for segment in segments {
        let is_old = settings.retention_ms.is_some_and(|retention| {
            segment.max_timestamp.is_some_and(|newest| {
                newest != Timestamp::NONE && newest.0.saturating_add_unsigned(retention) < now.0
            })
        });
        let is_beyond_size = !segment.is_open
            && settings
                .retention_bytes
                .is_some_and(|limit| left.saturating_sub(segment.bytes) >= limit);
        let is_gone_already = segment.end <= log_start;
        if segment.end > committed || !(is_old || is_beyond_size || is_gone_already) {
            break;
        }
        left -= segment.bytes;
        kept_from = kept_from.max(segment.end);
    }
    kept_from
}

#[cfg(test)]
mod tests {
    use floe_model::LeaderEpoch;

    use super::*;

    fn segment(base: u64, end: u64, newest: i64) -> SegmentInfo {
        SegmentInfo {
            epoch: LeaderEpoch(0),
            base: Offset(base),
            end: Offset(end),
            bytes: 100,
            max_timestamp: Some(Timestamp(newest)),
            is_open: false,
        }
    }

    fn kept(segments: &[SegmentInfo], settings: &TopicSettings, now: i64, committed: u64) -> u64 {
        let zero = Offset::ZERO;
        retained_from(segments, settings, Timestamp(now), zero, Offset(committed)).0
    }

    #[test]
    fn segments_go_by_time_oldest_first_and_never_past_a_younger_one() {
        let settings = TopicSettings {
            retention_ms: Some(10),
            ..TopicSettings::default()
        };
        let segments = [segment(0, 5, 100), segment(5, 9, 120), segment(9, 12, 90)];
        assert_eq!(kept(&segments, &settings, 110, 12), 0);
        assert_eq!(kept(&segments, &settings, 111, 12), 5);
        assert_eq!(kept(&segments, &settings, 131, 12), 12);
        let for_ever = TopicSettings {
            retention_ms: None,
            ..settings
        };
        assert_eq!(kept(&segments, &for_ever, i64::MAX, 12), 0);
    }

    #[test]
    fn segments_go_by_size_while_enough_stays() {
        let settings = TopicSettings {
            retention_ms: None,
            retention_bytes: Some(150),
            ..TopicSettings::default()
        };
        let mut segments = [segment(0, 5, 1), segment(5, 9, 1), segment(9, 12, 1)];
        segments[2].is_open = true;
        assert_eq!(kept(&segments, &settings, 1, 12), 5);
        let none = TopicSettings {
            retention_bytes: Some(0),
            ..settings
        };
        assert_eq!(kept(&segments, &none, 1, 12), 9, "the open segment stays");
    }

    #[test]
    fn nothing_above_the_commit_offset_goes() {
        let settings = TopicSettings {
            retention_ms: Some(0),
            ..TopicSettings::default()
        };
        let segments = [segment(0, 5, 1), segment(5, 9, 1)];
        assert_eq!(kept(&segments, &settings, 100, 8), 5);
    }

    #[test]
    fn a_segment_of_unknown_age_stays() {
        let settings = TopicSettings {
            retention_ms: Some(0),
            ..TopicSettings::default()
        };
        let mut unknown = segment(0, 5, -1);
        assert_eq!(kept(&[unknown.clone()], &settings, 100, 9), 0);
        unknown.max_timestamp = None;
        assert_eq!(kept(&[unknown], &settings, 100, 9), 0);
    }
}
