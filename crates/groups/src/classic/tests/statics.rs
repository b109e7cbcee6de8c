//! Static members (KIP-345).

use super::check;

#[test]
fn a_static_member_comes_back_unnoticed_and_its_old_self_is_fenced() {
    check(
        "
        0s join t1 instance=a known
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s join t2 instance=b known
        0s join t3 instance=a id=a-t1
        -> t3 joined a-t1 gen=2 range leader=a-t1 [a-t1 b-t2]
        -> t2 joined b-t2 gen=2 range leader=a-t1 []
        0s sync t4 id=a-t1 instance=a gen=2 assign=a-t1:A+b-t2:B
        -> t4 synced range 'A'
        0s sync t5 id=b-t2 instance=b gen=2
        -> t5 synced range 'B'
        3s join t6 instance=b
        -> t6 joined b-t6 gen=2 range leader=a-t1 []
        3s sync t7 id=b-t6 instance=b gen=2
        -> t7 synced range 'B'
        3s beat id=b-t2 instance=b gen=2
        -> FencedInstance
        3s commit id=b-t2 instance=b gen=2
        -> FencedInstance
        3s join t8 id=b-t2 instance=b
        -> t8 FencedInstance
        3s beat id=a-t1 instance=a gen=2
        -> ok
        3s beat id=a-t1 instance=nobody gen=2
        -> UnknownMember
        ",
    );
}

#[test]
fn a_static_leader_that_comes_back_keeps_the_assignment() {
    check(
        "
        0s join t1 instance=a
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s sync t2 id=a-t1 instance=a gen=1 assign=a-t1:A
        -> t2 synced range 'A'
        1s join t3 instance=a skip
        -> t3 joined a-t3 gen=1 range leader=a-t3 skip [a-t3]
        2s join t4 instance=a
        -> t4 joined a-t4 gen=1 range leader=a-t3 []
        2s sync t5 id=a-t4 instance=a gen=1
        -> t5 synced range 'A'
        3s join t6 instance=a p=range:other
        -> t6 joined a-t6 gen=2 range leader=a-t6 [a-t6]
        ",
    );
}

#[test]
fn a_static_member_that_is_away_during_a_rebalance_stays_until_its_session_ends() {
    check(
        "
        0s join t1 instance=a session=30s rebalance=5s
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s sync t2 id=a-t1 instance=a gen=1
        -> t2 synced range ''
        1s join t3 rebalance=5s session=30s
        6s tick
        -> t3 joined c-t3 gen=2 range leader=c-t3 [a-t1 c-t3]
        6s sync t4 id=c-t3 gen=2 assign=a-t1:A+c-t3:B
        -> t4 synced range 'B'
        12s tick ?
        -> Stable 2
        30s beat id=c-t3 gen=2
        -> ok
        30s tick ?
        -> Preparing { deadline: 35s, gather_until: None } 2
        ",
    );
}

#[test]
fn an_operator_removes_a_static_member_by_its_instance_id_alone() {
    check(
        "
        0s join t1 instance=a
        -> t1 joined a-t1 gen=1 range leader=a-t1 [a-t1]
        0s leave instance=b
        -> UnknownMember
        0s leave instance=a id=a-t0
        -> FencedInstance
        0s leave instance=a ?
        -> ok
        -> Empty 2
        ",
    );
}

#[test]
fn two_joins_of_one_instance_at_a_time_fence_the_first() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s join t2 instance=a
        0s join t3 instance=a
        -> t2 FencedInstance
        0s join t4 id=c-t1
        -> t3 joined a-t3 gen=2 range leader=c-t1 []
        -> t4 joined c-t1 gen=2 range leader=c-t1 [a-t3 c-t1]
        ",
    );
}
