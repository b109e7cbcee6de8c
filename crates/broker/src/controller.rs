//! The controller: has commands agreed among the nodes and applied, and makes this node do what follows from them.
//!
//! ```text
//! doors ──proposals──► Driver (async) ──events──► Agreement (pure) ──commands──► Driver: Stores ► log, effects ► copies, peers
//! peers, copies ─────►                 ──events──► Lead (pure): Watch, plans, Sealing ──► fences, proposals, heartbeats
//! ```
//! Guarantees: a command is answered when it is agreed, applied and in effect here. What gathers while one flush runs shares the
//! next. Nobody else changes the catalog or the set of partitions.

mod agreement;
mod asks;
mod effects;
mod lead;
mod run;
pub(crate) mod sealing;
mod stores;
mod stream;
mod watch;

use std::sync::{Arc, OnceLock};

use floe_cluster::{Applied, Command};
use floe_log::Failure;
use tokio::sync::{mpsc, oneshot};

pub(crate) use agreement::Agreement;
pub(crate) use run::{Driver, Ears};
pub(crate) use stream::{CATALOG_GROUP, fold};

use crate::Unavailable;

/// Commands that may wait, before they are taken up and after.
pub(crate) const WAITING_MAX: usize = 1_024;

/// A command and who asks.
pub(crate) struct Proposal {
    command: Command,
    reply: oneshot::Sender<Result<Applied, Unavailable>>,
}

/// Where commands are proposed.
#[derive(Clone)]
pub(crate) struct Proposals {
    sender: mpsc::Sender<Proposal>,
    failure: Arc<OnceLock<Failure>>,
}

impl Proposals {
    /// ... and where they come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Proposal>) {
        let (sender, received) = mpsc::channel(WAITING_MAX);
        let failure = Arc::default();
        (Self { sender, failure }, received)
    }

    /// Has a command agreed and applied.
    pub(crate) async fn propose(&self, command: Command) -> Result<Applied, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.sender
            .send(Proposal { command, reply })
            .await
            .map_err(|_| Unavailable::Stopping)?;
        answer.await.unwrap_or(Err(Unavailable::Stopping))
    }

    /// Why nothing is agreed any more, if the log has failed.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }
}
