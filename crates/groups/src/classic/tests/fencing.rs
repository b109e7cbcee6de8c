//! Who may commit, and who is told that its time is over.

use super::check;

/// C15.
#[test]
fn commits_without_membership_need_an_empty_group_and_stale_ones_are_fenced() {
    check(
        "
        0s commit
        -> ok
        0s commit id=anybody
        -> ok
        0s commit id=anybody gen=3
        -> UnknownMember
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s commit id=c-t1 gen=1
        -> RebalanceInProgress
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        0s commit
        -> UnknownMember
        0s commit id=c-t1 gen=0
        -> IllegalGeneration
        0s commit id=other gen=1
        -> UnknownMember
        0s commit id=c-t1 gen=1
        -> ok
        1s join t3
        1s commit id=c-t1 gen=1
        -> ok
        1s leave id=c-t1
        -> ok
        -> t3 joined c-t3 gen=2 range leader=c-t3 [c-t3]
        1s commit id=c-t1 gen=1
        -> UnknownMember
        ",
    );
}

/// R23.
#[test]
fn a_zombie_of_an_older_generation_is_told_so() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        0s join t3 id=c-t1
        -> t3 joined c-t1 gen=2 range leader=c-t1 [c-t1]
        0s sync t4 id=c-t1 gen=2
        -> t4 synced range ''
        0s commit id=c-t1 gen=1
        -> IllegalGeneration
        0s beat id=c-t1 gen=1
        -> IllegalGeneration
        0s sync t5 id=c-t1 gen=1
        -> t5 IllegalGeneration
        ",
    );
}

#[test]
fn a_commit_is_a_sign_of_life() {
    check(
        "
        0s join t1
        -> t1 joined c-t1 gen=1 range leader=c-t1 [c-t1]
        0s sync t2 id=c-t1 gen=1
        -> t2 synced range ''
        5s commit id=c-t1 gen=1
        -> ok
        10s tick ?
        -> Stable 1
        11s tick ?
        -> Empty 2
        ",
    );
}
