//! `floe produce`: one record a line, from a file or a pipe.
//!
//! Guarantees: records of one key keep the order of their lines; when it ends well, every line is acknowledged, and when
//! not, it says from which line on it is not known. Blank lines are no records.

mod frame;
mod input;

use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Node, on_runtime};
use crate::client::Client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Output, grouped};
use floe_world::{Clock as _, clock};
use frame::{Framed, Framer, Keys};

/// Pieces of input read ahead of the requests.
const PIECES_AHEAD: usize = 4;
/// How long a request waits for more lines.
const LINGER: Duration = Duration::from_millis(5);

/// `floe produce`.
#[derive(Debug, Args)]
pub struct Produce {
    /// The topic; made on first use if the node allows it. Blank lines of the input are no records, and a line's end (also
    /// `\r\n`) is no part of one.
    topic: String,
    /// Take each record's key from this field of its JSON object.
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["key", "key_separator"])]
    key_field: Option<String>,
    /// Take what stands before this text in each line as the key, the rest as the value.
    #[arg(long, value_name = "TEXT", conflicts_with = "key")]
    key_separator: Option<String>,
    /// One key for all records.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    node: Node,
}

impl Produce {
    pub(super) fn run(self) -> Outcome {
        on_runtime(self.send_all())
    }

    async fn send_all(self) -> Outcome {
        let started = clock::System.monotonic();
        let (pieces, incoming) = mpsc::channel(PIECES_AHEAD);
        // It ends with the input, or with the process: a read of a terminal cannot be called off.
        drop(
            floe_world::tasks::thread("floe-stdin", move || input::read(&pieces))
                .map_err(|error| Failure::failed(format!("cannot start: {error}")))?,
        );
        let keys = match (&self.key_field, &self.key_separator, &self.key) {
            (Some(field), _, _) => Keys::Field(field.clone()),
            (_, Some(separator), _) => Keys::Before(separator.clone()),
            (_, _, Some(key)) => Keys::All(key.clone()),
            _ => Keys::None,
        };
        let mut work = Work {
            client: self.node.client(),
            topic: &self.topic,
            framer: Framer::new(keys),
            progress: progress(),
            has_sent: false,
            acknowledged: 0,
            acknowledged_lines: 0,
        };
        let outcome = tokio::select! {
            outcome = work.pump(incoming) => outcome,
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::new(Code::Interrupted, "stopped by a signal"))
            }
        };
        work.progress.finish_and_clear();
        outcome.map_err(|failure| work.explain(&failure))?;
        let took = clock::System.monotonic().saturating_sub(started);
        self.report(work.acknowledged, took)
    }

    fn report(&self, records: u64, took: Duration) -> Outcome {
        let rate = records as f64 / took.as_secs_f64().max(1e-6);
        let mut out = Output::stdout();
        if self.node.json {
            out.json(&json!({
                "topic": self.topic,
                "records": records,
                "milliseconds": took.as_millis() as u64,
            }))?;
        } else {
            out.line(format!(
                "{} records acknowledged by topic {} in {:.2} s ({} a second).",
                grouped(records),
                self.topic,
                took.as_secs_f64(),
                grouped(rate as u64)
            ))?;
        }
        out.flush()
    }
}

struct Work<'a> {
    client: Client,
    topic: &'a str,
    framer: Framer,
    progress: ProgressBar,
    has_sent: bool,
    acknowledged: u64,
    acknowledged_lines: u64,
}

impl Work<'_> {
    /// Gathers lines for as long as they come quickly, and sends them in their order, one request at a time.
    async fn pump(&mut self, mut incoming: mpsc::Receiver<input::Piece>) -> Outcome {
        loop {
            let wait = incoming.recv();
            let piece = if self.framer.is_empty() {
                wait.await
            } else {
                let Ok(piece) = tokio::time::timeout(LINGER, wait).await else {
                    self.send().await?;
                    continue;
                };
                piece
            };
            let Some(piece) = piece else { break };
            let lines = piece.map_err(|error| {
                Failure::failed(format!("cannot read the standard input: {error}"))
            })?;
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                while !self.framer.add(line)? {
                    self.send().await?;
                }
            }
        }
        self.send().await
    }

    async fn send(&mut self) -> Outcome {
        let Some(Framed {
            kind,
            query,
            body,
            records,
            lines,
        }) = self.framer.take()
        else {
            return Ok(());
        };
        self.has_sent = true;
        self.client.produce(self.topic, &query, kind, body).await?;
        self.acknowledged += records;
        self.acknowledged_lines = lines;
        self.progress.set_position(self.acknowledged);
        Ok(())
    }

    fn explain(&self, failure: &Failure) -> Failure {
        if !self.has_sent {
            let message = format!("{failure}\nNothing was sent to topic {}", self.topic);
            return Failure::new(failure.code, message);
        }
        Failure::new(
            failure.code,
            format!(
                "{failure}\n{} records up to line {} are acknowledged; of those after it, it is not known. To go on, \
                 send the lines from {} again",
                grouped(self.acknowledged),
                self.acknowledged_lines,
                self.acknowledged_lines + 1
            ),
        )
    }
}

/// Drawn on a terminal only, and not before the work has taken a moment.
fn progress() -> ProgressBar {
    let progress = ProgressBar::new_spinner().with_style(
        ProgressStyle::with_template("{spinner} {human_pos} records, {per_sec}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}
