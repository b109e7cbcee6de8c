//! Dials a node until there is a set of connections, and again when it ends.
//!
//! Order: of two nodes the one with the lower id dials, so that there is one set. The other one, when its set ends, looks
//! whether anybody still listens at the dialler's address: a process that is over is known at once on both sides.
//!
//! Guarantees: pauses between dials grow to their limit, with chance in them, and are short again after a set has stood.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use floe_model::NodeId;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Shared;
use super::place::{Lanes, Place};
use super::{set, shake};
use crate::peers::handshake::{Claim, Errand};
use crate::peers::list::Address;
use crate::peers::{Lane, Refusal};

/// How often a look is taken.
const LOOKS: u32 = 10;

/// Dials until its place is over.
pub(super) async fn keep(shared: Arc<Shared>, place: Arc<Place>, address: Address) {
    let mut pause = shared.settings.redial_min;
    loop {
        let dialled = tokio::select! {
            dialled = pair(&shared, &place, &address) => dialled,
            () = place.over.cancelled() => return,
        };
        match dialled {
            Ok((claim, streams)) => {
                pause = shared.settings.redial_min;
                drop(set::run(&shared, &place, claim, streams).await);
            }
            Err(refusal) => {
                if is_refused(&refusal) {
                    shared.handler.is_gone(place.node);
                }
                shared.complain(&format!("node {} at {address}", place.node), &refusal);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(&shared, pause)) => {}
            () = place.over.cancelled() => return,
        }
        pause = (pause * 2).min(shared.settings.redial_max);
    }
}

/// Between half of it and all of it.
fn jittered(shared: &Shared, pause: Duration) -> Duration {
    let half = pause / 2;
    let part = (shared.random.next_u64() % 1024) as u32;
    half + half * part / 1024
}

fn is_refused(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

async fn pair(
    shared: &Arc<Shared>,
    place: &Place,
    address: &Address,
) -> Result<(Claim, Lanes<TcpStream>), Refusal> {
    let set = shared.random.next_u64();
    let (claim, control) = one(shared, place.node, address, Lane::Control, set).await?;
    shared.admit(place, &claim)?;
    let (other, data) = one(shared, place.node, address, Lane::Data, set).await?;
    if other.process != claim.process {
        return Err(Refusal::DuplicateNode(place.node));
    }
    Ok((claim, Lanes { control, data }))
}

async fn one(
    shared: &Arc<Shared>,
    to: NodeId,
    address: &Address,
    lane: Lane,
    set: u64,
) -> Result<(Claim, TcpStream), Refusal> {
    let dialled = async {
        let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        let errand = Errand {
            to,
            lane,
            set,
            nonce: shake::nonce(&*shared.random),
        };
        let cluster = shared.cluster();
        let claim = shake::dial(&mut stream, &shared.me, cluster, errand).await?;
        Ok((claim, stream))
    };
    let dialled = timeout(shared.settings.handshake_within, dialled).await;
    dialled.unwrap_or(Err(Refusal::Late))
}

/// A set that was dialled from there has ended: looks whether anybody still listens there, a few times, as a process that ends
/// closes one thing after the other. Says so if not.
pub(super) async fn look(shared: &Shared, place: &Place, address: &Address) {
    for _ in 0..LOOKS {
        let dialled = TcpStream::connect((address.host.as_str(), address.port));
        let looked = timeout(shared.settings.handshake_within, dialled).await;
        if let Ok(Err(error)) = looked
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            return shared.handler.is_gone(place.node);
        }
        tokio::time::sleep(jittered(shared, shared.settings.redial_min)).await;
        if place.peer().is_some() {
            return;
        }
    }
}
