//! What is checked: small scopes whole, large ones to a limit, one scope per rule taken out.

use crate::{Invariant::*, *};

pub fn small() -> Vec<(&'static str, Scope)> {
    let s = Scope::new;
    vec![
        ("ring 4, 3 small, pairs, 2 cuts", s(1, 4, 3).pairs().cuts(2)),
        (
            "ring 3 recycled, 3 checkpoints, cut",
            s(1, 3, 3).checkpoints(3).pairs(),
        ),
        (
            "ring 3 recycled, 2 checkpoints, cut, crash",
            s(1, 3, 3).checkpoints(2).crashes(1),
        ),
        (
            "crash, pairs, checkpoint, 2 cuts",
            s(1, 4, 2).crashes(1).pairs().checkpoints(1).cuts(2),
        ),
        ("large and small, roll, 2 cuts", s(1, 6, 3).large().cuts(2)),
        (
            "large and small, checkpoint, cut",
            s(1, 4, 3).large().checkpoints(1),
        ),
        (
            "truncate, checkpoint, cut",
            s(1, 5, 3).truncs(1).checkpoints(1),
        ),
        ("truncate, large, cut", s(1, 6, 3).truncs(1).large()),
        (
            "fences, 3 checkpoints, cut",
            s(1, 3, 1).fences(2).checkpoints(3),
        ),
        (
            "flip, 2 checkpoints, cut",
            s(1, 5, 2).flips(1).checkpoints(2),
        ),
        ("flip, pairs, cut", s(1, 4, 3).flips(1).pairs()),
        ("flip, pairs, 2 cuts", s(1, 5, 4).flips(1).pairs().cuts(2)),
        (
            "lost write below the last group, checkpoint",
            s(1, 5, 3).lost(1).checkpoints(1),
        ),
        (
            "flip, large, fence, cut",
            s(1, 5, 2).flips(1).large().fences(1),
        ),
        (
            "flip, truncate, checkpoint, cut",
            s(1, 5, 2).flips(1).truncs(1).checkpoints(1),
        ),
        (
            "flip, truncate, large, checkpoint, cut",
            s(1, 6, 3).flips(1).truncs(1).large().checkpoints(1),
        ),
        (
            "flip, two partitions, pairs, cut",
            s(2, 6, 3).flips(1).pairs(),
        ),
        (
            "failed flush, large, checkpoint, cut",
            s(1, 5, 2).large().fails(1).checkpoints(1),
        ),
        (
            "two partitions, pairs, large, cut",
            s(2, 4, 2).large().pairs(),
        ),
        ("two in flight, 2 cuts", s(1, 6, 3).two_in_flight().cuts(2)),
        (
            "two in flight, pairs, crash, cut",
            s(1, 6, 3).two_in_flight().pairs().crashes(1),
        ),
    ]
}

pub fn large() -> Vec<(&'static str, Scope)> {
    let s = Scope::new;
    vec![
        (
            "A ring 4, 4 small, pairs, 3 checkpoints, 2 cuts",
            s(1, 4, 4).pairs().checkpoints(3).cuts(2),
        ),
        (
            "B large, small, roll, 2 checkpoints, 2 cuts",
            s(1, 5, 4).large().checkpoints(2).cuts(2),
        ),
        (
            "C truncate, large, 2 checkpoints, 2 cuts",
            s(1, 5, 4).truncs(1).large().checkpoints(2).cuts(2),
        ),
        (
            "D flip, 3 checkpoints, pairs, 2 cuts",
            s(1, 5, 3).flips(1).pairs().checkpoints(3).cuts(2),
        ),
        (
            "E two partitions, all kinds, cut, crash",
            s(2, 5, 3)
                .large()
                .pairs()
                .checkpoints(1)
                .truncs(1)
                .fences(1)
                .crashes(1),
        ),
        (
            "F two flips, 2 checkpoints, cut",
            s(1, 4, 2).flips(2).checkpoints(2),
        ),
        (
            "G two in flight, pairs, checkpoint, flip, cut",
            s(1, 6, 4).two_in_flight().pairs().checkpoints(1).flips(1),
        ),
        (
            "H failed flush, large, truncate, 2 cuts",
            s(1, 5, 3).large().fails(1).truncs(1).checkpoints(1).cuts(2),
        ),
    ]
}

/// For each rule the smallest scope found that shows what it is for.
pub fn mutants() -> Vec<(Rule, Scope)> {
    let s = Scope::new;
    let v = vec![
        (LapInStamp, s(1, 3, 3).checkpoints(3).only(OldNeverParses)),
        (
            BootInStamp,
            s(1, 6, 8)
                .two_in_flight()
                .pairs()
                .cuts(2)
                .checkpoints(2)
                .only(CutStaysCut),
        ),
        (BootGroupFirst, s(1, 6, 6).pairs().cuts(3).only(CutStaysCut)),
        (KnownFlushed, s(1, 6, 2).two_in_flight()),
        (AckInOrder, s(1, 6, 2).two_in_flight().only(AckedIsKept)),
        (AckAfterFlush, s(1, 4, 1)),
        (JudgeAfterReplay, s(1, 6, 3).truncs(1).large()),
        (BadIsDamage, s(1, 4, 1).flips(1)),
        (GapIsDamage, s(1, 5, 2).lost(1)),
        (DamageClosesWithCheckpoint, s(1, 5, 2).flips(1).cuts(2)),
        (WipeBadAhead, s(1, 5, 2).flips(1).pairs().cuts(2)),
        (
            BothSlotsAfterDamage,
            s(1, 5, 1).flips(2).cuts(2).checkpoints(2).only(AckedIsKept),
        ),
        (BootAboveAll, s(1, 5, 4).flips(1).pairs().cuts(2)),
        (
            OffsetImpliesCut,
            s(1, 6, 2).flips(1).truncs(1).checkpoints(1),
        ),
        (LossIsRecorded, s(1, 4, 1).flips(1).checkpoints(1).cuts(2)),
        (PointerAfterBytes, s(1, 4, 1).large().only(AckedIsKept)),
        (PointerNotBeside, s(1, 4, 1).large()),
        (PointerCoversAll, s(1, 5, 2).large()),
        (DirectoryBeforePointer, s(1, 5, 3).large()),
        (EndFromJournal, s(1, 5, 1).truncs(1)),
        (TruncateJournalled, s(1, 5, 1).truncs(1)),
        (SyncBeforeCheckpoint, s(1, 5, 1).checkpoints(1)),
        (TwoSlots, s(1, 5, 1).checkpoints(1)),
        (CheckOtherSlot, s(1, 5, 2).checkpoints(2).flips(1)),
        (RecycleAfterCheckpoint, s(1, 3, 3).checkpoints(2)),
        (RecycleBelowOlderSlot, s(1, 3, 3).checkpoints(2).flips(1)),
        (TailInCheckpoint, s(1, 5, 1).checkpoints(1)),
        (FenceInCheckpoint, s(1, 5, 1).fences(1).checkpoints(1)),
        (ReliedIsDurable, s(1, 4, 1).crashes(1).only(AckedIsKept)),
        (FailedFlushStops, s(1, 5, 1).fails(1).checkpoints(1)),
        (NoRewriteInPlace, s(1, 6, 2).checkpoints(2).shorn()),
    ];
    v.into_iter().map(|(r, s)| (r, s.without(r))).collect()
}

/// What hangs on the assumptions about the device: each is expected to break, or to hold, as its name says.
pub fn assumptions() -> Vec<(&'static str, Scope)> {
    let s = Scope::new;
    vec![
        (
            "journal sector torn into garbage: breaks",
            s(1, 4, 1).garbage(),
        ),
        (
            "segment block torn into garbage: holds",
            s(1, 5, 3).large().shorn().checkpoints(1),
        ),
        (
            "in-place rewrite, atomic blocks: holds",
            s(1, 6, 3).checkpoints(2).without(NoRewriteInPlace),
        ),
        (
            "copy before the journal's flush: holds",
            s(1, 5, 3).early().checkpoints(2).truncs(1).cuts(2),
        ),
        (
            "boot not in stamp, one in flight: holds",
            s(1, 5, 4).pairs().cuts(2).without(BootInStamp),
        ),
        (
            "end from file, no truncation: breaks",
            s(1, 5, 2).large().without(EndFromJournal).cuts(2),
        ),
    ]
}
