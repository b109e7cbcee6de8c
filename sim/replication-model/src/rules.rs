//! The rules that can be taken out, and what must hold.

/// The safety rules. Each can be taken out, to show that the model notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A fence is on stable storage before it is answered.
    FenceDurable,
    /// A fence lies behind everything accepted before it: that is flushed with it and counted in the answer.
    FenceCoversPending,
    /// Once fenced, a replica reports no end to the old leader any more, not even of repaired bytes.
    FencedStaysSilent,
    /// A replica under another incarnation than the generation names is no witness of a fence.
    WipedIsNoWitness,
    /// Such a replica accepts no appends of that generation either.
    WipedIsNoFollower,
    /// A replica that lost a durable suffix takes a new incarnation before it speaks.
    DamageIsNoticed,
    /// The end of a generation is the largest among the answers.
    LargestEnd,
    /// q belongs to the topic; a smaller replica set does not lower it.
    QuorumFixed,
    /// q nodes hold the generation up to its end before the seal; "as many as answered" is not enough.
    RepairReachesQuorum,
    /// The catalog takes a seal of e only while e is open.
    SealConditional,
    /// A replica drops its excess only once the catalog says where the seal is, never at a controller's proposal.
    NoTruncateToProposal,
    /// Nor does it drop what lies above the commit offset it knows (Kafka before KIP-101).
    NoTruncateToCommit,
    /// Leadership belongs to one life of a process. (With n = 1 resuming is harmless: nobody saw the lost suffix.)
    LeaderDoesNotResume,
    /// A follower appends at its own end only.
    AppendAtEnd,
    /// A commit offset says something about records of the epoch it came with, and about no others.
    CommitCarriesEpoch,
    /// A holder forgets only when q other proven holders are counted.
    ForgetWithProof,
    /// ... and they are counted when the catalog applies the command, not when the node decides.
    ForgetConditional,
    /// Forgetting a generation's records does not forget the fence.
    ForgetKeepsFence,
    /// A claim to hold a generation names the incarnation that copied it, however late the catalog applies it.
    ClaimNamesIncarnation,
    /// A claim is void once its node was allowed to forget the generation after making it.
    ForgetVoidsClaim,
    /// A successor acknowledges nothing while an earlier lease may hold. (Gating only its reads is not enough.)
    LeaseGatesAcks,
    /// ... of any earlier leader, not only of the one before.
    LeaseGatesAllEarlier,
}

use Rule::*;

pub const ALL_RULES: [Rule; 22] = [
    FenceDurable,
    FenceCoversPending,
    FencedStaysSilent,
    WipedIsNoWitness,
    WipedIsNoFollower,
    DamageIsNoticed,
    LargestEnd,
    QuorumFixed,
    RepairReachesQuorum,
    SealConditional,
    NoTruncateToProposal,
    NoTruncateToCommit,
    LeaderDoesNotResume,
    AppendAtEnd,
    CommitCarriesEpoch,
    ForgetWithProof,
    ForgetConditional,
    ForgetKeepsFence,
    ClaimNamesIncarnation,
    ForgetVoidsClaim,
    LeaseGatesAcks,
    LeaseGatesAllEarlier,
];

/// What must be true in every reachable state; judged in `invariants`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invariant {
    /// P1: an acknowledged record is on stable storage of some node, inside the generation that the catalog says.
    AckedIsKept,
    /// P1, P2: so is a record that any reader could have seen, sealed tails included.
    SeenIsKept,
    /// No two replicas differ at an offset of a generation (below its end, once it is sealed).
    ReplicasAgree,
    /// P3: one writer per epoch.
    OneLeader,
    /// P3: nothing is acknowledged in a generation at or above its sealed end.
    NoAckBeyondSeal,
    /// P2: what was readable at an offset once is what any replica lets be read there.
    ReadsAreStable,
    /// P3: a leader that would answer a linearizable read now knows every acknowledged record.
    LinearizableRead,
    /// A holder that the catalog names, under the incarnation it names, has the generation whole.
    HoldersHold,
}
