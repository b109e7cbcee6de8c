//! Generations: one is sealed and the next opens, leases of earlier ones end, holders come and go.
//!
//! Guarantees: one generation of a partition is open at any time; epochs rise by one and ends never fall; who is named as member
//! or holder is the life of its node's data that is known at that entry.

use floe_model::{LeaderEpoch, NodeId, TopicPartition};
use floe_replication::{Member, Sealed};

use super::topic::twice;
use crate::catalog::{Catalog, Partition, Topic};
use crate::command::{Claim, Forgetting, Transition};
use crate::rule::{Rule, keeps};
use crate::{Effect, Refusal, Unfit};

impl Catalog {
    pub(super) fn transit(
        &mut self,
        transition: Transition,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let at = transition.partition;
        let (topic, partition) = self.at(at)?;
        // Rule SealConditional: of all who try to end a generation one succeeds.
        if partition.epoch != transition.epoch && keeps(Rule::SealConditional) {
            return Err(Refusal::NotOpen {
                partition: at,
                epoch: transition.epoch,
                open: partition.epoch,
            });
        }
        let unfit = |why| Refusal::Unfit { partition: at, why };
        let holders = self.holders(topic, partition, &transition).map_err(unfit)?;
        let leases = if keeps(Rule::LeaseGatesAllEarlier) {
            // Rule LeaseGatesAllEarlier: what the controller knew, less what was proven ended since.
            let mut leases = topic.leases(partition);
            leases.retain(|lease| transition.leases.contains(lease));
            leases
        } else {
            Vec::new()
        };
        let sealed = Sealed {
            epoch: transition.epoch,
            start: partition.start,
            end: transition.end,
            lossy: transition.lossy,
            holders,
        };
        out.push(Effect::Sealed {
            partition: at,
            epoch: sealed.epoch,
            end: sealed.end,
            lossy: sealed.lossy,
        });
        let partition = self.partition_mut(at).expect("found above");
        partition.epoch = sealed.epoch.next();
        partition.start = sealed.end;
        partition.leader = transition.leader;
        partition.replicas = transition.members;
        partition.leases = leases;
        // An empty generation changes no answer of the chain, unless it says that something may be lost.
        if sealed.start < sealed.end || sealed.lossy {
            if transition.times.is_some() {
                partition.facts.entry(sealed.epoch).or_default().times = transition.times;
            }
            partition.sealed.push(sealed);
        }
        let (topic, partition) = self.at(at).expect("found above");
        out.push(Effect::Opened {
            partition: at,
            opened: topic.opened(partition),
        });
        Ok(())
    }

    /// Whether the open generation may end so and the next begin so; its holders of their present life.
    fn holders(
        &self,
        topic: &Topic,
        partition: &Partition,
        transition: &Transition,
    ) -> Result<Vec<Member>, Unfit> {
        let (end, start) = (transition.end, partition.start);
        if end < start {
            return Err(Unfit::EndBelowStart { end, start });
        }
        // Rule QuorumFixed: not that of the replica set as it happens to be.
        let quorum = if keeps(Rule::QuorumFixed) {
            topic.quorum as usize
        } else {
            floe_replication::quorum(transition.members.len())
        };
        self.may_open(&transition.members, transition.leader, quorum)?;
        // Rule WipedIsNoFollower: a generation that names q lives that are over could never be sealed.
        let is_over = |member: &&Member| !self.is_current(partition, **member);
        if let Some(member) = transition.members.iter().find(is_over) {
            return Err(Unfit::NotCurrent(*member));
        }
        if let Some(node) = twice(&transition.holders) {
            return Err(Unfit::Twice(node));
        }
        // Rule RepairReachesQuorum: conditional on the holders' lives. One that ended on the way is left out.
        let mut holders = transition.holders.clone();
        holders.retain(|holder| self.is_current(partition, *holder));
        if holders.len() < quorum && keeps(Rule::RepairReachesQuorum) {
            return Err(Unfit::TooFewHolders {
                holders: holders.len(),
                quorum,
            });
        }
        Ok(holders)
    }

    /// One that is not in the list has ended already.
    pub(super) fn end_lease(
        &mut self,
        at: TopicPartition,
        epoch: LeaderEpoch,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let (_, partition) = self.at(at)?;
        if partition.leases.iter().any(|(known, _)| *known == epoch) {
            let partition = self.partition_mut(at).expect("found above");
            partition.leases.retain(|(known, _)| *known != epoch);
            let partition = at;
            out.push(Effect::LeaseEnded { partition, epoch });
        }
        Ok(())
    }

    pub(super) fn add_holder(&mut self, claim: Claim) -> Result<(), Refusal> {
        let Claim {
            member,
            partition: at,
            epoch,
            as_of,
        } = claim;
        let no = |why| Err(Refusal::Unfit { partition: at, why });
        let (topic, partition) = self.at(at)?;
        if partition.sealed(epoch).is_none() {
            return no(Unfit::NotSealed(epoch));
        }
        // Rule ClaimNamesIncarnation: it holds for the life that copied, however late it comes.
        let now = self.copy(partition, member.node);
        let named = match now {
            Some(now) if !keeps(Rule::ClaimNamesIncarnation) => now,
            _ => member,
        };
        if !self.is_current(partition, named) {
            return no(Unfit::NotCurrent(member));
        }
        // Rule ForgetVoidsClaim: what is claimed may be the copy that the node was allowed to forget.
        let let_go = partition.let_go(member.node, epoch);
        if let Some(index) = let_go.filter(|index| *index > as_of && keeps(Rule::ForgetVoidsClaim))
        {
            return no(Unfit::LetGo(index));
        }
        let sealed = partition.sealed(epoch).expect("found above");
        if sealed.holders.contains(&named) {
            return Ok(());
        }
        let quorum = topic.quorum as usize;
        let mut holders: Vec<_> = self.current_holders(partition, sealed).collect();
        holders.push(named);
        if holders.len() < quorum {
            // Lives that are over are struck off once enough others are recorded.
            holders.clone_from(&sealed.holders);
            holders.push(named);
        }
        self.sealed_mut(at, epoch).holders = holders;
        Ok(())
    }

    /// Rule ForgetConditional: q other holders are counted here, where commands have an order, and not where a node decides.
    pub(super) fn forget(
        &mut self,
        forgetting: Forgetting,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Forgetting {
            node,
            partition: at,
            epoch,
        } = forgetting;
        let (topic, partition) = self.at(at)?;
        self.may_forget(topic, partition, node, epoch)
            .map_err(|why| Refusal::Unfit { partition: at, why })?;
        let index = self.index;
        let partition = self.partition_mut(at).expect("found above");
        let facts = partition.facts.entry(epoch).or_default();
        facts.let_go.insert(node, index);
        let holders = &mut self.sealed_mut(at, epoch).holders;
        holders.retain(|holder| holder.node != node);
        out.push(Effect::Forgotten {
            partition: at,
            node,
            epoch,
            index,
        });
        Ok(())
    }

    /// Whether the node may forget what it has of a sealed generation, as things are.
    pub fn may_forget(
        &self,
        topic: &Topic,
        partition: &Partition,
        node: NodeId,
        epoch: LeaderEpoch,
    ) -> Result<(), Unfit> {
        let sealed = partition.sealed(epoch).ok_or(Unfit::NotSealed(epoch))?;
        if partition.replicas.iter().any(|member| member.node == node) {
            return Err(Unfit::StillMember(node));
        }
        let quorum = topic.quorum as usize;
        let is_other = |holder: &Member| holder.node != node;
        let holders = self.current_holders(partition, sealed);
        let others = holders.filter(is_other).count();
        if others < quorum && keeps(Rule::ForgetConditional) {
            return Err(Unfit::StillNeeded { others, quorum });
        }
        Ok(())
    }

    fn at(&self, at: TopicPartition) -> Result<(&Topic, &Partition), Refusal> {
        self.topic_by_id(at.topic)
            .and_then(|topic| Some((&**topic, topic.partition(at.partition)?)))
            .ok_or(Refusal::UnknownTopic(at.topic))
    }

    fn sealed_mut(&mut self, at: TopicPartition, epoch: LeaderEpoch) -> &mut Sealed {
        let partition = self.partition_mut(at).expect("found before");
        let sealed = partition.sealed.iter_mut();
        let mut found = sealed.filter(|sealed| sealed.epoch == epoch);
        found.next().expect("found before")
    }
}
