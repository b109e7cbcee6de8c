//! The promises: what the node came up with, and what it serves, against what it had acknowledged.

use std::collections::BTreeSet;
use std::ops::Range;

use floe_log::format::batch;
use floe_log::{ReadError, Recovered, RecoveredPartition, Verdict};
use floe_model::TopicPartition;

use crate::log_starts;
use crate::node::Node;
use crate::truth::{Generation, Partition, Truth};

/// What a flipped byte may have cost; nothing, when nothing was flipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hit {
    /// Records in the group or run that was hit.
    pub(crate) records: Vec<(TopicPartition, Range<u64>)>,
    /// Partitions of which something else was in it: a fence, a generation, a binding, a truncation.
    pub(crate) changes: BTreeSet<TopicPartition>,
    /// Catalog streams of which something was in it.
    pub(crate) streams: BTreeSet<u32>,
    /// A slot or the identity was hit: nothing may be lost, but a mark may show.
    pub(crate) is_any: bool,
}

impl Hit {
    fn covers(&self, partition: TopicPartition, offsets: &Range<u64>) -> bool {
        self.changes.contains(&partition)
            || offsets.clone().all(|offset| {
                let mut records = self.records.iter();
                records.any(|(hit, range)| *hit == partition && range.contains(&offset))
            })
    }
}

/// Recovery's answer against the truth.
pub(crate) fn recovered(truth: &Truth, found: &Recovered, hit: &Hit) -> Result<(), String> {
    if !hit.is_any
        && let Verdict::Damage { findings } = &found.verdict
    {
        return Err(format!("power loss alone is called damage: {findings:?}"));
    }
    let is_damaged = matches!(found.verdict, Verdict::Damage { .. });
    for (name, known) in &truth.partitions {
        let part = found.partitions.iter().find(|part| part.partition == *name);
        if hit.changes.contains(name) {
            continue;
        }
        match part {
            None if known.is_kept => return Err(format!("partition {name} is gone")),
            None => {}
            Some(part) => {
                partition(known, part, hit, is_damaged)
                    .map_err(|what| format!("{name}: {what}"))?;
            }
        }
    }
    for part in &found.partitions {
        if !truth.partitions.contains_key(&part.partition) {
            return Err(format!("partition {} was never bound", part.partition));
        }
    }
    for (group, known) in &truth.streams {
        let none = floe_log::Stream {
            group: *group,
            ..floe_log::Stream::default()
        };
        let stream = found.streams.iter().find(|stream| stream.group == *group);
        if hit.streams.contains(group) {
            continue;
        }
        let fits = known.may_be(stream.unwrap_or(&none));
        fits.map_err(|what| format!("catalog {group}: {what}"))?;
    }
    Ok(())
}

fn partition(
    known: &Partition,
    found: &RecoveredPartition,
    hit: &Hit,
    is_damaged: bool,
) -> Result<(), String> {
    let is_new = known
        .incarnation
        .is_some_and(|incarnation| incarnation != found.incarnation);
    // After a flip an earlier start may have said it already.
    if is_new && !is_damaged && !hit.is_any {
        return Err(format!(
            "incarnation {:x} without damage",
            found.incarnation.0
        ));
    }
    if is_damaged && known.incarnation == Some(found.incarnation) {
        return Err("damage, and the incarnation is the old one".to_owned());
    }
    if found.fence < known.fence_kept || found.fence > known.epoch_asked() {
        let (kept, asked) = (known.fence_kept, known.epoch_asked());
        return Err(format!(
            "fence {}, acknowledged {kept}, asked {asked}",
            found.fence
        ));
    }
    let mut places = found.generations.iter();
    let mut next = None;
    for (at, generation) in known.generations.iter().enumerate() {
        let epoch = generation.epoch;
        let place = found.generations.iter().find(|g| g.epoch == epoch);
        let Some(place) = place else {
            // An empty generation is dropped when the next one opens.
            let is_passed_over =
                generation.end() == generation.start && at + 1 < known.generations.len();
            let may_be_gone = !generation.is_kept
                || known.is_forgetting
                || is_passed_over
                || generation.end() <= known.log_start;
            // Emptied by the flip, it is dropped likewise.
            let all = generation.start..generation.end();
            let is_hit = (is_damaged || is_new) && hit.covers(found.partition, &all);
            let may_be_gone = may_be_gone || is_hit;
            if may_be_gone {
                continue;
            }
            return Err(format!("generation {epoch} is gone"));
        };
        if !places.any(|g| g.epoch == epoch) {
            return Err("generations are out of order".to_owned());
        }
        if place.descriptor != generation.descriptor {
            return Err(format!("generation {epoch} has another descriptor"));
        }
        if place.start.0 != generation.start
            && !(generation.start..=known.log_start).contains(&place.start.0)
        {
            return Err(format!("generation {epoch} starts at {}", place.start));
        }
        if let Some(next) = next
            && place.start.0 < next
        {
            return Err(format!(
                "generation {epoch} starts at {}, below {next}",
                place.start
            ));
        }
        next = Some(place.end.0);
        if let Err(what) = generation.may_end_at(place.end.0) {
            let missing = place.end.0..generation.durable.max(place.end.0);
            let is_said = is_damaged || is_new;
            if missing.is_empty() || !is_said || !hit.covers(found.partition, &missing) {
                return Err(format!("generation {epoch} {what}"));
            }
        }
    }
    for place in &found.generations {
        let is_known = known.generations.iter().any(|g| g.epoch == place.epoch);
        let is_below = place.end.0 <= known.log_start && known.deleted.contains(&place.epoch);
        if !is_known && !is_below {
            return Err(format!(
                "generation {} was never opened, or forgotten",
                place.epoch
            ));
        }
    }
    Ok(())
}

/// From now on, what the node came up with is what it must keep.
pub(crate) fn adopt(node: &Node, truth: &mut Truth, found: &Recovered) {
    truth
        .partitions
        .retain(|name, _| found.partitions.iter().any(|part| part.partition == *name));
    let log_starts = log_starts::found(&found.streams);
    for part in &found.partitions {
        let known = truth.partitions.entry(part.partition).or_default();
        known.is_kept = true;
        known.is_usable = node.log.partition(part.partition).is_some();
        known.incarnation = Some(part.incarnation);
        known.fence_kept = part.fence;
        known.fence_asked = part.fence;
        known.is_forgetting = false;
        let is_there = |g: &mut Generation| part.generations.iter().any(|p| p.epoch == g.epoch);
        let gone = known.generations.extract_if(.., |g| !is_there(g));
        let below = gone.filter(|g| g.end() <= known.log_start);
        known.deleted.extend(below.map(|g| g.epoch));
        for place in &part.generations {
            if let Some(generation) = known.generation(place.epoch) {
                generation.cut_to(place.end.0);
                generation.is_kept = true;
                generation.durable = place.end.0;
                generation.cuts.clear();
            }
        }
        // Asked and not answered, it may be in the catalog all the same.
        let found = log_starts.get(&part.partition);
        known.log_start = known.log_start.max(found.map_or(0, |found| found.0));
        if known.generations.is_empty() {
            known.log_start = 0;
        }
    }
    for (group, stream) in &mut truth.streams {
        let none = floe_log::Stream::default();
        let place = found.streams.iter().find(|place| place.group == *group);
        stream.adopt(place.unwrap_or(&none));
    }
}

/// Whether a recovery after others that did not end says what an undisturbed one would have; `None` for a disk that was
/// not formatted whole.
pub(crate) fn unchanged(undisturbed: Option<&Recovered>, found: &Recovered) -> Result<(), String> {
    let Some(undisturbed) = undisturbed else {
        return Ok(());
    };
    same(undisturbed, found)
        .map_err(|what| format!("power losses during recovery changed what it finds: {what}"))
}

/// Whether two recoveries of the same disk say the same; they may differ in boot and, after damage, in incarnations.
pub(crate) fn same(one: &Recovered, other: &Recovered) -> Result<(), String> {
    let parts = |found: &Recovered| -> Vec<_> {
        let mut parts: Vec<_> = found
            .partitions
            .iter()
            .map(|p| (p.partition, p.fence, p.generations.clone(), p.lost.clone()))
            .collect();
        parts.sort_by_key(|part| part.0);
        parts
    };
    let streams = |found: &Recovered| {
        let mut streams = found.streams.clone();
        streams.sort_by_key(|stream| stream.group);
        streams
    };
    if parts(one) != parts(other) {
        return Err(format!(
            "two recoveries differ: {:?} and {:?}",
            parts(one),
            parts(other)
        ));
    }
    if streams(one) != streams(other) {
        return Err(format!(
            "two recoveries differ: {:?} and {:?}",
            streams(one),
            streams(other)
        ));
    }
    Ok(())
}

/// Reads every partition from its first offset to its end and compares each byte.
pub(crate) fn contents(node: &Node, truth: &Truth, hit: &Hit) -> Result<u64, String> {
    let mut batches = 0;
    for (name, known) in &truth.partitions {
        if !known.is_usable || known.generations.is_empty() {
            continue;
        }
        if hit.changes.contains(name) {
            continue;
        }
        let end = node.handle(*name)?.end().0;
        let from = known.generations[0].start.max(known.log_start);
        let read = range(node, *name, known, from..end, hit);
        batches += read.map_err(|what| format!("{name}: {what}"))?;
    }
    Ok(batches)
}

/// Reads a range of one partition; gives the number of batches.
pub(crate) fn range(
    node: &Node,
    name: TopicPartition,
    known: &Partition,
    offsets: Range<u64>,
    hit: &Hit,
) -> Result<u64, String> {
    let handle = node.handle(name)?;
    let mut next = offsets.start;
    let mut batches = 0;
    while next < offsets.end {
        match node.read(&handle, next, offsets.end, 256 << 10) {
            Ok(slices) => {
                let from = next;
                for bytes in &slices.batches {
                    for (_, head) in batch::walk(bytes) {
                        batches += 1;
                        next = expected(known, next, from, head)?;
                    }
                }
                if next == from || slices.next.0 != next {
                    return Err(format!(
                        "a read at {from} below {} gives {} bytes, next {}",
                        offsets.end,
                        slices.bytes(),
                        slices.next
                    ));
                }
            }
            Err(ReadError::Lost { offsets: lost } | ReadError::NotHeld { offsets: lost }) => {
                if !lost.contains(&next) || !hit.covers(name, &lost) {
                    return Err(format!("{lost:?} is called lost at {next}"));
                }
                next = lost.end;
            }
            Err(error) => return Err(format!("a read at {next} below {}: {error}", offsets.end)),
        }
    }
    Ok(batches)
}

/// The batch that must come next.
fn expected(
    known: &Partition,
    next: u64,
    from: u64,
    head: batch::BatchHead<'_>,
) -> Result<u64, String> {
    let (base, end) = (head.base(), head.end());
    let is_first = next == from;
    if !(base == next || (is_first && base <= from && from < end)) {
        return Err(format!("a batch {base}..{end} where {next} is due"));
    }
    let mut all = known.generations.iter().flat_map(|g| g.batches.iter());
    let Some(written) = all.find(|batch| batch.base == base && batch.end == end) else {
        return Err(format!(
            "a batch {base}..{end} that was never appended, or cut"
        ));
    };
    if written.bytes != head.bytes() {
        return Err(format!("the batch {base}..{end} has other bytes"));
    }
    Ok(end)
}
