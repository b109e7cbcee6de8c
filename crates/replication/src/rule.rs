//! The safety rules by name. Code that keeps one says so where it does: in a condition, `keeps(Rule::..)`, or in a comment.
//!
//! In the shipped crate every rule is kept and `keeps` costs nothing. The crate's own tests take out one rule at a time, on
//! their thread only, and show that the checkers then find what the rule is there to prevent. The exhaustive model
//! (`sim/replication-model`) does the same for the protocol as drawn; names are the same in both.

/// A rule that the crate's tests can take out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Leadership of a generation belongs to one boot.
    LeaderDoesNotResume,
    /// A fence is answered after its flush.
    FenceDurable,
    /// Once fenced, no end of a generation below counts any more, repaired bytes included.
    FencedStaysSilent,
    /// Another incarnation than the generation names does not answer its fence.
    WipedIsNoWitness,
    /// The end is the largest answered.
    LargestEnd,
    /// q live nodes hold a generation before it is sealed.
    RepairReachesQuorum,
    /// Excess is dropped when the catalog says where the seal is, not when a controller proposes it.
    NoTruncateToProposal,
    /// ... nor because it lies above the commit offset known here.
    NoTruncateToCommit,
    /// A follower takes what follows its own end.
    AppendAtEnd,
    /// A commit offset travels with its epoch and is clamped to the follower's end.
    CommitCarriesEpoch,
    /// A follower answers with what is on stable storage.
    AnswerIsDurable,
    /// The leader counts its own end after its own flush.
    LeaderCountsItsFlush,
    /// A generation is forgotten when q other current holders remain.
    ForgetConditional,
    /// A successor neither advances its commit offset nor answers before earlier leases ended.
    LeaseGatesAcks,
}

#[cfg(test)]
impl Rule {
    pub(crate) const ALL: [Self; 14] = [
        Self::LeaderDoesNotResume,
        Self::FenceDurable,
        Self::FencedStaysSilent,
        Self::WipedIsNoWitness,
        Self::LargestEnd,
        Self::RepairReachesQuorum,
        Self::NoTruncateToProposal,
        Self::NoTruncateToCommit,
        Self::AppendAtEnd,
        Self::CommitCarriesEpoch,
        Self::AnswerIsDurable,
        Self::LeaderCountsItsFlush,
        Self::ForgetConditional,
        Self::LeaseGatesAcks,
    ];
}

#[cfg(not(test))]
pub(crate) const fn keeps(_: Rule) -> bool {
    true
}

#[cfg(test)]
pub(crate) use broken::{keeps, without};

#[cfg(test)]
mod broken {
    use std::cell::Cell;

    use super::Rule;

    thread_local! {
        static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    pub(crate) fn keeps(rule: Rule) -> bool {
        BROKEN.get() != Some(rule)
    }

    /// Runs `body` with this rule taken out, on this thread.
    pub(crate) fn without<T>(rule: Option<Rule>, body: impl FnOnce() -> T) -> T {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                BROKEN.set(None);
            }
        }
        let _restore = Restore;
        BROKEN.set(rule);
        body()
    }
}
