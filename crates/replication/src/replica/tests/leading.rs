//! A replica as leader: sessions, windows, commit offsets, fences, leases.

use super::*;

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

#[test]
fn what_a_follower_has_not_answered_at_first_is_sent_again_sooner_than_later_on() {
    let mut case = Case::leading(opened(5, 100, "1"));
    case.append(110);
    case.later(24);
    case.tell(Event::Ticked, "");
    case.tell(durable("2", 1, 1, 110), "");
    case.later(1);
    let again = "send 3 in session 2 from 100 at most 50 commit 100";
    case.tell(Event::Ticked, again);
    case.append(120);
    case.later(24);
    case.tell(Event::Ticked, "");
    case.later(176);
    let sent = "send 2 in session 2 from 110 at most 50 commit 100";
    case.tell(Event::Ticked, sent);
}

#[test]
fn only_what_time_can_bring_on_waits_for_it() {
    let mut alone = Case::leading(Opened {
        members: vec![member("1")],
        quorum: 1,
        ..opened(5, 100, "1")
    });
    alone.append(110);
    assert!(!alone.replica.waits(), "its own flush brings it on");
    let mut case = Case::leading(opened(5, 100, "1"));
    assert!(!case.replica.waits(), "nothing is under way");
    case.append(110);
    assert!(case.replica.waits(), "what was sent may be lost");
    case.tell(durable("2", 1, 1, 110), "");
    case.tell(durable("3", 1, 1, 110), "committed 110");
    assert!(case.replica.waits(), "the commit offset is to be told");
    let words = "send 2 in session 1 from 110 at most 0 commit 110; \
                 send 3 in session 1 from 110 at most 0 commit 110";
    case.tell(Event::Ticked, words);
    for to in ["2", "3"] {
        let sent = Sent {
            to: member(to),
            session: Session(1),
            end: Offset(110),
            bytes: 0,
        };
        case.tell(Event::Sent(sent), "");
    }
    assert!(!case.replica.waits(), "all is told");
}
