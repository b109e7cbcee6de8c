//! What the process asks of the system for itself.

use crate::config::Config;

/// Files a node needs beside its connections: segments, journal, standard streams.
const FILES: u64 = 2048;

/// Raises the limit of open files to what the connections need, as far as the system lets this user; returns the limit
/// in force when it is too low.
pub(super) fn open_files(config: &Config) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = config.max_connections as u64 + FILES;
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if current >= needed {
        return None;
    }
    let reachable = limit.maximum.unwrap_or(needed).min(needed);
    let raised = Rlimit {
        current: Some(reachable.max(current)),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) if reachable >= needed => None,
        Ok(()) => Some(reachable),
        Err(_) => Some(current),
    }
}
