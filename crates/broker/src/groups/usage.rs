//! What the groups of a node take in memory, counted over all shards against their part of the node's budget.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Which part of the memory budget positions may take, and as much what members bring.
const PART: usize = 16;

/// Bytes in use. The counts are exact after each step of a shard; a check may be overtaken by other shards' steps, by
/// at most one request each.
#[derive(Debug)]
pub(super) struct Usage {
    limit: usize,
    members: AtomicUsize,
    positions: AtomicUsize,
}

impl Usage {
    /// Under a node's whole budget.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            limit: budget / PART,
            members: AtomicUsize::new(0),
            positions: AtomicUsize::new(0),
        }
    }

    /// Whether members may bring so much more.
    pub(super) fn has_room_for_member(&self, bytes: usize) -> bool {
        self.members.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    /// Whether positions may take so much more.
    pub(super) fn has_room_for_position(&self, bytes: usize) -> bool {
        self.positions.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    /// What the members of one group take has changed.
    pub(super) fn members_changed(&self, before: usize, after: usize) {
        change(&self.members, before, after);
    }

    /// What the positions of one shard take has changed.
    pub(super) fn positions_changed(&self, before: usize, after: usize) {
        change(&self.positions, before, after);
    }

    /// Bytes that members have brought.
    pub(super) fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    /// Bytes of positions.
    pub(super) fn positions(&self) -> usize {
        self.positions.load(Ordering::Relaxed)
    }
}

fn change(count: &AtomicUsize, before: usize, after: usize) {
    if after >= before {
        count.fetch_add(after - before, Ordering::Relaxed);
    } else {
        count.fetch_sub(before - after, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Usage;

    #[test]
    fn what_is_given_back_can_be_used_again() {
        let usage = Usage::new(160);
        usage.members_changed(0, 8);
        usage.positions_changed(0, 10);
        assert!(usage.has_room_for_member(2) && !usage.has_room_for_member(3));
        assert!(usage.has_room_for_position(0) && !usage.has_room_for_position(1));
        usage.members_changed(8, 1);
        assert!(usage.has_room_for_member(9));
        assert_eq!((usage.members(), usage.positions()), (1, 10));
    }
}
