//! Who reads which partition, and how partitions change hands.

use super::check;

#[test]
fn a_partition_changes_hands_only_when_nothing_of_it_is_out() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0 t/1]
        0s deliver a 1 t/0:0-5 t/1:0-3
        -> 1-1 t/0:0-5 t/1:0-3
        1s register b topics=t
        -> new
        1s who
        -> a [t/0]
        -> b [t/1]
        1s poll b
        -> poll 1, next []
        2s poll a
        -> poll 2, commit 1-1 t/0:0-5 t/1:0-3, next [t/0]
        2s poll b
        -> poll 2, next []
        2s committed a 1-1
        2s poll b
        -> poll 3, next [t/1]
        2s deliver a 2 t/0:5-6 t/1:3-4
        -> 1-2 t/0:5-6
        ",
    );
}

/// 10.3 l.
#[test]
fn who_leaves_or_is_idle_gives_everything_up_at_once() {
    check(
        "
        0s topics t:2
        0s register a topics=t idle=10s
        -> new
        0s register b topics=t
        -> new
        0s register c topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        9s tick
        9s leave b
        -> true
        9s who
        -> a [t/0]
        -> c [t/1]
        10s tick
        -> a is gone
        10s poll c
        -> poll 1, next [t/0 t/1]
        10s poll a
        -> NotRegistered(ConsumerId(\"a\"))
        10s leave a
        -> false
        130s tick
        -> c is gone
        ",
    );
}

#[test]
fn registering_again_needs_the_same_topics_in_the_same_style() {
    check(
        "
        0s topics t:1 u:1
        0s register a topics=t+u idle=10s
        -> new
        5s register a topics=t+u
        -> already
        5s register a topics=u+t
        -> RegisteredDifferently
        5s register a topics=t+u conn=1
        -> RegisteredDifferently
        10s tick
        15s tick
        -> a is gone
        ",
    );
}

#[test]
fn a_new_connection_takes_its_consumer_over_and_gets_what_the_old_one_had() {
    check(
        "
        0s topics t:1
        0s register a topics=t conn=1
        -> new
        0s register a topics=t conn=1
        -> already
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s register a topics=t conn=2
        -> new
        0s poll a
        -> poll 1, next [t/0]
        ",
    );
}

#[test]
fn members_read_the_union_of_topics_also_those_created_later() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s register b topics=u
        -> new
        0s who
        -> a [t/0]
        -> b [t/1]
        1s topics t:2 u:2
        1s who
        -> a [t/0 u/0]
        -> b [t/1 u/1]
        2s leave b
        -> true
        2s topics t:2 u:2
        2s who
        -> a [t/0 t/1]
        ",
    );
}

#[test]
fn more_consumers_than_partitions_leave_some_without() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s register b topics=t
        -> new
        0s poll b
        -> poll 1, next []
        0s leave a
        -> true
        0s poll b
        -> poll 2, next [t/0]
        ",
    );
}
