//! What is delivered, committed, lost and delivered again.

use super::super::DeliveryToken;
use super::check;
use crate::Refusal;

#[test]
fn the_next_poll_commits_what_was_delivered() {
    check(
        "
        0s topics t:2
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0 t/1]
        0s deliver a 1 t/0:0-5 t/1:7-9
        -> 1-1 t/0:0-5 t/1:7-9
        1s poll a
        -> poll 2, commit 1-1 t/0:0-5 t/1:7-9, next [t/0 t/1]
        1s committed a 1-1
        1s deliver a 2 t/0:5-6
        -> 1-2 t/0:5-6
        1s commit a
        -> 1-2 t/0:5-6
        1s committed a 1-2
        1s commit a
        -> nothing
        2s poll a
        -> poll 3, next [t/0 t/1]
        ",
    );
}

/// 10.3 m.
#[test]
fn a_delivery_that_was_lost_comes_again_the_same() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s lost a 1-1
        0s commit a
        -> nothing
        0s poll a
        -> poll 2, again 1-1 t/0:0-5
        0s again a 2
        -> Ok(())
        1s poll a
        -> poll 3, commit 1-1 t/0:0-5, next [t/0]
        1s lost a 1-1
        1s committed a 1-1
        1s poll a
        -> poll 4, next [t/0]
        ",
    );
}

#[test]
fn a_token_says_exactly_what_was_received() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a got=none
        -> poll 1, next [t/0]
        0s deliver a 1 t/0:0-5
        -> 1-1 t/0:0-5
        0s poll a got=none
        -> poll 2, again 1-1 t/0:0-5
        0s lost a 1-1
        0s poll a got=1-1
        -> poll 3, commit 1-1 t/0:0-5, next [t/0]
        0s committed a 1-1
        0s deliver a 3 t/0:5-9
        -> 1-2 t/0:5-9
        0s poll a got=1-1
        -> poll 4, again 1-2 t/0:5-9
        0s poll a got=1-1
        -> poll 5, again 1-2 t/0:5-9
        0s poll a got=1-3
        -> UnknownDelivery
        0s poll a got=9-2
        -> poll 6, again 1-2 t/0:5-9
        0s poll a got=1-2
        -> poll 7, commit 1-2 t/0:5-9, next [t/0]
        ",
    );
}

#[test]
fn a_waiting_poll_keeps_its_consumer_and_a_newer_poll_ends_it() {
    check(
        "
        0s topics t:1
        0s register a topics=t
        -> new
        0s poll a
        -> poll 1, next [t/0]
        1s poll a
        -> poll 2, next [t/0]
        1s deliver a 1 t/0:0-5
        -> Superseded
        1s again a 1
        -> Err(Superseded)
        1s deliver a 2 t/0:0-5
        -> 1-1 t/0:0-5
        ",
    );
}

#[test]
fn what_was_delivered_of_a_deleted_topic_is_forgotten() {
    check(
        "
        0s topics t:1 u:1
        0s register a topics=t+u
        -> new
        0s poll a
        -> poll 1, next [t/0 u/0]
        0s deliver a 1 t/0:0-5 u/0:0-1
        -> 1-1 t/0:0-5 u/0:0-1
        0s topics u:1
        0s poll a got=none
        -> poll 2, again 1-1 u/0:0-1
        0s topics t:1
        0s poll a got=none
        -> poll 3, next [t/0]
        ",
    );
}

#[test]
fn a_token_reads_back_and_foreign_ones_are_refused() {
    let token = DeliveryToken {
        registration: u64::MAX,
        number: 12,
    };
    assert_eq!(token.to_string(), "ffffffffffffffff-12");
    assert_eq!(token.to_string().parse(), Ok(token));
    for text in ["", "-", "x-1", "1-x", "1", "11111111111111111-1", "1--1"] {
        assert_eq!(
            text.parse::<DeliveryToken>(),
            Err(Refusal::UnknownDelivery),
            "{text}"
        );
    }
}
