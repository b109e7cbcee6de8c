//! Many seeds of trouble: loss, delays, cuts, slow disks, processes and power that go at any moment, controllers that compete and stop.
//! Afterwards all copies are compared, record by record, with what their leaders took and what was acknowledged.

use std::collections::BTreeMap;

use floe_model::NodeId;

use super::control::Controller;
use super::rig::{Rig, on_rig};
use crate::peers::Line;

const NODES: u32 = 3;
const QUORUM: usize = 2;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    committed: u64,
    seals: usize,
    restarts: u32,
    compared: u64,
}

struct Run {
    rig: Rig,
    chance: u64,
    /// What a leader took, by epoch and offset.
    taken: BTreeMap<(u32, u64), String>,
    /// Where the records end that were acknowledged in each epoch.
    acked: BTreeMap<u32, u64>,
    controllers: Vec<Controller>,
    number: u64,
    outcome: Outcome,
}

impl Run {
    async fn new(seed: u64) -> Self {
        let mut rig = Rig::new(seed, NODES).await;
        rig.open_first(&[1, 2, 3], QUORUM).await;
        Self {
            rig,
            chance: seed ^ 0x51ab,
            taken: BTreeMap::new(),
            acked: BTreeMap::new(),
            controllers: Vec::new(),
            number: 0,
            outcome: Outcome::default(),
        }
    }

    /// Chance, below a bound (SplitMix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn some_node(&mut self) -> u32 {
        1 + self.below(u64::from(NODES)) as u32
    }

    fn is_up(&mut self, id: u32) -> bool {
        self.rig.node(id).life.is_some()
    }

    /// One record, if that node leads.
    fn append(&mut self, id: u32, bytes: u64) {
        if !self.is_up(id) {
            return;
        }
        let Some(epoch) = self.rig.replica(id).leads() else {
            return;
        };
        self.number += 1;
        let value = format!("{}:{}", self.number, ".".repeat(bytes as usize));
        if let Ok(end) = self.rig.append(id, &value) {
            let before = self.taken.insert((epoch.0, end.0 - 1), value);
            assert_eq!(before, None, "an offset is given once in an epoch");
        }
    }

    /// A millisecond goes by, and what is acknowledged then is noted.
    async fn pass(&mut self) {
        self.rig.run(1).await;
        for id in 1..=NODES {
            if !self.is_up(id) {
                continue;
            }
            let replica = self.rig.replica(id);
            if let Some(epoch) = replica.leads() {
                let committed = replica.committed(epoch).map_or(0, |offset| offset.0);
                let acked = self.acked.entry(epoch.0).or_default();
                *acked = committed.max(*acked);
            }
        }
        let id = self.some_node();
        if self.below(8) == 0 && self.is_up(id) {
            self.rig.learn(id);
        }
        let mut controllers = std::mem::take(&mut self.controllers);
        controllers.retain(|controller| self.is_up(controller.at()));
        for controller in &mut controllers {
            self.rig.control(controller);
        }
        self.controllers = controllers;
    }

    async fn act(&mut self) {
        let id = self.some_node();
        match self.below(100) {
            0..45 => {
                let bytes = [20, 300, 5_000, 30_000][self.below(4) as usize];
                for _ in 0..=self.below(4) {
                    for leader in 1..=NODES {
                        self.append(leader, bytes);
                    }
                }
            }
            45..65 if self.is_up(id) => self.rig.learn(id),
            65..75 => self.rig.node(id).is_slow ^= true,
            75..81 => {
                let other = 1 + id % NODES;
                self.rig.cut(id, other);
            }
            81..89 => {
                let other = 1 + id % NODES;
                self.rig.heal(id, other);
            }
            89..92 => self.toggle(id).await,
            92..95 if self.is_up(id) => {
                self.controllers.retain(|controller| controller.at() != id);
                let next = self.next();
                let controller = self.rig.begin_seal(id, &next, None);
                self.controllers.push(controller);
            }
            95 => drop(self.controllers.pop()),
            _ => {}
        }
        for _ in 0..self.below(6) {
            self.pass().await;
        }
    }

    /// A node that is up ends, any way; one that is down starts.
    async fn toggle(&mut self, id: u32) {
        if self.is_up(id) {
            let is_power_cut = self.below(2) == 0;
            self.rig.stop(id, is_power_cut).await;
        } else {
            self.outcome.restarts += 1;
            self.rig.start(id);
        }
    }

    fn next(&mut self) -> Vec<u32> {
        let all: Vec<u32> = (1..=NODES).collect();
        let up: Vec<u32> = all.iter().copied().filter(|id| self.is_up(*id)).collect();
        if up.len() >= QUORUM { up } else { all }
    }

    /// The trouble ends: all are up and connected, one leads, and takes one more record.
    async fn rest(&mut self) {
        self.controllers.clear();
        for id in 1..=NODES {
            self.rig.node(id).is_slow = false;
            if !self.is_up(id) {
                self.rig.start(id);
            }
            self.lines(id, &Line::default());
            self.rig.heal(id, 1 + id % NODES);
        }
        self.rig.run(20).await;
        self.rig.seal(1, &[1, 2, 3], None).await;
        self.rig.seal(2, &[1, 2, 3], None).await;
        let leader = self.rig.open().expect("one is open").leader.node.0;
        let epoch = self.rig.open().expect("one is open").epoch.0;
        self.append(leader, 20);
        let end = self.rig.end(leader, epoch);
        self.rig
            .until("the last record is everywhere", |rig| {
                (1..=NODES).all(|id| rig.committed(id, epoch) == end)
            })
            .await;
        self.pass().await;
        for past in self.rig.past.clone() {
            for id in 1..=NODES {
                let is_held = past.holders.iter().any(|holder| holder.node == NodeId(id));
                if !is_held && past.opened.start < past.end {
                    self.rig.backfill(id, &past).await;
                }
            }
        }
        self.rig.run(50).await;
    }

    fn lines(&mut self, id: u32, line: &Line) {
        for other in (1..=NODES).filter(|other| *other != id) {
            self.rig
                .network
                .set(NodeId(id), NodeId(other), line.clone());
        }
    }

    /// Whatever lies anywhere is what a leader took there.
    fn compare(&mut self) {
        for id in 1..=NODES {
            if !self.is_up(id) {
                continue;
            }
            for held in self.rig.replica(id).log.generations() {
                for (offset, value) in self.rig.values(id, held.epoch.0) {
                    self.outcome.compared += 1;
                    let taken = self.taken.get(&(held.epoch.0, offset));
                    assert_eq!(taken, Some(&value), "node {id}, epoch {}", held.epoch);
                }
            }
        }
    }

    /// What was acknowledged lies below each seal, and on every copy.
    fn check(&mut self) {
        self.compare();
        let mut ends: Vec<(u32, u64, u64)> = Vec::new();
        for past in &self.rig.past {
            ends.push((past.opened.epoch.0, past.opened.start.0, past.end.0));
        }
        let open = self.rig.open().expect("one is open").clone();
        let (epoch, start) = (open.epoch.0, open.start.0);
        ends.push((
            epoch,
            start,
            self.acked.get(&epoch).copied().unwrap_or(start),
        ));
        for (epoch, start, end) in ends {
            let acked = self.acked.get(&epoch).copied().unwrap_or_default();
            assert!(
                acked <= end,
                "{acked} acknowledged in epoch {epoch}, sealed at {end}"
            );
            self.outcome.committed += end - start;
            for id in 1..=NODES {
                if start == end {
                    continue;
                }
                let values = self.rig.values(id, epoch);
                let held = values.iter().map(|(offset, _)| *offset);
                let held: Vec<u64> = held.filter(|offset| *offset < end).collect();
                let wanted: Vec<u64> = (start..end).collect();
                assert_eq!(held, wanted, "node {id}, epoch {epoch}");
            }
        }
    }
}

fn run(seed: u64) -> Outcome {
    on_rig(async {
        let mut run = Run::new(seed).await;
        let line = Line {
            is_cut: false,
            lost_per_million: if seed.is_multiple_of(2) { 20_000 } else { 0 },
            delay_us: 50..=3_000,
        };
        for id in 1..=NODES {
            run.lines(id, &line);
        }
        for step in 0..250 {
            run.act().await;
            if step % 50 == 49 {
                run.compare();
            }
        }
        run.rest().await;
        run.check();
        run.outcome.seals = run.rig.past.len();
        run.outcome
    })
}

#[test]
fn whatever_happens_all_copies_agree_and_nothing_acknowledged_is_lost() {
    let (mut committed, mut seals, mut restarts, mut compared) = (0, 0, 0, 0);
    for seed in 0..60 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        committed += outcome.committed;
        seals += outcome.seals;
        restarts += outcome.restarts;
        compared += outcome.compared;
    }
    println!("{committed} records, {seals} seals, {restarts} restarts, {compared} comparisons");
    assert!(committed > 1_000 && seals > 100 && restarts > 60 && compared > 10_000);
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    assert_eq!(run(7), run(7));
}
