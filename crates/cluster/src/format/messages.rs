//! The messages, field by field. A number once used is never used for something else.

use super::Texts;

/// 22 and 23 were changes of who votes; 30 and 31 are [`super::consensus`]'s.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Record {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(
        oneof = "record::Command",
        tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21"
    )]
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
        #[prost(message, tag = "17")]
        ReplaceNode(super::ReplaceNode),
        #[prost(message, tag = "18")]
        RenewCopies(super::RenewCopies),
        #[prost(message, tag = "19")]
        EndLeases(super::EndLeases),
        #[prost(message, tag = "20")]
        AddHolders(super::AddHolders),
        #[prost(message, tag = "21")]
        Forget(super::Forget),
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
    #[prost(uint64, tag = "4")]
    pub(super) since: u64,
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
    /// Oldest first. 9 was who votes, which the configuration says.
    #[prost(message, repeated, tag = "10")]
    pub(super) past_lives: Vec<Member>,
    #[prost(message, optional, tag = "11")]
    pub(super) configuration: Option<Configuration>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Configuration {
    #[prost(message, repeated, tag = "1")]
    pub(super) voters: Vec<Member>,
    #[prost(message, repeated, tag = "2")]
    pub(super) learners: Vec<Member>,
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
    #[prost(fixed64, tag = "4")]
    pub(super) incarnation: u64,
    #[prost(uint32, tag = "5")]
    pub(super) protocol: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ReplaceNode {
    #[prost(message, optional, tag = "1")]
    pub(super) node: Option<Node>,
    #[prost(fixed64, tag = "2")]
    pub(super) replaces: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RenewCopies {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(fixed64, tag = "2")]
    pub(super) incarnation: u64,
    #[prost(uint32, tag = "3")]
    pub(super) boot: u32,
    #[prost(message, repeated, tag = "4")]
    pub(super) copies: Vec<RenewedCopy>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RenewedCopy {
    #[prost(message, optional, tag = "1")]
    pub(super) partition: Option<Address>,
    #[prost(fixed64, tag = "2")]
    pub(super) was: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) is: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EndLeases {
    #[prost(message, repeated, tag = "1")]
    pub(super) leases: Vec<EndedLease>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EndedLease {
    #[prost(message, optional, tag = "1")]
    pub(super) partition: Option<Address>,
    #[prost(uint32, tag = "2")]
    pub(super) epoch: u32,
}

/// The lease of one generation, and who led it.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Lease {
    #[prost(uint32, tag = "1")]
    pub(super) epoch: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) leader: Option<Member>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AddHolders {
    #[prost(message, repeated, tag = "1")]
    pub(super) claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Claim {
    #[prost(message, optional, tag = "1")]
    pub(super) member: Option<Member>,
    #[prost(message, optional, tag = "2")]
    pub(super) partition: Option<Address>,
    #[prost(uint32, tag = "3")]
    pub(super) epoch: u32,
    #[prost(uint64, tag = "4")]
    pub(super) as_of: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Forget {
    #[prost(message, repeated, tag = "1")]
    pub(super) list: Vec<Forgetting>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Forgetting {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) partition: Option<Address>,
    #[prost(uint32, tag = "3")]
    pub(super) epoch: u32,
}

/// Absent in a seal whose holders did not say.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Times {
    #[prost(sint64, tag = "1")]
    pub(super) min: i64,
    #[prost(sint64, tag = "2")]
    pub(super) max: i64,
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
    /// Absent in what a release without it wrote: 1.
    #[prost(uint32, tag = "6")]
    pub(super) replication_factor: u32,
    /// Absent in what a release without it wrote: 1.
    #[prost(uint32, tag = "7")]
    pub(super) quorum: u32,
    /// Absent in what a release without it wrote: as `internal`.
    #[prost(bool, optional, tag = "8")]
    pub(super) has_table: Option<bool>,
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
    #[prost(message, optional, tag = "8")]
    pub(super) times: Option<Times>,
    #[prost(message, repeated, tag = "9")]
    pub(super) leases: Vec<Lease>,
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
    /// Absent in what a release without it wrote: 1.
    #[prost(uint32, tag = "6")]
    pub(super) replication_factor: u32,
    /// Absent in what a release without it wrote: 1.
    #[prost(uint32, tag = "7")]
    pub(super) quorum: u32,
    /// Absent in what a release without it wrote: as `internal`.
    #[prost(bool, optional, tag = "8")]
    pub(super) has_table: Option<bool>,
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
    #[prost(message, repeated, tag = "7")]
    pub(super) leases: Vec<Lease>,
    #[prost(message, repeated, tag = "8")]
    pub(super) copies: Vec<Member>,
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
    #[prost(message, optional, tag = "6")]
    pub(super) times: Option<Times>,
    #[prost(message, repeated, tag = "7")]
    pub(super) let_go: Vec<LetGo>,
}

/// A node was allowed to forget the generation, last by the entry of that index.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct LetGo {
    #[prost(uint32, tag = "1")]
    pub(super) node: u32,
    #[prost(uint64, tag = "2")]
    pub(super) index: u64,
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
