//! The controller: has commands agreed and applied, one after another, and makes this node do what follows from them.
//!
//! Guarantees: a command is answered when it is durable, applied and in effect here. What gathers while one flush runs shares the
//! next. Nobody else changes the catalog or the set of partitions.

mod effects;
mod machine;
mod sealing;

use floe_cluster::{Applied, Command};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use machine::{CATALOG_GROUP, Machine, fold};
pub(crate) use sealing::{Do, Sealing, Wanted};

use crate::Unavailable;

/// Commands that may wait.
pub(crate) const WAITING_MAX: usize = 1_024;
/// Commands that share one flush.
const BATCH_MAX: usize = 256;

/// A command and who asks.
pub(crate) struct Proposal {
    command: Command,
    reply: oneshot::Sender<Result<Applied, Unavailable>>,
}

/// Has a command committed and applied.
pub(crate) async fn propose(
    proposals: &mpsc::Sender<Proposal>,
    command: Command,
) -> Result<Applied, Unavailable> {
    let (reply, answer) = oneshot::channel();
    proposals
        .send(Proposal { command, reply })
        .await
        .map_err(|_| Unavailable::Stopping)?;
    answer.await.unwrap_or(Err(Unavailable::Stopping))
}

/// Serves proposals until the node stops or the log fails.
pub(crate) async fn run(
    mut machine: Machine,
    mut proposals: mpsc::Receiver<Proposal>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut gathered = Vec::new();
    loop {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            count = proposals.recv_many(&mut gathered, BATCH_MAX) => if count == 0 { return },
        }
        let (commands, replies): (Vec<_>, Vec<_>) = gathered
            .drain(..)
            .map(|proposal| (proposal.command, proposal.reply))
            .unzip();
        match machine.commit(&commands).await {
            Ok(applied) => {
                for (reply, applied) in replies.into_iter().zip(applied) {
                    // Whoever went away does not wait for the answer; the command holds.
                    drop(reply.send(Ok(applied)));
                }
            }
            Err(failure) => {
                tracing::error!(%failure, "the catalog cannot be written any more");
                return;
            }
        }
    }
}
