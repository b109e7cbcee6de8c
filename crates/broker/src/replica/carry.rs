//! Carrying out what the machine commands: to the log, to other nodes, to this node.
//!
//! Guarantees: nothing waits; an answer goes to who asked; what is meant for this node itself goes nowhere else.

use std::sync::Weak;

use bytes::Bytes;
use floe_cluster::format::{self, Descriptor};
use floe_log::Receipt;
use floe_model::NodeId;
use floe_replication::replica::{Command, Event};
use floe_world::tasks;

use super::feed::Feeding;
use super::{Machine, Replica};
use crate::partition::Ended;
use crate::peers::{Fenced, Message};

impl Replica {
    pub(super) fn carry_out(
        &self,
        machine: &mut Machine,
        command: Command,
        receipts: &mut Vec<Receipt>,
    ) {
        let log = &self.outside.log;
        match command {
            Command::Open {
                epoch,
                start,
                since,
            } => {
                let descriptor = descriptor(machine, since);
                receipts.push(log.open_generation(&self.log, epoch, start, descriptor));
            }
            Command::Append {
                epoch,
                first,
                count,
            } => self.append_at_hand(machine, epoch, first, count),
            Command::Fence { fence, number } => {
                let receipt = log.fence(&self.log, fence);
                self.when(receipt, move |_| Event::FenceFlushed(number));
            }
            Command::Truncate { epoch, end } => receipts.push(log.truncate(&self.log, epoch, end)),
            Command::Forget(epoch) => {
                let receipt = log.forget_generation(&self.log, epoch);
                self.when(receipt, move |()| Event::ForgetFlushed(epoch));
            }
            Command::Committed { epoch, offset } => {
                if let Some(led) = self.led.load().as_ref().filter(|led| led.epoch == epoch) {
                    led.progress.advance(offset);
                }
            }
            Command::Ended { .. } => self.end(Ended::Moved),
            Command::Send(send) => self.feed(machine, Feeding::Follower(send)),
            Command::Give(pull) => self.feed(machine, Feeding::Copier(pull)),
            word => self.tell(machine, word),
        }
    }

    /// Words for another node or for this one's controller.
    fn tell(&self, machine: &mut Machine, word: Command) {
        let partition = self.address;
        match word {
            Command::Answer(answer) => {
                self.post(answer.to.node, Message::Answer { partition, answer });
            }
            Command::Pull(pull) => self.post(pull.to.node, Message::Pull { partition, pull }),
            Command::AskLease(renew) => {
                let ask = (partition, renew);
                self.outside.gather(renew.to.node, |to| to.asks.push(ask));
            }
            Command::GrantLease(renew) => {
                let grant = (partition, renew);
                self.outside
                    .gather(renew.from.node, |to| to.grants.push(grant));
            }
            Command::Fenced { ask, .. }
            | Command::Copied { ask, .. }
            | Command::Refuse { ask, .. } => {
                if let Some((by, theirs)) = machine.asks.take(ask) {
                    self.answer(by, with_ask(word, theirs));
                }
            }
            wish => self.outside.say(partition, wish),
        }
    }

    /// Answers a controller, which may be this node's.
    fn answer(&self, to: NodeId, word: Command) {
        let partition = self.address;
        match word {
            word if to == self.outside.node => self.outside.say(partition, word),
            Command::Fenced { from, ask, end } => {
                let fenced = Fenced {
                    partition,
                    from,
                    ask,
                    end,
                };
                self.outside.gather(to, |to| to.fenced.push(fenced));
            }
            Command::Copied {
                from,
                ask,
                epoch,
                end,
            } => self.post(
                to,
                Message::Copied {
                    partition,
                    from,
                    ask,
                    epoch,
                    end,
                },
            ),
            Command::Refuse { ask, refusal } => self.post(
                to,
                Message::Refusal {
                    partition,
                    ask,
                    refusal,
                },
            ),
            _ => unreachable!("an answer to a request"),
        }
    }

    /// What is refused is lost like a message: the machines say again what matters.
    fn post(&self, to: NodeId, message: Message) {
        if to != self.outside.node
            && let Err(unsent) = self.outside.transport.send(to, message)
        {
            tracing::debug!(partition = %self.address, %unsent, "a word of a copy is lost");
        }
    }

    /// Steps once the log has kept its promise.
    fn when<T: Send + 'static>(
        &self,
        receipt: Receipt<T>,
        event: impl FnOnce(T) -> Event + Send + 'static,
    ) {
        let itself = Weak::clone(&self.itself);
        tasks::spawn(async move {
            let kept = receipt.await;
            let Some(replica) = itself.upgrade() else {
                return;
            };
            match kept {
                Ok(kept) => {
                    let receipts = replica.step(event(kept));
                    debug_assert!(receipts.is_empty(), "a flush opens nothing");
                }
                Err(failure) => replica.outside.failed(failure),
            }
        });
    }
}

/// What is kept with a generation that begins: as the catalog opened it, or since when it is copied.
fn descriptor(machine: &Machine, since: u64) -> Bytes {
    if since == 0 {
        return machine.descriptor.clone();
    }
    format::encode_descriptor(&Descriptor {
        since,
        ..Descriptor::default()
    })
}

/// The same answer by another name of its request.
fn with_ask(mut word: Command, theirs: floe_replication::message::Ask) -> Command {
    if let Command::Fenced { ask, .. } | Command::Copied { ask, .. } | Command::Refuse { ask, .. } =
        &mut word
    {
        *ask = theirs;
    }
    word
}
