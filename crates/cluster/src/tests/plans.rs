//! Plans, carried out by ideal controllers on a catalog whose nodes end, restart, lose their data and come back.

use floe_replication::replica::Why;
use floe_replication::seal::{Command as Ask, Event};

use super::random::Chance;
use super::three::{accepted, registered};
use super::*;
use crate::placement::{Factor, Load, place};
use crate::plan::{Budget, Cause, Facts, Plan, Turn, commands, forgets, make};

const PLENTY: Budget = Budget {
    followers: usize::MAX,
    moves: usize::MAX,
};
const NOTHING: Budget = Budget {
    followers: 0,
    moves: 0,
};

struct Cluster {
    catalog: Catalog,
    facts: Facts,
    number: u64,
}

impl Cluster {
    fn new(nodes: u32, partitions: u32, copies: u32) -> Self {
        let mut catalog = Catalog::default();
        for node in 1..=nodes {
            let node = registered(node, u64::from(node), 1);
            accepted(&mut catalog, &Command::RegisterNode(node));
        }
        let places = place(&catalog, partitions, Factor::Copies(copies)).unwrap();
        let partitions = places
            .iter()
            .map(|place| place.partition(&catalog, |_| true).unwrap());
        let topic = NewTopic {
            name: TopicName::parse("t").unwrap(),
            id: TopicId([1; 16]),
            replication_factor: copies,
            quorum: floe_replication::quorum(copies as usize) as u32,
            has_table: true,
            partitions: partitions.collect(),
            overrides: BTreeMap::new(),
            internal: false,
        };
        accepted(&mut catalog, &Command::CreateTopic(topic));
        let alive = catalog.nodes.values().map(|node| (node.id, node.boot));
        let facts = Facts {
            alive: alive.collect(),
            ..Facts::default()
        };
        Self {
            catalog,
            facts,
            number: 100,
        }
    }

    fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.catalog.topics["t"].partitions.iter()
    }

    fn kill(&mut self, node: u32) {
        self.facts.alive.remove(&NodeId(node));
    }

    fn start(&mut self, node: u32) {
        let mut known = self.catalog.nodes[&NodeId(node)].clone();
        known.boot = Boot(known.boot.0 + 1);
        self.facts.alive.insert(known.id, known.boot);
        accepted(&mut self.catalog, &Command::RegisterNode(known));
    }

    fn replace(&mut self, node: u32) {
        self.number += 1;
        let mut known = self.catalog.nodes[&NodeId(node)].clone();
        let replaces = known.incarnation;
        known.incarnation = Incarnation(self.number);
        known.boot = Boot(1);
        self.facts.alive.insert(known.id, known.boot);
        let node = known;
        accepted(&mut self.catalog, &Command::ReplaceNode { node, replaces });
    }

    fn damage(&mut self, node: u32, partition: u32) {
        self.number += 1;
        let known = self.catalog.nodes[&NodeId(node)].clone();
        let partition = at(1, partition);
        let copy = self.catalog.partition(partition).unwrap();
        let was = self.catalog.copy(copy, known.id).unwrap().incarnation;
        let is = Incarnation(self.number);
        let renew = Command::RenewCopies {
            node: known.id,
            incarnation: known.incarnation,
            boot: known.boot,
            copies: vec![RenewedCopy { partition, was, is }],
        };
        accepted(&mut self.catalog, &renew);
    }

    fn plan(&self, budget: Budget) -> Plan {
        let plan = make(&self.catalog, &self.facts, budget);
        assert!(plan.turns.is_sorted_by_key(|turn| turn.cause));
        let count =
            |is: &dyn Fn(Cause) -> bool| plan.turns.iter().filter(|turn| is(turn.cause)).count();
        let moves = count(&|cause| cause == Cause::NotPreferred);
        let urgent = count(&Cause::is_urgent);
        assert!(moves <= budget.moves);
        assert!(plan.turns.len() - moves - urgent <= budget.followers);
        assert!(urgent == 0 || urgent == plan.turns.len());
        plan
    }

    /// What a controller makes of a turn when every live member answers at once.
    fn carry_out(&self, turn: &Turn) -> Transition {
        assert!(turn.next.len() >= turn.quorum, "{turn:?}");
        assert!(turn.next.contains(&turn.wished));
        let partition = self.catalog.partition(turn.partition).unwrap();
        let answers = |member: Member| {
            self.facts.alive.contains_key(&member.node)
                && self.catalog.is_current(partition, member)
        };
        let end = turn.start.plus(3);
        let (mut seal, mut todo) = turn.begin().unwrap();
        let mut waits = false;
        loop {
            let Some(ask) = todo.pop() else {
                assert!(
                    std::mem::take(&mut waits),
                    "{turn:?} does not come to an end"
                );
                todo = seal.step(Event::Waited);
                continue;
            };
            let event = match ask {
                Ask::Fence(member) => answers(member).then_some(Event::Fenced(member, end)),
                Ask::Copy { to, end, .. } => answers(to).then_some(Event::Holds(to, end)),
                Ask::Wait => {
                    waits = true;
                    None
                }
                Ask::Open(opening) => {
                    let made = turn.transition(&self.catalog, &opening, None);
                    return made.unwrap();
                }
            };
            todo.extend(event.into_iter().flat_map(|event| seal.step(event)));
        }
    }

    fn round(&mut self, budget: Budget) -> Plan {
        let plan = self.plan(budget);
        let transitions: Vec<_> = plan.turns.iter().map(|turn| self.carry_out(turn)).collect();
        for command in commands(&transitions) {
            accepted(&mut self.catalog, &command);
        }
        plan
    }

    /// Until nothing is left to do.
    fn settle(&mut self, budget: Budget) -> usize {
        for rounds in 0..10_000 {
            if self.round(budget).turns.is_empty() {
                return rounds;
            }
        }
        panic!("the plans do not come to an end");
    }

    fn is_whole(&self, partition: u32) -> bool {
        let partition = self.catalog.partition(at(1, partition)).unwrap();
        let mut replicas = partition.replicas.iter();
        replicas.all(|member| self.catalog.is_current(partition, *member))
    }

    fn is_well(&self) {
        for partition in self.partitions() {
            let is_current = |member: &Member| self.catalog.is_current(partition, *member);
            assert!(partition.replicas.iter().all(is_current), "{partition:?}");
            assert_eq!(partition.leader.member(), partition.replicas[0]);
            assert!(self.catalog.is_running(partition.leader));
            assert_eq!(
                partition.replicas.len(),
                self.catalog.topics["t"].replication_factor as usize
            );
        }
    }

    fn led(&self) -> Vec<usize> {
        let load = Load::of(&self.catalog);
        let nodes = self.catalog.nodes.keys();
        nodes.map(|node| load.get(*node).led).collect()
    }
}

#[test]
fn nothing_is_to_be_done_while_nothing_is_wrong() {
    let mut cluster = Cluster::new(3, 30, 3);
    let plan = cluster.round(PLENTY);
    assert!(plan.turns.is_empty() && plan.stuck.is_empty());
    cluster.is_well();
}

#[test]
fn a_dead_nodes_partitions_go_to_the_others_evenly_and_at_once_and_come_back_gently() {
    let mut cluster = Cluster::new(3, 3_000, 3);
    cluster.kill(2);
    let plan = cluster.round(NOTHING);
    assert_eq!(plan.turns.len(), 1_000);
    assert!(
        plan.turns
            .iter()
            .all(|turn| turn.cause == Cause::LeaderGone)
    );
    assert_eq!(cluster.led(), [1_500, 0, 1_500]);
    assert!(
        cluster.round(PLENTY).turns.is_empty(),
        "it is still a member"
    );
    cluster.start(2);
    cluster.facts.behind = (0..3_000).map(|n| (at(1, n), NodeId(2))).collect();
    assert!(
        cluster.round(PLENTY).turns.is_empty(),
        "not before it kept up"
    );
    cluster.facts.behind.clear();
    let gently = Budget {
        followers: 0,
        moves: 10,
    };
    assert_eq!(cluster.settle(gently), 100);
    cluster.is_well();
}

#[test]
fn two_of_three_gone_is_said_and_nothing_opens() {
    let mut cluster = Cluster::new(3, 3, 3);
    cluster.kill(1);
    cluster.kill(2);
    let plan = cluster.round(PLENTY);
    assert!(plan.turns.is_empty());
    assert_eq!(plan.stuck.len(), 2);
    assert_eq!(
        plan.stuck[0].to_string(),
        format!("{}: 1 of its members are alive, 2 are needed", at(1, 0))
    );
    cluster.start(1);
    cluster.settle(PLENTY);
    cluster.start(2);
    cluster.settle(PLENTY);
    cluster.is_well();
}

#[test]
fn a_restarted_leader_and_a_fenced_one_are_urgent() {
    let mut cluster = Cluster::new(3, 3, 3);
    cluster.start(1);
    let plan = cluster.plan(NOTHING);
    let causes: Vec<_> = plan.turns.iter().map(|turn| turn.cause).collect();
    assert_eq!(causes, [Cause::LeaderOver]);
    assert_eq!(
        plan.turns[0].wished.node,
        NodeId(1),
        "it may lead the next one"
    );
    cluster.settle(NOTHING);
    let epoch = cluster.catalog.partition(at(1, 1)).unwrap().epoch;
    let asked = |epoch| (epoch, Why::Fenced(LeaderEpoch(9)));
    cluster.facts.asked = BTreeMap::from([(at(1, 1), asked(epoch.next()))]);
    assert!(
        cluster.plan(NOTHING).turns.is_empty(),
        "of another generation"
    );
    cluster.facts.asked = BTreeMap::from([(at(1, 1), asked(epoch))]);
    let plan = cluster.plan(NOTHING);
    assert_eq!(plan.turns[0].cause, Cause::LeaderStuck);
    cluster.facts.under_way.insert(at(1, 1));
    assert!(cluster.plan(NOTHING).turns.is_empty(), "once");
}

#[test]
fn one_that_kept_up_leads_before_one_that_should_and_did_not() {
    let mut cluster = Cluster::new(3, 1, 3);
    cluster.kill(1);
    for behind in [2, 3] {
        cluster.facts.behind = [(at(1, 0), NodeId(behind))].into();
        let plan = cluster.plan(NOTHING);
        assert_eq!(plan.turns[0].wished.node, NodeId(5 - behind));
    }
}

#[test]
fn a_node_with_other_data_is_named_afresh_and_a_process_that_is_not_registered_does_not_lead() {
    let mut cluster = Cluster::new(3, 3, 3);
    cluster.replace(2);
    let plan = cluster.round(PLENTY);
    assert_eq!(plan.turns.len(), 1, "leaders first");
    assert_eq!(plan.turns[0].cause, Cause::LeaderOver);
    assert_ne!(plan.turns[0].wished.node, NodeId(2));
    let plan = cluster.round(PLENTY);
    let causes: Vec<_> = plan.turns.iter().map(|turn| turn.cause).collect();
    let followers = [Cause::FollowerOver; 2];
    assert_eq!(causes, [&followers[..], &[Cause::NotPreferred]].concat());
    cluster.settle(PLENTY);
    cluster.is_well();
    cluster.kill(1);
    cluster.facts.alive.insert(NodeId(3), Boot(77));
    for turn in cluster.plan(NOTHING).turns {
        assert_eq!(turn.wished.node, NodeId(2));
    }
}

#[test]
fn a_damaged_copy_that_has_no_new_life_yet_is_left_out_and_taken_in_again() {
    let mut cluster = Cluster::new(3, 1, 3);
    let partition = cluster.catalog.partition(at(1, 0)).unwrap();
    let (epoch, damaged) = (partition.epoch, partition.replicas[2]);
    cluster.facts.asked = BTreeMap::from([(at(1, 0), (epoch, Why::Damaged(damaged)))]);
    let plan = cluster.round(PLENTY);
    assert_eq!(plan.turns[0].cause, Cause::FollowerOver);
    assert_eq!(plan.turns[0].next.len(), 2);
    cluster.damage(damaged.node.0, 0);
    let plan = cluster.round(PLENTY);
    assert_eq!(plan.turns[0].cause, Cause::FewCopies);
    cluster.is_well();
}

#[test]
fn entries_hold_at_most_a_thousand_transitions() {
    let mut cluster = Cluster::new(3, 4_000, 3);
    cluster.kill(1);
    let plan = cluster.plan(NOTHING);
    let transitions: Vec<_> = plan
        .turns
        .iter()
        .map(|turn| cluster.carry_out(turn))
        .collect();
    let sizes: Vec<_> = commands(&transitions)
        .iter()
        .map(|command| match command {
            Command::SealAndOpen(list) => list.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), plan.turns.len());
    assert!(plan.turns.len() > 1_000 && sizes[0] == 1_000 && sizes.len() == 2);
}

#[test]
fn who_left_forgets_once_all_members_hold_what_was_sealed() {
    let mut cluster = Cluster::new(4, 1, 3);
    let partition = cluster.catalog.partition(at(1, 0)).unwrap().clone();
    let out = partition.replicas[2];
    let outside = (1..=4)
        .map(NodeId)
        .find(|node| partition.replicas.iter().all(|member| member.node != *node));
    let joining = cluster.catalog.copy(&partition, outside.unwrap()).unwrap();
    let moved = Transition {
        partition: at(1, 0),
        epoch: partition.epoch,
        end: Offset(9),
        lossy: false,
        holders: partition.replicas.clone(),
        times: None,
        leases: Vec::new(),
        leader: partition.leader,
        members: vec![partition.replicas[0], partition.replicas[1], joining],
    };
    accepted(&mut cluster.catalog, &Command::SealAndOpen(vec![moved]));
    assert_eq!(forgets(&cluster.catalog), []);
    let copied = Command::AddHolders(vec![Claim {
        member: joining,
        partition: at(1, 0),
        epoch: partition.epoch,
        as_of: cluster.catalog.index,
    }]);
    accepted(&mut cluster.catalog, &copied);
    let wanted = Command::Forget(vec![Forgetting {
        node: out.node,
        partition: at(1, 0),
        epoch: partition.epoch,
    }]);
    assert_eq!(forgets(&cluster.catalog), std::slice::from_ref(&wanted));
    accepted(&mut cluster.catalog, &wanted);
    assert_eq!(forgets(&cluster.catalog), []);
}

#[test]
fn whatever_happens_to_nodes_plans_are_accepted_and_end_well() {
    for seed in 0..60 {
        let mut chance = Chance::new(seed);
        let nodes = 3 + seed as u32 % 3;
        let mut cluster = Cluster::new(nodes, 20, 3);
        for _ in 0..60 {
            let node = 1 + chance.below(nodes as usize) as u32;
            let is_up = cluster.facts.alive.contains_key(&NodeId(node));
            match chance.below(6) {
                0 => cluster.kill(node),
                1 | 2 if !is_up => cluster.start(node),
                3 if is_up => cluster.start(node),
                // What loses more than q-1 copies at once needs an operator.
                4 if is_up => {
                    let partition = chance.below(20) as u32;
                    if cluster.is_whole(partition) {
                        cluster.damage(node, partition);
                    }
                }
                5 if (0..20).all(|partition| cluster.is_whole(partition)) => cluster.replace(node),
                _ => {}
            }
            let lagging = (at(1, chance.below(20) as u32), NodeId(node));
            if !cluster.facts.behind.remove(&lagging) {
                cluster.facts.behind.insert(lagging);
            }
            let budget = Budget {
                followers: chance.below(4),
                moves: chance.below(2),
            };
            cluster.round(budget);
        }
        for node in 1..=nodes {
            cluster.start(node);
        }
        cluster.facts.behind.clear();
        cluster.settle(Budget {
            followers: 3,
            moves: 1,
        });
        cluster.is_well();
        let led = cluster.led();
        assert_eq!(led.iter().sum::<usize>(), 20);
        assert!(nodes > 3 || *led.iter().max().unwrap() <= 7, "{led:?}");
    }
}
