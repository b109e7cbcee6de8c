//! An adversary over the world: what it does next is chance by seed. Keeps to what replication promises to survive: one voter
//! emptied at a time, the next one when the last was replaced.

use floe_cluster::consensus::Consensus;

use crate::disk::Disk;
use crate::world::World;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// So many times in a thousand.
    fn permille(&mut self, times: usize) -> bool {
        self.below(1_000) < times
    }
}

/// What a run, or many, has met.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub crashes: u64,
    pub wipes: u64,
    pub cuts: u64,
    pub transfers: u64,
    pub lost: u64,
    pub repeated: u64,
    pub installs: u64,
    pub reads: u64,
    pub terms: u64,
    pub committed: u64,
    pub replaced: u64,
    digest: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.wipes += other.wipes;
        self.cuts += other.cuts;
        self.transfers += other.transfers;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.installs += other.installs;
        self.reads += other.reads;
        self.terms += other.terms;
        self.committed += other.committed;
        self.replaced += other.replaced;
        self.digest ^= other.digest;
    }
}

pub struct Faults {
    world: World,
    chance: Chance,
    /// In a thousand messages; one run is quiet, another one a storm.
    loss: usize,
    seen: Seen,
    reads: u64,
}

impl Faults {
    /// A run begins with one voter alone, or, half of the time, with three that have agreed.
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let world = if chance.permille(500) {
            World::of_three(seed)
        } else {
            World::new(seed)
        };
        let loss = [0, 50, 200, 400][chance.below(4)];
        Self {
            world,
            chance,
            loss,
            seen: Seen::default(),
            reads: 0,
        }
    }

    pub fn step(&mut self) {
        for place in 0..3 {
            self.at_node(place);
        }
        self.network();
        if let Some(leader) = self.world.leader() {
            if self.chance.permille(300) {
                self.world.propose(leader);
            }
            if self.chance.permille(200) {
                self.world.reconcile(leader);
            }
            if self.chance.permille(5) {
                let to = self.chance.below(3);
                let to = self.world.member(to);
                let is_begun = self.world.voter(leader).transfer(to).is_ok();
                self.seen.transfers += u64::from(is_begun);
            }
        }
        match self.world.cut {
            None if self.chance.permille(15) => {
                self.world.cut = Some(self.chance.below(3));
                self.seen.cuts += 1;
            }
            Some(_) if self.chance.permille(40) => self.world.cut = None,
            _ => {}
        }
    }

    fn at_node(&mut self, place: usize) {
        if self.world.nodes[place].life.is_none() {
            if self.chance.permille(60) {
                if self.may_wipe() && self.chance.permille(300) {
                    let node = &mut self.world.nodes[place];
                    node.disk = Disk::default();
                    node.incarnation += 1;
                    self.seen.wipes += 1;
                }
                let campaigns = self.chance.permille(500);
                self.world.restart(place, campaigns);
            }
            return;
        }
        if self.chance.permille(7) {
            let reached = self.chance.below(6);
            self.world.crash(place, reached);
            self.seen.crashes += 1;
            return;
        }
        if self.chance.permille(600) {
            self.world.voter(place).tick();
        }
        if self.chance.permille(15) {
            self.reads += 1;
            self.world.read(place, self.reads);
        }
        self.world.drain(place);
        if self.chance.permille(500) {
            self.world.flush(place);
        }
        if self.chance.permille(10) {
            self.world.compact(place);
        }
        if self.chance.permille(5) {
            let peer = self.world.member((place + 1) % 3);
            self.world.voter(place).unreachable(peer);
        }
    }

    /// Every voter of the last configuration is of now, so nobody is still to be replaced, and each has it durable that it holds.
    fn may_wipe(&self) -> bool {
        let truth = &self.world.truth;
        let mut nodes = self.world.nodes.iter();
        truth.configuration == self.world.wanted()
            && nodes.all(|node| node.disk.knows(truth.changed))
    }

    fn network(&mut self) {
        for _ in 0..self.chance.below(8) {
            if self.world.sent.is_empty() {
                return;
            }
            // Mostly in order, but any may overtake.
            let among = if self.chance.permille(700) {
                1
            } else {
                self.world.sent.len()
            };
            let place = self.chance.below(among);
            let bytes = if self.chance.permille(60) {
                self.seen.repeated += 1;
                self.world.sent[place].clone()
            } else {
                self.world.sent.remove(place).unwrap()
            };
            if self.chance.permille(self.loss) {
                self.seen.lost += 1;
            } else {
                self.world.deliver(&bytes);
            }
        }
        // What is held up for long is lost.
        while self.world.sent.len() > 200 {
            self.world.sent.pop_front();
            self.seen.lost += 1;
        }
    }

    /// The faults stop: service resumes, and nothing that was committed is missing anywhere.
    pub fn heal(mut self) -> Seen {
        self.world.cut = None;
        for place in 0..3 {
            if self.world.nodes[place].life.is_none() {
                self.world.restart(place, true);
            }
        }
        let known = self.world.truth.entries.len();
        let mut rounds = 0;
        let is_done = |world: &World| {
            world.truth.configuration == world.wanted()
                && world.truth.entries.len() > known + 2
                && (0..3).all(|place| world.is_whole(place))
        };
        while !is_done(&self.world) {
            rounds += 1;
            assert!(
                rounds < 1_500,
                "seed {}: no service though the faults have stopped: {:?}, {} of {known}; {}",
                self.world.seed,
                self.world.truth.configuration,
                self.world.truth.entries.len(),
                self.world.describe(),
            );
            if let Some(leader) = self.world.leader() {
                self.world.reconcile(leader);
                if rounds % 10 == 0 {
                    self.world.propose(leader);
                }
            }
            self.world.rounds(1);
        }
        let truth = &self.world.truth;
        self.seen.installs = truth.installs;
        self.seen.reads = truth.reads_answered;
        self.seen.terms = truth.terms();
        self.seen.committed = truth.entries.len() as u64;
        self.seen.replaced = truth.replaced;
        self.seen.digest = truth.last_hash();
        self.seen
    }
}
