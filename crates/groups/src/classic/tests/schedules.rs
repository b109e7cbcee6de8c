//! Deadlines, and random orders of events.

use std::sync::Arc;
use std::time::Duration;

use super::super::Group;
use super::{Event, assert_members_are_consistent, at_once};
use crate::Settings;

#[test]
fn the_next_deadline_is_the_earliest_of_all() {
    let mut group = Group::new(Arc::new(at_once()));
    assert_eq!(group.next_deadline(), None);
    Event::parse("0s join t1 session=9s").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(9)));
    Event::parse("1s join t2 session=6s rebalance=5s known").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(7)));
    Event::parse("7s tick").run(&mut group);
    assert_eq!(group.next_deadline(), Some(Duration::from_secs(9)));
    Event::parse("9s tick").run(&mut group);
    assert_eq!(group.next_deadline(), None);
    assert!(group.is_vacant());
}

/// Random events: one answer per ticket, members bounded, and the group's own invariants after each.
#[test]
fn any_order_of_events_answers_each_ticket_at_most_once() {
    let mut seed = 0x5eed_u64;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for _ in 0..2_000 {
        let settings = Settings {
            members_max: 4,
            ..at_once()
        };
        let mut group = Group::new(Arc::new(settings));
        let mut ids = vec![String::new(), "stranger".to_owned()];
        let mut answered = std::collections::BTreeSet::new();
        let mut now = 0;
        for ticket in 0..60 {
            now += below(4);
            let id = ids[below(ids.len() as u64) as usize].clone();
            let generation = u64::try_from(group.generation.0).unwrap() + below(3) / 2;
            let instance = ["", " instance=a", " instance=b"][below(3) as usize];
            let line = match below(10) {
                0..=3 => format!(
                    "{now}s join t{ticket} id={id}{instance} rebalance=5s p=range:{} {}",
                    below(2),
                    ["", "known", "skip"][below(3) as usize]
                ),
                4..=5 => format!("{now}s sync t{ticket} id={id} gen={generation}"),
                6 => format!("{now}s beat id={id} gen={generation}"),
                7 => format!("{now}s leave id={id}{instance}"),
                8 => format!("{now}s abandon t{}", below(ticket + 1)),
                _ => format!("{now}s tick"),
            };
            for answer in Event::parse(&line).run(&mut group) {
                let mut words = answer.split_whitespace();
                let Some(number) = words.next().and_then(|w| w.strip_prefix('t')) else {
                    continue;
                };
                assert!(answered.insert(number.to_owned()), "{line}: {answer}");
                if words.next() == Some("joined") {
                    ids.push(words.next().unwrap().to_owned());
                }
            }
            assert_members_are_consistent(&group);
            assert!(group.members.len() + group.pending.len() <= 4);
        }
        // Left alone, it comes to rest: every time-out passes and nobody is left.
        while let Some(deadline) = group.next_deadline() {
            group.tick(deadline);
            assert_members_are_consistent(&group);
            assert!(deadline < Duration::from_hours(1), "{group:?}");
        }
        assert!(group.is_vacant(), "{group:?}");
    }
}
