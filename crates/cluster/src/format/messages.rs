//! The messages, field by field. A number once used is never used for something else.

use floe_model::TopicPartition;

use super::Texts;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Record {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(oneof = "record::Command", tags = "10, 11, 12, 13, 14, 15, 16")]
    pub(super) command: Option<record::Command>,
}

pub(super) mod record {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(in super::super) enum Command {
        #[prost(message, tag = "10")]
        RegisterNode(super::Node),
        #[prost(message, tag = "11")]
        CreateTopic(super::CreateTopic),
        #[prost(message, tag = "12")]
        SealAndOpen(super::SealAndOpen),
        #[prost(message, tag = "13")]
        DeleteTopic(super::DeleteTopic),
        #[prost(message, tag = "14")]
        ConfirmDeleted(super::ConfirmDeleted),
        #[prost(message, tag = "15")]
        AdvanceLogStart(super::AdvanceLogStart),
        #[prost(message, tag = "16")]
        ReserveProducerIds(super::ReserveProducerIds),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Descriptor {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) leader: Option<Leader>,
    #[prost(message, repeated, tag = "3")]
    pub(super) members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Snapshot {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(uint64, tag = "2")]
    pub(super) index: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) nodes: Vec<Node>,
    #[prost(message, repeated, tag = "4")]
    pub(super) topics: Vec<Topic>,
    #[prost(message, repeated, tag = "5")]
    pub(super) tombstones: Vec<Tombstone>,
    #[prost(uint64, tag = "6")]
    pub(super) next_producer_id: u64,
    #[prost(btree_map = "string, uint32", tag = "7")]
    pub(super) last_epochs: std::collections::BTreeMap<String, u32>,
    #[prost(uint32, optional, tag = "8")]
    pub(super) epoch_floor: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Member {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(fixed64, tag = "2")]
    pub(super) incarnation: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Leader {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(fixed64, tag = "2")]
    pub(super) incarnation: u64,
    #[prost(uint32, tag = "3")]
    pub(super) boot: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Address {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) topic: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub(super) partition: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint32, tag = "1")]
    pub(super) id: u32,
    #[prost(uint32, tag = "2")]
    pub(super) boot: u32,
    #[prost(message, repeated, tag = "3")]
    pub(super) endpoints: Vec<Endpoint>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Endpoint {
    #[prost(string, tag = "1")]
    pub(super) door: String,
    #[prost(string, tag = "2")]
    pub(super) host: String,
    #[prost(uint32, tag = "3")]
    pub(super) port: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CreateTopic {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) id: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub(super) partitions: Vec<NewPartition>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(super) overrides: Texts,
    #[prost(bool, tag = "5")]
    pub(super) internal: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NewPartition {
    #[prost(message, optional, tag = "1")]
    pub(super) leader: Option<Leader>,
    #[prost(message, repeated, tag = "2")]
    pub(super) members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SealAndOpen {
    #[prost(message, repeated, tag = "1")]
    pub(super) transitions: Vec<Transition>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Transition {
    #[prost(message, optional, tag = "1")]
    pub(super) partition: Option<Address>,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
    #[prost(uint64, tag = "3")]
    pub(super) end: u64,
    #[prost(bool, tag = "4")]
    pub(super) lossy: bool,
    #[prost(message, repeated, tag = "5")]
    pub(super) holders: Vec<Member>,
    #[prost(message, optional, tag = "6")]
    pub(super) leader: Option<Leader>,
    #[prost(message, repeated, tag = "7")]
    pub(super) members: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeleteTopic {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) id: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ConfirmDeleted {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) topics: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AdvanceLogStart {
    #[prost(message, repeated, tag = "1")]
    pub(super) starts: Vec<LogStart>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LogStart {
    #[prost(message, optional, tag = "1")]
    pub(super) partition: Option<Address>,
    #[prost(uint64, tag = "2")]
    pub(super) to: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct ReserveProducerIds {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Topic {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) id: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub(super) partitions: Vec<Partition>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(super) overrides: Texts,
    #[prost(bool, tag = "5")]
    pub(super) internal: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Partition {
    #[prost(uint32, tag = "1")]
    pub(super) epoch: u32,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(message, optional, tag = "3")]
    pub(super) leader: Option<Leader>,
    #[prost(message, repeated, tag = "4")]
    pub(super) members: Vec<Member>,
    #[prost(uint64, tag = "5")]
    pub(super) log_start: u64,
    #[prost(message, repeated, tag = "6")]
    pub(super) sealed: Vec<Sealed>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sealed {
    #[prost(uint32, tag = "1")]
    pub(super) epoch: u32,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) end: u64,
    #[prost(bool, tag = "4")]
    pub(super) lossy: bool,
    #[prost(message, repeated, tag = "5")]
    pub(super) holders: Vec<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Tombstone {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) id: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(uint32, tag = "3")]
    pub(super) partitions: u32,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) waiting: Vec<u32>,
}

impl From<floe_replication::Member> for Member {
    fn from(member: floe_replication::Member) -> Self {
        Self {
            node: member.node.0,
            incarnation: member.incarnation.0,
        }
    }
}

impl From<floe_replication::Leader> for Leader {
    fn from(leader: floe_replication::Leader) -> Self {
        Self {
            node: leader.node.0,
            incarnation: leader.incarnation.0,
            boot: leader.boot.0,
        }
    }
}

impl From<&TopicPartition> for Address {
    fn from(at: &TopicPartition) -> Self {
        Self {
            topic: at.topic.0.to_vec(),
            partition: at.partition.0,
        }
    }
}

impl From<&crate::Node> for Node {
    fn from(node: &crate::Node) -> Self {
        Self {
            id: node.id.0,
            boot: node.boot.0,
            endpoints: node
                .endpoints
                .iter()
                .map(|endpoint| Endpoint {
                    door: endpoint.door.clone(),
                    host: endpoint.host.clone(),
                    port: endpoint.port.into(),
                })
                .collect(),
        }
    }
}

impl From<&crate::Transition> for Transition {
    fn from(transition: &crate::Transition) -> Self {
        Self {
            partition: Some((&transition.partition).into()),
            epoch: transition.epoch.0,
            end: transition.end.0,
            lossy: transition.lossy,
            holders: super::list(&transition.holders),
            leader: Some(transition.leader.into()),
            members: super::list(&transition.members),
        }
    }
}

impl From<&crate::Topic> for Topic {
    fn from(topic: &crate::Topic) -> Self {
        Self {
            name: topic.name.to_string(),
            id: topic.id.0.to_vec(),
            partitions: topic.partitions.iter().map(Into::into).collect(),
            overrides: topic.overrides.clone(),
            internal: topic.internal,
        }
    }
}

impl From<&crate::Partition> for Partition {
    fn from(partition: &crate::Partition) -> Self {
        Self {
            epoch: partition.epoch.0,
            start: partition.start.0,
            leader: Some(partition.leader.into()),
            members: super::list(&partition.replicas),
            log_start: partition.log_start.0,
            sealed: partition
                .sealed
                .iter()
                .map(|sealed| Sealed {
                    epoch: sealed.epoch.0,
                    start: sealed.start.0,
                    end: sealed.end.0,
                    lossy: sealed.lossy,
                    holders: super::list(&sealed.holders),
                })
                .collect(),
        }
    }
}
