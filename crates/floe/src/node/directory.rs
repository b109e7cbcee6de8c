//! The data directory before the log opens it: made if absent, emptied if asked.
//!
//! Guarantees: only what Floe wrote is ever removed; a directory with anything else in it is refused, and so is one that
//! another process uses.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use floe_world::{Disk, disk};

use crate::exit::{Code, Failure, Outcome};

/// The names that Floe gives to files and folders of a data directory.
const OURS: [&str; 6] = [
    "node.id",
    "journal",
    "checkpoints",
    "segments",
    "lock",
    "tmp",
];

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
    if names.is_empty() {
        return Ok(true);
    }
    if let Some(foreign) = names
        .iter()
        .find(|name| name.to_str().is_none_or(|name| !OURS.contains(&name)))
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
    let identity = directory.join("node.id");
    let _lock = if disk.exists(&identity) {
        Some(disk.lock(&identity).map_err(|error| match error.kind() {
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
    for name in names {
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
        std::fs::create_dir_all(directory.path().join("segments/a")).unwrap();
        std::fs::write(directory.path().join("node.id"), "x").unwrap();
        assert!(empty(directory.path(), true).unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(empty(&directory.path().join("absent"), true).unwrap());
    }
}
