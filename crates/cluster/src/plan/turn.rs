//! One partition's way into its next generation: who is asked to end the old one, who holds and leads the next.

use floe_model::{LeaderEpoch, NodeId, Offset, TopicPartition};
use floe_replication::replica::Why;
use floe_replication::{Leader, Member, Opening, Seal, TooFew, seal};

use super::{Cause, Facts};
use crate::placement::Load;
use crate::{Catalog, Partition, Times, Topic, Transition};

/// What a seal is begun with. Values as of the plan: the catalog's conditions catch what has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which partition.
    pub partition: TopicPartition,
    /// Why.
    pub cause: Cause,
    /// The generation to end.
    pub epoch: LeaderEpoch,
    /// Where it starts.
    pub start: Offset,
    /// First offset kept: what lies below need not be copied.
    pub log_start: Offset,
    /// Its members.
    pub members: Vec<Member>,
    /// The topic's q.
    pub quorum: usize,
    /// Leases that may hold.
    pub leases: Vec<(LeaderEpoch, Member)>,
    /// Members of the next generation, in their old order.
    pub next: Vec<Member>,
    /// Who should lead it if it is proven to hold the old one.
    pub wished: Member,
    /// The only copy was damaged and nobody can answer for the generation any more: its new life decides the end, and what lay above
    /// is given up, for ever recorded.
    pub accept_loss: Option<Member>,
}

impl Turn {
    /// Begins the seal.
    pub fn begin(&self) -> Result<(Seal, Vec<seal::Command>), TooFew> {
        let (seal, mut commands) =
            Seal::begin(self.members.clone(), self.next.clone(), self.quorum)?;
        commands.extend(self.accept_loss.map(seal::Command::Fence));
        Ok((seal.with_leases(self.leases.clone()), commands))
    }

    /// Whether what it was made for still is: the generation is open, and who is to hold the next one are the lives of now.
    pub fn holds(&self, catalog: &Catalog) -> bool {
        catalog.partition(self.partition).is_some_and(|partition| {
            let mut next = self.next.iter();
            partition.epoch == self.epoch
                && next.all(|member| catalog.is_current(partition, *member))
        })
    }

    /// The transition that the seal decided; the leader is a proven holder when there is one. `None` if the process that is to lead
    /// is not registered.
    pub fn transition(
        &self,
        catalog: &Catalog,
        opening: &Opening,
        times: Option<Times>,
    ) -> Option<Transition> {
        let successor = opening.successor(&self.next, Some(self.wished))?;
        let boot = catalog.nodes.get(&successor.node)?.boot;
        Some(Transition {
            partition: self.partition,
            epoch: self.epoch,
            end: opening.end,
            lossy: opening.lossy,
            holders: opening.holders.clone(),
            times,
            leases: opening.leases.clone(),
            leader: Leader {
                node: successor.node,
                incarnation: successor.incarnation,
                boot,
            },
            members: self.next.clone(),
        })
    }
}

/// Whether a node could become a member: it is none, and has said which life it is.
pub(super) fn may_join(catalog: &Catalog, partition: &Partition, node: NodeId) -> bool {
    let is_member = partition.replicas.iter().any(|member| member.node == node);
    !is_member && catalog.copy(partition, node).is_some()
}

/// The turn, or how many members are alive and how many it takes.
pub(super) fn new(
    catalog: &Catalog,
    facts: &Facts,
    topic: &Topic,
    partition: &Partition,
    cause: Cause,
    load: &Load,
) -> Result<Turn, (usize, usize)> {
    let at = topic.address(partition.index);
    let quorum = topic.quorum as usize;
    let is_alive = |member: &Member| {
        facts.alive.contains_key(&member.node) && catalog.is_current(partition, *member)
    };
    let next = next(catalog, facts, topic, partition, load);
    let witnesses = partition
        .replicas
        .iter()
        .filter(|member| is_alive(member))
        .count();
    // n-q+1 answers fix the end; q live members, old or new, hold what is sealed.
    let answers = (partition.replicas.len() + 1).saturating_sub(quorum).max(1);
    let others = next
        .iter()
        .filter(|member| !partition.replicas.contains(member));
    let live = witnesses + others.filter(|member| is_alive(member)).count();
    let accept_loss = only_copy_lost(partition, &next).filter(|member| is_alive(member));
    // Rule NeverBelowQ.
    let can_end = witnesses >= answers || accept_loss.is_some();
    if !can_end || live < quorum || next.len() < quorum {
        return Err((witnesses, answers.max(quorum)));
    }
    let wished = wished(catalog, facts, at, partition, &next, load).ok_or((witnesses, answers))?;
    Ok(Turn {
        partition: at,
        cause,
        epoch: partition.epoch,
        start: partition.start,
        log_start: partition.log_start,
        members: partition.replicas.clone(),
        quorum,
        leases: topic.leases(partition),
        next,
        wished,
        accept_loss,
    })
}

/// The new life of a set of one.
fn only_copy_lost(partition: &Partition, next: &[Member]) -> Option<Member> {
    match (&partition.replicas[..], next) {
        ([only], [again, ..]) if only.node == again.node && only != again => Some(*again),
        _ => None,
    }
}

/// Every member whose life is not over; for one whose life is, its node's present one, in its place; then who fills up. A member that
/// only does not answer stays: it goes on where it was when it comes back.
fn next(
    catalog: &Catalog,
    facts: &Facts,
    topic: &Topic,
    partition: &Partition,
    load: &Load,
) -> Vec<Member> {
    let damaged = match facts.asked.get(&topic.address(partition.index)) {
        Some((epoch, Why::Damaged(member))) if *epoch == partition.epoch => Some(*member),
        _ => None,
    };
    let quorum = topic.quorum as usize;
    let present = partition.replicas.iter().filter_map(|member| {
        if catalog.is_current(partition, *member) {
            Some(*member)
        } else {
            catalog.copy(partition, member.node)
        }
    });
    let mut next: Vec<_> = present.collect();
    // Damaged and not yet of another life: left out if the others are enough.
    if let Some(damaged) = damaged.filter(|_| next.len() > quorum) {
        next.retain(|member| *member != damaged);
        return next;
    }
    let mut joining: Vec<_> = facts
        .alive
        .keys()
        .filter(|node| may_join(catalog, partition, **node))
        .filter_map(|node| catalog.copy(partition, *node))
        .collect();
    joining.sort_by_key(|member| (load.get(member.node).copies, member.node));
    let missing = (topic.replication_factor as usize).saturating_sub(next.len());
    next.extend(joining.into_iter().take(missing));
    next
}

/// Who should lead: one that kept up, was a member (so that producers and tables are there at the end), and leads few; the
/// preferred one among equals.
fn wished(
    catalog: &Catalog,
    facts: &Facts,
    at: TopicPartition,
    partition: &Partition,
    next: &[Member],
    load: &Load,
) -> Option<Member> {
    let runs = |member: &&Member| {
        let registered = catalog.nodes.get(&member.node).map(|node| node.boot);
        registered.is_some() && facts.alive.get(&member.node).copied() == registered
    };
    let by_merit = |(place, member): &(usize, &Member)| {
        (
            !partition.replicas.contains(member),
            facts.behind.contains(&(at, member.node)),
            *place != 0,
            load.get(member.node).led,
            *place,
        )
    };
    let running = next.iter().filter(runs).map(|member| {
        let place = next.iter().position(|known| known == member);
        (place.unwrap_or_default(), member)
    });
    running.min_by_key(by_merit).map(|(_, member)| *member)
}
