//! What the process asks of the system for itself.

use crate::config::Config;

/// Files a node needs beside its connections: segments, journal, standard streams.
const FILES: u64 = 2048;

/// What the system grants of `socket.send.buffer.bytes` when it is less.
pub(super) fn send_buffer(config: &Config) -> Option<usize> {
    let wanted = config.socket_send_buffer_bytes;
    let socket = tokio::net::TcpSocket::new_v4().ok()?;
    socket.set_send_buffer_size(wanted as u32).ok()?;
    // Linux tells twice what it grants, since it counts its own expenses, too (socket(7)).
    let told = socket.send_buffer_size().ok()? as usize;
    let granted = if cfg!(target_os = "linux") {
        told / 2
    } else {
        told
    };
    (granted < wanted).then_some(granted)
}

/// Connections that may be open under a limit of open files that is too low: the log must always find files for itself.
pub(super) fn connections(limit: u64) -> usize {
    (limit.saturating_sub(FILES).max(limit / 2)) as usize
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_log_under_any_limit() {
        for (limit, connections_max) in [(256, 128), (1_024, 512), (4_096, 2_048), (12_000, 9_952)]
        {
            assert_eq!(connections(limit), connections_max);
        }
    }
}
