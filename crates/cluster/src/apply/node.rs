//! Nodes and the lives of their data.
//!
//! Guarantees: the catalog knows one life and one process of each node; who speaks for another one is refused by name. What a
//! replaced life held, led or witnessed counts no more from that entry on.

use std::sync::Arc;

use floe_model::{Boot, Incarnation, NodeId};
use floe_replication::Member;

use crate::catalog::{Catalog, Node, Topic};
use crate::command::RenewedCopy;
use crate::rule::{Rule, keeps};
use crate::{NotThatNode, Refusal};

/// Replaced lives remembered, for each node.
const PAST_LIVES_MAX: usize = 64;

impl Catalog {
    pub(super) fn register(&mut self, node: Node) -> Result<(), Refusal> {
        let id = node.id;
        let no = |why| Err(Refusal::Node { node: id, why });
        if let Some(known) = self.nodes.get(&id) {
            let is_same_life = known.incarnation == node.incarnation;
            if !is_same_life && known.incarnation != Incarnation(0) && keeps(Rule::StaleLifeRefused)
            {
                return no(self.other_life(id, known.incarnation, node.incarnation));
            }
            if node.boot < known.boot && keeps(Rule::StaleLifeRefused) {
                return no(NotThatNode::EarlierBoot {
                    given: node.boot,
                    known: known.boot,
                });
            }
            if !is_same_life && known.incarnation == Incarnation(0) {
                self.adopt(id, node.incarnation);
            }
        }
        self.nodes.insert(id, node);
        Ok(())
    }

    /// An upgraded node says for the first time which life its directory is. What is open names lives of copies that the log
    /// chose one by one: those are right.
    fn adopt(&mut self, node: NodeId, incarnation: Incarnation) {
        self.each_topic(
            |topic| {
                topic
                    .partitions
                    .iter()
                    .any(|partition| partition.replicas.iter().any(|member| member.node == node))
            },
            |topic| {
                for partition in &mut topic.partitions {
                    let is_other =
                        |member: &&Member| member.node == node && member.incarnation != incarnation;
                    if let Some(member) = partition.replicas.iter().find(is_other) {
                        partition.copies.insert(node, member.incarnation);
                    }
                }
            },
        );
    }

    /// Rule WipedIsNoFollower: from here on, members and holders of the life that is replaced are none. Their names stay in
    /// the generations they were in: how many answers a seal needs is counted from those.
    pub(super) fn replace(&mut self, node: Node, replaces: Incarnation) -> Result<(), Refusal> {
        let id = node.id;
        let no = |why| Err(Refusal::Node { node: id, why });
        let Some(known) = self.nodes.get(&id) else {
            return no(NotThatNode::Unknown);
        };
        if known.incarnation == node.incarnation {
            // Asked again.
            return self.register(node);
        }
        if node.incarnation == Incarnation(0) {
            return no(NotThatNode::NoLife);
        }
        let is_past = self.is_past(id, node.incarnation);
        if (known.incarnation != replaces || is_past) && keeps(Rule::StaleLifeRefused) {
            return no(self.other_life(id, known.incarnation, node.incarnation));
        }
        let past = self.past_lives.entry(id).or_default();
        past.push(known.incarnation);
        if past.len() > PAST_LIVES_MAX {
            past.remove(0);
        }
        self.each_topic(
            |topic| {
                topic
                    .partitions
                    .iter()
                    .any(|partition| partition.copies.contains_key(&id))
            },
            |topic| {
                for partition in &mut topic.partitions {
                    partition.copies.remove(&id);
                }
            },
        );
        self.nodes.insert(id, node);
        Ok(())
    }

    fn is_past(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.past_lives
            .get(&node)
            .is_some_and(|past| past.contains(&incarnation))
    }

    fn other_life(&self, node: NodeId, known: Incarnation, given: Incarnation) -> NotThatNode {
        if self.is_past(node, given) {
            NotThatNode::Replaced(given)
        } else {
            NotThatNode::OtherLife { given, known }
        }
    }

    /// Changes topics, without copying those that stay as they are.
    fn each_topic(&mut self, is_concerned: impl Fn(&Topic) -> bool, change: impl Fn(&mut Topic)) {
        for topic in self.topics.values_mut().filter(|topic| is_concerned(topic)) {
            change(Arc::make_mut(topic));
        }
    }

    /// Whether it is the registered process of the registered life that speaks.
    pub(super) fn speaks(
        &self,
        id: NodeId,
        incarnation: Incarnation,
        boot: Boot,
    ) -> Result<(), Refusal> {
        let why = match self.nodes.get(&id) {
            None => NotThatNode::Unknown,
            Some(known) if known.incarnation != incarnation => {
                self.other_life(id, known.incarnation, incarnation)
            }
            Some(known) if known.boot != boot => NotThatNode::OtherBoot {
                given: boot,
                known: known.boot,
            },
            Some(_) => return Ok(()),
        };
        Err(Refusal::Node { node: id, why })
    }

    /// Conditional on the life that is known, so that reports may come twice and out of order.
    pub(super) fn renew(&mut self, node: NodeId, copy: RenewedCopy) -> Result<(), Refusal> {
        let at = copy.partition;
        let partition = self.partition(at).ok_or(Refusal::UnknownTopic(at.topic))?;
        let known = self.copy(partition, node);
        let was = Member {
            node,
            incarnation: copy.was,
        };
        if known.is_some_and(|known| known.incarnation == copy.is) {
            return Ok(());
        }
        if known != Some(was) {
            let why = crate::Unfit::NotCurrent(was);
            return Err(Refusal::Unfit { partition: at, why });
        }
        let of_node = self.nodes.get(&node).map(|node| node.incarnation);
        let partition = self.partition_mut(at).expect("found above");
        if of_node == Some(copy.is) {
            partition.copies.remove(&node);
        } else {
            partition.copies.insert(node, copy.is);
        }
        Ok(())
    }
}
