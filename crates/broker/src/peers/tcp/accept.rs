//! Takes connections of other nodes: a bounded number at a time within their handshake, each within its time.
//!
//! Guarantees: a stranger costs a few hundred bytes for two seconds; why it is refused is said once in a while, by address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use super::Shared;
use super::place::Lanes;
use super::{dial, set, shake};
use crate::peers::handshake::Claim;
use crate::peers::{Lane, Lost, Refusal};

/// Pause after an accept that failed for want of files or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts until the stop.
pub(super) async fn keep(shared: Arc<Shared>, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(shared.settings.handshakes_max));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, from)) => match Arc::clone(&room).try_acquire_owned() {
                Ok(place) => {
                    let one = one(Arc::clone(&shared), stream, from, place);
                    shared.spawn(one);
                }
                Err(_) => shared.metrics.refused("crowded"),
            },
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another node; raise the limit of open files");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn one(
    shared: Arc<Shared>,
    mut stream: TcpStream,
    from: SocketAddr,
    room: OwnedSemaphorePermit,
) {
    let mut data = None;
    let admit = |claim: &Claim| admit(&shared, claim, &mut data);
    let nonce = shake::nonce(&*shared.random);
    let cluster = shared.cluster();
    let shaken = shake::accept(&mut stream, &shared.me, cluster, nonce, admit);
    let shaken = tokio::select! {
        shaken = timeout(shared.settings.handshake_within, shaken) => shaken,
        () = shared.stop.cancelled() => return,
    };
    drop(room);
    let claim = match shaken.unwrap_or(Err(Refusal::Late)) {
        Ok(claim) => claim,
        Err(refusal) => return shared.complain(&from.ip().to_string(), &refusal),
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Some(place) = shared.place(claim.node) else {
        return;
    };
    let Some(data) = data else {
        return place.hand(claim.set, stream);
    };
    let handed = tokio::select! {
        handed = timeout(shared.settings.handshake_within, data) => handed,
        () = shared.stop.cancelled() => return,
    };
    let Ok(Ok(data)) = handed else {
        return;
    };
    let streams = Lanes {
        control: stream,
        data,
    };
    let lost = set::run(&shared, &place, claim, streams).await;
    if let Some(Lost::Closed) = lost
        && let Some(address) = shared.address(claim.node)
    {
        tokio::select! {
            () = dial::look(&shared, &place, &address) => {}
            () = place.over.cancelled() => {}
        }
    }
}

/// Whether this node may be connected; a control connection begins to wait for its data connection.
fn admit(
    shared: &Shared,
    claim: &Claim,
    data: &mut Option<oneshot::Receiver<TcpStream>>,
) -> Result<(), Refusal> {
    let node = claim.node;
    if node == shared.me.node {
        return Err(Refusal::DuplicateNode(node));
    }
    let place = shared.place(node).ok_or(Refusal::UnknownNode(node))?;
    match claim.lane {
        Lane::Control => {
            shared.admit(&place, claim)?;
            *data = Some(place.expect(claim.set));
            Ok(())
        }
        Lane::Data if place.is_expected(claim.set) => Ok(()),
        Lane::Data => Err(Refusal::OutOfTurn),
    }
}
