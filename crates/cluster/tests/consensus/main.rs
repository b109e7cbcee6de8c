//! Voters of the catalog on a network that loses, delays, repeats and reorders, on disks that lose what was not flushed.
//!
//! One seed decides a run. Checked at every step: committed entries agree at every index and are on the disk of whoever hands
//! them out, one leader a term, one vote a term, a read's index covers what was committed before it was asked for. Checked at the
//! end of each run, when the faults stop: all three vote, everything committed is everywhere, and there is progress.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod disk;
mod faults;
mod world;

use floe_cluster::consensus::{Consensus, ELECTION_TICKS, Role};

use faults::Faults;
use world::World;

/// Seeds of an ordinary run.
const SEEDS: u64 = 1_200;
const STEPS: usize = 500;

#[test]
fn whatever_network_and_disks_do_committed_entries_agree_and_service_resumes() {
    let mut seen = faults::Seen::default();
    for seed in 0..SEEDS {
        let mut faults = Faults::new(seed);
        for _ in 0..STEPS {
            faults.step();
        }
        seen.add(&faults.heal());
    }
    // A harness that meets nothing proves nothing.
    assert!(seen.crashes > SEEDS * 5 && seen.wipes > SEEDS / 2 && seen.cuts > SEEDS * 2);
    assert!(seen.installs > SEEDS / 2 && seen.transfers > SEEDS / 4 && seen.reads > SEEDS * 3);
    assert!(seen.lost > SEEDS * 30 && seen.repeated > SEEDS * 20 && seen.terms > SEEDS * 2);
    assert!(seen.committed > SEEDS * 50 && seen.replaced > SEEDS / 10);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut faults = Faults::new(seed);
        (0..STEPS).for_each(|_| faults.step());
        faults.heal()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn one_voter_grows_to_three_and_each_of_them_may_lead() {
    let mut world = World::of_three(1);
    for place in 0..3 {
        let leader = world.leader().unwrap();
        let to = world.member(place);
        if leader != place {
            world.voter(leader).transfer(to).unwrap();
            world.rounds(5);
        }
        assert_eq!(world.leader(), Some(place), "at once, not after a timeout");
        world.propose(place);
        world.rounds(5);
        assert!((0..3).all(|place| world.is_whole(place)));
    }
}

#[test]
fn a_voter_that_was_cut_off_does_not_depose_the_leader_when_it_returns() {
    let mut world = World::of_three(2);
    let leader = world.leader().unwrap();
    let before = world.voter(leader).leadership();
    let away = (leader + 1) % 3;
    world.cut = Some(away);
    world.rounds(ELECTION_TICKS as usize * 20);
    assert_eq!(world.voter(away).leadership().role, Role::Candidate);
    assert_eq!(
        world.voter(away).leadership().term,
        before.term,
        "it asked in vain and began no term"
    );
    world.cut = None;
    for _ in 0..ELECTION_TICKS * 20 {
        world.rounds(1);
        assert_eq!(world.voter(leader).leadership(), before);
    }
    assert_eq!(world.voter(away).leadership().leader, before.leader);
}

#[test]
fn a_leader_that_is_cut_off_steps_down_and_the_others_elect_within_two_timeouts() {
    let mut world = World::of_three(3);
    let old = world.leader().unwrap();
    world.cut = Some(old);
    world.rounds(ELECTION_TICKS as usize * 4);
    assert_ne!(world.voter(old).leadership().role, Role::Leader);
    let new = world.leader().unwrap();
    assert_ne!(new, old);
    world.propose(new);
    world.rounds(5);
    world.cut = None;
    world.rounds(20);
    assert!(world.is_whole(old));
    assert_eq!(world.leader(), Some(new));
}

#[test]
fn an_emptied_voter_under_its_old_incarnation_is_told_what_it_lost() {
    let mut world = World::of_three(4);
    let leader = world.leader().unwrap();
    let emptied = (leader + 1) % 3;
    world.crash(emptied, 0);
    world.nodes[emptied].disk = disk::Disk::default();
    world.restart(emptied, false);
    world.is_lost_expected = true;
    world.rounds(ELECTION_TICKS as usize);
    assert!(world.lost > 0);
    assert_eq!(world.applied(emptied), 0, "it took nothing");
}
