//! Configuration: declared once in [`settings`], read from a file, the environment and flags, checked strictly.
//!
//! Guarantees: a flag goes before a variable, a variable before the file, the file before the default; every
//! mistake is reported at once with its place and a remedy; nothing unknown is accepted.

mod file;
pub mod kind;
pub mod listeners;
mod memory;
pub mod mistake;
pub mod reference;
pub mod settings;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use kind::{Value, Written};
pub use mistake::{Mistake, Mistakes, Place};
pub use settings::Config;
use settings::{Default as SettingDefault, SETTINGS, Setting};

/// Variables that belong to the commands and not to the configuration.
const OTHER_VARIABLES: [&str; 2] = ["FLOE_CONFIG", "FLOE_SERVER"];

/// One setting given in one place.
#[derive(Clone, Debug)]
struct Given {
    setting: &'static Setting,
    written: Written,
    place: Place,
}

/// What one place gives, and what is wrong there.
#[derive(Debug, Default)]
struct Layer {
    given: Vec<Given>,
    mistakes: Vec<Mistake>,
}

/// Where settings come from.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file and its text.
    pub file: Option<(PathBuf, String)>,
    /// The environment; only what starts with `FLOE_` is looked at.
    pub environment: Vec<(String, String)>,
    /// `key=value` of each `--set`, in their order.
    pub sets: Vec<String>,
    /// The directory of `--data-dir`.
    pub data_dir: Option<PathBuf>,
}

/// A value in force and where it came from.
#[derive(Clone, Debug)]
pub struct InForce {
    /// The setting.
    pub setting: &'static Setting,
    /// Its value.
    pub value: Value,
    /// Its place.
    pub place: Place,
}

/// A whole configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The typed values.
    pub config: Config,
    /// Every row of the table with its value and place.
    pub in_force: Vec<InForce>,
}

impl Loaded {
    /// Where a setting's value comes from.
    pub fn place(&self, name: &str) -> Place {
        value_of(&self.in_force, name).place.clone()
    }
}

/// Reads, checks and merges all sources.
pub fn load(sources: &Sources) -> Result<Loaded, Mistakes> {
    let layers = [
        match &sources.file {
            Some((path, text)) => file::read(path, text),
            None => Layer::default(),
        },
        environment(&sources.environment),
        flags(&sources.sets, sources.data_dir.as_deref()),
    ];
    let mut mistakes = Vec::new();
    let mut values: HashMap<&'static str, (Value, Place)> = HashMap::new();
    for layer in layers {
        mistakes.extend(layer.mistakes);
        for Given {
            setting,
            written,
            place,
        } in layer.given
        {
            match setting.kind.check(&written) {
                Ok(value) => {
                    values.insert(setting.name, (value, place));
                }
                Err(refusal) => mistakes.push(Mistake::refused(place, setting.name, refusal)),
            }
        }
    }
    let mut in_force = Vec::with_capacity(SETTINGS.len());
    for setting in SETTINGS {
        let (value, place) = match values.remove(setting.name) {
            Some(given) => given,
            None => match default_value(setting, &in_force) {
                Ok(value) => (value, Place::Default),
                Err(mistake) => {
                    mistakes.push(mistake);
                    continue;
                }
            },
        };
        in_force.push(InForce {
            setting,
            value,
            place,
        });
    }
    if in_force.len() == SETTINGS.len() {
        check_together(&in_force, &mut mistakes);
    }
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    let config = Config::collect(|name| value_of(&in_force, name).value.clone());
    Ok(Loaded { config, in_force })
}

const MEMORY_LIMIT: &str = "memory.limit.bytes";
/// Part of the memory that one decompressed batch may take unless said otherwise: the buffers leave 5/16.
const DECOMPRESSED_PART: i64 = 16;
const DECOMPRESSED_DEFAULT_MAX: i64 = floe_wire::codec::DECOMPRESSED_BYTES_MAX as i64;

fn value_of<'a>(in_force: &'a [InForce], name: &str) -> &'a InForce {
    in_force
        .iter()
        .find(|row| row.setting.name == name)
        .expect("every row of the table has a value in force")
}

/// Rules between two settings, reported at the place of the one that was given.
fn check_together(in_force: &[InForce], mistakes: &mut Vec<Mistake>) {
    let number = |name: &str| match &value_of(in_force, name).value {
        Value::Number(number) => *number,
        _ => 0,
    };
    let place = |one: &str, other: &str| match &value_of(in_force, one).place {
        Place::Default => value_of(in_force, other).place.clone(),
        place => place.clone(),
    };
    for (low, high) in [
        (
            "group.min.session.timeout.ms",
            "group.max.session.timeout.ms",
        ),
        ("message.max.bytes", "log.segment.bytes"),
        ("message.max.bytes", "socket.request.max.bytes"),
    ] {
        if number(low) > number(high) {
            mistakes.push(Mistake {
                place: place(low, high),
                problem: format!("{low} ({}) is above {high} ({})", number(low), number(high)),
                remedy: "lower the first or raise the second".to_owned(),
            });
        }
    }
    let (decompressed, memory) = ("message.decompressed.max.bytes", MEMORY_LIMIT);
    if number(decompressed) > number(memory) / 4 {
        mistakes.push(Mistake {
            place: place(decompressed, memory),
            problem: format!(
                "{decompressed} ({}) is above a quarter of {memory} ({})",
                number(decompressed),
                number(memory)
            ),
            remedy: "lower the first or raise the second".to_owned(),
        });
    }
    let ports = [
        "kafka.port",
        "http.discovery.port",
        "http.produce.port",
        "http.consume.port",
        "metrics.port",
    ];
    for (at, one) in ports.iter().enumerate() {
        for other in &ports[at + 1..] {
            if number(one) == number(other) && number(one) != 0 {
                mistakes.push(Mistake {
                    place: place(other, one),
                    problem: format!("{one} and {other} are both {}", number(one)),
                    remedy: "give each door a port of its own".to_owned(),
                });
            }
        }
    }
}

/// What a setting is when nobody says; `above` are those before it in the table.
fn default_value(setting: &'static Setting, above: &[InForce]) -> Result<Value, Mistake> {
    match setting.default {
        SettingDefault::Is(text) => Ok(setting
            .kind
            .check(&Written::Bare(text.to_owned()))
            .expect("defaults are allowed: every_default_fits_its_field")),
        SettingDefault::MemoryLimit => {
            let limit = i64::try_from(memory::default_limit()).unwrap_or(i64::MAX);
            setting
                .kind
                .check(&Written::Number(limit))
                .map_err(|refusal| Mistake {
                    place: Place::Default,
                    problem: format!(
                        "{}: {} (the limit of the control group)",
                        setting.name, refusal.problem
                    ),
                    remedy: "raise the control group's memory limit".to_owned(),
                })
        }
        SettingDefault::PartOfMemory => {
            let memory = above.iter().find_map(|row| match row.value {
                Value::Number(bytes) if row.setting.name == MEMORY_LIMIT => Some(bytes),
                _ => None,
            });
            // Without a memory limit that is allowed the node does not start, whatever this one is.
            let part = memory.unwrap_or_default() / DECOMPRESSED_PART;
            Ok(Value::Number(part.min(DECOMPRESSED_DEFAULT_MAX)))
        }
        SettingDefault::UserDataDirectory => match user_data_directory(&std::env::vars().collect())
        {
            Some(path) => Ok(Value::Directory(path)),
            None => Err(Mistake {
                place: Place::Default,
                problem: "log.dir: neither HOME nor XDG_DATA_HOME is set".to_owned(),
                remedy: "say where data lies: --data-dir DIR".to_owned(),
            }),
        },
    }
}

/// Floe's folder under the user's data directory (XDG Base Directory Specification; macOS: Application Support).
fn user_data_directory(environment: &HashMap<String, String>) -> Option<PathBuf> {
    let given = |name: &str| {
        let path = PathBuf::from(environment.get(name)?);
        path.is_absolute().then_some(path)
    };
    let base = if cfg!(target_os = "macos") {
        given("HOME")?.join("Library/Application Support")
    } else if cfg!(target_os = "windows") {
        given("LOCALAPPDATA")?
    } else {
        given("XDG_DATA_HOME").or_else(|| Some(given("HOME")?.join(".local/share")))?
    };
    Some(base.join("floe"))
}

fn environment(variables: &[(String, String)]) -> Layer {
    let mut layer = Layer::default();
    let mut ours: Vec<&(String, String)> = variables
        .iter()
        .filter(|(name, _)| name.starts_with("FLOE_"))
        .filter(|(name, _)| !OTHER_VARIABLES.contains(&name.as_str()) && !is_service_link(name))
        .collect();
    ours.sort();
    for (name, text) in ours {
        let place = Place::Variable(name.clone());
        let Some(setting) = SETTINGS.iter().find(|s| s.variable() == *name) else {
            let known = SETTINGS.iter().map(Setting::variable);
            layer.mistakes.push(Mistake::unknown(place, name, known));
            continue;
        };
        layer.given.push(Given {
            setting,
            written: Written::Bare(text.clone()),
            place,
        });
    }
    layer
}

/// Kubernetes gives every pod `X_SERVICE_HOST`, `X_SERVICE_PORT…`, `X_PORT` and `X_PORT_<number>_…` for each
/// service X; a service named floe is not a mistake in Floe's configuration.
fn is_service_link(name: &str) -> bool {
    name == "FLOE_PORT"
        || name == "FLOE_SERVICE_HOST"
        || name.starts_with("FLOE_SERVICE_PORT")
        || name
            .strip_prefix("FLOE_PORT_")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn flags(sets: &[String], data_dir: Option<&Path>) -> Layer {
    let mut layer = Layer::default();
    if let Some(directory) = data_dir {
        let text = directory.to_string_lossy().into_owned();
        layer.given.push(Given {
            setting: settings::find("log.dir").expect("the table has log.dir"),
            place: Place::Flag(format!("--data-dir {text}")),
            written: Written::Bare(text),
        });
    }
    for set in sets {
        let place = Place::Flag(format!("--set {set}"));
        let Some((name, text)) = set.split_once('=') else {
            layer.mistakes.push(Mistake {
                place,
                problem: format!("'{set}' gives no value"),
                remedy: "write --set key=value".to_owned(),
            });
            continue;
        };
        let Some(setting) = settings::find(name.trim()) else {
            let known = SETTINGS.iter().map(|s| s.name.to_owned());
            layer.mistakes.push(Mistake::unknown(place, name, known));
            continue;
        };
        layer.given.push(Given {
            setting,
            written: Written::Bare(text.trim().to_owned()),
            place,
        });
    }
    layer
}

#[cfg(test)]
mod tests;
