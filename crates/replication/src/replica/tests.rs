//! Scenarios: what a replica is told, and what it then wants done.
//!
//! Node 1 is the replica in question, in its first life (`1`); its second is `1'`. Generation 5 begins at 100 and has
//! nodes 1, 2 and 3 with a quorum of two unless said. A batch that ends at 110 has checksum 110.

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

#[test]
fn a_follower_takes_what_follows_and_answers_after_the_flush() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(append(1, &[110, 120], 100), "append 1 from number 0");
    case.tell(flushed(110), "durable 110 in session 1");
    case.tell(flushed(120), "durable 120 in session 1");
    // What overlaps is compared and not taken again; what is there already is answered at once.
    case.tell(append(1, &[110, 120, 130], 100), "append 1 from number 1");
    case.tell(append(1, &[100, 110], 100), "durable 120 in session 1");
}

#[test]
fn a_gap_is_answered_once_and_the_leader_goes_on_in_a_new_session() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(append(1, &[120, 130], 100), "expected 110 in session 1");
    case.tell(append(1, &[130, 140], 100), "");
    case.tell(append(2, &[110, 120], 100), "append 1 from number 0");
    case.tell(append(1, &[120, 130], 100), "");
    case.tell(flushed(120), "durable 120 in session 2");
}

#[test]
fn a_commit_offset_is_believed_up_to_the_own_end() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 150),
        "open 5 at 100; append 1 from number 0",
    );
    assert_eq!(case.replica.committed(LeaderEpoch(5)), Some(Offset(110)));
}

#[test]
fn other_bytes_below_the_end_are_damage_and_are_not_taken() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110, 120], 100),
        "open 5 at 100; append 2 from number 0",
    );
    case.tell(
        append(1, &[115, 125], 100),
        "damaged at 115; refused: Damaged",
    );
    case.tell(append(2, &[120, 130], 100), "refused: Damaged");
    case.tell(fence("1", 5), "refused: Damaged");
}

#[test]
fn what_is_meant_for_another_life_is_not_for_this_one() {
    let mut case = Case::new();
    case.replica.me = member("1'");
    case.tell(append(1, &[100, 110], 100), "refused: Stranger");
    case.tell(fence("1", 5), "refused: Stranger");
    case.tell(order("1", 5, 110, Purpose::Repair, 0), "refused: Stranger");
    let renew = Renew {
        from: member("2"),
        to: member("1"),
        epoch: LeaderEpoch(5),
        sent_at: Duration::ZERO,
    };
    case.tell(Event::LeaseAsked(renew), "");
}

#[test]
fn a_fence_lies_behind_what_was_accepted_and_silence_follows() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(fence("1", 5), "fence 6");
    case.tell(
        append(1, &[110, 120], 100),
        "refused: Fenced(LeaderEpoch(6))",
    );
    // The flush of what lies before it is nobody's business but the fence's.
    case.tell(flushed(110), "");
    case.tell(Event::FenceFlushed(2), "fenced at 110");
    let renew = Renew {
        from: member("2"),
        to: member("1"),
        epoch: LeaderEpoch(5),
        sent_at: Duration::ZERO,
    };
    case.tell(Event::LeaseAsked(renew), "");
}

#[test]
fn excess_is_cut_when_the_catalog_has_sealed_and_not_before() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110, 120], 100),
        "open 5 at 100; append 2 from number 0",
    );
    case.tell(flushed(120), "durable 120 in session 1");
    case.tell(order("1", 5, 110, Purpose::Repair, 0), "fence 6");
    case.tell(Event::FenceFlushed(2), "copied 5 to 110");
    assert_eq!(
        case.replica.durable(LeaderEpoch(5)),
        Some((Offset(100), Offset(120)))
    );
    case.tell(sealed(110), "truncate 5 to 110");
    case.tell(fence("1", 5), "refused: Fenced(LeaderEpoch(6))");
    case.tell(
        order("1", 5, 120, Purpose::Repair, 0),
        "refused: Fenced(LeaderEpoch(6))",
    );
}

#[test]
fn a_repair_takes_the_named_holders_bytes_up_to_the_end_and_says_so_when_all_is_durable() {
    let mut case = Case::new();
    case.tell(
        order("1", 5, 120, Purpose::Repair, 0),
        "fence 6; open 5 at 100; pull 100 to 120 of 3",
    );
    case.tell(piece("2", &[100, 110]), "");
    case.tell(piece("3", &[110, 120]), "");
    case.tell(
        piece("3", &[100, 110]),
        "append 1 from number 0; pull 110 to 120 of 3",
    );
    case.later(200);
    case.tell(Event::Ticked, "pull 110 to 120 of 3");
    case.tell(piece("3", &[100, 110, 120, 130]), "append 1 from number 1");
    case.tell(flushed(120), "");
    case.tell(Event::FenceFlushed(1), "copied 5 to 120");
}

#[test]
fn a_holder_gives_what_is_durable_whole_up_to_the_end() {
    let found = Recovered {
        epoch: LeaderEpoch(5),
        start: Offset(100),
        end: Offset(120),
        last: Some(Checksum(120)),
        since: 0,
    };
    let mut case = Case::of(2, 6, &[found]);
    let pull = |base, end| {
        Event::PullArrived(Pull {
            from: member("3"),
            to: member("1"),
            epoch: LeaderEpoch(5),
            base: Offset(base),
            end: Offset(end),
        })
    };
    case.tell(pull(110, 120), "give 110 to 120");
    case.tell(pull(110, 121), "");
    case.tell(pull(90, 120), "");
}

#[test]
fn the_fence_outlives_the_data_and_a_later_copy_outlives_an_older_permission() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(fence("1", 5), "fence 6");
    case.tell(Event::FenceFlushed(1), "fenced at 110");
    case.tell(sealed(110), "");
    let forgotten = |index| Event::Forgotten {
        epoch: LeaderEpoch(5),
        index,
    };
    case.tell(forgotten(40), "forget 5");
    assert_eq!(case.replica.fence(), LeaderEpoch(6));
    // Not begun again before it is gone from the disk: late flushes would count for the new copy.
    case.tell(order("1", 5, 110, Purpose::Backfill, 50), "");
    case.tell(flushed(110), "");
    case.tell(Event::ForgetFlushed(LeaderEpoch(5)), "");
    case.tell(
        order("1", 5, 110, Purpose::Backfill, 50),
        "open 5 at 100; pull 100 to 110 of 3",
    );
    case.tell(forgotten(40), "");
    case.tell(piece("3", &[100, 110]), "append 1 from number 0");
    case.tell(flushed(110), "copied 5 to 110");
    case.tell(forgotten(60), "forget 5");
}

#[test]
fn another_boot_does_not_lead_and_asks_for_a_seal_until_there_is_one() {
    let mut case = Case::of(2, 0, &[]);
    case.tell(
        Event::Opened(opened(5, 100, "1")),
        "open 5 at 100; ask for seal of 5: OtherBoot",
    );
    assert!(!case.replica.takes_appends());
    case.tell(Event::Ticked, "");
    case.later(200);
    case.tell(Event::Ticked, "ask for seal of 5: OtherBoot");
    case.tell(sealed(100), "");
    case.later(200);
    case.tell(Event::Ticked, "");
}

#[test]
fn a_leader_commits_what_a_quorum_has_flushed_itself_counted_like_the_others() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.tell(durable("2", 1, 1, 110), "");
    case.tell(flushed(110), "committed 110");
    case.append(120);
    case.tell(durable("2", 1, 2, 120), "");
    // Two followers may be ahead of it.
    case.tell(durable("3", 1, 1, 120), "committed 120");
    // Nothing follows: the commit offset goes out by itself.
    case.tell(
        Event::Ticked,
        "send 2 in session 1 from 120 at most 0 commit 120; send 3 in session 1 from 120 at most 0 commit 120",
    );
}

#[test]
fn answers_of_older_sessions_and_overtaken_ones_are_not_looked_at() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.append(120);
    case.tell(durable("2", 1, 2, 110), "");
    case.tell(durable("2", 1, 1, 100), "");
    case.tell(
        answer("2", 1, 3, Outcome::Expected(Offset(110))),
        "send 2 in session 2 from 110 at most 50 commit 100",
    );
    case.tell(durable("2", 1, 4, 120), "");
    case.tell(flushed(120), "committed 110");
    case.tell(durable("2", 2, 5, 120), "committed 120");
}

#[test]
fn an_end_that_goes_back_is_damage() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.tell(durable("2", 1, 1, 110), "");
    let damaged =
        "ask for seal of 5: Damaged(Member { node: NodeId(2), incarnation: Incarnation(1) })";
    case.tell(answer("2", 1, 2, Outcome::Expected(Offset(105))), damaged);
    case.tell(flushed(110), "");
    case.tell(durable("3", 1, 1, 110), "committed 110");
}

#[test]
fn a_slow_follower_costs_its_window_and_is_fed_again_when_nothing_comes_of_it() {
    let mut case = Case::leading(opened(5, 100, "1"));
    for end in (110..=250).step_by(10) {
        case.append(end);
    }
    case.tell(
        durable("2", 1, 1, 200),
        "send 2 in session 1 from 200 at most 50 commit 100",
    );
    case.later(200);
    let send = "send 3 in session 2 from 100 at most 50 commit 100";
    case.tell(Event::Ticked, send);
    let gone = Event::ConnectionChanged {
        to: member("3"),
        is_connected: false,
    };
    case.tell(gone, "");
    case.later(1000);
    case.tell(Event::Ticked, "");
}

#[test]
fn a_fenced_leader_adds_nothing_reports_it_and_answers_what_the_seal_covers() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.append(120);
    case.tell(durable("2", 1, 1, 110), "");
    let refused = Outcome::Refused(Refusal::Fenced(LeaderEpoch(6)));
    let fenced = "ask for seal of 5: Fenced(LeaderEpoch(6))";
    case.tell(answer("3", 1, 1, refused), fenced);
    case.tell(fence("1", 5), "fence 6");
    assert!(!case.replica.takes_appends());
    case.tell(flushed(120), "");
    case.tell(Event::FenceFlushed(1), "fenced at 120");
    case.tell(sealed(110), "committed 110; ended 5; truncate 5 to 110");
}

#[test]
fn a_successor_acknowledges_nothing_while_an_earlier_lease_may_hold() {
    let mut case = Case::leading(Opened {
        leases: [3, 4].map(LeaderEpoch).to_vec(),
        ..opened(5, 100, "1")
    });
    case.append(110);
    case.tell(durable("2", 1, 1, 110), "");
    case.tell(flushed(110), "");
    case.tell(Event::LeaseEnded(LeaderEpoch(4)), "");
    case.later(499);
    case.tell(Event::LeaseEnded(LeaderEpoch(9)), "");
    assert_eq!(case.replica.committed(LeaderEpoch(5)), Some(Offset(100)));
    case.tell(Event::LeaseEnded(LeaderEpoch(3)), "committed 110");
}

#[test]
fn a_lease_needs_grants_of_a_quorum_and_ends_with_a_fence() {
    let mut case = Case::leading(Opened {
        has_table: true,
        ..opened(5, 100, "1")
    });
    let renew = Renew {
        from: member("1"),
        to: member("3"),
        epoch: LeaderEpoch(5),
        sent_at: case.now,
    };
    case.tell(Event::Ticked, "ask lease of 2; ask lease of 3");
    assert!(!case.replica.has_lease(case.now));
    case.tell(Event::LeaseGranted(renew), "");
    assert!(
        case.replica
            .has_lease(case.now + Duration::from_millis(499))
    );
    assert!(
        !case
            .replica
            .has_lease(case.now + Duration::from_millis(500))
    );
    case.tell(fence("1", 5), "fence 6");
    assert!(!case.replica.has_lease(case.now));
}

#[test]
fn one_copy_is_the_same_code() {
    let mut case = Case::leading(Opened {
        members: vec![member("1")],
        quorum: 1,
        ..opened(5, 100, "1")
    });
    case.append(110);
    case.tell(flushed(110), "committed 110");
    case.tell(fence("1", 5), "fence 6");
    case.tell(Event::FenceFlushed(1), "fenced at 110");
    case.tell(sealed(110), "ended 5");
}

#[test]
fn a_seal_that_may_have_lost_something_answers_nobody() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.append(120);
    let lossy = Event::Sealed {
        epoch: LeaderEpoch(5),
        end: Offset(110),
        lossy: true,
    };
    case.tell(lossy, "ended 5; truncate 5 to 110");
}
