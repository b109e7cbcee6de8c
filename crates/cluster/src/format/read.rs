//! From messages to values; what is absent gets the meaning that it had for the release that left it out.

use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, Timestamp, TopicId, TopicName,
    TopicPartition,
};
use floe_replication::{Leader, Member, Sealed};

use super::Undecodable;
use super::messages;
use super::messages::record::Command as Kind;
use crate::catalog::Facts;
use crate::{
    Claim, Command, Endpoint, Forgetting, NewPartition, NewTopic, Node, Partition, RenewedCopy,
    Times, Topic, Transition,
};

pub(super) fn command(kind: Kind) -> Result<Command, Undecodable> {
    Ok(match kind {
        Kind::RegisterNode(node) => Command::RegisterNode(node_of(node)?),
        Kind::ReplaceNode(replace) => Command::ReplaceNode {
            node: node_of(replace.node.ok_or(Undecodable::Field("node"))?)?,
            replaces: Incarnation(replace.replaces),
        },
        Kind::RenewCopies(renew) => Command::RenewCopies {
            node: NodeId(renew.node),
            incarnation: Incarnation(renew.incarnation),
            boot: Boot(renew.boot),
            copies: all(renew.copies, |copy| {
                Ok(RenewedCopy {
                    partition: address(copy.partition)?,
                    was: Incarnation(copy.was),
                    is: Incarnation(copy.is),
                })
            })?,
        },
        Kind::CreateTopic(topic) => Command::CreateTopic(new_topic(topic)?),
        Kind::SealAndOpen(list) => Command::SealAndOpen(all(list.transitions, transition)?),
        Kind::EndLeases(list) => Command::EndLeases(all(list.leases, |lease| {
            Ok((address(lease.partition)?, LeaderEpoch(lease.epoch)))
        })?),
        Kind::AddHolders(list) => Command::AddHolders(all(list.claims, |claim| {
            Ok(Claim {
                member: member(claim.member.ok_or(Undecodable::Field("member"))?),
                partition: address(claim.partition)?,
                epoch: LeaderEpoch(claim.epoch),
                as_of: claim.as_of,
            })
        })?),
        Kind::Forget(list) => Command::Forget(all(list.list, |forgetting| {
            Ok(Forgetting {
                node: NodeId(forgetting.node),
                partition: address(forgetting.partition)?,
                epoch: LeaderEpoch(forgetting.epoch),
            })
        })?),
        Kind::DeleteTopic(topic) => Command::DeleteTopic(id(&topic.id)?),
        Kind::ConfirmDeleted(confirmed) => Command::ConfirmDeleted {
            node: NodeId(confirmed.node),
            topics: all(confirmed.topics, |topic| id(&topic))?,
        },
        Kind::AdvanceLogStart(list) => Command::AdvanceLogStart(all(list.starts, |start| {
            Ok((address(start.partition)?, Offset(start.to)))
        })?),
        Kind::ReserveProducerIds(reserve) => Command::ReserveProducerIds(NodeId(reserve.node)),
    })
}

fn all<M, T>(
    list: Vec<M>,
    read: impl Fn(M) -> Result<T, Undecodable>,
) -> Result<Vec<T>, Undecodable> {
    list.into_iter().map(read).collect()
}

/// Version 1 had topics of one copy only.
fn or_one(count: u32) -> u32 {
    count.max(1)
}

fn new_topic(topic: messages::CreateTopic) -> Result<NewTopic, Undecodable> {
    Ok(NewTopic {
        name: name(&topic.name)?,
        id: id(&topic.id)?,
        replication_factor: or_one(topic.replication_factor),
        quorum: or_one(topic.quorum),
        has_table: topic.has_table.unwrap_or(topic.internal),
        partitions: all(topic.partitions, |partition| {
            Ok(NewPartition {
                leader: leader(partition.leader)?,
                members: members(&partition.members),
            })
        })?,
        overrides: topic.overrides,
        internal: topic.internal,
    })
}

fn transition(transition: messages::Transition) -> Result<Transition, Undecodable> {
    Ok(Transition {
        partition: address(transition.partition)?,
        epoch: LeaderEpoch(transition.epoch),
        end: Offset(transition.end),
        lossy: transition.lossy,
        holders: members(&transition.holders),
        times: transition.times.map(times),
        leases: all(transition.leases, lease)?,
        leader: leader(transition.leader)?,
        members: members(&transition.members),
    })
}

pub(super) fn topic_of(topic: messages::Topic) -> Result<Topic, Undecodable> {
    let partitions = topic.partitions.into_iter().zip(0..);
    Ok(Topic {
        name: name(&topic.name)?,
        id: id(&topic.id)?,
        replication_factor: or_one(topic.replication_factor),
        quorum: or_one(topic.quorum),
        has_table: topic.has_table.unwrap_or(topic.internal),
        partitions: partitions
            .map(|(partition, place)| partition_of(PartitionIndex(place), partition))
            .collect::<Result<_, Undecodable>>()?,
        overrides: topic.overrides,
        internal: topic.internal,
    })
}

fn partition_of(
    index: PartitionIndex,
    partition: messages::Partition,
) -> Result<Partition, Undecodable> {
    let facts = partition.sealed.iter().filter_map(|sealed| {
        let facts = Facts {
            times: sealed.times.map(times),
            let_go: sealed
                .let_go
                .iter()
                .map(|let_go| (NodeId(let_go.node), let_go.index))
                .collect(),
        };
        (facts != Facts::default()).then_some((LeaderEpoch(sealed.epoch), facts))
    });
    let copies = members(&partition.copies).into_iter();
    Ok(Partition {
        index,
        epoch: LeaderEpoch(partition.epoch),
        start: Offset(partition.start),
        leader: leader(partition.leader)?,
        replicas: members(&partition.members),
        leases: all(partition.leases, lease)?,
        copies: copies.map(|copy| (copy.node, copy.incarnation)).collect(),
        log_start: Offset(partition.log_start),
        facts: facts.collect(),
        sealed: partition.sealed.iter().map(sealed_of).collect(),
    })
}

fn sealed_of(sealed: &messages::Sealed) -> Sealed {
    Sealed {
        epoch: LeaderEpoch(sealed.epoch),
        start: Offset(sealed.start),
        end: Offset(sealed.end),
        lossy: sealed.lossy,
        holders: members(&sealed.holders),
    }
}

fn times(times: messages::Times) -> Times {
    Times {
        min: Timestamp(times.min),
        max: Timestamp(times.max),
    }
}

fn lease(lease: messages::Lease) -> Result<(LeaderEpoch, Member), Undecodable> {
    let leader = lease.leader.ok_or(Undecodable::Field("leader"))?;
    Ok((LeaderEpoch(lease.epoch), member(leader)))
}

pub(super) fn node_of(node: messages::Node) -> Result<Node, Undecodable> {
    Ok(Node {
        id: NodeId(node.id),
        incarnation: Incarnation(node.incarnation),
        boot: Boot(node.boot),
        endpoints: all(node.endpoints, |endpoint| {
            Ok(Endpoint {
                door: endpoint.door,
                host: endpoint.host,
                port: u16::try_from(endpoint.port).map_err(|_| Undecodable::Field("port"))?,
            })
        })?,
        protocol: node.protocol,
    })
}

pub(super) fn id(bytes: &[u8]) -> Result<TopicId, Undecodable> {
    bytes
        .try_into()
        .map(TopicId)
        .map_err(|_| Undecodable::Field("topic id"))
}

pub(super) fn name(text: &str) -> Result<TopicName, Undecodable> {
    TopicName::parse(text).map_err(|_| Undecodable::Field("topic name"))
}

fn address(partition: Option<messages::Address>) -> Result<TopicPartition, Undecodable> {
    let partition = partition.ok_or(Undecodable::Field("partition"))?;
    Ok(TopicPartition {
        topic: id(&partition.topic)?,
        partition: PartitionIndex(partition.partition),
    })
}

pub(super) fn leader(leader: Option<messages::Leader>) -> Result<Leader, Undecodable> {
    let leader = leader.ok_or(Undecodable::Field("leader"))?;
    Ok(Leader {
        node: NodeId(leader.node),
        incarnation: Incarnation(leader.incarnation),
        boot: Boot(leader.boot),
    })
}

pub(super) fn member(member: messages::Member) -> Member {
    Member {
        node: NodeId(member.node),
        incarnation: Incarnation(member.incarnation),
    }
}

pub(super) fn members(list: &[messages::Member]) -> Vec<Member> {
    list.iter().copied().map(member).collect()
}
