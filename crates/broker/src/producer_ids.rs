//! Ids for idempotent producers, from blocks reserved in the catalog.
//!
//! Guarantees: no id is given out twice, also across restarts: a block is durable in the catalog before its first id leaves, and
//! what is left of it dies with the process.

use std::ops::Range;

use floe_cluster::{Command, Effect};
use floe_model::{NodeId, ProducerId};
use tokio::sync::Mutex;

use crate::node::Node;
use crate::{ProducerIdentity, Unavailable};

/// The block in use.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds(Mutex<Range<u64>>);

impl Node {
    /// See [`Broker::init_producer_id`](crate::Broker::init_producer_id).
    pub(crate) async fn init_producer_id(&self) -> Result<ProducerIdentity, Unavailable> {
        let mut block = self.producer_ids.0.lock().await;
        if block.is_empty() {
            *block = self.reserve().await?;
        }
        let id = block.next().ok_or(Unavailable::Stopping)?;
        Ok(ProducerIdentity {
            id: ProducerId(id as i64),
            epoch: 0,
        })
    }

    async fn reserve(&self) -> Result<Range<u64>, Unavailable> {
        let me: NodeId = self.settings.node;
        let applied = self.propose(Command::ReserveProducerIds(me)).await?;
        let block = applied.effects.iter().find_map(|effect| match effect {
            Effect::ProducerIdsReserved { node, first, count } if *node == me => {
                Some(*first..first + count)
            }
            _ => None,
        });
        Ok(block.unwrap_or_default())
    }
}
