//! Every layout the catalog persists: the command in an entry, the snapshot, the descriptor stored with a generation's data.
//!
//! ```text
//! entry      {index, term} by the log's stream, then Record{version 1, one of its commands}
//! snapshot   Snapshot{version 1, index, nodes, topics, tombstones, ...}
//! descriptor Descriptor{version 1, leader, members}: lets an offline tool rebuild a lost catalog
//! ```
//! Protocol Buffers (proto3), ids as fixed bytes: fields can be added, and release N reads what N-1 wrote. A version above the one
//! here, an unknown command or an id of another length is [`Undecodable`], never guessed.

mod messages;

use std::collections::BTreeMap;

use bytes::Bytes;
use floe_model::{
    Boot, Incarnation, LeaderEpoch, NodeId, Offset, PartitionIndex, TopicId, TopicName,
    TopicPartition,
};
use floe_replication::{Leader, Member, Sealed};
use prost::Message as _;

use crate::{
    Catalog, Command, Endpoint, NewPartition, Node, Partition, Tombstone, Topic, Transition,
};
use messages::record::Command as Kind;

/// Version of every message here.
pub const VERSION: u32 = 1;

/// Bytes that this release cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Not the layout.
    #[error("catalog record is damaged: {0}")]
    Bytes(#[from] prost::DecodeError),
    /// Written by a newer release.
    #[error(
        "catalog record has version {found}; this release reads up to {VERSION}: use a newer release"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// A command this release does not know.
    #[error("catalog record holds a command of a newer release; use a newer release")]
    Command,
    /// A field has a value it cannot have.
    #[error("catalog record: {0} is not valid")]
    Field(&'static str),
}

/// Draws a command.
pub fn encode(command: &Command) -> Bytes {
    let record = messages::Record {
        version: VERSION,
        command: Some(kind_of(command)),
    };
    record.encode_to_vec().into()
}

/// Reads a command.
pub fn decode(bytes: &[u8]) -> Result<Command, Undecodable> {
    let record = messages::Record::decode(bytes)?;
    check(record.version)?;
    command_of(record.command.ok_or(Undecodable::Command)?)
}

/// Draws what is stored with a generation's data.
pub fn encode_descriptor(leader: Leader, members: &[Member]) -> Bytes {
    let descriptor = messages::Descriptor {
        version: VERSION,
        leader: Some(leader.into()),
        members: list(members),
    };
    descriptor.encode_to_vec().into()
}

/// Reads what is stored with a generation's data.
pub fn decode_descriptor(bytes: &[u8]) -> Result<(Leader, Vec<Member>), Undecodable> {
    let descriptor = messages::Descriptor::decode(bytes)?;
    check(descriptor.version)?;
    Ok((leader(descriptor.leader)?, members(&descriptor.members)))
}

/// Draws the whole catalog.
pub fn encode_snapshot(catalog: &Catalog) -> Bytes {
    let snapshot = messages::Snapshot {
        version: VERSION,
        index: catalog.index,
        nodes: catalog.nodes.values().map(Into::into).collect(),
        topics: catalog
            .topics
            .values()
            .map(|topic| (&**topic).into())
            .collect(),
        tombstones: catalog
            .tombstones
            .iter()
            .map(|(id, tombstone)| messages::Tombstone {
                id: id.0.to_vec(),
                name: tombstone.name.to_string(),
                partitions: tombstone.partitions,
                waiting: tombstone.waiting.iter().map(|node| node.0).collect(),
            })
            .collect(),
        next_producer_id: catalog.next_producer_id,
        last_epochs: catalog
            .last_epochs
            .iter()
            .map(|(name, epoch)| (name.to_string(), epoch.0))
            .collect(),
        epoch_floor: catalog.epoch_floor.map(|epoch| epoch.0),
    };
    snapshot.encode_to_vec().into()
}

/// Reads a whole catalog.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Catalog, Undecodable> {
    let snapshot = messages::Snapshot::decode(bytes)?;
    check(snapshot.version)?;
    let mut catalog = Catalog {
        index: snapshot.index,
        next_producer_id: snapshot.next_producer_id,
        epoch_floor: snapshot.epoch_floor.map(LeaderEpoch),
        ..Catalog::default()
    };
    for node in snapshot.nodes {
        let node = node_of(node)?;
        catalog.nodes.insert(node.id, node);
    }
    for topic in snapshot.topics {
        catalog.insert(topic_of(topic)?);
    }
    for tombstone in snapshot.tombstones {
        let value = Tombstone {
            name: name(&tombstone.name)?,
            partitions: tombstone.partitions,
            waiting: tombstone.waiting.into_iter().map(NodeId).collect(),
        };
        catalog.tombstones.insert(id(&tombstone.id)?, value);
    }
    for (text, epoch) in snapshot.last_epochs {
        catalog.last_epochs.insert(name(&text)?, LeaderEpoch(epoch));
    }
    Ok(catalog)
}

fn check(version: u32) -> Result<(), Undecodable> {
    if version == 0 || version > VERSION {
        return Err(Undecodable::Version { found: version });
    }
    Ok(())
}

fn kind_of(command: &Command) -> Kind {
    match command {
        Command::RegisterNode(node) => Kind::RegisterNode(node.into()),
        Command::CreateTopic {
            name,
            id,
            partitions,
            overrides,
            internal,
        } => Kind::CreateTopic(messages::CreateTopic {
            name: name.to_string(),
            id: id.0.to_vec(),
            partitions: partitions
                .iter()
                .map(|partition| messages::NewPartition {
                    leader: Some(partition.leader.into()),
                    members: list(&partition.members),
                })
                .collect(),
            overrides: overrides.clone(),
            internal: *internal,
        }),
        Command::SealAndOpen(transitions) => Kind::SealAndOpen(messages::SealAndOpen {
            transitions: transitions.iter().map(Into::into).collect(),
        }),
        Command::DeleteTopic(id) => Kind::DeleteTopic(messages::DeleteTopic { id: id.0.to_vec() }),
        Command::ConfirmDeleted { node, topics } => {
            Kind::ConfirmDeleted(messages::ConfirmDeleted {
                node: node.0,
                topics: topics.iter().map(|id| id.0.to_vec()).collect(),
            })
        }
        Command::AdvanceLogStart(starts) => Kind::AdvanceLogStart(messages::AdvanceLogStart {
            starts: starts
                .iter()
                .map(|(partition, to)| messages::LogStart {
                    partition: Some(partition.into()),
                    to: to.0,
                })
                .collect(),
        }),
        Command::ReserveProducerIds(node) => {
            Kind::ReserveProducerIds(messages::ReserveProducerIds { node: node.0 })
        }
    }
}

fn command_of(kind: Kind) -> Result<Command, Undecodable> {
    Ok(match kind {
        Kind::RegisterNode(node) => Command::RegisterNode(node_of(node)?),
        Kind::CreateTopic(topic) => Command::CreateTopic {
            name: name(&topic.name)?,
            id: id(&topic.id)?,
            partitions: topic
                .partitions
                .into_iter()
                .map(|partition| {
                    Ok(NewPartition {
                        leader: leader(partition.leader)?,
                        members: members(&partition.members),
                    })
                })
                .collect::<Result<_, Undecodable>>()?,
            overrides: topic.overrides,
            internal: topic.internal,
        },
        Kind::SealAndOpen(list) => Command::SealAndOpen(
            list.transitions
                .into_iter()
                .map(transition_of)
                .collect::<Result<_, _>>()?,
        ),
        Kind::DeleteTopic(topic) => Command::DeleteTopic(id(&topic.id)?),
        Kind::ConfirmDeleted(confirmed) => Command::ConfirmDeleted {
            node: NodeId(confirmed.node),
            topics: confirmed
                .topics
                .iter()
                .map(|topic| id(topic))
                .collect::<Result<_, _>>()?,
        },
        Kind::AdvanceLogStart(list) => Command::AdvanceLogStart(
            list.starts
                .into_iter()
                .map(|start| Ok((address(start.partition)?, Offset(start.to))))
                .collect::<Result<_, Undecodable>>()?,
        ),
        Kind::ReserveProducerIds(reserve) => Command::ReserveProducerIds(NodeId(reserve.node)),
    })
}

fn transition_of(transition: messages::Transition) -> Result<Transition, Undecodable> {
    Ok(Transition {
        partition: address(transition.partition)?,
        epoch: LeaderEpoch(transition.epoch),
        end: Offset(transition.end),
        lossy: transition.lossy,
        holders: members(&transition.holders),
        leader: leader(transition.leader)?,
        members: members(&transition.members),
    })
}

fn topic_of(topic: messages::Topic) -> Result<Topic, Undecodable> {
    let partitions = topic
        .partitions
        .into_iter()
        .enumerate()
        .map(|(place, partition)| {
            Ok(Partition {
                index: PartitionIndex(place as u32),
                epoch: LeaderEpoch(partition.epoch),
                start: Offset(partition.start),
                leader: leader(partition.leader)?,
                replicas: members(&partition.members),
                log_start: Offset(partition.log_start),
                sealed: partition.sealed.iter().map(sealed_of).collect(),
            })
        });
    Ok(Topic {
        name: name(&topic.name)?,
        id: id(&topic.id)?,
        partitions: partitions.collect::<Result<_, Undecodable>>()?,
        overrides: topic.overrides,
        internal: topic.internal,
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

fn node_of(node: messages::Node) -> Result<Node, Undecodable> {
    let endpoints = node.endpoints.into_iter().map(|endpoint| {
        Ok(Endpoint {
            door: endpoint.door,
            host: endpoint.host,
            port: u16::try_from(endpoint.port).map_err(|_| Undecodable::Field("port"))?,
        })
    });
    Ok(Node {
        id: NodeId(node.id),
        boot: Boot(node.boot),
        endpoints: endpoints.collect::<Result<_, Undecodable>>()?,
    })
}

fn id(bytes: &[u8]) -> Result<TopicId, Undecodable> {
    bytes
        .try_into()
        .map(TopicId)
        .map_err(|_| Undecodable::Field("topic id"))
}

fn name(text: &str) -> Result<TopicName, Undecodable> {
    TopicName::parse(text).map_err(|_| Undecodable::Field("topic name"))
}

fn address(partition: Option<messages::Address>) -> Result<TopicPartition, Undecodable> {
    let partition = partition.ok_or(Undecodable::Field("partition"))?;
    Ok(TopicPartition {
        topic: id(&partition.topic)?,
        partition: PartitionIndex(partition.partition),
    })
}

fn leader(leader: Option<messages::Leader>) -> Result<Leader, Undecodable> {
    let leader = leader.ok_or(Undecodable::Field("leader"))?;
    Ok(Leader {
        node: NodeId(leader.node),
        incarnation: Incarnation(leader.incarnation),
        boot: Boot(leader.boot),
    })
}

fn members(members: &[messages::Member]) -> Vec<Member> {
    members
        .iter()
        .map(|member| Member {
            node: NodeId(member.node),
            incarnation: Incarnation(member.incarnation),
        })
        .collect()
}

fn list(members: &[Member]) -> Vec<messages::Member> {
    members.iter().copied().map(Into::into).collect()
}

/// Settings and other small maps of texts.
type Texts = BTreeMap<String, String>;
