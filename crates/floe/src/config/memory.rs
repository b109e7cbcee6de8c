//! How much memory the process was given: the smallest limit of its control groups (cgroup v1 and v2), else 512 MiB.

use std::path::{Path, PathBuf};

/// What a process uses that was given no limit.
const UNLIMITED_DEFAULT: u64 = 512 << 20;

/// The default of `memory.limit.bytes`.
pub(super) fn default_limit() -> u64 {
    limit_under(Path::new("/")).unwrap_or(UNLIMITED_DEFAULT)
}

/// The smallest limit that holds for this process, or `None` when none is below the machine's memory.
fn limit_under(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let machine = machine_memory(root).unwrap_or(u64::MAX);
    groups
        .lines()
        .filter_map(|line| directory_and_file(root, line))
        .flat_map(|(mount, group, file)| limits(&mount, &group, file))
        .min()
        .filter(|limit| *limit < machine)
}

/// Where the limits of one line of `/proc/self/cgroup` (`id:controllers:path`) lie.
fn directory_and_file(root: &Path, line: &str) -> Option<(PathBuf, PathBuf, &'static str)> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let group = PathBuf::from(path.trim_start_matches('/'));
    if id == "0" && controllers.is_empty() {
        Some((root.join("sys/fs/cgroup"), group, "memory.max"))
    } else if controllers.split(',').any(|name| name == "memory") {
        let mount = root.join("sys/fs/cgroup/memory");
        Some((mount, group, "memory.limit_in_bytes"))
    } else {
        None
    }
}

/// The limits of a group and of all groups around it; in a container the group's own path may not be visible.
fn limits(mount: &Path, group: &Path, file: &str) -> Vec<u64> {
    group
        .ancestors()
        .filter_map(|part| std::fs::read_to_string(mount.join(part).join(file)).ok())
        .filter_map(|text| text.trim().parse().ok())
        .collect()
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let total = [("proc/meminfo", "MemTotal:       8388608 kB\n")];
        for (path, text) in total.iter().chain(files) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts_in_version_2() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/pods/a\n"),
            ("sys/fs/cgroup/pods/memory.max", "536870912\n"),
            ("sys/fs/cgroup/pods/a/memory.max", "max\n"),
        ]);
        assert_eq!(limit_under(root.path()), Some(536_870_912));
    }

    #[test]
    fn the_memory_controller_counts_in_version_1() {
        let root = machine(&[
            (
                "proc/self/cgroup",
                "5:cpu,cpuacct:/x\n9:memory:/docker/abc\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
        ]);
        assert_eq!(limit_under(root.path()), Some(268_435_456));
    }

    #[test]
    fn no_limit_below_the_machine_is_no_limit() {
        let root = machine(&[
            ("proc/self/cgroup", "9:memory:/\n0::/\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ]);
        assert_eq!(limit_under(root.path()), None);
        assert_eq!(limit_under(Path::new("/nowhere")), None);
    }
}
