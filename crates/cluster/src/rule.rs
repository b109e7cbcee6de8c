//! The safety rules that the catalog keeps, by name. Code that keeps one says so where it does: in a condition,
//! `keeps(Rule::..)`, or in a comment.
//!
//! In the shipped crate every rule is kept and `keeps` costs nothing. The crate's own tests take out one rule at a time, on
//! their thread only, and show that the checkers then find what the rule is there to prevent. Names are those of
//! `floe_replication` and of the exhaustive model (`sim/replication-model`) where these know the rule.

/// A rule that the crate's tests can take out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The open is conditional on e still open.
    SealConditional,
    /// A generation never opens with fewer members than q.
    NeverBelowQ,
    /// q belongs to the topic and does not shrink with the replica set.
    QuorumFixed,
    /// q current lives hold a generation before it is sealed.
    RepairReachesQuorum,
    /// Another life of a node than the one named is neither member nor holder.
    WipedIsNoFollower,
    /// Who is to lead is a process that is registered.
    LeaderDoesNotResume,
    /// The open command carries every earlier lease that is not proven ended.
    LeaseGatesAllEarlier,
    /// A node forgets a generation when q other current holders remain, counted when the command is applied.
    ForgetConditional,
    /// A claim to hold a generation is recorded for the life that copied it.
    ClaimNamesIncarnation,
    /// A claim made before its node was allowed to forget the generation is void.
    ForgetVoidsClaim,
    /// A process or a data directory of before is not taken for the one of now.
    StaleLifeRefused,
    /// A tombstone stays until every registered node has confirmed.
    TombstoneWaitsForAll,
}

#[cfg(test)]
impl Rule {
    pub(crate) const ALL: [Self; 12] = [
        Self::SealConditional,
        Self::NeverBelowQ,
        Self::QuorumFixed,
        Self::RepairReachesQuorum,
        Self::WipedIsNoFollower,
        Self::LeaderDoesNotResume,
        Self::LeaseGatesAllEarlier,
        Self::ForgetConditional,
        Self::ClaimNamesIncarnation,
        Self::ForgetVoidsClaim,
        Self::StaleLifeRefused,
        Self::TombstoneWaitsForAll,
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
