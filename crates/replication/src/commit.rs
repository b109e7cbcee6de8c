//! The commit offset of one open generation: the q-th largest durable end of its members.
//!
//! Guarantees: it never goes back, starts at the generation's start, and counts only ends reported as durable in this
//! generation by members of it. The leader reports its own end after its own flush like every other member.

use floe_model::Offset;

use crate::Member;

/// Durable ends of the members, and what follows from them.
#[derive(Clone, Debug)]
pub struct Commit {
    quorum: usize,
    ends: Vec<(Member, Offset)>,
    committed: Offset,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The commit offset is now this.
    Advanced(Offset),
    /// Nothing.
    Unchanged,
    /// The member's end went back: its copy is damaged, and it counts no more. Ask for a seal.
    Damaged,
    /// Not a member of this generation (`WipedIsNoFollower`): not counted.
    Stranger,
}

impl Commit {
    /// A generation that opens at `start`.
    pub fn new(start: Offset, members: impl IntoIterator<Item = Member>, quorum: usize) -> Self {
        let ends: Vec<_> = members.into_iter().map(|member| (member, start)).collect();
        // Invariant NeverBelowQ: `Seal` opens no generation with fewer members than its quorum.
        assert!(
            quorum >= 1 && ends.len() >= quorum,
            "a generation has at least q members"
        );
        Self {
            quorum,
            ends,
            committed: start,
        }
    }

    /// First offset that is not committed.
    pub fn committed(&self) -> Offset {
        self.committed
    }

    /// `member` holds everything below `end` on stable storage.
    pub fn durable(&mut self, member: Member, end: Offset) -> Reported {
        let Some(place) = self.ends.iter().position(|(known, _)| *known == member) else {
            return Reported::Stranger;
        };
        // Ends are monotone per incarnation and epoch; whoever asks has put the reports in order.
        if end < self.ends[place].1 {
            self.exclude(member);
            return Reported::Damaged;
        }
        self.ends[place].1 = end;
        let reached = self.quorum_end();
        if reached <= self.committed {
            return Reported::Unchanged;
        }
        self.committed = reached;
        Reported::Advanced(reached)
    }

    /// The member's copy counts no more: another life of it is there, or it is damaged.
    pub fn exclude(&mut self, member: Member) {
        self.ends.retain(|(known, _)| *known != member);
    }

    /// The largest offset below which at least q members hold everything.
    fn quorum_end(&self) -> Offset {
        self.ends
            .iter()
            .map(|(_, end)| *end)
            .filter(|end| self.ends.iter().filter(|(_, other)| other >= end).count() >= self.quorum)
            .max()
            .unwrap_or(self.committed)
    }
}

#[cfg(test)]
mod tests {
    use floe_model::{Incarnation, NodeId};

    use super::*;

    /// Runs lines `<node> <end> -> <outcome>` over a generation from offset 100 with members 1 to `n`.
    fn check(n: u32, quorum: usize, scenario: &str) {
        let member = |node| Member {
            node: NodeId(node),
            incarnation: Incarnation(u64::from(node)),
        };
        let mut commit = Commit::new(Offset(100), (1..=n).map(member), quorum);
        for line in scenario
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (event, expected) = line.split_once(" -> ").unwrap();
            let (node, end) = event.split_once(' ').unwrap();
            let reported =
                commit.durable(member(node.parse().unwrap()), Offset(end.parse().unwrap()));
            let reported = match reported {
                Reported::Advanced(offset) => format!("committed {offset}"),
                other => format!("{other:?}").to_lowercase(),
            };
            assert_eq!(reported, expected, "at: {line}");
        }
    }

    #[test]
    fn one_copy_commits_what_it_has_flushed() {
        check(
            1,
            1,
            "1 100 -> unchanged
             1 105 -> committed 105
             1 105 -> unchanged
             1 250 -> committed 250",
        );
    }

    #[test]
    fn three_copies_commit_what_two_have_flushed_leader_or_not() {
        check(
            3,
            2,
            "1 110 -> unchanged
             2 105 -> committed 105
             3 120 -> committed 110
             2 130 -> committed 120
             1 115 -> unchanged",
        );
    }

    #[test]
    fn an_end_that_goes_back_is_damage_and_counts_no_more() {
        check(
            3,
            2,
            "1 110 -> unchanged
             2 110 -> committed 110
             2 108 -> damaged
             2 200 -> stranger
             1 120 -> unchanged
             3 119 -> committed 119",
        );
    }
}
