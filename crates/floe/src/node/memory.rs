//! How the memory of the process is divided.
//!
//! The broker shares the buffers out: requests, tails, reads.

use floe_world::Pool;

/// Buffers take 11/16 of the process's memory; the rest is left to indexes, producers' state, connections, the
/// allocator and code. Of 512 MiB these are 352 MiB.
pub(super) fn buffers(memory_limit_bytes: usize) -> Pool {
    Pool::new(buffer_bytes(memory_limit_bytes))
}

fn buffer_bytes(memory_limit_bytes: usize) -> usize {
    memory_limit_bytes / 16 * 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_gibibyte_leaves_160_mebibytes_beside_the_buffers() {
        assert_eq!(buffer_bytes(512 << 20), 352 << 20);
    }
}
