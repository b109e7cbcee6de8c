//! The data directory before the log opens it: made if absent, emptied if asked.
//!
//! Guarantees: only what Floe wrote is ever removed; a directory with anything else in it is refused, and so is one that
//! another process uses.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use floe_world::{Disk, disk};

use crate::exit::{Code, Failure, Outcome};

/// The file that a running node holds locked.
const LOCK: &str = "node.lock";

/// Whether Floe gives this name to something in a data directory: its identity and lock, the journal, checkpoints, the
/// snapshots of tables, and one folder per topic, named by its id.
fn is_ours(name: &str) -> bool {
    let is_topic = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefixes = ["node.", "journal", "checkpoint."];
    is_topic || name == "tables" || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Makes the directory if it is absent.
pub fn make(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory).map_err(|error| unusable("make", directory, &error))
}

/// Empties the directory after asking; `Ok(false)` when the answer is no.
pub fn empty(directory: &Path, is_agreed: bool) -> Outcome<bool> {
    let names = match std::fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => Err(error),
    }
    .map_err(|error| unusable("read", directory, &error))?;
    if names.iter().all(|name| name == LOCK) {
        return Ok(true);
    }
    if let Some(foreign) = names
        .iter()
        .find(|name| name.to_str().is_none_or(|name| !is_ours(name)))
    {
        return Err(Failure::new(
            Code::DirectoryUnusable,
            format!(
                "{} holds {}, which Floe did not write: nothing was deleted; choose another --data-dir, or empty it \
                 yourself",
                directory.display(),
                foreign.display()
            ),
        ));
    }
    let disk = disk::Real::new();
    let lock = directory.join(LOCK);
    let _lock = if disk.exists(&lock) {
        Some(disk.lock(&lock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::new(
                Code::DirectoryInUse,
                format!(
                    "{} is in use by another process: nothing was deleted; stop that one first",
                    directory.display()
                ),
            ),
            _ => unusable("lock", directory, &error),
        })?)
    } else {
        None
    };
    if !is_agreed && !ask(directory)? {
        return Ok(false);
    }
    // The lock file stays: whoever opens it meanwhile must meet this lock.
    for name in names.into_iter().filter(|name| name != LOCK) {
        let path = directory.join(name);
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.map_err(|error| unusable("empty", directory, &error))?;
    }
    Ok(true)
}

fn ask(directory: &Path) -> Outcome<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "--fresh deletes all data in {}, and there is no terminal to ask at; add --yes to agree",
                directory.display()
            ),
        ));
    }
    let asked = write!(
        io::stderr(),
        "Delete all topics, records and positions in {}? [y/N] ",
        directory.display()
    );
    let mut answer = String::new();
    asked
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Failure::failed(format!("cannot ask: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn unusable(action: &str, directory: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Code::DirectoryUnusable,
        format!(
            "cannot {action} the data directory {}: {error}; give this user the right to, or choose another with \
             --data-dir DIR",
            directory.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_foreign_files_is_not_emptied() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("thesis.txt"), "years").unwrap();
        let failure = empty(directory.path(), true).unwrap_err();
        assert_eq!(failure.code, Code::DirectoryUnusable);
        assert!(failure.message.contains("thesis.txt"), "{failure}");
        assert!(directory.path().join("thesis.txt").exists());
    }

    #[test]
    fn an_agreed_fresh_start_removes_what_floe_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let topic = "7e1a8575d18c54013e864e08f61dabc7/0";
        std::fs::create_dir_all(directory.path().join(topic)).unwrap();
        for file in ["node.id", "node.lock", "journal", "checkpoint.0"] {
            std::fs::write(directory.path().join(file), "x").unwrap();
        }
        assert!(empty(directory.path(), true).unwrap());
        let left = std::fs::read_dir(directory.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["node.lock"]);
        assert!(empty(&directory.path().join("absent"), true).unwrap());
    }
}
