//! The data directory before the log opens it: made if absent, looked at, emptied if asked.
//!
//! Guarantees: only what Floe wrote is ever removed; a directory with anything else in it is refused, unless it is a node's
//! already and nothing is to be removed, and so is one that another process uses. What is refused is left as it was.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use floe_world::{Disk, disk};

use crate::exit::{Code, Failure, Outcome};

/// The file that makes a directory a node's.
const IDENTITY: &str = "node.id";
/// The file that a running node holds locked.
const LOCK: &str = "node.lock";

/// Whether Floe gives this name to something in a data directory: its identity and lock, the mark of a first start that
/// was cut, the journal, checkpoints, a probe of the disk, the snapshots of tables, and one folder per topic, named by its id.
fn is_ours(name: &str) -> bool {
    let is_topic = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefixes = ["node.", "journal", "checkpoint.", ".direct-"];
    let is_named = ["tables", "formatting"].contains(&name);
    is_topic || is_named || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Makes the directory if it is absent. One that is there must be free, and a node's own or without anything foreign;
/// nothing is written to one that is refused.
pub fn make(directory: &Path) -> Outcome {
    let Some(names) = names(directory)? else {
        return std::fs::create_dir_all(directory)
            .map_err(|error| unusable("make", directory, &error));
    };
    if !names.iter().any(|name| name == IDENTITY)
        && let Some(foreign) = foreign(&names)
    {
        return Err(Failure::new(
            Code::DirectoryUnusable,
            format!(
                "{} holds {}, which Floe did not write; choose an empty directory: --data-dir DIR",
                directory.display(),
                foreign.display()
            ),
        ));
    }
    // Only asked for: the log takes it for good, and meets whoever comes in between.
    drop(lock(
        directory,
        "stop that one, or choose another --data-dir",
    )?);
    Ok(())
}

/// Empties the directory after asking; `Ok(false)` when the answer is no.
pub fn empty(directory: &Path, is_agreed: bool) -> Outcome<bool> {
    let Some(names) = names(directory)? else {
        return Ok(true);
    };
    if names.iter().all(|name| name == LOCK) {
        return Ok(true);
    }
    if let Some(foreign) = foreign(&names) {
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
    let _lock = lock(directory, "nothing was deleted; stop that one first")?;
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

/// What lies in the directory, but for the folder that a file system makes for itself; `None` if it is absent.
fn names(directory: &Path) -> Outcome<Option<Vec<OsString>>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if directory.is_file() => {
            return Err(Failure::new(
                Code::DirectoryUnusable,
                format!(
                    "{} is a file, not a directory; choose a directory: --data-dir DIR",
                    directory.display()
                ),
            ));
        }
        Err(error) => return Err(unusable("read", directory, &error)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>();
    let theirs = |name: &OsString| name != "lost+found";
    names
        .map(|names| Some(names.into_iter().filter(theirs).collect()))
        .map_err(|error| unusable("read", directory, &error))
}

/// The first name that Floe does not give.
fn foreign(names: &[OsString]) -> Option<&OsString> {
    let is_foreign = |name: &&OsString| name.to_str().is_none_or(|name| !is_ours(name));
    names.iter().find(is_foreign)
}

/// Takes the directory's lock, if it has one; `remedy` is for when another process holds it.
fn lock(directory: &Path, remedy: &str) -> Outcome<Option<Box<dyn Send + Sync>>> {
    let (disk, lock) = (disk::Real::new(), directory.join(LOCK));
    if !disk.exists(&lock) {
        return Ok(None);
    }
    let locked = disk.lock(&lock).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::new(
            Code::DirectoryInUse,
            format!(
                "{} is in use by another process; {remedy}",
                directory.display()
            ),
        ),
        _ => unusable("lock", directory, &error),
    })?;
    Ok(Some(locked))
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
    fn a_strangers_directory_is_refused_and_left_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let thesis = directory.path().join("thesis.txt");
        std::fs::write(&thesis, "years").unwrap();
        let failure = make(directory.path()).unwrap_err();
        assert_eq!(failure.code, Code::DirectoryUnusable);
        assert!(failure.message.contains("thesis.txt"), "{failure}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let failure = make(&thesis).unwrap_err();
        assert_eq!(failure.code, Code::DirectoryUnusable);
        assert!(failure.message.contains("is a file"), "{failure}");
        // A note beside a node's data is nobody's business.
        std::fs::write(directory.path().join(IDENTITY), "x").unwrap();
        make(directory.path()).unwrap();
    }

    #[test]
    fn a_directory_that_another_process_uses_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LOCK);
        std::fs::write(&path, "").unwrap();
        let held = disk::Real::new().lock(&path).unwrap();
        for failure in [
            make(directory.path()).unwrap_err(),
            lock(directory.path(), "").map(drop).unwrap_err(),
        ] {
            assert_eq!(failure.code, Code::DirectoryInUse, "{failure}");
        }
        drop(held);
        make(directory.path()).unwrap();
    }

    #[test]
    fn an_agreed_fresh_start_removes_what_floe_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let topic = "7e1a8575d18c54013e864e08f61dabc7/0";
        std::fs::create_dir_all(directory.path().join(topic)).unwrap();
        for file in [
            "node.id",
            "node.lock",
            "journal",
            "checkpoint.0",
            "formatting",
        ] {
            std::fs::write(directory.path().join(file), "x").unwrap();
        }
        assert!(empty(directory.path(), true).unwrap());
        let left = std::fs::read_dir(directory.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["node.lock"]);
        assert!(empty(&directory.path().join("absent"), true).unwrap());
    }
}
