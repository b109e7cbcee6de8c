//! What befalls machines while clients work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use floe_world::disk::Failure;
use floe_world::tasks::{Executor, Pace};
use parking_lot::Mutex;

use super::clients::Shared;
use crate::chance::Chance;

/// One kind of bad luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// SIGKILL: what was written is there.
    Kill,
    /// Power goes: what was not flushed is there in part.
    PowerCut,
    /// Power goes in the midst of one of the next writes.
    CutWhileWriting,
    /// One of the next flushes fails.
    FailedFlush,
    /// The disk is full for a while.
    FullDisk,
    /// One of the log's threads gets no answer of the disk for a while.
    HungDisk,
    /// The wall clock jumps.
    ClockJump,
    /// Killed, and again while it starts.
    KillTwice,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Kill,
        Self::PowerCut,
        Self::CutWhileWriting,
        Self::FailedFlush,
        Self::FullDisk,
        Self::HungDisk,
        Self::ClockJump,
        Self::KillTwice,
    ];
}

/// What comes next, and what goes on.
pub(crate) struct Faults {
    chance: Chance,
    executor: Executor,
    hung: Hung,
    next_at: Duration,
    left: u64,
    /// What ends when.
    ends: BTreeMap<(Duration, u64), End>,
    number: u64,
    pub(crate) injected: BTreeMap<Fault, u64>,
}

#[derive(Clone, Copy)]
enum End {
    /// The machine starts again.
    Start(usize),
    /// It is killed while it does.
    Kill(usize),
    /// There is room on its disk.
    Room(usize),
    /// Its disk answers.
    Answer(u64),
}

/// Parts of processes that get no answer.
type Hung = Arc<Mutex<BTreeSet<(u64, &'static str)>>>;

/// How long the steps of the log's threads take.
pub(crate) fn pace(chance: &Chance, hung: &Hung) -> Pace {
    let (chance, hung) = (chance.clone(), Arc::clone(hung));
    Box::new(move |process, part, now| {
        if hung.lock().contains(&(process, part)) {
            return None;
        }
        let micros = match part {
            "journal" => chance.weighted(&[(80, 100), (15, 500), (4, 8_000), (1, 200_000)]),
            _ => chance.weighted(&[(8, 50), (2, 1_000)]),
        };
        Some(now + Duration::from_micros(chance.number(1..micros)))
    })
}

impl Faults {
    pub(crate) fn new(chance: &Chance, executor: &Executor, hung: Hung, count: u64) -> Self {
        Self {
            chance: chance.clone(),
            executor: executor.clone(),
            hung,
            next_at: Duration::from_millis(chance.number(50..2_000)),
            left: count,
            ends: BTreeMap::new(),
            number: 0,
            injected: BTreeMap::new(),
        }
    }

    /// Whether nothing more comes and nothing goes on.
    pub(crate) fn are_over(&self) -> bool {
        self.left == 0 && self.ends.is_empty()
    }

    /// When there is something to do.
    pub(crate) fn next_at(&self) -> Duration {
        let ends = self.ends.first_key_value().map(|((at, _), _)| *at);
        let next = if self.left > 0 {
            self.next_at
        } else {
            Duration::MAX
        };
        ends.unwrap_or(Duration::MAX).min(next)
    }

    /// Does what is due; ends processes that cannot go on, and has them start again.
    pub(crate) fn step(&mut self, shared: &Shared) {
        let now = self.executor.now();
        while let Some(entry) = self.ends.first_entry().filter(|entry| entry.key().0 <= now) {
            let end = entry.remove();
            self.end(shared, end);
        }
        for (which, machine) in shared.machines.iter().enumerate() {
            let Some(life) = machine.life() else {
                continue;
            };
            let why = life.failed().map(str::to_owned).or_else(|| life.refused());
            if let Some(why) = why {
                shared.note(&format!("node {} gives up: {why}", machine.node));
                let planned = ["power is cut", "No space left", "Input/output error"];
                if !planned.iter().any(|known| why.contains(known)) {
                    let what = format!("node {} gives up: {why}", machine.node);
                    shared.truth.lock().breaks(what);
                }
                let with_power = self.chance.percent(30);
                self.down(shared, which, with_power);
            }
        }
        if self.left > 0 && now >= self.next_at {
            self.left -= 1;
            self.next_at = now + Duration::from_millis(self.chance.number(50..4_000));
            self.inject(shared);
        }
    }

    fn later(&mut self, from_ms: u64, to_ms: u64, end: End) {
        self.number += 1;
        let at = self.executor.now() + Duration::from_millis(self.chance.number(from_ms..to_ms));
        self.ends.insert((at, self.number), end);
    }

    /// The process is over; another one begins some time later.
    fn down(&mut self, shared: &Shared, which: usize, with_power: bool) {
        let machine = &shared.machines[which];
        machine.end(with_power);
        let most = self.chance.of(&[10, 300, 3_000]);
        self.later(1, most, End::Start(which));
    }

    fn end(&mut self, shared: &Shared, end: End) {
        match end {
            End::Start(which) => {
                let machine = &shared.machines[which];
                machine.disk().clear_faults();
                shared.note(&format!("node {} starts", machine.node));
                machine.start();
            }
            End::Kill(which) => {
                if shared.machines[which].life().is_some() {
                    shared.note(&format!(
                        "node {} is killed again",
                        shared.machines[which].node
                    ));
                    let with_power = self.chance.percent(50);
                    self.down(shared, which, with_power);
                }
            }
            End::Room(which) => {
                shared.note(&format!("node {} has room", shared.machines[which].node));
                shared.machines[which].disk().set_capacity(1 << 40);
            }
            End::Answer(process) => {
                self.hung.lock().retain(|(of, _)| *of != process);
                self.executor.resume();
            }
        }
    }

    fn inject(&mut self, shared: &Shared) {
        let which = self.chance.number(0..shared.machines.len() as u64) as usize;
        let machine = Arc::clone(&shared.machines[which]);
        let fault = self.chance.of(&Fault::ALL);
        // Nothing befalls what is down already.
        let Some(life) = machine.life() else {
            return;
        };
        shared.note(&format!("node {}: {fault:?}", machine.node));
        *self.injected.entry(fault).or_default() += 1;
        let disk = machine.disk();
        match fault {
            Fault::Kill => self.down(shared, which, false),
            Fault::PowerCut => self.down(shared, which, true),
            Fault::CutWhileWriting => {
                disk.cut_power_at(disk.operations() + self.chance.number(1..20));
            }
            Fault::FailedFlush => {
                let flush = disk.flushes() + self.chance.number(1..6);
                disk.fail_flush_at(flush, Failure::Device);
            }
            Fault::FullDisk => {
                let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
                disk.set_capacity(used + self.chance.number(0..64 << 10));
                self.later(100, 5_000, End::Room(which));
            }
            Fault::HungDisk => {
                let part = self
                    .chance
                    .of(&["journal", "segment", "checkpoint", "reader"]);
                let process = life.process.number();
                self.hung.lock().insert((process, part));
                self.later(10, 8_000, End::Answer(process));
            }
            Fault::ClockJump => {
                let hours = self.chance.number(1..50) as i64;
                machine.clock.jump((hours - 25) * 3_600_000);
            }
            Fault::KillTwice => {
                self.down(shared, which, false);
                self.later(1, 3_000, End::Kill(which));
            }
        }
    }
}
