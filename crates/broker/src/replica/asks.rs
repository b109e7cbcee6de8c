//! Who asked what: a controller's name for a request is unique among its own only.
//!
//! Bounded: when too many are open the oldest is forgotten; its answer is dropped, and whoever asked asks again.

use std::collections::VecDeque;

use floe_model::NodeId;
use floe_replication::message::Ask;

/// Requests that may be open at once.
const OPEN_MAX: usize = 64;

/// See the module.
#[derive(Default)]
pub(super) struct Asks {
    /// By this copy's own name, in its order.
    open: VecDeque<(Ask, NodeId, Ask)>,
    last: u64,
}

impl Asks {
    /// This copy's own name for a request.
    pub(super) fn keep(&mut self, by: NodeId, theirs: Ask) -> Ask {
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.last += 1;
        let ours = Ask(self.last);
        self.open.push_back((ours, by, theirs));
        ours
    }

    /// Who asked, and by which name. Answered once.
    pub(super) fn take(&mut self, ours: Ask) -> Option<(NodeId, Ask)> {
        let at = self.open.iter().position(|(known, _, _)| *known == ours)?;
        self.open.remove(at).map(|(_, by, theirs)| (by, theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_ask_by_the_same_name_are_each_answered_once() {
        let mut asks = Asks::default();
        let [first, second] = [1, 2].map(|node| asks.keep(NodeId(node), Ask(7)));
        assert_eq!(asks.take(second), Some((NodeId(2), Ask(7))));
        assert_eq!(asks.take(first), Some((NodeId(1), Ask(7))));
        assert_eq!(asks.take(first), None);
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut asks = Asks::default();
        let first = asks.keep(NodeId(1), Ask(0));
        let second = asks.keep(NodeId(1), Ask(1));
        for number in 2..=OPEN_MAX as u64 {
            asks.keep(NodeId(1), Ask(number));
        }
        assert_eq!(asks.take(first), None);
        assert_eq!(asks.take(second), Some((NodeId(1), Ask(1))));
    }
}
