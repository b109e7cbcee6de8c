//! How members come in: ids, time-outs asked for, the wait of a new group, its limit.

use super::{at_once, check, check_with};
use crate::Settings;

#[test]
fn a_new_member_is_told_its_id_first_and_leads_when_alone() {
    check(
        "
        0s join t1 known
        -> t1 MemberIdRequired(MemberId(\"c-t1\"))
        0s join t2 id=c-t1 known
        -> t2 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t3 id=c-t1 gen=1 assign=c-t1:AB protocol=range type=consumer
        -> t3 synced range 'AB'
        1s beat id=c-t1 gen=1
        -> ok
        1s sync t4 id=c-t1 gen=1
        -> t4 synced range 'AB'
        ",
    );
}

#[test]
fn an_old_client_joins_at_once_without_an_id() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn an_id_that_was_not_given_out_or_has_lapsed_is_unknown() {
    check(
        "
        0s join t1 id=guess
        -> t1 UnknownMember
        0s join t2 known
        -> t2 MemberIdRequired(MemberId(\"c-t2\"))
        6s tick
        6s join t3 id=c-t2
        -> t3 UnknownMember
        ",
    );
}

#[test]
fn session_timeouts_outside_the_bounds_are_refused_with_the_bounds() {
    check(
        "
        0s join t1 session=5s
        -> t1 InvalidSessionTimeout { given_ms: 5000, min_ms: 6000, max_ms: 1800000 }
        0s join t2 session=1801s
        -> t2 InvalidSessionTimeout { given_ms: 1801000, min_ms: 6000, max_ms: 1800000 }
        ",
    );
}

#[test]
fn the_first_rebalance_waits_for_more_members_but_not_for_ever() {
    check_with(
        Settings::default(),
        "
        0s join t1 rebalance=7s
        2s join t2 rebalance=7s
        3s tick
        4s join t3 rebalance=7s
        6s join t4 rebalance=7s
        7s tick
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1 c-t2 c-t3 c-t4]
        -> t2 joined c-t2 gen=1 range leader=c-t1 []
        -> t3 joined c-t3 gen=1 range leader=c-t1 []
        -> t4 joined c-t4 gen=1 range leader=c-t1 []
        ",
    );
}

#[test]
fn members_beyond_the_limit_are_refused_pending_ones_counted() {
    let settings = Settings {
        members_max: 2,
        ..at_once()
    };
    check_with(
        settings,
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 known
        -> t2 MemberIdRequired(MemberId(\"c-t2\"))
        0s join t3
        -> t3 Full
        0s join t4 instance=i
        -> t4 Full
        ",
    );
}
