//! Keeps the map true: the directions between crates that the root `Cargo.toml` allows are compared with the real
//! ones, and no file outgrows its room.
//!
//! Guarantees: a dependency between crates that the table does not allow, a crate that the table does not know, a
//! file over the limit and a leftover word each fail by name.
//! Deliberately not here: style that rustfmt and clippy already check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository;

/// The longest a source file may be outside tests and folders named `generated`.
const LINES_LIMIT: usize = 500;

/// Runs every check and reports all that fail at once.
pub(crate) fn check() -> Result<()> {
    let mut faults = directions()?;
    let mut sources = Vec::new();
    collect(repository::root(), &mut sources)?;
    for path in &sources {
        faults.extend(source(path)?);
    }
    if !faults.is_empty() {
        bail!("{} faults\n  {}", faults.len(), faults.join("\n  "));
    }
    println!("layers: {} files, every direction allowed", sources.len());
    Ok(())
}

fn directions() -> Result<Vec<String>> {
    let manifest = fs::read_to_string(repository::root().join("Cargo.toml"))?;
    let manifest: toml::Table = manifest.parse().context("the root Cargo.toml")?;
    let allowed: BTreeMap<String, BTreeSet<String>> = manifest["workspace"]["metadata"]["layers"]
        .clone()
        .try_into()
        .context("[workspace.metadata.layers]")?;
    let metadata = repository::output(repository::cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for package in metadata["packages"]
        .as_array()
        .context("packages of cargo metadata")?
    {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        if !Path::new(manifest).starts_with(repository::root().join("crates")) {
            continue;
        }
        let name = layer(&package["name"]);
        let Some(may_use) = allowed.get(name) else {
            faults.push(format!(
                "crate {name} is missing in [workspace.metadata.layers]"
            ));
            continue;
        };
        seen.insert(name.to_owned());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // A test may look at a crate from above; only what ships has a direction.
            let used = layer(&dependency["name"]);
            let is_ours = dependency["path"].is_string();
            if is_ours && dependency["kind"] != "dev" && !may_use.contains(used) {
                faults.push(format!(
                    "crate {name} uses {used}, which its layer does not allow"
                ));
            }
        }
    }
    faults.extend(
        allowed
            .keys()
            .filter(|name| !seen.contains(*name))
            .map(|name| {
                format!("[workspace.metadata.layers] names {name}, and there is no such crate")
            }),
    );
    Ok(faults)
}

fn layer(name: &Value) -> &str {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("floe-").unwrap_or(name)
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "generated" {
                collect(&path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    Ok(())
}

fn source(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let shown = path.strip_prefix(repository::root()).unwrap_or(path);
    let mut faults = Vec::new();
    let is_test = shown.components().any(|part| part.as_os_str() == "tests")
        || shown.file_stem().is_some_and(|stem| stem == "tests");
    let lines = text.lines().count();
    if lines > LINES_LIMIT && !is_test {
        faults.push(format!(
            "{}: {lines} lines, the limit is {LINES_LIMIT}",
            shown.display()
        ));
    }
    if !text.starts_with("//!") && !is_test {
        faults.push(format!(
            "{}: does not open with what it is",
            shown.display()
        ));
    }
    let leftover = concat!("TO", "DO");
    for (number, line) in text.lines().enumerate() {
        if line.contains(leftover) {
            faults.push(format!("{}:{}: {leftover}", shown.display(), number + 1));
        }
    }
    Ok(faults)
}
