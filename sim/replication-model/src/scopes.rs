//! Which scopes are checked: small ones by the tests, larger ones by the binary, and one for each rule taken out.

use crate::{Invariant::*, Rule::*, *};

/// Name and scope; n replicas, a quorum of q.
pub fn small() -> Vec<(&'static str, Scope)> {
    vec![
        ("n=1 q=1, 3 generations", Scope::new(1, 1, 1, 3, 3)),
        (
            "n=2 q=2, wipe",
            Scope::new(2, 2, 2, 2, 2).wipes(1).one_controller(),
        ),
        (
            "n=2 q=2, 3 nodes, moves, wipe",
            Scope::new(3, 2, 2, 2, 1).wipes(1).one_controller(),
        ),
        (
            "n=3 q=2, 2 records",
            Scope::new(3, 3, 2, 2, 2).one_controller(),
        ),
        ("n=3 q=2, 2 controllers", Scope::new(3, 3, 2, 2, 1)),
        (
            "n=3 q=2, wipe",
            Scope::new(3, 3, 2, 2, 1).wipes(1).one_controller(),
        ),
        (
            "n=1..3 q=2, sets below q",
            Scope::new(3, 3, 2, 2, 1)
                .smallest_set(1)
                .wipes(1)
                .one_controller(),
        ),
        (
            "n=3 q=2, leases",
            Scope::new(3, 3, 2, 2, 1).leases().one_controller(),
        ),
        (
            "n=2 q=2, 3 nodes, backfill, wipe",
            Scope::new(3, 2, 2, 2, 1)
                .backfill()
                .wipes(1)
                .one_controller(),
        ),
    ]
}

pub fn large() -> Vec<(&'static str, Scope)> {
    let three = |gens, records| Scope::new(3, 3, 2, gens, records);
    vec![
        ("A n=3 q=2, 2 ctl, wipe", three(2, 1).wipes(1)),
        (
            "B n=2 q=2, 2 nodes, 2 ctl, 2 rec, wipe",
            Scope::new(2, 2, 2, 2, 2).wipes(1),
        ),
        (
            "C n=2 q=2, 3 nodes, 2 ctl, wipe",
            Scope::new(3, 2, 2, 2, 1).wipes(1),
        ),
        ("D n=3 q=2, 2 ctl, 2 rec", three(2, 2)),
        ("E n=3 q=2, 2 ctl, 2 rec, wipe", three(2, 2).wipes(1)),
        ("F n=3 q=2, 3 gen, 2 rec", three(3, 2).one_controller()),
        ("G n=3 q=2, 3 gen, 2 ctl", three(3, 1)),
        (
            "H n=3 q=2, 3 gen, leases",
            three(3, 1).leases().one_controller(),
        ),
        (
            "I n=2 q=2, 3 nodes, 2 ctl, 2 rec, wipe",
            Scope::new(3, 2, 2, 2, 2).wipes(1),
        ),
        (
            "J n=2..3 q=2, 3 gen, shrink and grow, wipe",
            three(3, 1).smallest_set(2).wipes(1).one_controller(),
        ),
        (
            "K n=3 q=2, 4 nodes, backfill",
            Scope::new(4, 3, 2, 2, 1).backfill().one_controller(),
        ),
        (
            "L n=3 q=2, 4 nodes, backfill, 2 wipes",
            Scope::new(4, 3, 2, 2, 1)
                .backfill()
                .wipes(2)
                .one_controller(),
        ),
        (
            "M n=2 q=2, 4 nodes, 3 gen, backfill, wipe",
            Scope::new(4, 2, 2, 3, 1)
                .backfill()
                .wipes(1)
                .one_controller(),
        ),
    ]
}

/// For each rule the smallest scope known that shows what it is for.
pub fn mutants() -> Vec<(Rule, Scope)> {
    let three = || Scope::new(3, 3, 2, 2, 1).one_controller();
    let four = || Scope::new(4, 2, 2, 2, 1).backfill().one_controller();
    let scopes = [
        (FenceDurable, three()),
        (FenceCoversPending, three()),
        (FencedStaysSilent, Scope::new(3, 3, 2, 2, 1)),
        (WipedIsNoWitness, three().wipes(1).only(AckedIsKept)),
        (WipedIsNoFollower, three().wipes(1)),
        (DamageIsNoticed, three().wipes(1).only(AckedIsKept)),
        (LargestEnd, three()),
        (QuorumFixed, three().smallest_set(1).wipes(1)),
        (
            RepairReachesQuorum,
            Scope::new(3, 2, 2, 2, 1).wipes(1).one_controller(),
        ),
        (SealConditional, Scope::new(3, 3, 2, 2, 1).only(OneLeader)),
        (
            NoTruncateToProposal,
            Scope::new(3, 3, 2, 2, 1).wipes(1).only(SeenIsKept),
        ),
        (NoTruncateToCommit, three()),
        (
            LeaderDoesNotResume,
            Scope::new(3, 3, 2, 2, 2).one_controller().only(AckedIsKept),
        ),
        (
            AppendAtEnd,
            Scope::new(3, 3, 2, 2, 2)
                .one_controller()
                .wipes(1)
                .only(AckedIsKept),
        ),
        (
            CommitCarriesEpoch,
            Scope::new(3, 3, 2, 2, 2).one_controller(),
        ),
        (ForgetWithProof, four()),
        (ForgetConditional, four().wipes(1)),
        (
            ForgetKeepsFence,
            Scope::new(4, 3, 2, 2, 1).backfill().one_controller(),
        ),
        (ClaimNamesIncarnation, four().wipes(1).only(HoldersHold)),
        (ForgetVoidsClaim, four().only(HoldersHold)),
        (LeaseGatesAcks, three().leases()),
        (
            LeaseGatesAllEarlier,
            Scope::new(3, 3, 2, 3, 1).leases().one_controller(),
        ),
    ];
    scopes.map(|(rule, s)| (rule, s.without(rule))).into()
}
