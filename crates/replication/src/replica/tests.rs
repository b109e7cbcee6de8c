//! Scenarios: what a replica is told, and what it then wants done.
//!
//! Node 1 is the replica in question, in its first life (`1`); its second is `1'`. Generation 5 begins at 100 and has
//! nodes 1, 2 and 3 with a quorum of two unless said. A batch that ends at 110 has checksum 110.

mod following;
mod leading;

use std::time::Duration;

use floe_model::{Boot, Incarnation, LeaderEpoch, NodeId, Offset};

use super::*;
use crate::Leader;
use crate::message::{
    Answer, Append, Ask, Checksum, Fence, Order, Outcome, Piece, Pull, Purpose, Refusal, Renew,
    Run, Session, Stamp,
};

const SETTINGS: Settings = Settings {
    window_bytes: 100,
    send_bytes_max: 50,
    resend_after: Duration::from_millis(200),
    lease: Terms {
        duration: Duration::from_millis(500),
        drift_ppm: 0,
    },
};

struct Case {
    replica: Replica,
    now: Duration,
}

fn member(text: &str) -> Member {
    Member {
        node: NodeId(text.trim_end_matches('\'').parse().unwrap()),
        incarnation: Incarnation(if text.ends_with('\'') { 2 } else { 1 }),
    }
}

fn batch(end: u64) -> Batch {
    Batch {
        end: Offset(end),
        checksum: Checksum(end as u32),
    }
}

/// Batches that end at these offsets, the first of which is where the run begins.
fn run(ends: &[u64]) -> Run {
    let previous = (ends[0] > 100).then_some(Checksum(ends[0] as u32));
    let batches = ends[1..].iter().copied().map(batch).collect();
    Run::new(Offset(ends[0]), previous, batches).unwrap()
}

fn opened(epoch: u32, start: u64, leader: &str) -> Opened {
    let leader_member = member(leader);
    Opened {
        epoch: LeaderEpoch(epoch),
        start: Offset(start),
        leader: Leader {
            node: leader_member.node,
            incarnation: leader_member.incarnation,
            boot: Boot(1),
        },
        members: ["1", "2", "3"].map(member).to_vec(),
        quorum: 2,
        has_table: false,
        leases: Vec::new(),
    }
}

fn append(session: u64, ends: &[u64], commit: u64) -> Event {
    Event::AppendArrived(Append {
        from: member("2"),
        to: member("1"),
        epoch: LeaderEpoch(5),
        start: Offset(100),
        session: Session(session),
        commit: Offset(commit),
        run: run(ends),
    })
}

fn answer(from: &str, session: u64, number: u64, outcome: Outcome) -> Event {
    Event::Answered(Answer {
        from: member(from),
        to: member("1"),
        epoch: LeaderEpoch(5),
        session: Session(session),
        stamp: Stamp {
            boot: Boot(1),
            number,
        },
        outcome,
    })
}

fn durable(from: &str, session: u64, number: u64, end: u64) -> Event {
    answer(from, session, number, Outcome::Durable(Offset(end)))
}

fn fence(to: &str, epoch: u32) -> Event {
    Event::FenceAsked(Fence {
        to: member(to),
        epoch: LeaderEpoch(epoch),
        start: Offset(100),
        ask: Ask(7),
    })
}

fn order(to: &str, epoch: u32, end: u64, purpose: Purpose, as_of: u64) -> Event {
    Event::CopyOrdered(Order {
        to: member(to),
        from: member("3"),
        epoch: LeaderEpoch(epoch),
        start: Offset(100),
        end: Offset(end),
        purpose,
        as_of,
        ask: Ask(8),
    })
}

fn piece(from: &str, ends: &[u64]) -> Event {
    Event::PieceArrived(Piece {
        from: member(from),
        to: member("1"),
        epoch: LeaderEpoch(5),
        run: run(ends),
    })
}

fn flushed(end: u64) -> Event {
    Event::Flushed {
        epoch: LeaderEpoch(5),
        end: Offset(end),
    }
}

fn sealed(end: u64) -> Event {
    Event::Sealed {
        epoch: LeaderEpoch(5),
        end: Offset(end),
        lossy: false,
    }
}

fn show(command: &Command) -> String {
    match command {
        Command::Open { epoch, start, .. } => format!("open {epoch} at {start}"),
        Command::Append { first, count, .. } => format!("append {count} from number {first}"),
        Command::Fence { fence, .. } => format!("fence {fence}"),
        Command::Truncate { epoch, end } => format!("truncate {epoch} to {end}"),
        Command::Forget(epoch) => format!("forget {epoch}"),
        Command::Send(send) => format!(
            "send {} in session {} from {} at most {} commit {}",
            send.to.node, send.session.0, send.base, send.bytes_max, send.commit
        ),
        Command::Answer(answer) => match answer.outcome {
            Outcome::Durable(end) => format!("durable {end} in session {}", answer.session.0),
            Outcome::Expected(end) => format!("expected {end} in session {}", answer.session.0),
            Outcome::Refused(refusal) => format!("refused: {refusal:?}"),
        },
        Command::Fenced { end, .. } => format!("fenced at {end}"),
        Command::Copied { epoch, end, .. } => format!("copied {epoch} to {end}"),
        Command::Refuse { refusal, .. } => format!("refused: {refusal:?}"),
        Command::Pull(pull) => format!("pull {} to {} of {}", pull.base, pull.end, pull.to.node),
        Command::Give(pull) => format!("give {} to {}", pull.base, pull.end),
        Command::AskLease(renew) => format!("ask lease of {}", renew.to.node),
        Command::GrantLease(_) => "grant lease".to_owned(),
        Command::Committed { offset, .. } => format!("committed {offset}"),
        Command::Ended { epoch } => format!("ended {epoch}"),
        Command::AskForSeal { epoch, why } => format!("ask for seal of {epoch}: {why:?}"),
        Command::Damaged { at, .. } => format!("damaged at {at}"),
    }
}

impl Case {
    /// Node 1 in its second boot, as its disk has it.
    fn of(boot: u32, fence: u32, recovered: &[Recovered]) -> Self {
        let fence = LeaderEpoch(fence);
        Self {
            replica: Replica::new(member("1"), Boot(boot), fence, recovered, SETTINGS),
            now: Duration::from_secs(100),
        }
    }

    fn new() -> Self {
        Self::of(1, 0, &[])
    }

    /// Node 1 leads generation 5.
    fn leading(opened: Opened) -> Self {
        let mut case = Self::new();
        case.tell(Event::Opened(opened), "open 5 at 100");
        case
    }

    fn tell(&mut self, event: Event, expected: &str) {
        let mut out = Vec::new();
        let words = format!("{event:?}");
        self.replica.step(self.now, event, &mut out);
        let shown: Vec<_> = out.iter().map(show).collect();
        assert_eq!(shown.join("; "), expected, "at {words}");
    }

    fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// The leader appends a batch of 10 bytes; it is sent to nodes 2 and 3 at once.
    fn append(&mut self, end: u64) {
        let epoch = LeaderEpoch(5);
        let batch = batch(end);
        let mut out = Vec::new();
        self.replica
            .step(self.now, Event::Appended { epoch, batch }, &mut out);
        while let Some(command) = out.pop() {
            if let Command::Send(send) = command {
                let sent = Sent {
                    to: send.to,
                    session: send.session,
                    end: Offset(end),
                    bytes: 10,
                };
                self.replica.step(self.now, Event::Sent(sent), &mut out);
            }
        }
    }
}
