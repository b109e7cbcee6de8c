//! What a restart finds of a copy in the log, as the machine is told it.

use std::sync::Arc;

use floe_cluster::format;
use floe_log::{Generation, Log, PartitionLog};
use floe_model::LeaderEpoch;
use floe_replication::message::Checksum;
use floe_replication::replica::Recovered;

/// Every generation held. What the catalog has sealed, all below `open`, is not read for its last batch: where the log does not know
/// that by itself the generation was cut or is of an earlier release, and so whole.
pub(crate) async fn recovered(
    log: &Log,
    partition: &Arc<PartitionLog>,
    open: LeaderEpoch,
) -> Vec<Recovered> {
    let mut found = Vec::new();
    for held in partition.generations() {
        let last = match held.last {
            None if held.epoch >= open => last_batch(log, partition, held.epoch).await,
            known => known.map(Checksum),
        };
        found.push(Recovered {
            epoch: held.epoch,
            start: held.start,
            end: held.end,
            last,
            since: since(partition, &held),
        });
    }
    found
}

/// The index of the catalog that a copy was begun at. One that cannot be read is of a later release: nothing that the catalog let go
/// before is taken for it.
fn since(partition: &PartitionLog, held: &Generation) -> u64 {
    match format::decode_descriptor(&held.descriptor) {
        Ok(descriptor) => descriptor.since,
        Err(error) => {
            tracing::warn!(partition = %partition.partition(), epoch = held.epoch.0, %error, "what is kept with a generation cannot be read");
            u64::MAX
        }
    }
}

/// The checksum of a generation's last batch. One that cannot be read is compared with nothing; reading it tells the loss.
async fn last_batch(
    log: &Log,
    partition: &Arc<PartitionLog>,
    epoch: LeaderEpoch,
) -> Option<Checksum> {
    match log.last_checksum(partition, epoch).await {
        Ok(last) => last.map(Checksum),
        Err(error) => {
            tracing::warn!(partition = %partition.partition(), epoch = epoch.0, %error, "the last batch cannot be read");
            None
        }
    }
}
