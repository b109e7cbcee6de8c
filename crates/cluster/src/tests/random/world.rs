//! Who asks the catalog: nodes that end and come back, controllers with an old view, holders that claim late.

use std::collections::BTreeMap;

use super::follower::Follower;
use super::oracle::{Broken, Oracle};
use super::*;

const NODES: usize = 4;
const TOPICS_MAX: usize = 3;
const PENDING_MAX: usize = 24;

pub(super) struct World {
    chance: Chance,
    pub(super) catalog: Catalog,
    /// Takes the same entries, and now and then a snapshot of itself.
    twin: Catalog,
    oracle: Oracle,
    /// Commands on their way.
    pending: Vec<Command>,
    /// Each node as it is: what it would say of itself.
    nodes: Vec<Node>,
    lives: Vec<Node>,
    copies: BTreeMap<(TopicPartition, NodeId), Incarnation>,
    whole: Vec<Follower>,
    away: Vec<(bool, Follower)>,
    number: u64,
    /// Accepted and refused, by kind of command.
    pub(super) counts: BTreeMap<&'static str, (usize, usize)>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let node = |node: usize| Node {
            id: NodeId(node as u32),
            incarnation: Incarnation(1 + node as u64),
            boot: Boot(1),
            endpoints: Vec::new(),
            protocol: 1,
        };
        Self {
            chance: Chance::new(seed),
            catalog: Catalog::default(),
            twin: Catalog::default(),
            oracle: Oracle::default(),
            pending: Vec::new(),
            nodes: (0..NODES).map(node).collect(),
            lives: Vec::new(),
            copies: BTreeMap::new(),
            whole: vec![Follower::default(); NODES],
            away: vec![(false, Follower::default()); NODES],
            number: 100,
            counts: BTreeMap::new(),
        }
    }

    pub(super) fn step(&mut self) -> Result<(), Broken> {
        let is_full = self.pending.len() >= PENDING_MAX;
        if !is_full && self.chance.one_in(2) {
            let command = self.command();
            self.pending.extend(command);
            return Ok(());
        }
        if self.chance.one_in(40) {
            self.go_or_come()?;
        }
        if self.chance.one_in(200) {
            self.compare()?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let at = self.chance.below(self.pending.len());
        let command = if self.chance.one_in(8) {
            self.pending[at].clone()
        } else {
            self.pending.swap_remove(at)
        };
        self.apply(&command)
    }

    fn apply(&mut self, command: &Command) -> Result<(), Broken> {
        let before = self.catalog.clone();
        let index = before.index + 1;
        let bytes = format::encode(command);
        let read = format::decode(&bytes).map_err(|error| error.to_string())?;
        if read != *command {
            return Err(format!("{command:?} reads back as {read:?}"));
        }
        let applied = self.catalog.apply(index, read);
        if self.twin.apply(index, command.clone()) != applied {
            return Err("two catalogs differ in what comes of a command".to_owned());
        }
        let counts = self.counts.entry(kind(command)).or_default();
        if applied.refused.is_empty() {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
        self.oracle
            .judge(&before, command, &applied, &self.catalog)?;
        for node in 0..NODES {
            let me = NodeId(node as u32);
            self.whole[node].obey(me, &applied.effects);
            if !self.away[node].0 {
                self.away[node].1.obey(me, &applied.effects);
            }
        }
        Ok(())
    }

    /// A node goes away, or comes back and learns from a snapshot.
    fn go_or_come(&mut self) -> Result<(), Broken> {
        let node = self.chance.below(NODES);
        let (is_away, follower) = &mut self.away[node];
        if *is_away {
            let me = NodeId(node as u32);
            let due = duties(&self.catalog, me, &follower.holdings());
            follower.obey(me, &due);
            if !follower.agrees(&self.whole[node]) {
                return Err(format!("node {node} learned otherwise from a snapshot"));
            }
        }
        *is_away = !*is_away;
        Ok(())
    }

    /// Snapshot and rest are the whole.
    pub(super) fn compare(&mut self) -> Result<(), Broken> {
        if self.twin != self.catalog {
            return Err("two catalogs of the same entries differ".to_owned());
        }
        let bytes = format::encode_snapshot(&self.twin);
        self.twin = format::decode_snapshot(&bytes).map_err(|error| error.to_string())?;
        if self.twin != self.catalog {
            return Err("a snapshot reads back otherwise".to_owned());
        }
        Ok(())
    }

    fn command(&mut self) -> Option<Command> {
        match self.chance.below(30) {
            0..=2 => Some(self.registration()),
            3 => self.replacement(),
            4 | 5 => self.renewal(),
            6 | 7 => self.creation(),
            8..=16 => self.seal(),
            17 | 18 => self.lease_end(),
            19..=22 => self.claim(),
            23..=25 => self.forgetting(),
            26 => self.deletion(),
            27 => self.confirmation(),
            28 => self.log_start(),
            _ => Some(Command::ReserveProducerIds(self.node().id)),
        }
    }

    fn node(&mut self) -> Node {
        let at = self.chance.below(NODES);
        self.nodes[at].clone()
    }

    /// A node starts again and says so; at times one that is long over.
    fn registration(&mut self) -> Command {
        if self.chance.one_in(6)
            && let Some(past) = self.chance.pick(&self.lives)
        {
            return Command::RegisterNode(past);
        }
        let at = self.chance.below(NODES);
        self.lives.push(self.nodes[at].clone());
        self.nodes[at].boot.0 += 1;
        Command::RegisterNode(self.nodes[at].clone())
    }

    fn replacement(&mut self) -> Option<Command> {
        let at = self.chance.below(NODES);
        let replaces = self.catalog.nodes.get(&NodeId(at as u32))?.incarnation;
        if self.chance.one_in(4)
            && let Some(node) = self.chance.pick(&self.lives)
        {
            return Some(Command::ReplaceNode { node, replaces });
        }
        self.number += 1;
        self.lives.push(self.nodes[at].clone());
        self.nodes[at].incarnation = Incarnation(self.number);
        self.nodes[at].boot = Boot(1);
        self.copies.retain(|(_, node), _| node.0 != at as u32);
        let node = self.nodes[at].clone();
        Some(Command::ReplaceNode { node, replaces })
    }

    fn place(&mut self) -> Option<(TopicPartition, Partition)> {
        let topics: Vec<_> = self.catalog.topics.values().cloned().collect();
        let topic = self.chance.pick(&topics)?;
        let partition = self.chance.pick(&topic.partitions)?;
        Some((topic.address(partition.index), partition))
    }

    fn renewal(&mut self) -> Option<Command> {
        let (partition, _) = self.place()?;
        let node = self.node();
        self.number += 1;
        let is = Incarnation(self.number);
        let was = self.copies.insert((partition, node.id), is);
        let was = was.unwrap_or(node.incarnation);
        Some(Command::RenewCopies {
            node: node.id,
            incarnation: node.incarnation,
            boot: node.boot,
            copies: vec![RenewedCopy { partition, was, is }],
        })
    }

    /// As it is known, or, now and then, as it was.
    fn member(&mut self, of: Option<(&Partition, TopicPartition)>, node: NodeId) -> Member {
        let past = self.lives.iter().filter(|life| life.id == node);
        let past: Vec<_> = past.map(|life| life.incarnation).collect();
        let known = of.and_then(|(partition, _)| self.catalog.copy(partition, node));
        let own = self.nodes[node.0 as usize].incarnation;
        let incarnation = match known {
            Some(known) if !self.chance.one_in(12) => known.incarnation,
            Some(_) => self.chance.pick(&past).unwrap_or(own),
            None if self.chance.one_in(12) => self.chance.pick(&past).unwrap_or(own),
            None => own,
        };
        Member { node, incarnation }
    }

    /// Some nodes; now and then one of them twice.
    fn some(&mut self, least: usize, of: Option<(&Partition, TopicPartition)>) -> Vec<Member> {
        let count = least + self.chance.below(4 - least);
        let mut left: Vec<_> = (0..NODES as u32).map(NodeId).collect();
        let mut some = Vec::new();
        for _ in 0..count {
            let at = self.chance.below(left.len());
            let node = if self.chance.one_in(60) {
                left[at]
            } else {
                left.swap_remove(at)
            };
            let member = self.member(of, node);
            some.push(member);
        }
        some
    }

    fn leader(&mut self, members: &[Member]) -> Leader {
        let any = self.member(None, NodeId(0));
        let member = self.chance.pick(members).unwrap_or(any);
        let known = self.catalog.nodes.get(&member.node);
        let boot = known.map_or(Boot(1), |known| known.boot);
        let boot = if self.chance.one_in(12) {
            Boot(boot.0 - 1)
        } else {
            boot
        };
        Leader {
            node: member.node,
            incarnation: member.incarnation,
            boot,
        }
    }

    fn creation(&mut self) -> Option<Command> {
        if self.catalog.topics.len() >= TOPICS_MAX && !self.chance.one_in(8) {
            return None;
        }
        let mut partitions = Vec::new();
        for _ in 0..2 {
            let least = usize::from(!self.chance.one_in(8)) + 1;
            let members = self.some(least, None);
            let leader = self.leader(&members);
            partitions.push(NewPartition { leader, members });
        }
        self.number += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.number.to_le_bytes());
        let names = ["a.b", "a_b", "c", "d"];
        let name = self.chance.pick(&names).expect("there are some");
        Some(Command::CreateTopic(NewTopic {
            name: TopicName::parse(name).unwrap(),
            id: TopicId(id),
            replication_factor: 3,
            quorum: 2,
            has_table: self.chance.one_in(2),
            partitions,
            overrides: BTreeMap::new(),
            internal: false,
        }))
    }

    fn seal(&mut self) -> Option<Command> {
        let (at, partition) = self.place()?;
        let topic = self.catalog.topic_by_id(at.topic)?.clone();
        let least = usize::from(!self.chance.one_in(8)) + 1;
        let members = self.some(least, Some((&partition, at)));
        let least = usize::from(!self.chance.one_in(8)) + 1;
        let holders = self.some(least, Some((&partition, at)));
        let leader = self.leader(&members);
        let mut leases = topic.leases(&partition);
        leases.retain(|_| !self.chance.one_in(3));
        let end = partition.start.0 + self.chance.below(4) as u64;
        let end = Offset(if self.chance.one_in(30) { end / 2 } else { end });
        let times = self.chance.one_in(2).then_some(Times {
            min: floe_model::Timestamp(end.0 as i64 - 2),
            max: floe_model::Timestamp(end.0 as i64),
        });
        Some(Command::SealAndOpen(vec![Transition {
            partition: at,
            epoch: partition.epoch,
            end,
            lossy: self.chance.one_in(10),
            holders,
            times,
            leases,
            leader,
            members,
        }]))
    }

    fn epoch(&mut self, partition: &Partition) -> Option<LeaderEpoch> {
        if self.chance.one_in(10) {
            return Some(partition.epoch);
        }
        let sealed = self.chance.pick(&partition.sealed)?;
        Some(sealed.epoch)
    }

    fn lease_end(&mut self) -> Option<Command> {
        let (at, partition) = self.place()?;
        let (epoch, _) = self.chance.pick(&partition.leases)?;
        Some(Command::EndLeases(vec![(at, epoch)]))
    }

    fn claim(&mut self) -> Option<Command> {
        let (at, partition) = self.place()?;
        let epoch = self.epoch(&partition)?;
        let node = self.node().id;
        Some(Command::AddHolders(vec![Claim {
            member: self.member(Some((&partition, at)), node),
            partition: at,
            epoch,
            as_of: self.catalog.index,
        }]))
    }

    fn forgetting(&mut self) -> Option<Command> {
        let (partition, known) = self.place()?;
        let epoch = self.epoch(&known)?;
        let node = self.node().id;
        Some(Command::Forget(vec![Forgetting {
            node,
            partition,
            epoch,
        }]))
    }

    fn deletion(&mut self) -> Option<Command> {
        let is_few = self.catalog.topics.len() < TOPICS_MAX;
        if is_few && !self.chance.one_in(8) {
            return None;
        }
        let (at, _) = self.place()?;
        Some(Command::DeleteTopic(at.topic))
    }

    /// Only who was there when it was deleted says so.
    fn confirmation(&mut self) -> Option<Command> {
        let topics: Vec<_> = self.catalog.tombstones.keys().copied().collect();
        let node = self.node().id;
        if self.away[node.0 as usize].0 {
            return None;
        }
        (!topics.is_empty()).then_some(Command::ConfirmDeleted { node, topics })
    }

    fn log_start(&mut self) -> Option<Command> {
        let (at, partition) = self.place()?;
        let back = self.chance.below(20) as u64;
        let to = Offset(partition.start.0.saturating_sub(back));
        Some(Command::AdvanceLogStart(vec![(at, to)]))
    }
}

fn kind(command: &Command) -> &'static str {
    match command {
        Command::RegisterNode(_) => "register-node",
        Command::ReplaceNode { .. } => "replace-node",
        Command::RenewCopies { .. } => "renew-copies",
        Command::CreateTopic(_) => "create-topic",
        Command::SealAndOpen(_) => "seal-and-open",
        Command::EndLeases(_) => "end-leases",
        Command::AddHolders(_) => "add-holders",
        Command::Forget(_) => "forget",
        Command::DeleteTopic(_) => "delete-topic",
        Command::ConfirmDeleted { .. } => "confirm-deleted",
        Command::AdvanceLogStart(_) => "advance-log-start",
        Command::ReserveProducerIds(_) => "reserve-producer-ids",
    }
}
