//! What must hold, kept beside the catalog in plain lists, from the commands that were accepted.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Which promise was broken.
pub(super) type Broken = String;

#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    nodes: BTreeMap<NodeId, (Incarnation, Boot)>,
    past: BTreeSet<(NodeId, Incarnation)>,
    /// Lives of single copies, where not their node's.
    copies: BTreeMap<(TopicPartition, NodeId), Incarnation>,
    /// Who really has a sealed generation.
    holds: BTreeMap<(TopicPartition, LeaderEpoch), BTreeSet<Member>>,
    let_go: BTreeMap<(TopicPartition, LeaderEpoch, NodeId), u64>,
    waiting: BTreeMap<TopicId, BTreeSet<NodeId>>,
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(what()) }
}

impl Oracle {
    fn life(&self, at: TopicPartition, node: NodeId) -> Option<Incarnation> {
        let of_node = self.nodes.get(&node).map(|(incarnation, _)| *incarnation);
        self.copies.get(&(at, node)).copied().or(of_node)
    }

    fn is_current(&self, at: TopicPartition, member: Member) -> bool {
        self.life(at, member.node) == Some(member.incarnation)
    }

    /// Judges what a command did: `before` and `after` it, with what came of it.
    pub(super) fn judge(
        &mut self,
        before: &Catalog,
        command: &Command,
        applied: &Applied,
        after: &Catalog,
    ) -> Result<(), Broken> {
        if !applied.refused.is_empty() {
            let unchanged = Catalog {
                index: after.index,
                ..before.clone()
            };
            ensure(unchanged == *after && applied.effects.is_empty(), || {
                format!("refused, and something changed: {command:?}")
            })?;
            return Ok(());
        }
        match command {
            Command::RegisterNode(node) => self.registered(node)?,
            Command::ReplaceNode { node, replaces } => self.replaced(node, *replaces)?,
            Command::RenewCopies { node, copies, .. } => {
                for copy in copies {
                    let known = self.life(copy.partition, *node);
                    ensure(known == Some(copy.was) || known == Some(copy.is), || {
                        format!("a copy was renewed from {known:?}: {copy:?}")
                    })?;
                    self.copies.insert((copy.partition, *node), copy.is);
                }
            }
            Command::CreateTopic(topic) => self.created(topic)?,
            Command::SealAndOpen(list) => {
                for transition in list {
                    self.sealed(before, transition, after)?;
                }
            }
            Command::AddHolders(claims) => {
                for claim in claims {
                    let key = (claim.partition, claim.epoch, claim.member.node);
                    let let_go = self.let_go.get(&key).copied().unwrap_or_default();
                    if let_go <= claim.as_of {
                        let holds = self
                            .holds
                            .entry((claim.partition, claim.epoch))
                            .or_default();
                        holds.insert(claim.member);
                    }
                }
            }
            Command::Forget(list) => {
                for forgetting in list {
                    self.forgotten(forgetting, before, after.index)?;
                }
            }
            Command::DeleteTopic(topic) => {
                self.waiting
                    .insert(*topic, self.nodes.keys().copied().collect());
            }
            Command::ConfirmDeleted { node, topics } => {
                for topic in topics {
                    if let Some(waiting) = self.waiting.get_mut(topic) {
                        waiting.remove(node);
                    }
                }
            }
            Command::ReserveProducerIds(_) => {
                let next = before.next_producer_id + PRODUCER_IDS_PER_BLOCK;
                ensure(after.next_producer_id == next, || "producer ids".to_owned())?;
            }
            Command::EndLeases(_) | Command::AdvanceLogStart(_) => {}
        }
        self.look(before, after)
    }

    fn registered(&mut self, node: &Node) -> Result<(), Broken> {
        let known = self.nodes.insert(node.id, (node.incarnation, node.boot));
        ensure(
            known.is_none_or(|(life, boot)| life == node.incarnation && boot <= node.boot),
            || format!("{known:?} was known, {node:?} registered"),
        )
    }

    fn replaced(&mut self, node: &Node, replaces: Incarnation) -> Result<(), Broken> {
        let known = self.nodes.insert(node.id, (node.incarnation, node.boot));
        if known.is_some_and(|(life, boot)| life == node.incarnation && boot <= node.boot) {
            return Ok(());
        }
        let is_past = self.past.contains(&(node.id, node.incarnation));
        ensure(
            known.is_some_and(|(life, _)| life == replaces) && !is_past,
            || format!("{known:?} was known, {node:?} replaced {replaces}"),
        )?;
        self.past.insert((node.id, replaces));
        self.copies.retain(|(_, of), _| *of != node.id);
        Ok(())
    }

    fn created(&mut self, topic: &NewTopic) -> Result<(), Broken> {
        for (partition, place) in topic.partitions.iter().zip(0..) {
            let at = TopicPartition {
                topic: topic.id,
                partition: PartitionIndex(place),
            };
            for member in &partition.members {
                ensure(
                    !self.past.contains(&(member.node, member.incarnation)),
                    || format!("{at} begins with {member:?}, which is over"),
                )?;
                self.copies.insert((at, member.node), member.incarnation);
            }
            self.may_open(at, &partition.members, partition.leader)?;
        }
        Ok(())
    }

    /// Topics here have three copies, and q = 2.
    fn may_open(
        &self,
        at: TopicPartition,
        members: &[Member],
        leader: Leader,
    ) -> Result<(), Broken> {
        let nodes: BTreeSet<_> = members.iter().map(|member| member.node).collect();
        ensure(nodes.len() >= 2 && nodes.len() == members.len(), || {
            format!("{at} opens with {members:?}")
        })?;
        let is_over = |member: &&Member| !self.is_current(at, **member);
        let over = members.iter().find(is_over);
        ensure(over.is_none(), || {
            format!("{at} opens with {over:?}, which is over")
        })?;
        let boot = self.nodes.get(&leader.node).map(|(_, boot)| *boot);
        ensure(
            members.contains(&leader.member()) && boot == Some(leader.boot),
            || format!("{at}: {leader:?} leads, {boot:?} runs"),
        )
    }

    fn sealed(
        &mut self,
        before: &Catalog,
        transition: &Transition,
        after: &Catalog,
    ) -> Result<(), Broken> {
        let at = transition.partition;
        let was = before.partition(at).expect("accepted");
        let is = after.partition(at).expect("accepted");
        ensure(
            was.epoch == transition.epoch && is.epoch == was.epoch.next(),
            || format!("{at}: {} was open, {transition:?} accepted", was.epoch),
        )?;
        ensure(
            was.start <= transition.end && is.start == transition.end,
            || format!("{at}: {transition:?}"),
        )?;
        self.may_open(at, &transition.members, transition.leader)?;
        let holders = transition.holders.iter().copied();
        let current: BTreeSet<_> = holders
            .filter(|holder| self.is_current(at, *holder))
            .collect();
        ensure(current.len() >= 2, || {
            format!("{at} sealed, held by {current:?}")
        })?;
        self.holds.insert((at, was.epoch), current);
        let topic = before.topic_by_id(at.topic).expect("accepted");
        let mut real = was.leases.clone();
        real.push((was.epoch, was.leader.member()));
        for lease in transition
            .leases
            .iter()
            .filter(|lease| real.contains(lease))
        {
            ensure(!topic.has_table || is.leases.contains(lease), || {
                format!("{at}: the lease of {lease:?} is not waited for")
            })?;
        }
        Ok(())
    }

    fn forgotten(
        &mut self,
        forgetting: &Forgetting,
        before: &Catalog,
        index: u64,
    ) -> Result<(), Broken> {
        let Forgetting {
            node,
            partition: at,
            epoch,
        } = *forgetting;
        let members = &before.partition(at).expect("accepted").replicas;
        ensure(members.iter().all(|member| member.node != node), || {
            format!("{at}: a member forgets")
        })?;
        self.let_go.insert((at, epoch, node), index);
        let copies = self.copies.clone();
        let nodes = &self.nodes;
        let is_current = |member: &&Member| {
            let own = copies.get(&(at, member.node)).copied();
            let life = own.or(nodes.get(&member.node).map(|known| known.0));
            life == Some(member.incarnation)
        };
        let holds = self.holds.entry((at, epoch)).or_default();
        holds.retain(|holder| holder.node != node);
        let others = holds.iter().filter(is_current).count();
        ensure(others >= 2, || {
            format!("{at} {epoch}: {node} forgets, {others} others hold it")
        })
    }

    /// What holds at all times, of everything that changed.
    fn look(&self, before: &Catalog, after: &Catalog) -> Result<(), Broken> {
        for topic in after.topics.values() {
            let earlier = before.topic_by_id(topic.id);
            for partition in &topic.partitions {
                let at = topic.address(partition.index);
                let was = earlier.and_then(|topic| topic.partition(partition.index));
                self.look_at(at, was, partition)?;
            }
        }
        for (topic, waiting) in &self.waiting {
            let left = after.tombstones.get(topic).map(|left| left.waiting.len());
            ensure(left.unwrap_or_default() == waiting.len(), || {
                format!("{waiting:?} have not confirmed, {left:?} are waited for")
            })?;
        }
        Ok(())
    }

    fn look_at(
        &self,
        at: TopicPartition,
        was: Option<&Partition>,
        is: &Partition,
    ) -> Result<(), Broken> {
        if let Some(was) = was {
            ensure(
                was.epoch <= is.epoch && was.start <= is.start && was.log_start <= is.log_start,
                || format!("{at} falls back: {was:?}, {is:?}"),
            )?;
        }
        let mut sealed = is.sealed.iter();
        let mut last = sealed.next();
        for next in sealed {
            let before = last.replace(next).expect("there is a first");
            ensure(
                before.epoch < next.epoch && before.end == next.start,
                || format!("{at}: {next:?} follows {before:?}"),
            )?;
        }
        ensure(last.is_none_or(|last| last.end == is.start), || {
            format!("{at}: the open generation does not start at the end: {is:?}")
        })?;
        for sealed in &is.sealed {
            let key = (at, sealed.epoch);
            for holder in &sealed.holders {
                let is_held = self
                    .holds
                    .get(&key)
                    .is_some_and(|holds| holds.contains(holder));
                ensure(is_held || !self.is_current(at, *holder), || {
                    format!(
                        "{at}: {holder:?} is named and does not hold {}",
                        sealed.epoch
                    )
                })?;
            }
        }
        Ok(())
    }
}
