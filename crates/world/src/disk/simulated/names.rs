//! The directory tree of a simulated disk: as it is seen, as it is durable, and the changes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    File(u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    current: BTreeMap<PathBuf, Entry>,
    durable: BTreeMap<PathBuf, Entry>,
    unsynced: Vec<Change>,
}

/// One change of one directory, whole or not at all: names and what they now mean.
#[derive(Clone, Debug)]
struct Change {
    directory: PathBuf,
    names: Vec<(PathBuf, Option<Entry>)>,
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/")
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl Names {
    pub(super) fn exists(&self, path: &Path) -> bool {
        is_root(path) || self.current.contains_key(path)
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<u64> {
        match self.current.get(path) {
            Some(Entry::File(file)) => Ok(*file),
            Some(Entry::Directory) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<()> {
        if is_root(path) {
            return Ok(());
        }
        match self.current.get(path) {
            Some(Entry::Directory) => Ok(()),
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
            Entry::Directory => None,
        })
    }

    /// Every file that has a name now.
    pub(super) fn files(&self) -> BTreeSet<u64> {
        self.current_files().map(|(_, file)| file).collect()
    }

    pub(super) fn create(&mut self, path: &Path, entry: Entry) -> io::Result<()> {
        self.directory(parent(path))?;
        if self.exists(path) {
            return Err(Errno::EXIST.into());
        }
        self.change(
            parent(path).to_owned(),
            vec![(path.to_owned(), Some(entry))],
        );
        Ok(())
    }

    pub(super) fn create_directories(&mut self, path: &Path) -> io::Result<()> {
        if is_root(path) || self.current.get(path) == Some(&Entry::Directory) {
            return Ok(());
        }
        self.create_directories(parent(path))?;
        self.create(path, Entry::Directory)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.file(from)?;
        if parent(from) != parent(to) {
            return Err(Errno::XDEV.into());
        }
        let names = vec![
            (from.to_owned(), None),
            (to.to_owned(), Some(Entry::File(file))),
        ];
        self.change(parent(from).to_owned(), names);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(parent(path).to_owned(), vec![(path.to_owned(), None)]);
    }

    pub(super) fn remove_tree(&mut self, path: &Path) {
        let gone: Vec<_> = self
            .current
            .keys()
            .filter(|name| name.starts_with(path))
            .cloned()
            .collect();
        // The deepest first, as they are removed in truth.
        for name in gone.iter().rev() {
            self.remove(name);
        }
    }

    fn change(&mut self, directory: PathBuf, names: Vec<(PathBuf, Option<Entry>)>) {
        for (name, entry) in &names {
            set(&mut self.current, name, *entry);
        }
        self.unsynced.push(Change { directory, names });
    }

    pub(super) fn sync(&mut self, directory: &Path) {
        let (synced, rest) = std::mem::take(&mut self.unsynced)
            .into_iter()
            .partition(|change| change.directory == directory);
        self.unsynced = rest;
        let synced: Vec<Change> = synced;
        for change in synced {
            self.settle(&change);
        }
    }

    pub(super) fn lose_unsynced(&mut self, survives: &mut impl FnMut() -> bool) {
        while !self.unsynced.is_empty() {
            let change = self.unsynced.remove(0);
            if survives() {
                self.settle(&change);
            }
        }
        let reachable = |path: &PathBuf| {
            let mut above = path.ancestors().skip(1);
            above.all(|above| is_root(above) || self.durable.contains_key(above))
        };
        self.current = self
            .durable
            .iter()
            .filter(|(path, _)| reachable(path))
            .map(|(path, entry)| (path.clone(), *entry))
            .collect();
        self.durable.clone_from(&self.current);
    }

    /// Makes a change durable. What lay below a directory that goes is gone with it, whatever was pending there.
    fn settle(&mut self, change: &Change) {
        for (name, entry) in &change.names {
            let was_directory = self.durable.get(name) == Some(&Entry::Directory);
            if entry.is_none() && was_directory && !self.current.contains_key(name) {
                self.unsynced
                    .retain(|pending| !pending.directory.starts_with(name));
            }
            if entry.is_none() && was_directory {
                self.durable.retain(|path, _| !path.starts_with(name));
            }
            set(&mut self.durable, name, *entry);
        }
    }
}

fn set(names: &mut BTreeMap<PathBuf, Entry>, name: &Path, entry: Option<Entry>) {
    match entry {
        Some(entry) => names.insert(name.to_owned(), entry),
        None => names.remove(name),
    };
}
