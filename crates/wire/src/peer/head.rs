//! The heads of frames, field by field, in Protocol Buffers (proto3). A number once used is never used for something else;
//! fields can be added, and release N reads what N-1 wrote.
//!
//! Ids of topics, incarnations and other random numbers are fixed64, offsets and epochs varints, times nanoseconds. What a value
//! means and which of them are valid is decided where the replicas' own types are known.

/// Handshake, dialler. Its bytes as sent go into both proofs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// Oldest version of the protocol spoken.
    #[prost(uint32, tag = "1")]
    pub version_min: u32,
    /// Newest version spoken.
    #[prost(uint32, tag = "2")]
    pub version_max: u32,
    /// The cluster, 16 bytes; none if this node is in no cluster yet.
    #[prost(bytes = "vec", tag = "3")]
    pub cluster: Vec<u8>,
    /// This node.
    #[prost(uint32, tag = "4")]
    pub node: u32,
    /// The node it means to speak to.
    #[prost(uint32, tag = "5")]
    pub to: u32,
    /// The life of its data.
    #[prost(fixed64, tag = "6")]
    pub incarnation: u64,
    /// The life of its process.
    #[prost(uint32, tag = "7")]
    pub boot: u32,
    /// Random for each process: tells a copy of a data directory from a connection made again.
    #[prost(fixed64, tag = "8")]
    pub process: u64,
    /// Which connection of the set: 1 control, 2 data.
    #[prost(uint32, tag = "9")]
    pub lane: u32,
    /// Random for each set of connections.
    #[prost(fixed64, tag = "10")]
    pub set: u64,
    /// 32 random bytes.
    #[prost(bytes = "vec", tag = "11")]
    pub nonce: Vec<u8>,
}

/// Handshake, acceptor. Its bytes as sent go into both proofs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Challenge {
    /// Oldest version of the protocol spoken.
    #[prost(uint32, tag = "1")]
    pub version_min: u32,
    /// Newest version spoken.
    #[prost(uint32, tag = "2")]
    pub version_max: u32,
    /// The one that will be spoken.
    #[prost(uint32, tag = "3")]
    pub version: u32,
    /// The cluster, 16 bytes; none if this node is in no cluster yet.
    #[prost(bytes = "vec", tag = "4")]
    pub cluster: Vec<u8>,
    /// This node.
    #[prost(uint32, tag = "5")]
    pub node: u32,
    /// The life of its data.
    #[prost(fixed64, tag = "6")]
    pub incarnation: u64,
    /// The life of its process.
    #[prost(uint32, tag = "7")]
    pub boot: u32,
    /// Random for each process.
    #[prost(fixed64, tag = "8")]
    pub process: u64,
    /// 32 random bytes.
    #[prost(bytes = "vec", tag = "9")]
    pub nonce: Vec<u8>,
}

/// Handshake: a proof or a welcome.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Proof {
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub mac: Vec<u8>,
}

/// Handshake: no. Said before the proof only about versions, cluster and the node dialled.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refused {
    /// Number of the reason.
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    /// Oldest version of the protocol spoken.
    #[prost(uint32, tag = "2")]
    pub version_min: u32,
    /// Newest version spoken.
    #[prost(uint32, tag = "3")]
    pub version_max: u32,
}

/// One partition of one life of a topic.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Partition {
    /// First 8 bytes of the topic's id, little-endian.
    #[prost(fixed64, tag = "1")]
    pub topic_first: u64,
    /// Last 8 bytes.
    #[prost(fixed64, tag = "2")]
    pub topic_last: u64,
    /// Inside the topic.
    #[prost(uint32, tag = "3")]
    pub index: u32,
}

/// One life of one node's copy.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Member {
    /// The node.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// The life of its data.
    #[prost(fixed64, tag = "2")]
    pub incarnation: u64,
}

/// Batches in a row: the body holds them, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Run {
    /// Where the first begins.
    #[prost(uint64, tag = "1")]
    pub base: u64,
    /// Checksum of the batch before.
    #[prost(fixed32, optional, tag = "2")]
    pub previous: Option<u32>,
    /// Where each ends.
    #[prost(uint64, repeated, tag = "3")]
    pub ends: Vec<u64>,
    /// Of each.
    #[prost(fixed32, repeated, tag = "4")]
    pub checksums: Vec<u32>,
    /// Bytes of each; together those of the body.
    #[prost(uint32, repeated, tag = "5")]
    pub sizes: Vec<u32>,
}

/// Leader to follower.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Append {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The leader.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// The follower.
    #[prost(message, optional, tag = "3")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// Where it starts.
    #[prost(uint64, tag = "5")]
    pub start: u64,
    /// The leader's try.
    #[prost(uint64, tag = "6")]
    pub session: u64,
    /// Commit offset.
    #[prost(uint64, tag = "7")]
    pub commit: u64,
    /// What to append.
    #[prost(message, optional, tag = "8")]
    pub run: Option<Run>,
}

/// Follower to leader.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Answer {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The follower.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// The leader.
    #[prost(message, optional, tag = "3")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// The leader's try.
    #[prost(uint64, tag = "5")]
    pub session: u64,
    /// The follower's boot.
    #[prost(uint32, tag = "6")]
    pub boot: u32,
    /// Rises with everything it says.
    #[prost(uint64, tag = "7")]
    pub number: u64,
    /// Everything below is on stable storage. One of this, `expected` and `refusal`.
    #[prost(uint64, optional, tag = "8")]
    pub durable: Option<u64>,
    /// There is a gap: go on from here.
    #[prost(uint64, optional, tag = "9")]
    pub expected: Option<u64>,
    /// Nothing was taken.
    #[prost(message, optional, tag = "10")]
    pub refusal: Option<Refusal>,
}

/// Why not.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refusal {
    /// 1 fenced, 2 stranger, 3 damaged.
    #[prost(uint32, tag = "1")]
    pub why: u32,
    /// Of a fence: nothing below it is taken.
    #[prost(uint32, tag = "2")]
    pub fence: u32,
}

/// Controller to members.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fences {
    /// Each of a partition of its own.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Fence>,
}

/// End your part in this generation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fence {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The member.
    #[prost(message, optional, tag = "2")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "3")]
    pub epoch: u32,
    /// Where it starts.
    #[prost(uint64, tag = "4")]
    pub start: u64,
    /// Given back.
    #[prost(uint64, tag = "5")]
    pub ask: u64,
}

/// Members to controller.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FencedList {
    /// Each of a partition of its own.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Fenced>,
}

/// The fence is durable, and everything below the end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fenced {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The member.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// The request.
    #[prost(uint64, tag = "3")]
    pub ask: u64,
    /// The end of that moment.
    #[prost(uint64, tag = "4")]
    pub end: u64,
}

/// A member does not do what it was asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct No {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The request.
    #[prost(uint64, tag = "2")]
    pub ask: u64,
    /// Why not.
    #[prost(message, optional, tag = "3")]
    pub refusal: Option<Refusal>,
}

/// Get a generation's records from there.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CopyOrder {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// Who is to copy.
    #[prost(message, optional, tag = "2")]
    pub to: Option<Member>,
    /// Who holds it.
    #[prost(message, optional, tag = "3")]
    pub from: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// Where the copy starts.
    #[prost(uint64, tag = "5")]
    pub start: u64,
    /// Up to where.
    #[prost(uint64, tag = "6")]
    pub end: u64,
    /// 1 repair, 2 backfill.
    #[prost(uint32, tag = "7")]
    pub purpose: u32,
    /// Index of the catalog as of which it was ordered.
    #[prost(uint64, tag = "8")]
    pub as_of: u64,
    /// Given back.
    #[prost(uint64, tag = "9")]
    pub ask: u64,
}

/// The copy is whole and durable.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Copied {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The member.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// The request.
    #[prost(uint64, tag = "3")]
    pub ask: u64,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// Up to where.
    #[prost(uint64, tag = "5")]
    pub end: u64,
}

/// Send what follows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Pull {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// Who copies.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// Who has it.
    #[prost(message, optional, tag = "3")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// Where to begin.
    #[prost(uint64, tag = "5")]
    pub base: u64,
    /// Up to where.
    #[prost(uint64, tag = "6")]
    pub end: u64,
}

/// What follows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// Who has it.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// Who copies.
    #[prost(message, optional, tag = "3")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// The batches.
    #[prost(message, optional, tag = "5")]
    pub run: Option<Run>,
}

/// Asked by a leader, or granted to it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Leases {
    /// Each of a partition of its own.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Lease>,
}

/// One lease.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Lease {
    /// Which partition.
    #[prost(message, optional, tag = "1")]
    pub partition: Option<Partition>,
    /// The leader.
    #[prost(message, optional, tag = "2")]
    pub from: Option<Member>,
    /// The member.
    #[prost(message, optional, tag = "3")]
    pub to: Option<Member>,
    /// The generation.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// The leader's clock when it asked.
    #[prost(uint64, tag = "5")]
    pub sent_at: u64,
}

/// I am here, and this is what I last heard.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Heartbeat {
    /// Rises by one.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The sender's clock.
    #[prost(uint64, tag = "2")]
    pub sent_at: u64,
    /// The last one heard of the other side.
    #[prost(uint64, optional, tag = "3")]
    pub echo_number: Option<u64>,
    /// For how long it has been held.
    #[prost(uint64, tag = "4")]
    pub echo_held: u64,
    /// Age of the oldest write not flushed yet; none if there is none.
    #[prost(uint64, optional, tag = "5")]
    pub flush_age: Option<u64>,
}

/// Around bytes that others draw.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Call {
    /// The caller's own number, given back.
    #[prost(uint64, tag = "1")]
    pub correlation: u64,
    /// How often it was passed on before.
    #[prost(uint32, tag = "2")]
    pub hops: u32,
    /// How long the caller still waits.
    #[prost(uint64, tag = "3")]
    pub within: u64,
}
