//! `floe consume`: records of a topic on the standard output, alone or as a member of a group.
//!
//! Guarantees: of one partition, records come in their order. In a group, what was written out is committed and what was
//! not is given again. The reader of the output may leave at any time: that is a quiet end.

mod member;
mod print;
mod reader;

use clap::Args;

use super::{Node, on_runtime};
use crate::exit::{Code, Failure, Outcome};
use print::{Form, Printer};

/// `floe consume`.
#[derive(Debug, Args)]
pub struct Consume {
    /// The topic.
    topic: String,
    /// Where to begin: earliest, latest, an offset, or a time such as 2026-01-31T12:00:00Z or @1700000000000 (ms): the
    /// first record with that timestamp (of its producing, unless its producer said otherwise) or a later one. A group
    /// that has positions goes on from them.
    #[arg(long, value_name = "WHERE", default_value = "earliest", value_parser = reader::From::parse)]
    from: reader::From,
    /// Read as a member of this group.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Only this partition.
    #[arg(long, value_name = "N", conflicts_with = "group")]
    partition: Option<u64>,
    /// End after so many records. A group goes on after the last one written.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Wait for new records instead of ending where the topic ends now.
    #[arg(long, short)]
    follow: bool,
    /// Write each record's key and a tab before its value.
    #[arg(long)]
    key: bool,
    #[command(flatten)]
    node: Node,
}

impl Consume {
    pub(super) fn run(self) -> Outcome {
        let form = match (self.node.json, self.key) {
            (true, _) => Form::Json,
            (false, true) => Form::KeyAndValue,
            (false, false) => Form::Value,
        };
        let mut printer = Printer::new(form, self.max);
        on_runtime(async {
            let work = async {
                match &self.group {
                    Some(group) => member::read(&self, group, &mut printer).await,
                    None => reader::read(&self, &mut printer).await,
                }
            };
            tokio::select! {
                outcome = work => outcome,
                interrupted = tokio::signal::ctrl_c(), if self.group.is_none() => {
                    interrupted.map_err(|error| Failure::failed(format!("cannot catch signals: {error}")))
                }
            }
        })?;
        printer.finish()
    }
}

/// A node's answer that does not say what it should.
fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::new(
        Code::Failed,
        format!("cannot read the node's answer ({error}); is it of another release?"),
    )
}
