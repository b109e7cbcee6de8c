//! `floe group list|describe|delete`, with lag.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Node, on_runtime};
use crate::client::api::{cell, items, number};
use crate::exit::Outcome;
use crate::output::{Output, grouped};

/// `floe group`.
#[derive(Debug, Subcommand)]
pub enum Group {
    /// List the groups.
    List(List),
    /// Show a group's members, positions and lag.
    Describe(Named),
    /// Delete a group without members, and its positions.
    Delete(Named),
}

/// `floe group list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    node: Node,
}

/// A command about one group.
#[derive(Debug, Args)]
pub struct Named {
    /// Its name.
    group: String,
    #[command(flatten)]
    node: Node,
}

impl Group {
    pub(super) fn run(self) -> Outcome {
        let mut out = Output::stdout();
        on_runtime(async {
            match self {
                Self::List(command) => command.run(&mut out).await,
                Self::Describe(command) => command.describe(&mut out).await,
                Self::Delete(command) => command.delete(&mut out).await,
            }
        })
    }
}

impl List {
    async fn run(self, out: &mut Output) -> Outcome {
        let answer = self.node.client().groups().await?;
        if self.node.json {
            return out.json(&answer);
        }
        let row = |group: &Value| {
            let columns = ["group", "kind", "state"];
            columns.map(|name| cell(group, name)).to_vec()
        };
        let rows = items(&answer, "groups").iter().map(row).collect();
        let empty = "There are no groups. Make one: floe consume TOPIC --group NAME";
        out.table(&["group", "kind", "state"], rows, empty)
    }
}

impl Named {
    async fn describe(self, out: &mut Output) -> Outcome {
        let group = self.node.client().group(&self.group).await?;
        if self.node.json {
            return out.json(&group);
        }
        let members = items(&group, "members");
        out.line(format!(
            "Group {} is {} with {} member{}.",
            self.group,
            cell(&group, "state").to_lowercase(),
            members.len(),
            if members.len() == 1 { "" } else { "s" }
        ))?;
        let lag = |of: &Value| {
            let lag = of.get("lag").and_then(number)?;
            u64::try_from(lag).ok()
        };
        let positions = items(&group, "positions");
        let rows: Vec<Vec<String>> = positions
            .iter()
            .map(|position| {
                vec![
                    cell(position, "topic"),
                    cell(position, "partition"),
                    cell(position, "position"),
                    cell(position, "commitOffset"),
                    lag(position).map_or_else(|| "-".to_owned(), grouped),
                    cell(position, "member"),
                ]
            })
            .collect();
        let has_rows = !rows.is_empty();
        let unknown = positions.iter().filter(|one| lag(one).is_none()).count();
        let heading = [
            "topic",
            "partition",
            "position",
            "commit offset",
            "lag",
            "member",
        ];
        out.line("")?;
        out.table(&heading, rows, "It has no positions yet.")?;
        if has_rows {
            let total = lag(&group).unwrap_or_default();
            out.line(format!("\nLag in all: {} records.", grouped(total)))?;
        }
        if unknown > 0 {
            out.line(format!(
                "Not counted: {unknown} of the partitions, where the group begins as its clients are set (auto.offset.reset)."
            ))?;
        }
        out.flush()
    }

    async fn delete(self, out: &mut Output) -> Outcome {
        self.node.client().delete_group(&self.group).await?;
        if self.node.json {
            return out.json(&json!({ "deleted": self.group }));
        }
        out.line(format!("Deleted group {}.", self.group))?;
        out.flush()
    }
}
