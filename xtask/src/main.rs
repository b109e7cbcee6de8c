//! The project's chores, one file each: `cargo xtask` lists them.
//!
//! Guarantees: each chore ends non-zero when what it checks does not hold.
//! Deliberately not here: anything a user of Floe needs; that is the `floe` binary.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a chore runs in the real world and reports to a terminal"
)]

mod bench;
mod clients;
mod fuzz;
mod layers;
mod memory;
mod repository;
mod suite;

use std::process::ExitCode;

use floe_tests::crash::Plan;

const USAGE: &str = "\
cargo xtask CHORE

  layers            directions between crates, length of files, leftovers
  bench [--rounds N] [--share F] [--only PART] [--floe-alone]
                    Floe beside Apache Kafka under one load tool; keeps bench/results/
  clients [FAMILY...]
                    the clients' contract for all families (or some); all write docs/clients.md
  crash [SEED]      a million records, an idempotent producer and 20 kills over a minute
  fixture NAME      packs a data directory of this build into tests/fixtures
  fuzz MINUTES [TARGET]
                    each fuzz target (or one) for so many minutes; installs nightly Rust and cargo-fuzz
  idle [MINUTES]    an idempotent producer of librdkafka's goes on after 11 idle minutes
  librdkafka [TEST...]
                    the chosen part of librdkafka's own test suite
  memory [GIB]      10 GiB through a node in a control group of 512 MiB, with 300 readers that never read
  sim [ARGUMENT...] the log (seeds N) or whole nodes (nodes N) in a simulated world";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.split_first() {
        Some((&"layers", [])) => layers::check(),
        Some((&"bench", arguments)) => bench::run(arguments),
        Some((&"clients", families)) => clients::run(families),
        Some((&"crash", seed @ ([] | [_]))) => crash(seed.first()),
        Some((&"fixture", [name])) => {
            floe_tests::fixture::write(name);
            Ok(())
        }
        Some((&"librdkafka", tests)) => suite::run(tests),
        Some((&"memory", size @ ([] | [_]))) => memory::run(size.first().copied()),
        Some((&"idle", minutes @ ([] | [_]))) => memory::idle(minutes.first().copied()),
        Some((&"fuzz", [minutes, target @ ..])) => fuzz::run(minutes, target),
        Some((&"sim", arguments)) => repository::run(
            repository::cargo()
                .args(["run", "--release", "--quiet", "--package", "floe-sim", "--"])
                .args(arguments),
        ),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The kill -9 loop at its full size.
fn crash(seed: Option<&&str>) -> anyhow::Result<()> {
    let seed = match seed {
        Some(seed) => seed.parse()?,
        None => u64::from(std::process::id()),
    };
    let plan = Plan {
        records: 1_000_000,
        keys: 1_000,
        partitions: 12,
        seconds: 65,
        kills: 20,
        seed,
    };
    let seen = floe_tests::crash::run(plan);
    println!(
        "crash: {} records acknowledged, there once and in order; {seen:?}",
        seen.acknowledged
    );
    Ok(())
}
