//! `floe config`: every setting with its value and where it came from.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::config::{Loaded, Sources, load, reference};
use crate::exit::{Code, Failure, Outcome};
use crate::output::Output;

/// Where a node's settings come from.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// Directory of the data (setting log.dir).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// File of settings (TOML).
    #[arg(long, value_name = "FILE", env = "FLOE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// One setting; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Settings {
    /// Reads and checks all of it.
    pub fn load(&self) -> Outcome<Loaded> {
        let file = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::new(
                        Code::Configuration,
                        format!(
                            "cannot read the configuration file {}: {error}",
                            path.display()
                        ),
                    )
                })?;
                Some((path.clone(), text))
            }
            None => None,
        };
        let environment = std::env::vars_os()
            .filter_map(|(name, text)| {
                let name = name.into_string().ok()?;
                // A value that is not UTF-8 is refused by its setting, with the replacement character in it.
                Some((name, text.to_string_lossy().into_owned()))
            })
            .collect();
        load(&Sources {
            file,
            environment,
            sets: self.set.clone(),
            data_dir: self.data_dir.clone(),
        })
        .map_err(|mistakes| Failure::new(Code::Configuration, mistakes.to_string()))
    }
}

/// `floe config`.
#[derive(Debug, Args)]
pub struct Config {
    #[command(flatten)]
    settings: Settings,
    /// Print JSON for programs.
    #[arg(long)]
    json: bool,
    /// Print the reference page (docs/configuration.md).
    #[arg(long, exclusive = true)]
    reference: bool,
}

impl Config {
    pub(super) fn run(self) -> Outcome {
        let mut out = Output::stdout();
        if self.reference {
            out.bytes(reference::page().as_bytes())?;
            return out.flush();
        }
        let loaded = self.settings.load()?;
        let rows = loaded.in_force.iter();
        if self.json {
            let rows = rows.map(|row| {
                json!({
                    "name": row.setting.name,
                    "value": row.value.to_string(),
                    "from": row.place.to_string(),
                })
            });
            return out.json(&rows.collect());
        }
        let rows = rows.map(|row| {
            vec![
                row.setting.name.to_owned(),
                row.value.to_string(),
                row.place.to_string(),
            ]
        });
        out.table(&["setting", "value", "from"], rows.collect(), "")
    }
}
