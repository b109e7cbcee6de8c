//! The whole core against an adversary, in one thread: replicas of three or five nodes, a network that loses, doubles, delays and
//! reorders, crashes that keep any prefix of the journal, wiped and damaged disks, cuts of single directions, controllers that
//! compete and stop, late catalog commands and claims, clocks that run at different rates.
//!
//! Checks, as it goes: offsets dense, given once, by one writer an epoch; replicas equal; what is acknowledged or readable is on a
//! disk, unchanged, below every seal; holders hold; a lease knows all that was acknowledged. At the end the trouble ends, and all
//! must come to rest: a leader that commits, every member with every generation. A seed gives the same run every time.

mod catalog;
mod chance;
mod checks;
mod controller;
mod disk;
mod life;
mod truth;
mod world;

use std::panic::catch_unwind;

use crate::replica::Event;
use crate::rule::{Rule, without};
use crate::seal;
use truth::Broken;
use world::World;

/// How many of everything.
#[derive(Clone, Copy, Debug)]
struct Shape {
    nodes: usize,
    members: usize,
    quorum: usize,
    steps: usize,
    switch: Option<Switch>,
}

/// Rules that others keep than this crate's code, taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    /// DamageIsNoticed.
    DamageUnnoticed,
    /// SealConditional.
    SealTwice,
    /// QuorumFixed.
    QuorumShrinks,
    /// ClaimNamesIncarnation.
    ClaimsOfNobody,
    /// ForgetVoidsClaim.
    ForgottenClaims,
}

impl Switch {
    const ALL: [Self; 5] = [
        Self::DamageUnnoticed,
        Self::SealTwice,
        Self::QuorumShrinks,
        Self::ClaimsOfNobody,
        Self::ForgottenClaims,
    ];
}

/// What a run came to.
struct Outcome {
    events: u64,
    compared: u64,
    acked: usize,
    epochs: u32,
    leases: u64,
}

impl World {
    fn act(&mut self) -> Result<(), Broken> {
        self.now += std::time::Duration::from_micros(self.chance.below(600) as u64);
        let at = self.chance.below(self.nodes.len());
        let trouble = if self.is_rough { 3 } else { 1 };
        match self.chance.below(200) {
            0..90 => self.some_message(),
            90..110 => self.append(self.leader().unwrap_or(at)),
            110..144 if self.nodes[at].disk.is_dirty() => {
                let count = 1 + self.chance.below(12);
                self.flush(at, count)
            }
            144..160 => self.learn(at),
            160..172 => self.step(at, Event::Ticked),
            172..177 => self.backfill(at),
            177..186 => self.control(),
            186..192 if self.is_rough => self.control(),
            192..194 => self.settle_claims(at),
            way if way >= 200 - trouble => self.trouble(at),
            _ => Ok(()),
        }
    }

    /// A node that takes appends: the leader, or one that has not heard yet that it is not.
    fn leader(&self) -> Option<usize> {
        let mut replicas = self.nodes.iter().map(|node| node.replica.as_ref());
        replicas.position(|replica| replica.is_some_and(crate::Replica::takes_appends))
    }

    /// Mostly the oldest message, sometimes any; some are lost.
    fn some_message(&mut self) -> Result<(), Broken> {
        if self.network.is_empty() {
            return Ok(());
        }
        let at = if self.chance.one_in(4) {
            self.chance.below(self.network.len())
        } else {
            0
        };
        if self.chance.one_in(25) {
            self.network.remove(at);
            return Ok(());
        }
        self.deliver(at)
    }

    fn control(&mut self) -> Result<(), Broken> {
        let slot = self.chance.below(2);
        if !self.pending.is_empty() && self.chance.one_in(3) {
            let at = self.chance.below(self.pending.len());
            return self.apply(at);
        }
        match &self.controllers[slot] {
            None if self.is_seal_wanted || self.chance.one_in(6) => self.begin(slot),
            None => {}
            Some(_) if self.chance.one_in(12) => self.controllers[slot] = None,
            Some(controller) if controller.is_waiting && self.chance.one_in(2) => {
                self.tell(slot, seal::Event::Waited);
            }
            Some(_) => self.tell(slot, seal::Event::TimedOut),
        }
        Ok(())
    }

    /// Claims reach the catalog, or never do, or twice; nodes ask to forget.
    fn settle_claims(&mut self, at: usize) -> Result<(), Broken> {
        if !self.claims.is_empty() && self.chance.one_in(2) {
            let claim = self
                .claims
                .swap_remove(self.chance.below(self.claims.len()));
            if self.chance.one_in(4) {
                self.claims.push(claim);
            }
            self.catalog.record(claim);
        } else if let Some(sealed) = self.chance.pick(&self.epochs()) {
            let member = self.nodes[at].member;
            self.catalog.forget(member, sealed);
        }
        self.check()
    }

    fn epochs(&self) -> Vec<floe_model::LeaderEpoch> {
        self.catalog
            .sealed
            .iter()
            .map(|sealed| sealed.epoch)
            .collect()
    }

    fn trouble(&mut self, at: usize) -> Result<(), Broken> {
        let id = Self::id(at);
        let is_up = self.nodes[at].replica.is_some();
        match self.chance.below(10) {
            _ if !is_up => self.start(at),
            0..4 => self.crash(at),
            4 if self.catalog.survives_without(id) => self.wipe(at),
            5 if self.catalog.survives_without(id) => self.damage(at),
            6 => {
                let to = Self::id(self.chance.below(self.nodes.len()));
                if to != id {
                    self.cuts.push((id, to));
                }
            }
            7..9 => {
                let at = match self.leader() {
                    Some(leader) if self.chance.one_in(2) => leader,
                    _ => at,
                };
                let id = Self::id(at);
                self.deaf = Some(at);
                let others = (0..self.nodes.len())
                    .map(Self::id)
                    .filter(|other| *other != id);
                if self.chance.one_in(2) {
                    let ways = others.flat_map(|other| [(id, other), (other, id)]);
                    self.cuts.extend(ways);
                }
            }
            _ => {
                self.cuts.clear();
                self.deaf = None;
            }
        }
        // A life that is over is over for the catalog as soon as the node is back.
        if self.nodes[at].replica.is_none() && self.chance.one_in(2) {
            self.start(at);
        }
        self.check()
    }

    /// The trouble is over: everything must come to rest.
    fn rest(&mut self) -> Result<(), Broken> {
        self.is_calm = true;
        self.cuts.clear();
        self.deaf = None;
        for at in 0..self.nodes.len() {
            if self.nodes[at].replica.is_none() {
                self.start(at);
            }
        }
        let target = self.truth.acked.len();
        for round in 0..600 {
            self.now += std::time::Duration::from_millis(20);
            self.calm_round(round)?;
            if self.is_at_rest() && self.truth.acked.len() > target {
                return self.check();
            }
        }
        Err(format!(
            "no rest: {:?}; {:?}",
            self.catalog.open, self.catalog.sealed
        ))
    }

    fn calm_round(&mut self, round: usize) -> Result<(), Broken> {
        for at in 0..self.nodes.len() {
            while self.nodes[at].applied < self.catalog.entries.len() {
                self.learn(at)?;
            }
            self.step(at, Event::Ticked)?;
            self.backfill(at)?;
            if round.is_multiple_of(16) {
                self.append(at)?;
            }
        }
        while !self.network.is_empty() {
            self.deliver(0)?;
        }
        for at in 0..self.nodes.len() {
            self.flush(at, usize::MAX)?;
        }
        while !self.pending.is_empty() {
            self.apply(0)?;
        }
        for claim in std::mem::take(&mut self.claims) {
            self.catalog.record(claim);
        }
        let is_whole = self
            .catalog
            .open
            .members
            .iter()
            .all(|m| self.catalog.is_current(m));
        match &self.controllers[0] {
            None if self.is_seal_wanted || !is_whole => self.begin(0),
            None => {}
            Some(_) if round % 8 == 7 => self.controllers[0] = None,
            Some(controller) if controller.is_waiting => self.tell(0, seal::Event::Waited),
            Some(_) => self.tell(0, seal::Event::TimedOut),
        }
        self.controllers[1] = None;
        self.check()
    }

    /// Every member of the open generation is there and holds every sealed one.
    fn is_at_rest(&self) -> bool {
        let members = &self.catalog.open.members;
        members.iter().all(|member| {
            let mut sealed = self.catalog.sealed.iter();
            self.catalog.is_current(member)
                && sealed
                    .all(|sealed| sealed.start == sealed.end || sealed.holders.contains(member))
        })
    }
}

fn run(shape: Shape, seed: u64) -> Result<Outcome, Broken> {
    let mut world = World::new(shape, seed);
    live(&mut world)?;
    Ok(Outcome {
        events: world.events,
        compared: world.truth.compared,
        acked: world.truth.acked.len(),
        epochs: world.catalog.open.epoch.0,
        leases: world.leases,
    })
}

fn live(world: &mut World) -> Result<(), Broken> {
    for step in 0..world.shape.steps {
        world.act()?;
        if step.is_multiple_of(50) {
            world.check()?;
        }
    }
    world.rest()
}

/// The last steps of a run that breaks.
fn trace(shape: Shape, seed: u64) -> String {
    let mut world = World::new(shape, seed);
    world.trace = Some(std::collections::VecDeque::new());
    let broken = live(&mut world).expect_err("it breaks");
    let lines: Vec<_> = world.trace.into_iter().flatten().collect();
    format!("{}\nseed {seed} of {shape:?}: {broken}", lines.join("\n"))
}

const fn shape(nodes: usize, members: usize, quorum: usize) -> Shape {
    Shape {
        nodes,
        members,
        quorum,
        steps: 3000,
        switch: None,
    }
}

/// One copy, two, three, three among five, five.
const SHAPES: [Shape; 6] = [
    shape(1, 1, 1),
    shape(3, 2, 2),
    shape(3, 3, 2),
    shape(4, 3, 2),
    shape(5, 3, 2),
    shape(5, 5, 3),
];

fn soak(shape: Shape, seeds: std::ops::Range<u64>) {
    let (mut events, mut compared, mut acked, mut epochs, mut leases) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let outcome = run(shape, seed).unwrap_or_else(|_| panic!("{}", trace(shape, seed)));
        events += outcome.events;
        compared += outcome.compared;
        acked += outcome.acked;
        epochs += outcome.epochs;
        leases += outcome.leases;
    }
    println!(
        "{shape:?}: {events} events, {compared} comparisons, {acked} batches acknowledged, {epochs} seals, {leases} leases"
    );
    assert!(acked > 0 && epochs > 0 && leases > 0);
}

#[test]
fn nothing_acknowledged_is_lost_or_changed_whatever_happens() {
    for shape in SHAPES {
        soak(shape, 0..500);
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    let tell = || {
        let outcome = run(SHAPES[2], 7).unwrap();
        (
            outcome.events,
            outcome.compared,
            outcome.acked,
            outcome.epochs,
        )
    };
    assert_eq!(tell(), tell());
}

/// How the first run that breaks without a rule breaks, with its seed.
fn broken_without(rule: Option<Rule>, switch: Option<Switch>) -> Option<(Shape, u64, Broken)> {
    for seed in 0..SEEDS_PER_MUTANT {
        for shape in &SHAPES[1..] {
            let shape = Shape { switch, ..*shape };
            let outcome = catch_unwind(|| without(rule, || run(shape, seed).err()));
            let broken = match outcome {
                Ok(None) => continue,
                // A run that does not come to rest has lost nothing.
                Ok(Some(broken)) if broken.starts_with("no rest") => continue,
                Ok(Some(broken)) => broken,
                Err(panic) => match panic.downcast::<String>() {
                    Ok(words) => *words,
                    Err(panic) => (*panic.downcast::<&str>().expect("words")).to_owned(),
                },
            };
            return Some((shape, seed, broken));
        }
    }
    None
}

/// Enough for the slowest to be found several times over.
const SEEDS_PER_MUTANT: u64 = 600;

#[test]
fn a_rule_taken_out_is_noticed() {
    let mut missed = Vec::new();
    let rules = Rule::ALL.iter().map(|rule| (Some(*rule), None));
    for (rule, switch) in rules.chain(Switch::ALL.map(|switch| (None, Some(switch)))) {
        let name = rule.map_or_else(
            || format!("{:?}", switch.expect("one of both")),
            |rule| format!("{rule:?}"),
        );
        match broken_without(rule, switch) {
            Some((shape, seed, broken)) => println!(
                "without {name}: seed {seed} of {} nodes, {} members: {broken}",
                shape.nodes, shape.members
            ),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "missed {missed:?}");
}
