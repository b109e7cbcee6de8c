//! The log lines of a node: structured, on the standard error, for people or as JSON.
//!
//! Order: a line is written by the thread that logs it; nothing is queued, so the last words of a process are seen.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::Config;
use crate::exit::{Failure, Outcome};

/// Starts logging for the whole process.
pub(crate) fn start(config: &Config) -> Outcome {
    let targets: Targets = config
        .logging_level
        .parse()
        .map_err(|error| Failure::failed(format!("logging.level: {error}")))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match config.logging_format.as_str() {
        "json" => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        _ => lines.with_ansi(io::stderr().is_terminal()).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .try_init()
        .map_err(|error| Failure::failed(format!("cannot start logging: {error}")))
}
