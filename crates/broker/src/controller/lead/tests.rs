//! A leader of the catalog among nodes that hang, end, restart and lose their data.

use std::collections::BTreeSet;

use floe_cluster::placement::{Factor, place};
use floe_cluster::{NewTopic, Node};
use floe_model::{Incarnation, Offset, TopicId, TopicName};
use floe_replication::Member;
use floe_replication::message::Ask;

use super::*;
use crate::peers::{Echo, Fenced};

const STEP: Duration = Duration::from_millis(25);
const TOPIC: TopicId = TopicId([9; 16]);

fn node(id: u32, incarnation: u64, boot: u32) -> Node {
    Node {
        id: NodeId(id),
        incarnation: Incarnation(incarnation),
        boot: Boot(boot),
        endpoints: Vec::new(),
        protocol: 1,
    }
}

/// Node 1 leads the catalog.
struct Rig {
    lead: Lead,
    leads: bool,
    catalog: Catalog,
    now: Duration,
    /// Nodes that answer.
    up: BTreeSet<u32>,
    /// One that answers no fence.
    mute: Option<u32>,
    beat: u64,
    /// Epochs that were opened, of all partitions.
    opened: usize,
    told: usize,
}

impl Rig {
    fn new(nodes: u32, partitions: u32, copies: u32) -> Self {
        let mut catalog = Catalog::default();
        for id in 1..=nodes {
            let index = catalog.index + 1;
            catalog.apply(index, Command::RegisterNode(node(id, id.into(), 1)));
        }
        let places = place(&catalog, partitions, Factor::Copies(copies)).unwrap();
        let partitions = places
            .iter()
            .map(|place| place.partition(&catalog, |_| true).unwrap());
        let topic = NewTopic {
            name: TopicName::parse("t").unwrap(),
            id: TOPIC,
            replication_factor: copies,
            quorum: floe_replication::quorum(copies as usize) as u32,
            has_table: false,
            partitions: partitions.collect(),
            overrides: BTreeMap::new(),
            internal: false,
        };
        catalog.apply(catalog.index + 1, Command::CreateTopic(topic));
        let now = Duration::from_secs(50);
        let me = (NodeId(1), Boot(1));
        let mut lead = Lead::new(me, nodes == 1, Times::default(), 77, now);
        for id in 2..=nodes {
            lead.heard(&Heard::Connected(peer(&catalog, id)), now);
        }
        Self {
            lead,
            leads: true,
            catalog,
            now,
            up: (1..=nodes).collect(),
            mute: None,
            beat: 0,
            opened: 0,
            told: 0,
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += STEP;
            if self.beat.is_multiple_of(4) {
                self.hear_beats();
            }
            self.beat += 1;
            self.step();
        }
    }

    fn hear_beats(&mut self) {
        for id in self.up.iter().filter(|id| **id != 1) {
            let heartbeat = Heartbeat {
                number: self.beat,
                sent_at: self.now,
                echo: Some(Echo {
                    number: u64::MAX,
                    held: Duration::ZERO,
                }),
                flush_age: None,
            };
            let said = Heard::Said(peer(&self.catalog, *id), Message::Heartbeat(heartbeat));
            self.lead.heard(&said, self.now);
        }
    }

    fn step(&mut self) {
        loop {
            let mut out = Vec::new();
            self.lead
                .step(self.now, &self.catalog, self.leads, None, &mut out);
            out.retain(|todo| !matches!(todo, Todo::Beat(..)));
            if out.is_empty() {
                return;
            }
            for todo in out {
                self.obey(todo);
            }
        }
    }

    fn obey(&mut self, todo: Todo) {
        match todo {
            Todo::Beat(..) => {}
            Todo::Tell(to, at, Told::FenceAsked(fence)) => {
                self.told += 1;
                let partition = self.catalog.partition(at).unwrap();
                let is_that = self.catalog.copy(partition, to) == Some(fence.to);
                if self.up.contains(&to.0) && self.mute != Some(to.0) && is_that {
                    self.fenced(at, fence.to, fence.ask);
                }
            }
            Todo::Tell(_, _, other) => panic!("all ends are equal: {other:?}"),
            Todo::Propose(command, partitions) => {
                let index = self.catalog.index + 1;
                let applied = self.catalog.apply(index, command);
                assert_eq!(applied.refused, []);
                self.opened += partitions.len();
                self.lead.decided(&partitions);
            }
        }
    }

    fn fenced(&mut self, partition: TopicPartition, from: Member, ask: Ask) {
        let end = Offset(100);
        if from.node == NodeId(1) {
            let said = Said::Fenced { from, ask, end };
            self.lead.said(partition, &said, self.now);
        } else {
            let fenced = Fenced {
                partition,
                from,
                ask,
                end,
            };
            let peer = peer(&self.catalog, from.node.0);
            let said = Heard::Said(peer, Message::Fenced(vec![fenced]));
            self.lead.heard(&said, self.now);
        }
    }

    fn led(&self, id: u32) -> usize {
        let partitions = &self.catalog.topic("t").unwrap().partitions;
        let led = |p: &&floe_cluster::Partition| p.leader.node == NodeId(id);
        partitions.iter().filter(led).count()
    }

    /// Everything is led by a process that runs on a node that is up.
    fn is_led(&self) -> bool {
        let partitions = &self.catalog.topic("t").unwrap().partitions;
        partitions.iter().all(|partition| {
            self.up.contains(&partition.leader.node.0) && self.catalog.is_running(partition.leader)
        })
    }

    fn register(&mut self, command: Command) {
        let applied = self.catalog.apply(self.catalog.index + 1, command);
        assert_eq!(applied.refused, []);
    }
}

fn peer(catalog: &Catalog, id: u32) -> Peer {
    let known = &catalog.nodes[&NodeId(id)];
    Peer {
        node: known.id,
        incarnation: known.incarnation,
        boot: known.boot,
        cluster: None,
    }
}

#[test]
fn what_a_hung_node_led_others_lead_within_a_second_and_only_that() {
    let mut rig = Rig::new(3, 12, 3);
    rig.run(Duration::from_secs(10));
    assert_eq!((rig.opened, rig.led(2)), (0, 4), "all is well");
    rig.up.remove(&2);
    rig.run(Duration::from_millis(900));
    assert!(rig.is_led());
    assert_eq!(rig.opened, 4);
    assert_eq!([1, 3].map(|id| rig.led(id)), [6, 6]);
}

#[test]
fn one_that_does_not_lead_the_catalog_ends_nothing() {
    let mut rig = Rig::new(3, 12, 3);
    rig.leads = false;
    rig.up.remove(&2);
    rig.run(Duration::from_secs(10));
    assert_eq!((rig.opened, rig.told), (0, 0));
    rig.leads = true;
    rig.run(Duration::from_millis(200));
    assert!(rig.is_led(), "it has seen enough to begin at once");
}

#[test]
fn a_node_that_comes_back_gets_back_what_it_should_lead_a_little_at_a_time_and_then_nothing_changes()
 {
    let mut rig = Rig::new(3, 30, 3);
    rig.up.remove(&2);
    rig.run(Duration::from_secs(2));
    assert_eq!((rig.led(2), rig.opened), (0, 10));
    rig.register(Command::RegisterNode(node(2, 2, 2)));
    rig.up.insert(2);
    let back = peer(&rig.catalog, 2);
    rig.lead.heard(&Heard::Connected(back), rig.now);
    rig.run(Duration::from_millis(1_500));
    assert!(rig.led(2) > 0 && rig.led(2) <= 8, "{}", rig.led(2));
    rig.run(Duration::from_secs(10));
    assert_eq!([1, 2, 3].map(|id| rig.led(id)), [10, 10, 10]);
    let settled = rig.opened;
    rig.run(Duration::from_mins(10));
    assert_eq!(rig.opened, settled, "no epoch changes without a cause");
}

#[test]
fn the_next_process_of_a_node_is_given_new_generations_even_if_nobody_missed_the_old_one() {
    let mut rig = Rig::new(3, 12, 3);
    rig.run(Duration::from_secs(2));
    rig.register(Command::RegisterNode(node(2, 2, 2)));
    let next = peer(&rig.catalog, 2);
    rig.lead.heard(&Heard::Connected(next), rig.now);
    rig.run(Duration::from_millis(200));
    assert!(rig.is_led());
    assert_eq!(rig.opened, 4);
}

#[test]
fn with_two_of_three_gone_nothing_is_ended_and_all_is_when_one_returns() {
    let mut rig = Rig::new(3, 12, 3);
    rig.run(Duration::from_secs(2));
    rig.up = [1].into();
    rig.run(Duration::from_secs(10));
    assert_eq!((rig.opened, rig.told), (0, 0));
    rig.up = [1, 3].into();
    rig.run(Duration::from_secs(2));
    assert!(rig.is_led());
}

#[test]
fn a_node_alone_leads_what_its_last_process_led_at_once_and_loses_what_damage_took_by_name() {
    let mut rig = Rig::new(1, 5, 1);
    rig.register(Command::RegisterNode(node(1, 1, 2)));
    rig.lead = Lead::new((NodeId(1), Boot(2)), true, Times::default(), 0, rig.now);
    rig.step();
    assert!(rig.is_led());
    assert_eq!(rig.opened, 5);
    let replace = Command::ReplaceNode {
        node: node(1, 8, 3),
        replaces: Incarnation(1),
    };
    rig.register(replace);
    rig.lead = Lead::new((NodeId(1), Boot(3)), true, Times::default(), 0, rig.now);
    rig.step();
    assert!(rig.is_led());
    let partitions = &rig.catalog.topic("t").unwrap().partitions;
    assert!(partitions.iter().all(|p| p.sealed.iter().any(|s| s.lossy)));
}

#[test]
fn a_turn_whose_members_lives_ended_on_the_way_is_made_anew() {
    let mut rig = Rig::new(3, 3, 3);
    rig.run(Duration::from_secs(2));
    rig.up = [1, 3].into();
    rig.mute = Some(3);
    rig.run(Duration::from_secs(2));
    assert!(rig.told > 0 && rig.opened == 0, "one answer is too few");
    rig.mute = None;
    let replace = Command::ReplaceNode {
        node: node(2, 22, 9),
        replaces: Incarnation(2),
    };
    rig.register(replace);
    rig.up.insert(2);
    let again = peer(&rig.catalog, 2);
    rig.lead.heard(&Heard::Connected(again), rig.now);
    rig.run(Duration::from_secs(5));
    let partitions = &rig.catalog.topic("t").unwrap().partitions;
    let member = Member {
        node: NodeId(2),
        incarnation: Incarnation(22),
    };
    assert!(partitions.iter().all(|p| p.replicas.contains(&member)));
}
