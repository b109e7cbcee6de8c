//! Runs seeds from the command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use floe_sim::{Fate, Summary, nodes, run};

#[derive(Parser)]
#[command(
    about = "Drives the shipped log and whole nodes in a simulated world and checks every promise."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Many seeds, each with one fate in turn.
    Seeds {
        /// How many.
        count: u64,
        /// The first one.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Only this fate.
        #[arg(long)]
        fate: Option<Name>,
    },
    /// Whole nodes with their clients: many seeds.
    Nodes {
        /// How many.
        count: u64,
        /// The first one.
        #[arg(long, default_value_t = 0)]
        from: u64,
    },
    /// Whole nodes with their clients: one seed, twice, to show that it is the same run.
    Node {
        /// Which.
        seed: u64,
    },
    /// One seed, twice, to show that it is the same run.
    Seed {
        /// Which.
        seed: u64,
        /// Its fate.
        #[arg(long, default_value = "power-loss")]
        fate: Name,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    PowerLoss,
    FailedFlush,
    FullDisk,
    Flip,
    FailedStart,
}

impl From<Name> for Fate {
    fn from(name: Name) -> Self {
        match name {
            Name::PowerLoss => Self::PowerLoss,
            Name::FailedFlush => Self::FailedFlush,
            Name::FullDisk => Self::FullDisk,
            Name::Flip => Self::Flip,
            Name::FailedStart => Self::FailedStart,
        }
    }
}

/// Of ten seeds, most meet power losses, which are what the log is for.
fn fate_of(seed: u64) -> Fate {
    match seed % 10 {
        6 => Fate::FailedStart,
        7 => Fate::FailedFlush,
        8 => Fate::FullDisk,
        9 => Fate::Flip,
        _ => Fate::PowerLoss,
    }
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what a person runs and reads"
)]
fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Seeds { count, from, fate } => seeds(count, from, fate.map(Fate::from)),
        Command::Nodes { count, from } => nodes(count, from),
        Command::Node { seed } => {
            let (first, second) = (nodes::run(seed), nodes::run(seed));
            match &first {
                Ok(summary) => println!("seed {seed} holds: {summary:?}"),
                Err(broken) => eprintln!("{broken}"),
            }
            if first != second {
                eprintln!("two runs of seed {seed} differ:\n{second:?}");
                return ExitCode::FAILURE;
            }
            ExitCode::from(u8::from(first.is_err()))
        }
        Command::Seed { seed, fate } => {
            let (first, second) = (run(seed, fate.into()), run(seed, fate.into()));
            match (first, second) {
                (Ok(first), Ok(second)) if first == second => {
                    println!("seed {seed} holds: {first:?}");
                    ExitCode::SUCCESS
                }
                (Err(first), Err(second))
                    if first.what == second.what && first.notes == second.notes =>
                {
                    for note in &first.notes {
                        eprintln!("{note}");
                    }
                    eprintln!("{first}");
                    ExitCode::FAILURE
                }
                (first, second) => {
                    eprintln!("two runs of seed {seed} differ:\n{first:?}\n{second:?}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what a person runs and reads"
)]
fn seeds(count: u64, from: u64, fate: Option<Fate>) -> ExitCode {
    let mut total = Summary::default();
    let mut least = (u64::MAX, u64::MAX, u64::MAX);
    let (mut run_so_far, mut broken) = (0, 0);
    for seed in from..from + count {
        run_so_far += 1;
        match run(seed, fate.unwrap_or(fate_of(seed))) {
            Ok(summary) => {
                total.operations += summary.operations;
                total.power_losses += summary.power_losses;
                total.during_recovery += summary.during_recovery;
                total.recoveries += summary.recoveries;
                total.batches += summary.batches;
                least.0 = summary.operations.min(least.0);
                least.1 = summary.power_losses.min(least.1);
                least.2 = summary.during_recovery.min(least.2);
            }
            Err(error) => {
                broken += 1;
                eprintln!("{error}");
            }
        }
        if broken == 10 {
            eprintln!("ten seeds are broken; stopped at seed {seed}");
            break;
        }
    }
    println!(
        "{run_so_far} seeds from {from}: {} operations, {} power losses ({} during recovery), {} recoveries, {} batches compared; a seed at least {} operations, {} power losses ({} during recovery); {broken} broken",
        total.operations,
        total.power_losses,
        total.during_recovery,
        total.recoveries,
        total.batches,
        least.0,
        least.1,
        least.2,
    );
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what a person runs and reads"
)]
fn nodes(count: u64, from: u64) -> ExitCode {
    let mut total = nodes::Summary::default();
    for seed in from..from + count {
        match nodes::run(seed) {
            Ok(summary) => total.add(&summary),
            Err(broken) => {
                eprintln!("{broken}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{count} seeds hold: {total:#?}");
    ExitCode::SUCCESS
}
