//! Reading what another copy lacks, and sending it: appends to a follower, pieces to a member that copies.
//!
//! Guarantees: what memory holds is sent by reference and at once; what only segments hold is read off this thread. A send that was
//! begun is reported to the machine, be it sent or not; what the transport has no room for now is tried again at the next
//! tick, what cannot be read a while later. Order: all under the machine's lock, so that a refusal for want of a connection
//! is taken in before whatever the transport says next.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use floe_log::format::batch::walk;
use floe_log::{Log, Outcome, PartitionLog, ReadError};
use floe_model::{LeaderEpoch, Offset};
use floe_replication::message::{Append, Batch, Before, Checksum, Piece, Pull, Run};
use floe_replication::replica::{Event, Send, Sent};
use floe_world::tasks;

use super::{Machine, Replica, SETTINGS};
use crate::peers::{BATCHES_MAX, Batches, Message, Unsent};

/// Something to be sent that had no room, or could not be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stuck {
    feeding: Feeding,
    /// Not tried again before.
    until: Duration,
}

/// For whom a stretch is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Feeding {
    Follower(Send),
    Copier(Pull),
}

/// A stretch of one generation.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    epoch: LeaderEpoch,
    base: Offset,
    up_to: Offset,
    bytes_max: usize,
    before: Before,
}

impl Replica {
    /// Reads and sends.
    pub(super) fn feed(&self, machine: &mut Machine, feeding: Feeding) {
        let stretch = match feeding {
            Feeding::Follower(send) => Stretch {
                epoch: send.epoch,
                base: send.base,
                up_to: Offset(u64::MAX),
                bytes_max: send.bytes_max,
                before: machine.replica.before(send.epoch, send.base),
            },
            Feeding::Copier(pull) => Stretch {
                epoch: pull.epoch,
                base: pull.base,
                up_to: pull.end,
                bytes_max: SETTINGS.send_bytes_max,
                before: machine.replica.before(pull.epoch, pull.base),
            },
        };
        let (log, partition) = (self.outside.log.clone(), Arc::clone(&self.log));
        let mut read = Box::pin(read(log, partition, stretch));
        // What is in memory is there at the first look.
        if let Poll::Ready(found) = read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            self.send(machine, feeding, found);
            return;
        }
        let itself = self.itself.clone();
        tasks::spawn(async move {
            let found = read.await;
            if let Some(replica) = itself.upgrade() {
                let mut machine = replica.machine.lock();
                replica.send(&mut machine, feeding, found);
                let opened = replica.pump(&mut machine, None);
                debug_assert!(opened.is_empty(), "sending opens nothing");
            }
        });
    }

    fn send(
        &self,
        machine: &mut Machine,
        feeding: Feeding,
        found: Result<(Run, Batches), ReadError>,
    ) {
        let now = self.outside.clock.monotonic();
        let (run, batches) = match found {
            Ok(found) => found,
            Err(error) => {
                // The log has named what is lost; a leader that lacks it goes on asking until the generation ends.
                tracing::debug!(partition = %self.address, ?feeding, %error, "what another copy lacks cannot be read");
                let until = now + SETTINGS.resend_after;
                machine.stuck.push(Stuck { feeding, until });
                return;
            }
        };
        let (to, message, sent) = match feeding {
            Feeding::Follower(send) => {
                let sent = Sent {
                    to: send.to,
                    session: send.session,
                    end: run.end(),
                    bytes: batches.bytes(),
                };
                (send.to, self.append_of(&send, run, batches), Some(sent))
            }
            Feeding::Copier(pull) => (pull.from, self.piece_of(&pull, run, batches), None),
        };
        match self.outside.transport.send(to.node, message) {
            Ok(()) => machine.more.extend(sent.map(Event::Sent)),
            Err(Unsent::Disconnected(_)) => {
                let is_connected = false;
                machine
                    .more
                    .push_back(Event::ConnectionChanged { to, is_connected });
            }
            Err(Unsent::Full { .. }) => machine.stuck.push(Stuck {
                feeding,
                until: now,
            }),
            Err(unsent @ Unsent::Large { .. }) => {
                tracing::warn!(partition = %self.address, to = %to.node, %unsent, "a copy cannot be fed");
                let until = now + SETTINGS.resend_after;
                machine.stuck.push(Stuck { feeding, until });
            }
        }
    }

    fn append_of(&self, send: &Send, run: Run, batches: Batches) -> Message {
        let append = Append {
            from: send.from,
            to: send.to,
            epoch: send.epoch,
            start: send.start,
            session: send.session,
            commit: send.commit,
            run,
        };
        Message::Append {
            partition: self.address,
            append,
            batches,
        }
    }

    fn piece_of(&self, pull: &Pull, run: Run, batches: Batches) -> Message {
        let piece = Piece {
            from: pull.to,
            to: pull.from,
            epoch: pull.epoch,
            run,
        };
        Message::Piece {
            partition: self.address,
            piece,
            batches,
        }
    }

    /// Tries again what found no room, as far as it is time.
    pub(super) fn unstick(&self, machine: &mut Machine) {
        let now = self.outside.clock.monotonic();
        for stuck in std::mem::take(&mut machine.stuck) {
            match stuck.feeding {
                _ if now < stuck.until => machine.stuck.push(stuck),
                // Nothing was sent: the machine says anew what, if it still wants it.
                Feeding::Follower(send) => machine.more.push_back(Event::Sent(Sent {
                    to: send.to,
                    session: send.session,
                    end: send.base,
                    bytes: 0,
                })),
                Feeding::Copier(_) => self.feed(machine, stuck.feeding),
            }
        }
    }
}

async fn read(
    log: Log,
    partition: Arc<PartitionLog>,
    stretch: Stretch,
) -> Result<(Run, Batches), ReadError> {
    let bytes_max = stretch.bytes_max;
    let (mut is_known, mut previous) = match stretch.before {
        Before::Nothing => (true, None),
        Before::Batch(checksum) => (true, Some(checksum)),
        Before::Forgotten => (false, None),
    };
    if is_known && bytes_max == 0 {
        return Ok(cut(stretch.base, previous, 0, &[]));
    }
    loop {
        // The batch before tells its checksum, if it is not remembered.
        let back = u64::from(!is_known);
        let from = Offset(stretch.base.0.saturating_sub(back));
        let (epoch, up_to) = (stretch.epoch, stretch.up_to);
        let outcome = log.read_generation(&partition, epoch, from, up_to, bytes_max, true)?;
        let slices = match outcome {
            Outcome::Memory(slices) => slices,
            Outcome::Cold(read) => read.await?,
        };
        if !is_known {
            previous = last_before(stretch.base, &slices.batches);
        }
        let found = cut(stretch.base, previous, bytes_max, &slices.batches);
        if is_known || bytes_max == 0 || !found.1.is_empty() {
            return Ok(found);
        }
        is_known = true;
    }
}

/// Checksum of the last batch that ends at or below `base`.
fn last_before(base: Offset, parts: &[Bytes]) -> Option<Checksum> {
    let all = parts.iter().flat_map(|part| walk(part));
    let below = all.take_while(|(_, head)| head.end() <= base.0);
    below.last().map(|(_, head)| Checksum(head.crc()))
}

/// What follows `base` in these bytes, batch by batch, the bytes by reference.
fn cut(
    base: Offset,
    previous: Option<Checksum>,
    bytes_max: usize,
    parts: &[Bytes],
) -> (Run, Batches) {
    let (mut sizes, mut kept, mut batches) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let mut range = 0..0;
        for (place, head) in walk(part) {
            if head.end() <= base.0 {
                range = place.end..place.end;
                continue;
            }
            if batches.len() == BATCHES_MAX || bytes_max == 0 {
                break;
            }
            range.end = place.end;
            sizes.push(place.len() as u32);
            batches.push(Batch {
                end: Offset(head.end()),
                checksum: Checksum(head.crc()),
            });
        }
        if !range.is_empty() {
            kept.push(part.slice(range));
        }
    }
    let run = Run::new(base, previous, batches).expect("the log's batches follow one another");
    let batches = Batches::new(sizes, kept).expect("each batch lies in one part");
    (run, batches)
}
