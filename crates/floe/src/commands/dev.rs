//! `floe dev`: one node in the foreground, on this machine only, nothing to configure.

use std::time::Duration;

use clap::Args;
use floe_world::{Clock as _, clock};

use super::config::Settings;
use crate::exit::{Failure, Outcome};
use crate::node::{self, Ready};
use crate::output::Output;
use crate::{logs, node::directory};

/// `floe dev`.
#[derive(Debug, Args)]
pub struct Dev {
    #[command(flatten)]
    settings: Settings,
    /// Delete all data first, after asking.
    #[arg(long)]
    fresh: bool,
    /// Answer yes to the question of --fresh.
    #[arg(long, requires = "fresh")]
    yes: bool,
    /// Print one line of JSON when ready.
    #[arg(long)]
    json: bool,
}

impl Dev {
    pub(super) fn run(self) -> Outcome {
        let started = clock::System.monotonic();
        let loaded = self.settings.load()?;
        logs::start(&loaded.config)?;
        if self.fresh && !directory::empty(&loaded.config.log_dir, self.yes)? {
            return Err(Failure::failed("nothing was deleted and nothing started"));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(loaded.config.num_network_threads)
            .max_blocking_threads(8)
            .thread_name("floe-net")
            .enable_all()
            .build()
            .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
        let announce = |ready: &mut Ready<'_>| -> Outcome {
            ready.took = clock::System.monotonic().saturating_sub(started);
            let mut out = Output::stdout();
            if self.json {
                out.line(ready.json().to_string())?;
            } else {
                out.bytes(ready.text().as_bytes())?;
            }
            out.flush()
        };
        let outcome = runtime.block_on(node::run(&loaded, announce));
        // What is left are connections that were told to end; nobody waits for them.
        runtime.shutdown_timeout(Duration::ZERO);
        outcome
    }
}
