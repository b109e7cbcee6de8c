//! Crashes, power cuts, cuts in one direction, loss, hanging disks, and proposals all the while.

use std::time::Duration;

use super::world::World;

/// One run; what it came to.
pub(super) fn run(seed: u64) -> (u64, usize, usize, u64) {
    let mut world = World::new(1_000 + seed, 3);
    world.until("three vote", |world| world.voters() == 3);
    for _ in 0..60 {
        let place = world.chance(3);
        match world.chance(12) {
            0 if world.nodes[place].is_alive() => {
                let power = world.chance(2) == 0;
                world.crash(place, power);
            }
            1..=3 if !world.nodes[place].is_alive() => world.restart(place),
            4 => {
                let (to, cut) = ((place + 1 + world.chance(2)) % 3, world.chance(3) == 0);
                let lost = [0, 50_000, 300_000][world.chance(3)];
                world.line(place, to, cut, lost);
            }
            5 => world.reconnect(place, (place + 1) % 3),
            6 if !world.stuck.remove(&place) => drop(world.stuck.insert(place)),
            _ => {}
        }
        for _ in 0..world.chance(4) {
            let at = world.chance(3);
            if world.nodes[at].is_alive() {
                world.propose(at);
            }
        }
        world.run(Duration::from_millis(world.chance(400) as u64));
    }
    world.stuck.clear();
    for place in 0..3 {
        if !world.nodes[place].is_alive() {
            world.restart(place);
        }
        world.cut(place, false);
    }
    world.agree();
    // Whoever was asked and heard nothing says so in his time.
    world.run(Duration::from_secs(11));
    world.check();
    world.summary()
}
