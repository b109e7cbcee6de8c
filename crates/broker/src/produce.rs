//! Appending: what is asked, and what is answered once the commit offset has passed it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use floe_model::{LeaderEpoch, Offset, ProducerId, Timestamp, TopicPartition};

use crate::partition::{Ended, Partition, Ticket};
use crate::{ProduceError, Unavailable};

/// How a batch is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProduceOptions {
    /// The batch was built by this node (HTTP's records, Floe's own topics), not taken from a client's bytes: control
    /// batches and internal topics are open to it.
    pub internal: bool,
}

/// Where a batch came to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Offset of its first record; a duplicate's is the original's.
    pub base_offset: Offset,
    /// The broker's time, when the topic takes it instead of the producer's.
    pub log_append_time: Option<Timestamp>,
    /// First offset kept.
    pub log_start: Offset,
    /// Epoch it was written in.
    pub epoch: LeaderEpoch,
}

/// An append on its way: resolves when the commit offset has passed it, or when it never will.
#[must_use = "an append is acknowledged only when this resolves"]
#[derive(Debug)]
pub struct Pending {
    partition: Arc<Partition>,
    produced: Produced,
    end: Offset,
    ticket: Option<Ticket>,
}

impl Pending {
    pub(crate) fn new(partition: Arc<Partition>, produced: Produced, end: Offset) -> Self {
        Self {
            partition,
            produced,
            end,
            ticket: None,
        }
    }

    /// Where the batch will lie, without waiting for it to be durable.
    pub fn assigned(&self) -> Produced {
        self.produced
    }
}

impl Future for Pending {
    type Output = Result<Produced, ProduceError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let progress = &this.partition.progress;
        let reached = progress.poll_reached(this.end, &mut this.ticket, context);
        reached.map(|reached| match reached {
            Ok(()) => {
                this.produced.log_start = this.partition.log_start();
                Ok(this.produced)
            }
            Err(why) => Err(ended(why, this.partition.address)),
        })
    }
}

/// What a caller is told whose append the ended generation does not decide.
pub(crate) fn ended(why: Ended, address: TopicPartition) -> ProduceError {
    match why {
        Ended::Deleted => ProduceError::UnknownPartition(address),
        Ended::Moved => ProduceError::NotLeader(address),
        Ended::Stopping => Unavailable::Stopping.into(),
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.partition.progress.forget(self.ticket);
    }
}

/// What an idempotent producer is given (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// Its id.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: i16,
}
