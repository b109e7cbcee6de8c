//! The commands, one file each: what it is called, what it does, what it prints.

mod completions;
pub mod config;
pub mod consume;
pub mod dev;
pub mod group;
pub mod produce;
mod reference;
pub mod topic;
pub mod verify;

use clap::{Args, Parser, Subcommand};

use crate::client::{Address, Client};
use crate::exit::{Code, Failure, Outcome};

/// Floe: an event-streaming broker in one small binary.
#[derive(Debug, Parser)]
#[command(
    name = "floe",
    version,
    about = "Floe: an event-streaming broker in one small binary",
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node in the foreground, on this machine only.
    Dev(dev::Dev),
    /// List, create, describe and delete topics.
    #[command(subcommand)]
    Topic(topic::Topic),
    /// Append records, one a line of the standard input.
    Produce(produce::Produce),
    /// Read records, alone or as a member of a group.
    Consume(consume::Consume),
    /// List, describe and delete groups; their lag.
    #[command(subcommand)]
    Group(group::Group),
    /// Check a data directory whose node is stopped; reads everything, writes nothing.
    Verify(verify::Verify),
    /// Show every setting with its value and where it came from.
    Config(config::Config),
    /// Print a script that lets a shell complete commands and flags.
    Completions(completions::Completions),
    /// Print docs/commands.md.
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> Outcome {
        match self.command {
            Command::Dev(command) => command.run(),
            Command::Topic(command) => command.run(),
            Command::Produce(command) => command.run(),
            Command::Consume(command) => command.run(),
            Command::Group(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Config(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Reference(command) => command.run(),
        }
    }
}
/// Where a command finds its node, and how it prints.
#[derive(Clone, Debug, Args)]
pub struct Node {
    /// A node's HTTP port.
    #[arg(
        long,
        value_name = "URL",
        env = "FLOE_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:9250"
    )]
    server: Address,
    /// Print JSON for programs.
    #[arg(long)]
    json: bool,
}

impl Node {
    fn client(&self) -> Client {
        Client::new(self.server.clone())
    }
}

/// Runs a command's requests on a runtime of one thread.
fn on_runtime<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, format!("cannot start: {error}")))?
        .block_on(work)
}
