//! Applying commands: the state machine. The only place where a catalog changes.
//!
//! Guarantees: deterministic; a refused command changes nothing (of a list, nothing for the refused one). What a node must do
//! because of a command is given back as [`Effect`]s; nothing is done here.

mod generation;
mod node;
mod topic;

use crate::PRODUCER_IDS_PER_BLOCK;
use crate::catalog::Catalog;
use crate::command::Command;
use crate::consensus::Payload;
use crate::format::{self, Undecodable};
use crate::{Effect, Refusal};

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// What nodes must do, in order.
    pub effects: Vec<Effect>,
    /// What was refused: the whole command, or members of its list.
    pub refused: Vec<Refusal>,
}

impl Applied {
    fn take(&mut self, outcome: Result<(), Refusal>) {
        self.refused.extend(outcome.err());
    }
}

impl Catalog {
    /// Applies an entry, whatever it is; what came of it if it is a command.
    pub fn apply_entry(
        &mut self,
        index: u64,
        payload: Payload,
    ) -> Result<Option<Applied>, Undecodable> {
        match payload {
            Payload::Blank | Payload::Known(_) => self.index = index,
            Payload::Configuration(configuration) => {
                self.index = index;
                self.configuration = configuration;
            }
            Payload::Command(command) => {
                return Ok(Some(self.apply(index, format::decode(&command)?)));
            }
        }
        Ok(None)
    }

    /// Applies the command of the entry at `index`.
    pub fn apply(&mut self, index: u64, command: Command) -> Applied {
        self.index = index;
        let mut applied = Applied::default();
        let out = &mut applied.effects;
        match command {
            Command::RegisterNode(node) => {
                let outcome = self.register(node);
                applied.take(outcome);
            }
            Command::ReplaceNode { node, replaces } => {
                let outcome = self.replace(node, replaces);
                applied.take(outcome);
            }
            Command::RenewCopies {
                node,
                incarnation,
                boot,
                copies,
            } => match self.speaks(node, incarnation, boot) {
                Ok(()) => {
                    for copy in copies {
                        let outcome = self.renew(node, copy);
                        applied.take(outcome);
                    }
                }
                Err(refusal) => applied.refused.push(refusal),
            },
            Command::CreateTopic(topic) => {
                let outcome = self.create(topic, out);
                applied.take(outcome);
            }
            Command::SealAndOpen(transitions) => {
                for transition in transitions {
                    let outcome = self.transit(transition, &mut applied.effects);
                    applied.take(outcome);
                }
            }
            Command::EndLeases(leases) => {
                for (partition, epoch) in leases {
                    let outcome = self.end_lease(partition, epoch, &mut applied.effects);
                    applied.take(outcome);
                }
            }
            Command::AddHolders(claims) => {
                for claim in claims {
                    let outcome = self.add_holder(claim);
                    applied.take(outcome);
                }
            }
            Command::Forget(list) => {
                for forgetting in list {
                    let outcome = self.forget(forgetting, &mut applied.effects);
                    applied.take(outcome);
                }
            }
            Command::DeleteTopic(id) => {
                let outcome = self.delete(id, out);
                applied.take(outcome);
            }
            Command::ConfirmDeleted { node, topics } => self.confirm(node, &topics),
            Command::AdvanceLogStart(starts) => {
                for (partition, to) in starts {
                    let outcome = self.advance(partition, to, &mut applied.effects);
                    applied.take(outcome);
                }
            }
            Command::ReserveProducerIds(node) => {
                let first = self.next_producer_id;
                self.next_producer_id += PRODUCER_IDS_PER_BLOCK;
                applied.effects.push(Effect::ProducerIdsReserved {
                    node,
                    first,
                    count: PRODUCER_IDS_PER_BLOCK,
                });
            }
        }
        applied
    }
}
