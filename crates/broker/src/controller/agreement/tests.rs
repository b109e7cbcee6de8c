//! Three nodes agree: the shipped agreement and the shipped log, on a simulated network, clock and disk.

mod random;
mod world;

use std::time::Duration;

use floe_model::NodeId;

use crate::Unavailable;
use world::World;

const LONG: Duration = Duration::from_secs(3);

#[test]
fn one_node_agrees_with_itself_in_one_flush_and_without_time() {
    let mut world = World::new(1, 1);
    world.settle();
    let before = world.nodes[0].flushes();
    let ticket = world.propose(0);
    world.settle();
    assert!(world.answer(0, ticket).unwrap().is_ok());
    assert_eq!(world.nodes[0].flushes(), before + 1);
    world.check();
}

#[test]
fn a_leader_takes_in_the_others_and_what_is_proposed_anywhere_is_read_there() {
    let mut world = World::new(2, 3);
    world.until("three vote", |world| world.voters() == 3);
    for place in 0..3 {
        let ticket = world.propose(place);
        let at = world.now();
        world.until("it is answered", |world| {
            world.answer(place, ticket).is_some()
        });
        assert!(world.answer(place, ticket).unwrap().is_ok());
        assert!(
            world.holds(place, ticket),
            "whoever asked reads what it wrote"
        );
        assert!(world.now() < at + Duration::from_millis(200));
    }
    world.agree();
    world.check();
}

#[test]
fn a_leader_that_is_lost_is_replaced_within_a_second_and_what_it_promised_is_kept() {
    let mut world = World::new(3, 3);
    world.until("three vote", |world| world.voters() == 3);
    let leader = world.leader().unwrap();
    let kept = world.propose(leader);
    world.until("it is answered", |world| {
        world.answer(leader, kept).is_some()
    });
    let lost_at = world.now();
    world.crash(leader, false);
    let other = (leader + 1) % 3;
    let ticket = world.propose(other);
    world.until("it is answered", |world| {
        world.answer(other, ticket).is_some()
    });
    assert!(world.answer(other, ticket).unwrap().is_ok());
    assert!(world.now() < lost_at + Duration::from_millis(1_500));
    world.restart(leader);
    world.agree();
    assert!(world.holds(leader, kept));
    world.check();
}

#[test]
fn a_minority_applies_nothing_and_says_so_and_goes_on_when_the_cut_is_over() {
    let mut world = World::new(4, 3);
    world.until("three vote", |world| world.voters() == 3);
    let leader = world.leader().unwrap();
    world.cut(leader, true);
    let ticket = world.propose(leader);
    let before = world.nodes[leader].index();
    world.run(LONG);
    assert_eq!(world.answer(leader, ticket), None);
    world.run(Duration::from_secs(8));
    let told = world.answer(leader, ticket);
    assert_eq!(told, Some(Err(Unavailable::Undecided)));
    assert_eq!(
        world.nodes[leader].index(),
        before,
        "what it knew, and nothing more"
    );
    let late = world.propose(leader);
    world.run(Duration::from_secs(11));
    assert_eq!(
        world.answer(leader, late),
        Some(Err(Unavailable::NotAgreed)),
        "one that knows of no leader has not proposed it"
    );
    world.cut(leader, false);
    world.agree();
    world.check();
}

#[test]
fn what_another_entry_took_the_place_of_is_not_agreed() {
    let mut world = World::new(5, 3);
    world.until("three vote", |world| world.voters() == 3);
    let leader = world.leader().unwrap();
    let other = (leader + 1) % 3;
    world.cut(leader, true);
    let lost = world.propose(leader);
    world.until("another one leads", |world| {
        world.leader_among(&[other, (leader + 2) % 3]).is_some()
    });
    let ticket = world.propose(other);
    world.until("it is answered", |world| {
        world.answer(other, ticket).is_some()
    });
    assert_eq!(world.answer(leader, lost), None);
    world.cut(leader, false);
    world.until("it is answered", |world| {
        world.answer(leader, lost).is_some()
    });
    assert_eq!(
        world.answer(leader, lost),
        Some(Err(Unavailable::NotAgreed))
    );
    world.agree();
    world.check();
}

#[test]
fn a_follower_that_is_far_behind_learns_by_snapshot() {
    let mut world = World::new(6, 3);
    world.until("three vote", |world| world.voters() == 3);
    let leader = world.leader().unwrap();
    let away = (leader + 1) % 3;
    world.crash(away, true);
    for _ in 0..20 {
        for _ in 0..60 {
            world.propose(leader);
        }
        world.run(Duration::from_millis(50));
    }
    let before = world.leaps;
    world.restart(away);
    world.agree();
    assert!(world.leaps > before);
    world.crash(away, true);
    world.restart(away);
    world.agree();
    world.check();
}

#[test]
fn a_voter_whose_data_was_lost_is_another_one() {
    let mut world = World::new(7, 3);
    world.until("three vote", |world| world.voters() == 3);
    let lost = (world.leader().unwrap() + 1) % 3;
    world.crash(lost, true);
    world.wipe(lost);
    world.restart(lost);
    let life = world.nodes[lost].member();
    world.until("its new life votes", |world| world.votes(life));
    world.agree();
    world.check();
}

#[test]
fn nobody_speaks_in_the_name_of_another_voter() {
    let mut world = World::new(8, 3);
    world.until("three vote", |world| world.voters() == 3);
    let leader = world.leader().unwrap();
    let term = world.nodes[leader].term();
    world.forge(leader, (leader + 1) % 3, (leader + 2) % 3, term + 5);
    world.run(LONG);
    assert_eq!(world.nodes[leader].term(), term);
    assert_eq!(world.leader(), Some(leader));
}

#[test]
fn what_happens_by_chance_leaves_all_nodes_with_the_same_entries() {
    for seed in 0..40 {
        random::run(seed);
    }
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(random::run(11), random::run(11));
}

/// Nodes of a world are numbered from 1.
fn id(place: usize) -> NodeId {
    NodeId(place as u32 + 1)
}
