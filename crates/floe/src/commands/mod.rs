//! The commands, one file each: what it is called, what it does, what it prints.

pub mod config;
pub mod dev;

use clap::{Parser, Subcommand};

use crate::exit::Outcome;

/// Floe: an event-streaming broker in one small binary.
#[derive(Debug, Parser)]
#[command(name = "floe", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node in the foreground, on this machine only.
    Dev(dev::Dev),
    /// Show every setting with its value and where it came from.
    Config(config::Config),
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> Outcome {
        match self.command {
            Command::Dev(command) => command.run(),
            Command::Config(command) => command.run(),
        }
    }
}
