//! How a group comes to a new generation: joins, syncs, protocols, who is out.

use super::check;

#[test]
fn a_second_member_rebalances_and_followers_wait_for_the_leader() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1 assign=c-t1:AB
        -> t2 synced range 'AB'
        1s join t3
        2s beat id=c-t1 gen=1
        -> RebalanceInProgress
        2s sync t9 id=c-t1 gen=1
        -> t9 RebalanceInProgress
        2s join t4 id=c-t1
        -> t4 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t3]
        -> t3 joined c-t3 gen=2 range leader=c-t1 []
        2s sync t5 id=c-t3 gen=2
        3s beat id=c-t3 gen=2
        -> ok
        3s sync t6 id=c-t1 gen=2 assign=c-t1:A+c-t3:B+stranger:C
        -> t6 synced range 'A'
        -> t5 synced range 'B'
        ",
    );
}

#[test]
fn a_member_the_leader_forgets_is_assigned_nothing() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        ",
    );
}

#[test]
fn a_member_that_does_not_rejoin_in_time_is_out() {
    check(
        "
        0s join t1 session=60s rebalance=10s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        1s join t3 rebalance=10s
        10s tick
        11s tick
        -> t3 joined c-t3 gen=2 range leader=c-t3 [c-t3]
        12s beat id=c-t1 gen=1
        -> UnknownMember
        ",
    );
}

#[test]
fn a_silent_member_is_replaced_after_its_session_timeout() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t4 id=c-t1 gen=2 assign=c-t1:A+c-t2:B
        -> t4 synced range 'A'
        0s sync t5 id=c-t2 gen=2
        -> t5 synced range 'B'
        5s beat id=c-t2 gen=2
        -> ok
        5s tick ?
        -> Stable 2
        6s tick
        7s beat id=c-t2 gen=2
        -> RebalanceInProgress
        7s join t6 id=c-t2
        -> t6 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        ",
    );
}

#[test]
fn a_member_whose_connection_is_gone_while_it_waits_has_its_session_to_come_back() {
    check(
        "
        0s join t1 session=30s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 session=6s
        1s abandon t2
        2s join t3 id=c-t1 session=30s
        6s tick
        7s tick
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn who_does_not_sync_in_time_is_out() {
    check(
        "
        0s join t1 session=60s rebalance=10s
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 session=60s rebalance=10s
        0s join t3 id=c-t1 session=60s rebalance=10s
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        1s sync t4 id=c-t2 gen=2
        10s tick
        -> t4 RebalanceInProgress
        11s join t5 id=c-t2 session=60s rebalance=10s
        -> t5 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        ",
    );
}

#[test]
fn only_changed_metadata_or_the_leader_rebalances_a_stable_group() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s join t4 id=c-t2
        -> t4 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t5 id=c-t1 gen=2 assign=c-t1:A+c-t2:B
        -> t5 synced range 'A'
        0s join t6 id=c-t2
        -> t6 joined c-t2 gen=2 range leader=c-t1 []
        0s join t7 id=c-t2 p=range:y ?
        -> Preparing { deadline: 60s, gather_until: None } 2
        0s join t8 id=c-t1
        -> t8 joined c-t1 gen=3 range leader=c-t1 [c-t1 c-t2]
        -> t7 joined c-t2 gen=3 range leader=c-t1 []
        0s sync t9 id=c-t1 gen=3
        -> t9 synced range ''
        0s join t10 id=c-t1 ?
        -> Preparing { deadline: 60s, gather_until: None } 3
        ",
    );
}

#[test]
fn the_protocol_all_have_and_most_like_best_is_chosen() {
    check(
        "
        0s join t1 p=range+sticky
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 p=sticky+range
        0s join t3 p=sticky
        0s join t4 p=robin
        -> t4 InconsistentProtocol
        0s join t5 type=connect p=sticky
        -> t5 InconsistentProtocol
        0s join t6 p=
        -> t6 InconsistentProtocol
        0s join t7 id=c-t1 p=range+sticky
        -> t7 joined c-t1 gen=2 sticky leader=c-t1 [c-t1 c-t2 c-t3]
        -> t2 joined c-t2 gen=2 sticky leader=c-t1 []
        -> t3 joined c-t3 gen=2 sticky leader=c-t1 []
        0s sync t8 id=c-t1 gen=2 protocol=range
        -> t8 InconsistentProtocol
        0s sync t9 id=c-t1 gen=2 type=connect
        -> t9 InconsistentProtocol
        ",
    );
}

#[test]
fn a_member_may_change_all_its_protocols_when_alone() {
    check(
        "
        0s join t1 p=range
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 id=c-t1 p=sticky
        -> t2 joined c-t1 gen=2 sticky leader=c-t1 [c-t1]
        ",
    );
}

#[test]
fn leaving_rebalances_the_rest_and_the_last_one_empties_the_group() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1 c-t2]
        -> t2 joined c-t2 gen=2 range leader=c-t1 []
        0s sync t4 id=c-t2 gen=2
        0s leave id=c-t1
        -> ok
        -> t4 RebalanceInProgress
        0s leave id=c-t1
        -> UnknownMember
        1s join t5 id=c-t2
        -> t5 joined c-t2 gen=3 range leader=c-t2 [c-t2]
        1s leave id=c-t2 ?
        -> ok
        -> Empty 4
        1s beat id=c-t2 gen=3
        -> UnknownMember
        2s join t6 type=connect p=default
        -> t6 joined c-t6 gen=5 default leader=c-t6 [c-t6]
        ",
    );
}

#[test]
fn a_leave_while_all_others_wait_completes_the_rebalance() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2
        0s leave id=c-t1
        -> ok
        -> t2 joined c-t2 gen=2 range leader=c-t2 [c-t2]
        ",
    );
}
