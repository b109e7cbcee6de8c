//! Why a connection between nodes does not come about, or ends. Each has a name and a remedy; some are told to the other side.
//!
//! Guarantees: what is told before the proof gives away no secret and no list of nodes.

use std::io;

use floe_cluster::ClusterId;
use floe_model::{Boot, Incarnation, NodeId};
use floe_wire::peer::{Error, Foreign, Versions, head};

use super::message::Undecodable;

/// Why two nodes do not speak.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// One side is of a release that is too new or too old for the other.
    #[error(
        "the other node speaks versions {theirs} of the protocol between nodes, this one {ours}; upgrade one release at a time, the older node first"
    )]
    NoCommonVersion {
        /// Of this node.
        ours: Versions,
        /// Of the other.
        theirs: Versions,
    },
    /// It belongs to another cluster.
    #[error("it belongs to another cluster{}; check `peers` on both nodes, or give it an empty data directory", clusters(*.ours, *.theirs))]
    WrongCluster {
        /// Of this node.
        ours: Option<ClusterId>,
        /// Of the other.
        theirs: Option<ClusterId>,
    },
    /// It does not know the secret.
    #[error(
        "it does not know the cluster secret; put the same file at `cluster.secret.file` of all nodes"
    )]
    WrongSecret,
    /// Another node answers at that address.
    #[error("node {meant} was meant, {} is there; correct the addresses in `peers`", .is.map_or_else(|| "another".to_owned(), |is| format!("node {is}")))]
    WrongNode {
        /// Who was dialled.
        meant: NodeId,
        /// Who is there.
        is: Option<NodeId>,
    },
    /// Nobody has listed it.
    #[error("node {0} is not in `peers`; add it on every node, or correct its `node.id`")]
    UnknownNode(NodeId),
    /// Another process with its id is alive.
    #[error(
        "another process is alive as node {0}; give each node an id of its own, and never run a copy of a data directory"
    )]
    DuplicateNode(NodeId),
    /// A life of its data that was given up.
    #[error("node {node} came back with data of a life that was given up ({incarnation:016x}); start it with `floe node replace`", incarnation = .incarnation.0)]
    OlderIncarnation {
        /// The node.
        node: NodeId,
        /// The life it came back with.
        incarnation: Incarnation,
    },
    /// A life of its process that is over.
    #[error(
        "node {node} came back as boot {boot}, which is over; its data directory is a copy or was put back"
    )]
    OlderBoot {
        /// The node.
        node: NodeId,
        /// The life it claims.
        boot: Boot,
    },
    /// It said nothing in time.
    #[error("it did not finish the handshake in time; is that port `peer.port`?")]
    Late,
    /// It went away in between.
    #[error("it closed the connection within the handshake; is that port `peer.port`?")]
    Closed,
    /// What came is no frame, or a damaged one.
    #[error("{0}")]
    Frame(#[from] Error),
    /// A head of the handshake that cannot be read.
    #[error("the head of a frame of the handshake is damaged: {0}")]
    Damaged(prost::DecodeError),
    /// A field of the handshake has a value it cannot have.
    #[error("a frame of the handshake has no valid {0}")]
    Invalid(&'static str),
    /// A frame out of turn.
    #[error("a frame came out of turn within the handshake")]
    OutOfTurn,
    /// The other side says no.
    #[error("the other node says of this one: {0}")]
    Told(Box<Refusal>),
    /// The other side says no for a reason that this release does not know.
    #[error("the other node refuses, for reason {0} of a newer release; its log says why")]
    ToldUnknown(u32),
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why a connection that stood has ended.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The other side closed it.
    #[error("closed by the other node")]
    Closed,
    /// Nothing came for too long.
    #[error("nothing heard for {0} ms")]
    Silent(u128),
    /// A frame did not end in time.
    #[error("a frame did not end in time")]
    Slow,
    /// What was sent was not taken.
    #[error("nothing taken for {0} ms")]
    Stalled(u128),
    /// A frame is damaged.
    #[error("{0}")]
    Frame(#[from] Error),
    /// A message cannot be read.
    #[error("{0}")]
    Undecodable(#[from] Undecodable),
    /// The same node made a new connection.
    #[error("replaced by a new connection")]
    Replaced,
    /// It is not in the list any more, or elsewhere.
    #[error("its address changed or it is not in `peers` any more")]
    Unlisted,
    /// The life of its data is given up.
    #[error("its data was given up; start it with `floe node replace`")]
    Retired,
    /// This node stops.
    #[error("this node stops")]
    Stopping,
    /// The socket failed.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl Refusal {
    pub(super) fn damaged(error: prost::DecodeError) -> Self {
        Self::Damaged(error)
    }

    /// A short name, for metrics and to say each once in a while.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoCommonVersion { .. } => "no_common_version",
            Self::WrongCluster { .. } => "wrong_cluster",
            Self::WrongSecret => "wrong_secret",
            Self::WrongNode { .. } => "wrong_node",
            Self::UnknownNode(_) => "unknown_node",
            Self::DuplicateNode(_) => "duplicate_node",
            Self::OlderIncarnation { .. } => "older_incarnation",
            Self::OlderBoot { .. } => "older_boot",
            Self::Late => "late",
            Self::Closed => "closed",
            Self::Frame(Error::Foreign(Foreign::Http)) => "http",
            Self::Frame(Error::Foreign(Foreign::Tls)) => "tls",
            Self::Frame(Error::Foreign(Foreign::Kafka)) => "kafka",
            Self::Frame(Error::Foreign(Foreign::Unknown)) => "foreign",
            Self::Frame(_) | Self::Damaged(_) | Self::Invalid(_) | Self::OutOfTurn => "damaged",
            Self::Told(why) => why.name(),
            Self::ToldUnknown(_) => "told_unknown",
            Self::Io(_) => "io",
        }
    }

    /// What is told to the other side, if anything is.
    pub(super) fn told(&self, ours: Versions) -> Option<head::Refused> {
        let reason = match self {
            Self::NoCommonVersion { .. } => 1,
            Self::WrongCluster { .. } => 2,
            Self::WrongSecret => 3,
            Self::WrongNode { .. } => 4,
            Self::UnknownNode(_) => 5,
            Self::DuplicateNode(_) => 6,
            Self::OlderIncarnation { .. } => 7,
            Self::OlderBoot { .. } => 8,
            _ => return None,
        };
        Some(head::Refused {
            reason,
            version_min: ours.min.into(),
            version_max: ours.max.into(),
        })
    }

    /// What the other side told: the same refusal, seen from there. `me` is who was refused, `to` who refused it.
    pub(super) fn heard(told: &head::Refused, me: &super::Me, to: Option<NodeId>) -> Self {
        let narrow = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let why = match told.reason {
            1 => Self::NoCommonVersion {
                ours: me.versions,
                theirs: Versions {
                    min: narrow(told.version_min),
                    max: narrow(told.version_max),
                },
            },
            2 => Self::WrongCluster {
                ours: None,
                theirs: None,
            },
            3 => Self::WrongSecret,
            4 => Self::WrongNode {
                meant: to.unwrap_or(me.node),
                is: None,
            },
            5 => Self::UnknownNode(me.node),
            6 => Self::DuplicateNode(me.node),
            7 => Self::OlderIncarnation {
                node: me.node,
                incarnation: me.incarnation,
            },
            8 => Self::OlderBoot {
                node: me.node,
                boot: me.boot,
            },
            other => return Self::ToldUnknown(other),
        };
        Self::Told(Box::new(why))
    }
}

fn clusters(ours: Option<ClusterId>, theirs: Option<ClusterId>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => format!(" ({theirs}; this node belongs to {ours})"),
        _ => String::new(),
    }
}
