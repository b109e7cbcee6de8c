//! The floe binary.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use floe_floe::commands::Cli;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                // Without a standard error there is nobody to tell.
                drop(writeln!(std::io::stderr(), "floe: {failure}"));
            }
            ExitCode::from(failure.code as u8)
        }
    }
}
