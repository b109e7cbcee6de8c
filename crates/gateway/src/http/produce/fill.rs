//! From a body to batches; pure.

use bytes::Bytes;
use floe_model::{PartitionIndex, Timestamp, TopicName, partition_for_key};

use super::super::media;
use super::batches::Batches;
use super::{Problem, frames, lines, records, unknown_partition};

/// What the query says of all records of a body.
pub(super) struct Common {
    pub(super) key: Option<Bytes>,
    pub(super) partition: Option<PartitionIndex>,
    pub(super) timestamp: Timestamp,
}

/// Where records go.
pub(super) struct To<'a> {
    pub(super) topic: &'a TopicName,
    pub(super) partitions: u32,
    /// Of records that do not say otherwise.
    pub(super) home: PartitionIndex,
}

/// Adds the records of a body; `false` if its media type has no structure, so that it is one record as a whole.
pub(super) fn fill(
    batches: &mut Batches,
    media: &str,
    body: &Bytes,
    common: &Common,
    to: &To<'_>,
) -> Result<bool, Problem> {
    let key = common.key.as_deref();
    match media {
        media::NDJSON => {
            for line in lines::lines(body) {
                batches.add(to.home, common.timestamp, key, Some(line), &[])?;
            }
        }
        media::FRAMES => {
            for frame in frames::frames(body) {
                batches.add(to.home, common.timestamp, key, Some(frame?), &[])?;
            }
        }
        media::RECORDS => fill_records(batches, body, common, to)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn fill_records(
    batches: &mut Batches,
    body: &Bytes,
    common: &Common,
    to: &To<'_>,
) -> Result<(), Problem> {
    if common.key.is_some() {
        return Err(Problem::bad(
            "invalid-parameter",
            "parameter 'partitionKey' does not go with this media type; give each record its 'key'",
        ));
    }
    records::each(body, |incoming| {
        let record = &incoming.record;
        let partition = match (incoming.partition, common.partition, &record.key) {
            (Some(own), _, _) if own.0 >= to.partitions => {
                return Err(unknown_partition(to.topic, to.partitions as usize, own));
            }
            (Some(own), _, _) => own,
            (None, None, Some(key)) => partition_for_key(key, to.partitions),
            (None, _, _) => to.home,
        };
        let timestamp = match record.timestamp {
            Timestamp::NONE => common.timestamp,
            own => own,
        };
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(n, v)| (&n[..], v.as_deref()))
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        batches.add(partition, timestamp, key, value, &headers)
    })
}
