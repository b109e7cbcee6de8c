//! The rules that can be taken out, and what must hold.

/// The rules of LOG.md that can be taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The stamp holds the absolute sector number, not the place in the ring.
    LapInStamp,
    /// The stamp holds the boot: what is left of a cut group never joins a later one.
    BootInStamp,
    /// Recovery flushes a boot group at the cut before the node speaks; its number is one above the last in the chain.
    BootGroupFirst,
    /// A header says what was known flushed; only that makes a missing sector below it damage. (Two writes in flight.)
    KnownFlushed,
    /// With two writes in flight, acknowledgements follow the journal's order.
    AckInOrder,
    /// Nothing is acknowledged before its group's flush returned.
    AckAfterFlush,
    /// A pointer's bytes are judged after the whole replay, and only if no later truncation took them.
    JudgeAfterReplay,
    /// A sector that fails its checksum, where the next group is expected or inside it, is damage and not a torn write.
    BadIsDamage,
    /// A missing sector below what a later header knows flushed is damage (a lost write, an old copy put back).
    GapIsDamage,
    /// After damage, recovery writes a checkpoint at the end of the journal, before the boot group.
    DamageClosesWithCheckpoint,
    /// Before the boot group, and after that checkpoint, bad sectors ahead are overwritten (after damage: in the whole ring).
    WipeBadAhead,
    /// ... and writes it to both slots, so that a flip in one does not bring the old incarnation back.
    BothSlotsAfterDamage,
    /// After damage the next boot number is above that of every sector in the ring, not only above the chain's.
    BootAboveAll,
    /// After a lost truncation, a batch below the end says where it was.
    OffsetImpliesCut,
    /// What is known to be lost is in the checkpoint, and not said again.
    LossIsRecorded,
    /// A pointer is journalled only after the segment flush of its bytes returned.
    PointerAfterBytes,
    /// The same with both flushes side by side and the answer after both: is that enough?
    PointerNotBeside,
    /// The segment flush before a pointer covers the whole file below it, not its own bytes only.
    PointerCoversAll,
    /// A new file's directory is synced before a pointer or checkpoint relies on the file.
    DirectoryBeforePointer,
    /// A segment's end comes from checkpoint and journal, never from the file.
    EndFromJournal,
    /// A truncation is journalled and flushed before it takes effect.
    TruncateJournalled,
    /// A checkpoint counts as synced only what a segment flush returned for.
    SyncBeforeCheckpoint,
    /// Two slots, written in turn.
    TwoSlots,
    /// Before a slot is overwritten the other one is read and checked; if it is bad, that one is written instead.
    CheckOtherSlot,
    /// Sectors are reused only below a checkpoint that is durable.
    RecycleAfterCheckpoint,
    /// Sectors are reused only below the older of the two slots.
    RecycleBelowOlderSlot,
    /// A checkpoint carries what is not in synced segments.
    TailInCheckpoint,
    /// A checkpoint carries the fences.
    FenceInCheckpoint,
    /// Recovery flushes journal and slots before it concludes anything from them: what a flush that failed, or that nobody
    /// waited for, has left there can be read and is gone with the power.
    ReliedIsDurable,
    /// A failed flush ends the process; it is never followed by another one on the same bytes.
    FailedFlushStops,
    /// A block that holds a durable record is never written again while the record lives.
    NoRewriteInPlace,
}
use Rule::*;
pub const ALL_RULES: [Rule; 31] = [
    LapInStamp,
    BootInStamp,
    BootGroupFirst,
    KnownFlushed,
    AckInOrder,
    AckAfterFlush,
    JudgeAfterReplay,
    BadIsDamage,
    GapIsDamage,
    DamageClosesWithCheckpoint,
    WipeBadAhead,
    BothSlotsAfterDamage,
    BootAboveAll,
    OffsetImpliesCut,
    LossIsRecorded,
    PointerAfterBytes,
    PointerNotBeside,
    PointerCoversAll,
    DirectoryBeforePointer,
    EndFromJournal,
    TruncateJournalled,
    SyncBeforeCheckpoint,
    TwoSlots,
    CheckOtherSlot,
    RecycleAfterCheckpoint,
    RecycleBelowOlderSlot,
    TailInCheckpoint,
    FenceInCheckpoint,
    ReliedIsDurable,
    FailedFlushStops,
    NoRewriteInPlace,
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Invariant {
    /// An acknowledged record is there at its offset after recovery, or damage took it and the node says so.
    AckedIsKept,
    /// A flip in one checkpoint slot, the other being whole, loses nothing and is no damage.
    SlotFlipIsFree,
    /// What was cut or truncated once never comes back.
    CutStaysCut,
    /// A group of an older lap or of a dead boot is never read as current.
    OldNeverParses,
    /// A fence once answered is known after every recovery.
    FenceIsKept,
    /// Damage is said at most once per flip: never after mere power cuts, never again at the next start.
    PowerCutIsNotDamage,
    /// A crash in recovery changes nothing of what the next recovery finds.
    RecoveryIsIdempotent,
    /// Some step is always possible on the way from down to up.
    RecoveryEnds,
}
