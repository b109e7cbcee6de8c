//! The way to the other nodes of a node that has none.

use floe_model::NodeId;

use super::{Message, Peer, Transport, Unsent};

/// Nobody is connected, and nobody ever will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Transport for Alone {
    fn send(&self, to: NodeId, _: Message) -> Result<(), Unsent> {
        Err(Unsent::Disconnected(to))
    }

    fn peer(&self, _: NodeId) -> Option<Peer> {
        None
    }
}
