//! The other nodes: messages to them and from them, who is connected, and why not.
//!
//! ```text
//! a node ──send(to, message)──► Transport ──lane──► the other node's Handler::received(from, message)
//!                                            control: heartbeats, fences, votes, answers, leases
//!                                            data:    batches, forwarded requests
//! ```
//! Two implementations ship: [`Tcp`], and [`Network`] in memory under a test's or the simulator's control; a node without others
//! has [`Alone`].
//!
//! Guarantees: sending never waits and never blocks anybody else; what has no room is refused by name. Messages of one lane
//! arrive in their order, whole, at most once, from who the handler is told; any may be lost, and all that were on their way
//! are when a connection ends. Connected and disconnected alternate for each node, and messages come between them only.

mod alone;
mod handshake;
mod list;
mod memory;
mod message;
mod metrics;
mod refusal;
mod settings;
mod tcp;

#[cfg(test)]
mod conformance;

pub use alone::Alone;
pub use handshake::Me;
pub use list::{Address, Difference, List, Mistake};
pub use memory::{End, Line, Network};
pub use message::{
    BATCHES_MAX, Batches, Call, Echo, Fenced, HOPS_MAX, Heartbeat, LIST_MAX, Lane, Message,
    Undecodable, decode,
};
pub use metrics::Metrics;
pub use refusal::{Lost, Refusal};
pub use settings::{PORT_DEFAULT, Settings};
pub use tcp::{Roster, Setup, Tcp};

pub use floe_wire::peer::Versions;
pub use floe_wire::peer::proof::{Secret, Unfit};

use floe_cluster::ClusterId;
use floe_model::{Boot, Incarnation, NodeId};

/// Who is at the other end, as it has proven to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The node.
    pub node: NodeId,
    /// The life of its data.
    pub incarnation: Incarnation,
    /// The life of its process.
    pub boot: Boot,
    /// Its cluster; none if it is in none yet.
    pub cluster: Option<ClusterId>,
}

/// What the node does with what comes. Called from the tasks that read: it must not wait. What it keeps of a body counts
/// against the memory that the sender may take here, so that who keeps much is read from less.
pub trait Handler: Send + Sync + 'static {
    /// Messages can be sent to it and come from it.
    fn connected(&self, peer: Peer);
    /// A message came.
    fn received(&self, from: Peer, message: Message);
    /// No more messages come from it, and none of those on their way may have arrived.
    fn disconnected(&self, peer: Peer, why: &Lost);
    /// Nothing listens at its address: its process is over, if the address is right. Said at each try.
    fn is_gone(&self, node: NodeId);
}

/// A way to the other nodes.
pub trait Transport: Send + Sync + 'static {
    /// Hands a message over; it is on its way, or refused at once.
    fn send(&self, to: NodeId, message: Message) -> Result<(), Unsent>;
    /// Who is connected as that node.
    fn peer(&self, node: NodeId) -> Option<Peer>;
}

/// Why a message was not sent. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// It is not connected, or not known at all; there will be an event when it is.
    #[error("node {0} is not connected")]
    Disconnected(NodeId),
    /// Too much is on its way to it: try again when it has taken some.
    #[error("{waiting} bytes wait for node {to} on the {lane} connection; the limit is {limit}")]
    Full {
        /// To whom.
        to: NodeId,
        /// On which connection.
        lane: Lane,
        /// Bytes on their way.
        waiting: usize,
        /// The limit.
        limit: usize,
    },
    /// No receiver would take it: it must be cut, or refused to who asked.
    #[error("a message of {bytes} bytes; the limit is {limit}")]
    Large {
        /// Of its larger part.
        bytes: usize,
        /// The limit of that part.
        limit: usize,
    },
}
