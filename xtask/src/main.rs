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
mod repository;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask CHORE

  layers            directions between crates, length of files, leftovers
  bench [--rounds N] [--share F] [--only PART] [--floe-alone]
                    Floe beside Apache Kafka under one load tool; keeps bench/results/
  clients [FAMILY...]
                    the clients' contract for all families (or some); all write docs/clients.md
  fuzz MINUTES [TARGET]
                    each fuzz target (or one) for so many minutes; needs nightly and cargo-fuzz
  sim [ARGUMENT...] the log on the simulated disk, by seeds";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.split_first() {
        Some((&"layers", [])) => layers::check(),
        Some((&"bench", arguments)) => bench::run(arguments),
        Some((&"clients", families)) => clients::run(families),
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
