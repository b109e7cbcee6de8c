//! What the controller should do: facts in, plans out.
//!
//! ```text
//! catalog ┐                 ┌─► turns: begin a Seal, propose its Transition      (most urgent first)
//! facts   ┼─► plan::make ───┼─► stuck: which partitions need one and cannot, why
//! budget  ┘                 └─► forgets: commands to propose; voters: changes of who votes
//! ```
//!
//! Guarantees: the same input gives the same plan. A turn opens with q members or more (rule NeverBelowQ), keeps every member whose
//! life is not over, and is planned only while enough of them are alive to end the old generation. Turns that a failure or a start
//! needs are never held back; those that the controller chooses stay within the budget, and wait while there are any of the others.

mod turn;
mod voters;

use std::collections::{BTreeMap, BTreeSet};

use floe_model::{Boot, LeaderEpoch, NodeId, TopicPartition};
use floe_replication::Member;
use floe_replication::replica::Why;

use crate::placement::Load;
use crate::{
    Catalog, Command, Forgetting, Partition, TRANSITIONS_PER_ENTRY_MAX, Topic, Transition,
};
pub use turn::Turn;
pub use voters::{Group, VOTERS_MAX, voters};

/// What is so, beside the catalog.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Nodes that are not suspected, and the process that answers there.
    pub alive: BTreeMap<NodeId, Boot>,
    /// Members that have not kept up with their leader's end, or lack what a leader needs (producer state, table).
    pub behind: BTreeSet<(TopicPartition, NodeId)>,
    /// What replicas asked for.
    pub asked: BTreeMap<TopicPartition, (LeaderEpoch, Why)>,
    /// Partitions that are on their way into their next generation.
    pub under_way: BTreeSet<TopicPartition>,
}

/// How much the controller may do that need not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Turns that only change followers.
    pub followers: usize,
    /// Turns that only bring leadership back to whom it should be with.
    pub moves: usize,
}

/// Why a generation should end; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its leader's node does not answer.
    LeaderGone,
    /// Another process runs there now, or other data lies there: nobody leads (rules LeaderDoesNotResume, WipedIsNoFollower).
    LeaderOver,
    /// Its leader cannot go on: a member has a higher fence, or its own copy is damaged.
    LeaderStuck,
    /// A follower's data is of another life now, or damaged.
    FollowerOver,
    /// It has fewer members than copies it should have.
    FewCopies,
    /// Another one should lead, and can.
    NotPreferred,
}

impl Cause {
    /// Whether nobody can write until it is done.
    pub fn is_urgent(self) -> bool {
        self <= Self::LeaderStuck
    }
}

/// A partition that needs a turn and cannot have one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{partition}: {alive} of its members are alive, {needed} are needed")]
pub struct Stuck {
    /// Which.
    pub partition: TopicPartition,
    /// Why it needs one.
    pub cause: Cause,
    /// Members alive whose data is of their present life.
    pub alive: usize,
    /// How many it takes to end the open generation, and to hold it.
    pub needed: usize,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Most urgent first.
    pub turns: Vec<Turn>,
    /// What is held up, for operators.
    pub stuck: Vec<Stuck>,
}

/// Which generations to end now, and in whose favour.
pub fn make(catalog: &Catalog, facts: &Facts, budget: Budget) -> Plan {
    let mut plan = Plan::default();
    let mut found = Vec::new();
    for topic in catalog.topics.values() {
        for partition in &topic.partitions {
            let at = topic.address(partition.index);
            if facts.under_way.contains(&at) {
                continue;
            }
            if let Some(cause) = cause(catalog, facts, topic, partition) {
                found.push((cause, !topic.internal, at, &**topic, partition));
            }
        }
    }
    // Floe's own topics first among equals: positions and ids are needed to go on.
    found.sort_by_key(|(cause, is_foreign, at, ..)| (*cause, *is_foreign, *at));
    let mut load = Load::of(catalog);
    let (mut followers, mut moves, mut unlimited) = (budget.followers, budget.moves, usize::MAX);
    for (cause, _, at, topic, partition) in found {
        let left = match cause {
            Cause::NotPreferred => &mut moves,
            Cause::FollowerOver | Cause::FewCopies => &mut followers,
            _ => &mut unlimited,
        };
        let urgent = plan
            .turns
            .first()
            .is_some_and(|turn| turn.cause.is_urgent());
        if *left == 0 || urgent && !cause.is_urgent() {
            continue;
        }
        match turn::new(catalog, facts, topic, partition, cause, &load) {
            Ok(turn) => {
                *left -= 1;
                load.share(partition.leader.node).led -= 1;
                load.share(turn.wished.node).led += 1;
                for member in &partition.replicas {
                    load.share(member.node).copies -= 1;
                }
                for member in &turn.next {
                    load.share(member.node).copies += 1;
                }
                plan.turns.push(turn);
            }
            Err((alive, needed)) => plan.stuck.push(Stuck {
                partition: at,
                cause,
                alive,
                needed,
            }),
        }
    }
    plan
}

fn cause(catalog: &Catalog, facts: &Facts, topic: &Topic, partition: &Partition) -> Option<Cause> {
    let leader = partition.leader;
    let at = topic.address(partition.index);
    let asked = facts.asked.get(&at);
    let asked = asked.filter(|(epoch, _)| *epoch == partition.epoch);
    let is_over = |member: &Member| !catalog.is_current(partition, *member);
    match facts.alive.get(&leader.node) {
        None => return Some(Cause::LeaderGone),
        Some(boot) if *boot != leader.boot => return Some(Cause::LeaderOver),
        Some(_) if !catalog.is_running(leader) || is_over(&leader.member()) => {
            return Some(Cause::LeaderOver);
        }
        Some(_) => {}
    }
    match asked {
        Some((_, Why::OtherBoot)) => return Some(Cause::LeaderOver),
        Some((_, Why::Fenced(_))) => return Some(Cause::LeaderStuck),
        Some((_, Why::Damaged(member))) if *member == leader.member() => {
            return Some(Cause::LeaderStuck);
        }
        Some((_, Why::Damaged(_))) => return Some(Cause::FollowerOver),
        // Its new life is named once the catalog knows it.
        Some((_, Why::Lost(_))) | None => {}
    }
    if partition.replicas.iter().any(is_over) {
        return Some(Cause::FollowerOver);
    }
    if partition.replicas.len() < topic.replication_factor as usize
        && facts
            .alive
            .keys()
            .any(|node| turn::may_join(catalog, partition, *node))
    {
        return Some(Cause::FewCopies);
    }
    let preferred = partition.replicas.first()?;
    let can_lead = facts.alive.get(&preferred.node)
        == catalog.nodes.get(&preferred.node).map(|node| &node.boot)
        && !facts.behind.contains(&(at, preferred.node));
    (preferred.node != leader.node && can_lead).then_some(Cause::NotPreferred)
}

/// The commands that commit transitions, each of at most [`TRANSITIONS_PER_ENTRY_MAX`].
pub fn commands(transitions: &[Transition]) -> Vec<Command> {
    let chunks = transitions.chunks(TRANSITIONS_PER_ENTRY_MAX);
    chunks
        .map(|chunk| Command::SealAndOpen(chunk.to_vec()))
        .collect()
}

/// Who may forget what, as things are; the catalog counts again when it applies the commands (rule ForgetConditional).
pub fn forgets(catalog: &Catalog) -> Vec<Command> {
    let mut list = Vec::new();
    for topic in catalog.topics.values() {
        for partition in &topic.partitions {
            // Not while a member still copies from them: then fewer would have to serve all of it.
            let is_everywhere = |holders: &[Member]| {
                partition
                    .replicas
                    .iter()
                    .all(|member| holders.contains(member))
            };
            for sealed in partition
                .sealed
                .iter()
                .filter(|sealed| is_everywhere(&sealed.holders))
            {
                let others = sealed.holders.iter().map(|holder| holder.node);
                list.extend(
                    others
                        .filter(|node| {
                            catalog
                                .may_forget(topic, partition, *node, sealed.epoch)
                                .is_ok()
                        })
                        .map(|node| Forgetting {
                            node,
                            partition: topic.address(partition.index),
                            epoch: sealed.epoch,
                        }),
                );
            }
        }
    }
    let chunks = list.chunks(TRANSITIONS_PER_ENTRY_MAX);
    chunks
        .map(|chunk| Command::Forget(chunk.to_vec()))
        .collect()
}
