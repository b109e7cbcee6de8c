//! Where a new topic's partitions go: how many copies, on which nodes, and who should lead.
//!
//! Guarantees: the same catalog gives the same places; nodes get copies and leaderships evenly, counting what is there already;
//! what is placed once does not move because something else comes (sticky). All registered nodes are taken for ones that stay.

use std::collections::BTreeMap;

use floe_model::NodeId;
use floe_replication::{Leader, Member};

use crate::{Catalog, NewPartition};

/// How many copies were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// As many as make sense: 1 on one or two nodes, 3 from three on.
    Auto,
    /// That many.
    Copies(u32),
}

/// Why there cannot be so many copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFactor {
    /// No copy at all.
    #[error("replication factor 0 asked for; give 1 or more, or leave it to the cluster")]
    Zero,
    /// A node has at most one copy of a partition.
    #[error(
        "replication factor {factor} asked for, {nodes} node(s) registered; give at most {nodes}, or leave it to the cluster"
    )]
    TooFewNodes {
        /// Asked for.
        factor: u32,
        /// Registered.
        nodes: u32,
    },
}

impl Factor {
    /// The number of copies on that many nodes. Rule NeverBelowQ: what was asked for is not lowered in silence.
    pub fn copies(self, nodes: usize) -> Result<u32, InvalidFactor> {
        let nodes = nodes as u32;
        let factor = match self {
            Self::Auto if nodes < 3 => 1,
            Self::Auto => 3,
            Self::Copies(factor) => factor,
        };
        match factor {
            0 => Err(InvalidFactor::Zero),
            _ if factor > nodes => Err(InvalidFactor::TooFewNodes { factor, nodes }),
            _ => Ok(factor),
        }
    }
}

/// What each registered node has to do already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    nodes: BTreeMap<NodeId, Share>,
}

/// One node's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Copies it is a member with.
    pub copies: usize,
    /// Partitions that it should lead.
    pub preferred: usize,
    /// Partitions that it leads.
    pub led: usize,
}

impl Load {
    /// As the catalog has it.
    pub fn of(catalog: &Catalog) -> Self {
        let nodes = catalog.nodes.keys().map(|node| (*node, Share::default()));
        let mut load = Self {
            nodes: nodes.collect(),
        };
        let partitions = catalog.topics.values().flat_map(|topic| &topic.partitions);
        for partition in partitions {
            for member in &partition.replicas {
                load.share(member.node).copies += 1;
            }
            if let Some(first) = partition.replicas.first() {
                load.share(first.node).preferred += 1;
            }
            load.share(partition.leader.node).led += 1;
        }
        load
    }

    /// A node's part.
    pub fn get(&self, node: NodeId) -> Share {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    pub(crate) fn share(&mut self, node: NodeId) -> &mut Share {
        self.nodes.entry(node).or_default()
    }
}

/// One partition's nodes; the first is the one that should lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Who holds it.
    pub nodes: Vec<NodeId>,
}

/// Places the partitions of a new topic.
pub fn place(
    catalog: &Catalog,
    partitions: u32,
    factor: Factor,
) -> Result<Vec<Place>, InvalidFactor> {
    let copies = factor.copies(catalog.nodes.len())? as usize;
    let mut load = Load::of(catalog);
    let nodes: Vec<_> = catalog.nodes.keys().copied().collect();
    // How often a node comes right after the one that should lead: who takes over when that one dies.
    let mut heirs: BTreeMap<(NodeId, NodeId), usize> = BTreeMap::new();
    let places = (0..partitions).map(|_| {
        let by_leading = |node: &&NodeId| {
            let share = load.get(**node);
            (share.preferred, share.copies, **node)
        };
        let first = *nodes
            .iter()
            .min_by_key(by_leading)
            .expect("there are nodes");
        let mut place = vec![first];
        while place.len() < copies {
            let is_free = |node: &&NodeId| !place.contains(node);
            let by_holding = |node: &&NodeId| {
                let inherits = heirs.get(&(first, **node)).filter(|_| place.len() == 1);
                let inherits = inherits.copied().unwrap_or_default();
                (load.get(**node).copies, inherits, **node)
            };
            let next = nodes.iter().filter(is_free).min_by_key(by_holding);
            let next = *next.expect("as many nodes as copies");
            if place.len() == 1 {
                *heirs.entry((first, next)).or_default() += 1;
            }
            place.push(next);
        }
        for node in &place {
            load.share(*node).copies += 1;
        }
        load.share(first).preferred += 1;
        Place { nodes: place }
    });
    Ok(places.collect())
}

impl Place {
    /// The partition's first generation, as the command names it: each copy has its node's life, and the first node that is alive
    /// leads. Copies are to be bound under that life. `None` if a node is not registered any more, or has not said its life.
    pub fn partition(
        &self,
        catalog: &Catalog,
        is_alive: impl Fn(NodeId) -> bool,
    ) -> Option<NewPartition> {
        let nodes = self.nodes.iter().map(|node| catalog.nodes.get(node));
        let nodes: Vec<_> = nodes.collect::<Option<_>>()?;
        let members = nodes.iter().map(|node| Member {
            node: node.id,
            incarnation: node.incarnation,
        });
        let mut alive = nodes.iter().filter(|node| is_alive(node.id));
        let leader = alive.next().or(nodes.first())?;
        let is_known = nodes.iter().all(|node| node.incarnation.0 != 0);
        is_known.then(|| NewPartition {
            leader: Leader {
                node: leader.id,
                incarnation: leader.incarnation,
                boot: leader.boot,
            },
            members: members.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use floe_model::{Boot, Incarnation, TopicId, TopicName};

    use super::*;
    use crate::{Command, NewTopic, Node};

    fn catalog(nodes: u32) -> Catalog {
        let mut catalog = Catalog::default();
        for id in 0..nodes {
            let node = Node {
                id: NodeId(id),
                incarnation: Incarnation(u64::from(id) + 1),
                boot: Boot(1),
                endpoints: Vec::new(),
                protocol: 1,
            };
            catalog.apply(1, Command::RegisterNode(node));
        }
        catalog
    }

    fn create(catalog: &mut Catalog, number: u8, partitions: u32, copies: u32) -> Vec<Place> {
        let places = place(catalog, partitions, Factor::Copies(copies)).unwrap();
        let topic = NewTopic {
            name: TopicName::parse(&format!("t{number}")).unwrap(),
            id: TopicId([number; 16]),
            replication_factor: copies,
            quorum: floe_replication::quorum(copies as usize) as u32,
            has_table: false,
            partitions: places
                .iter()
                .map(|place| place.partition(catalog, |_| true).unwrap())
                .collect(),
            overrides: BTreeMap::new(),
            internal: false,
        };
        let applied = catalog.apply(catalog.index + 1, Command::CreateTopic(topic));
        assert_eq!(applied.refused, []);
        places
    }

    fn spread(load: &Load, nodes: u32, of: impl Fn(Share) -> usize) -> usize {
        let counts = (0..nodes).map(|node| of(load.get(NodeId(node))));
        counts.clone().max().unwrap() - counts.min().unwrap()
    }

    #[test]
    fn copies_and_leaderships_are_even_whatever_topics_come_one_after_another() {
        for nodes in 1..=7 {
            let mut catalog = catalog(nodes);
            for (number, partitions) in [1, 2, 5, 1, 1, 12, 7].into_iter().enumerate() {
                let copies = nodes.min(1 + number as u32 % 3);
                create(&mut catalog, number as u8, partitions, copies);
                let load = Load::of(&catalog);
                assert!(spread(&load, nodes, |share| share.copies) <= 2, "{load:?}");
                assert!(spread(&load, nodes, |share| share.led) <= 1, "{load:?}");
            }
        }
    }

    #[test]
    fn a_node_has_one_copy_and_what_is_placed_stays() {
        let mut catalog = catalog(5);
        let first = create(&mut catalog, 1, 20, 3);
        create(&mut catalog, 2, 33, 3);
        for place in &first {
            let mut nodes = place.nodes.clone();
            nodes.sort_unstable();
            nodes.dedup();
            assert_eq!(nodes.len(), 3);
        }
        let kept = &catalog.topic("t1").unwrap().partitions;
        for (place, partition) in first.iter().zip(kept) {
            let nodes: Vec<_> = partition
                .replicas
                .iter()
                .map(|member| member.node)
                .collect();
            assert_eq!(place.nodes, nodes);
        }
    }

    #[test]
    fn those_that_take_over_from_one_node_are_even_too() {
        let catalog = catalog(3);
        let places = place(&catalog, 60, Factor::Auto).unwrap();
        let mut heirs: BTreeMap<(NodeId, NodeId), usize> = BTreeMap::new();
        for place in places {
            *heirs.entry((place.nodes[0], place.nodes[1])).or_default() += 1;
        }
        assert_eq!(heirs.len(), 6);
        assert!(heirs.values().all(|count| *count == 10), "{heirs:?}");
    }

    #[test]
    fn a_factor_that_is_asked_for_is_refused_rather_than_lowered() {
        let copies = |factor: Factor| [1, 2, 3, 4].map(|nodes| factor.copies(nodes).ok());
        assert_eq!(copies(Factor::Auto), [1, 1, 3, 3].map(Some));
        assert_eq!(copies(Factor::Copies(2)), [None, Some(2), Some(2), Some(2)]);
        assert_eq!(Factor::Copies(0).copies(3), Err(InvalidFactor::Zero));
        let refused = place(&catalog(2), 1, Factor::Copies(3)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "replication factor 3 asked for, 2 node(s) registered; give at most 2, or leave it to the cluster"
        );
    }

    #[test]
    fn the_first_that_is_alive_leads_and_the_order_stays() {
        let catalog = catalog(3);
        let place = Place {
            nodes: [2, 0, 1].map(NodeId).to_vec(),
        };
        let partition = place.partition(&catalog, |node| node != NodeId(2)).unwrap();
        assert_eq!(partition.leader.node, NodeId(0));
        assert_eq!(partition.members[0].node, NodeId(2));
    }
}
