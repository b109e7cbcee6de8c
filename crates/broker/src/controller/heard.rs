//! What the other nodes say to this node's part in the catalog, and whether they are there.

use floe_model::NodeId;

use crate::peers::{Message, Peer};

/// What was heard; messages come between a node's connecting and its disconnecting only.
#[derive(Debug)]
#[allow(dead_code, reason = "said, and looked at, once nodes are connected")]
pub(crate) enum Heard {
    /// It can be spoken to.
    Connected(Peer),
    /// ... and no more, for that reason.
    Disconnected(Peer, String),
    /// Nothing listens at its address.
    Gone(NodeId),
    /// It said this, which is not for a copy of a partition.
    Said(Peer, Message),
}
