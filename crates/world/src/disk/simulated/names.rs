//! The directory tree of a simulated disk: as it is seen, as it is durable, and the changes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A directory has a number of its own, so that one made anew under the same name is another one.
    Directory(u64),
    File(u64),
}

/// The root's number.
const ROOT: u64 = 0;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    current: BTreeMap<PathBuf, Entry>,
    /// By directory and name.
    durable: BTreeMap<(u64, OsString), Entry>,
    unsynced: Vec<Change>,
    directories: u64,
}

/// One change of one directory, whole or not at all: names and what they now mean.
#[derive(Clone, Debug)]
struct Change {
    directory: u64,
    names: Vec<(OsString, Option<Entry>)>,
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/")
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}

impl Names {
    pub(super) fn exists(&self, path: &Path) -> bool {
        is_root(path) || self.current.contains_key(path)
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<u64> {
        match self.current.get(path) {
            Some(Entry::File(file)) => Ok(*file),
            Some(Entry::Directory(_)) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<u64> {
        if is_root(path) {
            return Ok(ROOT);
        }
        match self.current.get(path) {
            Some(Entry::Directory(directory)) => Ok(*directory),
            Some(Entry::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.directory(path)?;
        let below = self.current.keys().filter(|name| parent(name) == path);
        Ok(below
            .filter_map(|name| name.file_name().map(PathBuf::from))
            .collect())
    }

    pub(super) fn current_files(&self) -> impl Iterator<Item = (&PathBuf, u64)> {
        self.current.iter().filter_map(|(path, entry)| match entry {
            Entry::File(file) => Some((path, *file)),
            Entry::Directory(_) => None,
        })
    }

    /// Every file that has a name now.
    pub(super) fn files(&self) -> BTreeSet<u64> {
        self.current_files().map(|(_, file)| file).collect()
    }

    pub(super) fn create(&mut self, path: &Path, entry: Entry) -> io::Result<()> {
        let directory = self.directory(parent(path))?;
        if self.exists(path) {
            return Err(Errno::EXIST.into());
        }
        self.current.insert(path.to_owned(), entry);
        self.change(directory, vec![(name(path), Some(entry))]);
        Ok(())
    }

    pub(super) fn create_directories(&mut self, path: &Path) -> io::Result<()> {
        if self.directory(path).is_ok() {
            return Ok(());
        }
        self.create_directories(parent(path))?;
        self.directories += 1;
        self.create(path, Entry::Directory(self.directories))
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let file = Entry::File(self.file(from)?);
        if parent(from) != parent(to) {
            return Err(Errno::XDEV.into());
        }
        let directory = self.directory(parent(from))?;
        self.current.remove(from);
        self.current.insert(to.to_owned(), file);
        let names = vec![(name(from), None), (name(to), Some(file))];
        self.change(directory, names);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let directory = self.directory(parent(path))?;
        self.current.remove(path);
        self.change(directory, vec![(name(path), None)]);
        Ok(())
    }

    pub(super) fn remove_tree(&mut self, path: &Path) -> io::Result<()> {
        let below = self.current.keys().filter(|name| name.starts_with(path));
        let gone: Vec<_> = below.cloned().collect();
        // The deepest first, as they are removed in truth.
        gone.iter().rev().try_for_each(|name| self.remove(name))
    }

    fn change(&mut self, directory: u64, names: Vec<(OsString, Option<Entry>)>) {
        self.unsynced.push(Change { directory, names });
    }

    pub(super) fn sync(&mut self, directory: u64) {
        let (synced, rest) = std::mem::take(&mut self.unsynced)
            .into_iter()
            .partition(|change| change.directory == directory);
        self.unsynced = rest;
        let synced: Vec<Change> = synced;
        for change in synced {
            self.settle(change);
        }
    }

    pub(super) fn lose_unsynced(&mut self, survives: &mut impl FnMut() -> bool) {
        for change in std::mem::take(&mut self.unsynced) {
            if survives() {
                self.settle(change);
            }
        }
        self.current.clear();
        let mut reached = vec![(ROOT, PathBuf::from("/"))];
        while let Some((directory, path)) = reached.pop() {
            let first = (directory, OsString::new());
            let entries = self.durable.range(first..);
            for ((_, name), entry) in entries.take_while(|((at, _), _)| *at == directory) {
                let path = path.join(name);
                if let Entry::Directory(below) = entry {
                    reached.push((*below, path.clone()));
                }
                self.current.insert(path, *entry);
            }
        }
    }

    fn settle(&mut self, change: Change) {
        for (name, entry) in change.names {
            let key = (change.directory, name);
            match entry {
                Some(entry) => self.durable.insert(key, entry),
                None => self.durable.remove(&key),
            };
        }
    }
}
