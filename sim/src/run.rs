//! One seed: lives of a node with falls between them, and what must be true after each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use floe_log::verify::{self, Condition};
use floe_log::{Config, OpenError, Recovered, Stream};
use floe_model::Timestamp;
use floe_world::clock::Manual;
use floe_world::disk::{Failure, Simulated};
use floe_world::random::Seeded;

use crate::chance::Chance;
use crate::check::{self, Hit};
use crate::log_starts;
use crate::node::{DIR, Node, World};
use crate::operations::{self, Mix};
use crate::truth::Truth;

/// What befalls the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Power goes in the middle of work, and again during recovery.
    PowerLoss,
    /// A flush fails once; the process ends and starts again, with or without a power loss.
    FailedFlush,
    /// The disk fills up and is freed again.
    FullDisk,
    /// A byte flips while the node is down.
    Flip,
    /// An operation of the disk fails while the node starts; before that, power goes or a flush fails.
    FailedStart,
}

/// What a run did, for the person who reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations asked.
    pub operations: u64,
    /// Times power was lost.
    pub power_losses: u64,
    /// Of those, during recovery.
    pub during_recovery: u64,
    /// Times the log was opened whole.
    pub recoveries: u64,
    /// Batches read back and compared.
    pub batches: u64,
    /// A print of everything that happened; two runs of one seed have the same.
    pub trace: u64,
}

impl Summary {
    /// Least operations of a run.
    pub const OPERATIONS_MIN: u64 = 200;
    /// Least power losses of a run ...
    pub const POWER_LOSSES_MIN: u64 = 2;
    /// ... and of those during recovery.
    pub const DURING_RECOVERY_MIN: u64 = 1;

    /// Whether it has been through as much as a run is to go through.
    fn is_enough(&self) -> bool {
        self.operations >= Self::OPERATIONS_MIN
            && self.power_losses >= Self::POWER_LOSSES_MIN
            && self.during_recovery >= Self::DURING_RECOVERY_MIN
    }
}

/// A promise that did not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The seed that shows it again.
    pub seed: u64,
    /// What befell the node.
    pub fate: Fate,
    /// Which promise, and where.
    pub what: String,
    /// What was asked and answered last.
    pub notes: VecDeque<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {} ({:?}): {}\nto run it again: cargo run --release -p floe-sim -- seed {} --fate {}",
            self.seed,
            self.fate,
            self.what,
            self.seed,
            self.fate.name()
        )
    }
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PowerLoss,
        Self::FailedFlush,
        Self::FullDisk,
        Self::Flip,
        Self::FailedStart,
    ];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerLoss => "power-loss",
            Self::FailedFlush => "failed-flush",
            Self::FullDisk => "full-disk",
            Self::Flip => "flip",
            Self::FailedStart => "failed-start",
        }
    }

    /// Whether the process may end by itself, with power or without.
    fn fails_flushes(self) -> bool {
        matches!(self, Self::FailedFlush | Self::FailedStart)
    }
}

/// Runs one seed.
pub fn run(seed: u64, fate: Fate) -> Result<Summary, Broken> {
    let mut run = Run::new(seed, fate);
    match run.all() {
        Ok(()) => {
            run.summary.trace = run.truth.trace();
            Ok(run.summary)
        }
        Err(what) => Err(run.broken(seed, what)),
    }
}

pub(crate) struct Run {
    pub(crate) chance: Chance,
    pub(crate) mix: Mix,
    pub(crate) world: World,
    pub(crate) truth: Truth,
    pub(crate) summary: Summary,
    fate: Fate,
    /// Whether all that can be read survives a power loss; not so after the process alone has ended.
    is_durable: bool,
}

/// A small node, so that the ring laps, segments roll and checkpoints come often.
fn config(chance: &Chance) -> Config {
    Config {
        ring_bytes: chance.of(&[1 << 20, 2 << 20, 4 << 20]),
        group_bytes_max: 128 << 10,
        segment_bytes: chance.of(&[64 << 10, 256 << 10, 4 << 20]),
        large_append_bytes: chance.of(&[4 << 10, 16 << 10, 64 << 10]),
        batch_bytes_max: 100 << 10,
        run_bytes_max: chance.of(&[128 << 10, 256 << 10]),
        ..Config::default()
    }
}

impl Run {
    pub(crate) fn new(seed: u64, fate: Fate) -> Self {
        let chance = Chance::new(seed);
        let world = World {
            disk: Simulated::new(chance.bits()),
            clock: Arc::new(Manual::at(Timestamp(1_700_000_000_000))),
            config: config(&chance),
            random: Arc::new(Seeded::new(chance.bits())),
        };
        Self {
            mix: Mix::draw(&chance),
            chance,
            world,
            truth: Truth::default(),
            summary: Summary::default(),
            fate,
            is_durable: true,
        }
    }

    fn broken(&mut self, seed: u64, what: String) -> Broken {
        for (path, len) in self.world.disk.files() {
            self.truth.note(format!("file {} {len}", path.display()));
        }
        Broken {
            seed,
            fate: self.fate,
            what,
            notes: std::mem::take(&mut self.truth.notes),
        }
    }

    fn all(&mut self) -> Result<(), String> {
        self.prepare().map_err(|error| error.to_string())?;
        let lives = self.chance.number(2..5);
        let mut lived = 0;
        while lived < lives || !self.summary.is_enough() {
            let (mut node, _) = self.recover(&Hit::default())?;
            self.live(&mut node, self.chance.number(80..160))?;
            self.fall(node)?;
            lived += 1;
        }
        let hit = if self.fate == Fate::Flip {
            crate::flip::flip(self)?
        } else {
            Hit::default()
        };
        self.last(&hit)
    }

    /// The directory is there, as an operator makes it.
    pub(crate) fn prepare(&self) -> std::io::Result<()> {
        use floe_world::Disk;
        self.world.disk.create_dir_all(Path::new(DIR))?;
        self.world.disk.sync_dir(Path::new("/"))
    }

    /// Comes up; by chance power goes once or twice on the way, or something else fails. What it comes up with is checked
    /// and adopted.
    fn recover(&mut self, hit: &Hit) -> Result<(Node, Recovered), String> {
        // What an undisturbed recovery of the same disk would say.
        let (mut undisturbed, mut length) = self.on_a_copy(hit)?;
        let disturbances = self.chance.weighted(&[(2, 0), (3, 1), (1, 2)]);
        for _ in 0..disturbances {
            let is_power = self.disturbed(length, undisturbed.as_ref(), hit)?;
            if is_power && !self.is_durable {
                // Nobody has seen yet what was only readable; what is left of it now is all there is.
                (undisturbed, length) = self.on_a_copy(hit)?;
                self.is_durable = true;
            }
        }
        let opened = self.world.open();
        let (node, found) = opened.map_err(|error| format!("does not open: {error}"))?;
        self.summary.recoveries += 1;
        self.is_durable = true;
        self.truth
            .note(format!("up: {:?}, {:?}", found.boot, found.verdict));
        for part in &found.partitions {
            self.truth.note(format!(
                "  {} incarnation {:x} fence {} {:?}",
                part.partition, part.incarnation.0, part.fence, part.generations
            ));
        }
        check::recovered(&self.truth, &found, hit)?;
        check::unchanged(undisturbed.as_ref(), &found)?;
        check::adopt(&node, &mut self.truth, &found);
        self.summary.batches += check::contents(&node, &self.truth, hit)?;
        Ok((node, found))
    }

    /// Starts, with a fault at one of so many operations; leaves the disk as it is after that. Whether power has gone.
    fn disturbed(
        &mut self,
        length: u64,
        undisturbed: Option<&Recovered>,
        hit: &Hit,
    ) -> Result<bool, String> {
        let disk = self.world.disk.clone();
        let at = disk.operations() + self.chance.number(1..length + 1);
        let fails = self.fate == Fate::FailedStart && self.chance.percent(60);
        if fails {
            disk.fail_at(at, self.chance.of(&[Failure::Device, Failure::NoRoom]));
        } else {
            disk.cut_power_at(at);
        }
        match self.world.open() {
            Ok((node, found)) if !disk.is_cut() => {
                check::recovered(&self.truth, &found, hit)?;
                check::unchanged(undisturbed, &found)?;
                drop(node);
                self.is_durable = true;
            }
            Ok(_) | Err(OpenError::Failed(_)) if disk.is_cut() || fails => {}
            Ok(_) => return Err("power went and nobody noticed".to_owned()),
            Err(error) => return Err(format!("does not open after a power loss: {error}")),
        }
        let is_power = disk.is_cut() || (fails && self.chance.percent(40));
        if is_power {
            self.summary.power_losses += 1;
            self.summary.during_recovery += 1;
            self.world.disk = disk.after_power_cut();
        } else {
            self.world.disk = disk.after_crash();
        }
        Ok(is_power)
    }

    /// Recovers a copy twice, checks it offline, and gives the answer (`None` for a directory never formatted whole) and
    /// how many operations of the disk it took.
    fn on_a_copy(&mut self, hit: &Hit) -> Result<(Option<Recovered>, u64), String> {
        let original = self.world.disk.clone();
        self.world.disk = original.after_crash();
        let opened = self.world.open();
        let (node, first) = opened.map_err(|error| format!("does not open: {error}"))?;
        drop(node);
        let length = self.world.disk.operations();
        check::recovered(&self.truth, &first, hit)?;
        self.world.disk = self.world.disk.after_crash();
        self.offline(&first, hit)?;
        // What it has let anybody see is there when power goes.
        self.world.disk = self.world.disk.after_power_cut();
        let opened = self.world.open();
        let (node, second) =
            opened.map_err(|error| format!("does not open a second time: {error}"))?;
        drop(node);
        check::same(&first, &second)
            .map_err(|what| format!("a power loss after recovery: {what}"))?;
        let is_damage = matches!(second.verdict, floe_log::Verdict::Damage { .. });
        if is_damage {
            return Err(format!("damage is said again: {:?}", second.verdict));
        }
        self.world.disk = original;
        Ok(((!first.is_new).then_some(first), length))
    }

    /// The offline check agrees with what recovery has left.
    fn offline(&self, found: &Recovered, hit: &Hit) -> Result<(), String> {
        let log_starts = |streams: &[Stream]| Ok::<_, Infallible>(log_starts::found(streams));
        let report = verify::verify(&self.world.disk, Path::new(DIR), log_starts);
        let report = report.map_err(|error| format!("the offline check: {error}"))?;
        if !hit.is_any && report.condition() != Condition::Whole {
            let condition = report.condition();
            return Err(format!(
                "the offline check says {condition:?}: {:?}",
                report.findings
            ));
        }
        for part in &found.partitions {
            if hit.changes.contains(&part.partition) {
                continue;
            }
            let checked = report
                .partitions
                .iter()
                .find(|p| p.partition == part.partition);
            let Some(checked) = checked else {
                return Err(format!("the offline check misses {}", part.partition));
            };
            let ends = checked.generations.iter().map(|g| (g.epoch, g.end));
            let expected = part.generations.iter().map(|g| (g.epoch, g.end));
            if !ends.clone().eq(expected.clone()) || checked.fence != part.fence {
                return Err(format!(
                    "the offline check of {} finds {:?} and fence {}, recovery {:?} and {}",
                    part.partition,
                    ends.collect::<Vec<_>>(),
                    checked.fence,
                    expected.collect::<Vec<_>>(),
                    part.fence
                ));
            }
        }
        Ok(())
    }

    /// Operations until enough were asked or the node has fallen.
    fn live(&mut self, node: &mut Node, operations: u64) -> Result<(), String> {
        let planned = self.chance.number(operations / 2..operations);
        for number in 0..operations {
            if number == planned {
                self.plan_a_fault();
            }
            operations::one(&self.chance, &self.mix, &self.world, node, &mut self.truth)?;
            node.hear(&mut self.truth)?;
            self.summary.operations += 1;
            if let Some(failure) = node.failure() {
                return self.expect_failure(&failure);
            }
        }
        if self.chance.percent(30) && !self.world.disk.is_cut() {
            // Everything that was asked is answered if only the log is stepped.
            self.world.disk.clear_faults();
            self.world.disk.set_capacity(1 << 40);
            node.settle_down(&mut self.truth)?;
            if node.is_waiting() && node.failure().is_none() {
                return Err("the log is idle and has not answered".to_owned());
            }
        }
        Ok(())
    }

    fn plan_a_fault(&self) {
        let disk = &self.world.disk;
        match self.fate {
            Fate::PowerLoss | Fate::Flip => {
                disk.cut_power_at(disk.operations() + self.chance.number(1..80));
            }
            Fate::FailedStart if self.chance.percent(50) => {
                disk.cut_power_at(disk.operations() + self.chance.number(1..80));
            }
            Fate::FailedFlush | Fate::FailedStart => {
                let failure = self.chance.of(&[Failure::Device, Failure::NoRoom]);
                disk.fail_flush_at(disk.flushes() + self.chance.number(1..40), failure);
            }
            Fate::FullDisk => {
                let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
                disk.set_capacity(used + self.chance.number(0..1 << 20));
            }
        }
    }

    fn expect_failure(&self, failure: &floe_log::Failure) -> Result<(), String> {
        let is_expected = self.world.disk.is_cut() || self.fate.fails_flushes();
        if is_expected {
            return Ok(());
        }
        Err(format!("the log has failed without a fault: {failure}"))
    }

    /// The process ends: by its own failure, by a power loss, or killed.
    fn fall(&mut self, node: Node) -> Result<(), String> {
        let disk = self.world.disk.clone();
        let is_power = disk.is_cut() || !self.fate.fails_flushes() || self.chance.percent(50);
        if !disk.is_cut() && node.failure().is_none() && self.chance.percent(20) {
            match node.log.close() {
                Ok(()) => self.truth.note("closed".to_owned()),
                // A planned fault may hit the close.
                Err(_) if disk.is_cut() || self.fate.fails_flushes() => {}
                Err(failure) => return Err(format!("does not close: {failure}")),
            }
        }
        drop(node);
        self.truth.note(format!("fell, power lost: {is_power}"));
        self.is_durable = is_power;
        self.world.disk = if is_power {
            self.summary.power_losses += 1;
            disk.after_power_cut()
        } else {
            disk.after_crash()
        };
        let print = crate::disk::print(&self.world.disk).map_err(|error| error.to_string())?;
        self.truth.note(format!("disk {print:x}"));
        Ok(())
    }

    /// The last life: everything is read, and read again after a clean close.
    fn last(&mut self, hit: &Hit) -> Result<(), String> {
        let (mut node, _) = self.recover(hit)?;
        node.settle_down(&mut self.truth)?;
        self.summary.batches += check::contents(&node, &self.truth, hit)?;
        node.log
            .close()
            .map_err(|failure| format!("does not close: {failure}"))?;
        drop(node);
        self.world.disk = self.world.disk.after_power_cut();
        let opened = self.world.open();
        let (node, found) =
            opened.map_err(|error| format!("does not open after a close: {error}"))?;
        check::recovered(&self.truth, &found, hit)?;
        self.summary.batches += check::contents(&node, &self.truth, hit)?;
        Ok(())
    }
}
