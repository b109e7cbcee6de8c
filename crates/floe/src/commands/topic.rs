//! `floe topic list|create|describe|delete`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Node, on_runtime};
use crate::client::api::{cell, items, number};
use crate::exit::Outcome;
use crate::output::{Output, grouped};

/// `floe topic`.
#[derive(Debug, Subcommand)]
pub enum Topic {
    /// List the topics.
    List(List),
    /// Create a topic.
    Create(Create),
    /// Show a topic's partitions and settings.
    Describe(Named),
    /// Delete a topic with its records and positions.
    Delete(Named),
}

/// `floe topic list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    node: Node,
}

/// `floe topic create`.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name: 1 to 249 of a-z A-Z 0-9 . _ -
    topic: String,
    /// Number of partitions [default: the node's num.partitions].
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,
    /// One setting of the topic, such as retention.ms=3600000; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    node: Node,
}

/// A command about one topic.
#[derive(Debug, Args)]
pub struct Named {
    /// Its name.
    topic: String,
    #[command(flatten)]
    node: Node,
}

fn setting(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| format!("'{text}' gives no value; write key=value"))
}

impl Topic {
    pub(super) fn run(self) -> Outcome {
        let mut out = Output::stdout();
        on_runtime(async {
            match self {
                Self::List(command) => command.run(&mut out).await,
                Self::Create(command) => command.run(&mut out).await,
                Self::Describe(command) => command.describe(&mut out).await,
                Self::Delete(command) => command.delete(&mut out).await,
            }
        })
    }
}

impl List {
    async fn run(self, out: &mut Output) -> Outcome {
        let answer = self.node.client().topics().await?;
        if self.node.json {
            return out.json(&answer);
        }
        let rows = items(&answer, "topics")
            .iter()
            .map(|topic| {
                let partitions = match topic.get("partitions") {
                    Some(serde_json::Value::Array(list)) => list.len().to_string(),
                    _ => cell(topic, "partitions"),
                };
                vec![cell(topic, "name"), partitions]
            })
            .collect();
        out.table(
            &["topic", "partitions"],
            rows,
            "There are no topics. Create one: floe topic create NAME",
        )
    }
}

impl Create {
    async fn run(self, out: &mut Output) -> Outcome {
        let mut client = self.node.client();
        let answer = client
            .create_topic(&self.topic, self.partitions, &self.set)
            .await?;
        if self.node.json {
            return out.json(&answer);
        }
        let partitions = match answer.get("partitions") {
            Some(serde_json::Value::Array(list)) => list.len() as i64,
            Some(value) => number(value).unwrap_or_default(),
            None => 0,
        };
        out.line(format!(
            "Created topic {} with {partitions} partition{}.",
            self.topic,
            if partitions == 1 { "" } else { "s" }
        ))?;
        out.flush()
    }
}

impl Named {
    async fn describe(self, out: &mut Output) -> Outcome {
        let topic = self.node.client().topic(&self.topic).await?;
        if self.node.json {
            return out.json(&topic);
        }
        out.line(format!("Topic {} (id {})", self.topic, cell(&topic, "id")))?;
        out.line("")?;
        let rows = items(&topic, "partitions").iter().map(|partition| {
            let at = |name: &str| partition.get(name).and_then(number).unwrap_or_default();
            let kept = at("commitOffset").saturating_sub(at("logStart"));
            vec![
                cell(partition, "partition"),
                cell(partition, "leader"),
                cell(partition, "leaderEpoch"),
                cell(partition, "logStart"),
                cell(partition, "commitOffset"),
                grouped(u64::try_from(kept).unwrap_or_default()),
            ]
        });
        out.table(
            &[
                "partition",
                "leader",
                "leader epoch",
                "log start",
                "commit offset",
                "records",
            ],
            rows.collect(),
            "The topic has no partitions.",
        )?;
        let settings = topic.get("settings").and_then(|value| value.as_object());
        let rows: Vec<Vec<String>> = settings
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                vec![name.clone(), value]
            })
            .collect();
        if !rows.is_empty() {
            out.line("")?;
            out.table(&["setting", "value"], rows, "")?;
        }
        Ok(())
    }

    async fn delete(self, out: &mut Output) -> Outcome {
        self.node.client().delete_topic(&self.topic).await?;
        if self.node.json {
            return out.json(&json!({ "deleted": self.topic }));
        }
        out.line(format!("Deleted topic {}.", self.topic))?;
        out.flush()
    }
}
