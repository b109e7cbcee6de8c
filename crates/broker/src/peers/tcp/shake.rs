//! The handshake over a connection: frames of version 0, one after the other, nothing read beyond them.
//!
//! Guarantees: takes at most [`frame::HANDSHAKE_HEAD_BYTES_MAX`] bytes of memory for what a stranger sends; tells a stranger from its
//! first four bytes; tells the other side why not, where that is told at all. Has no clock: its caller bounds it.

use std::io;

use floe_cluster::ClusterId;
use floe_wire::peer::frame::{self, PREAMBLE_BYTES, TELLING_BYTES};
use floe_wire::peer::proof::NONCE_BYTES;
use floe_wire::peer::{Error, HANDSHAKE_VERSION, Kind, Limits, Preamble, head};
use floe_world::Random;
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::peers::handshake::{Accepting, Claim, Dialling, Errand, Me};
use crate::peers::refusal::Refusal;

/// A fresh nonce.
pub(super) fn nonce(random: &dyn Random) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..16].copy_from_slice(&random.id());
    nonce[16..].copy_from_slice(&random.id());
    nonce
}

/// The side that dialled.
pub(super) async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    me: &Me,
    cluster: Option<ClusterId>,
    errand: Errand,
) -> Result<Claim, Refusal> {
    let dialling = Dialling::new(me, cluster, errand);
    let heard = |bytes: &[u8]| match head::Refused::decode(bytes) {
        Ok(told) => Refusal::heard(&told, me, Some(errand.to)),
        Err(error) => Refusal::damaged(error),
    };
    say(stream, Kind::Hello, dialling.hello()).await?;
    let challenge = match hear(stream).await? {
        (Kind::Challenge, bytes) => bytes,
        (Kind::Refused, bytes) => return Err(heard(&bytes)),
        _ => return Err(Refusal::OutOfTurn),
    };
    let (proving, proof) = dialling.challenged(&challenge)?;
    say(stream, Kind::Proof, &proof).await?;
    match hear(stream).await? {
        (Kind::Welcome, bytes) => proving.welcomed(&bytes),
        (Kind::Refused, bytes) => Err(heard(&bytes)),
        _ => Err(Refusal::OutOfTurn),
    }
}

/// The side that was dialled. `admit` is asked once the secret is proven, before the welcome.
pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    me: &Me,
    cluster: Option<ClusterId>,
    nonce: [u8; NONCE_BYTES],
    admit: impl FnOnce(&Claim) -> Result<(), Refusal>,
) -> Result<Claim, Refusal> {
    let shaken = shake(stream, me, cluster, nonce, admit).await;
    if let Err(refusal) = &shaken
        && let Some(told) = refusal.told(me.versions)
        && let Err(error) = say(stream, Kind::Refused, &told.encode_to_vec()).await
    {
        tracing::debug!(%error, "a refused node was gone already");
    }
    shaken
}

async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    me: &Me,
    cluster: Option<ClusterId>,
    nonce: [u8; NONCE_BYTES],
    admit: impl FnOnce(&Claim) -> Result<(), Refusal>,
) -> Result<Claim, Refusal> {
    let (Kind::Hello, hello) = hear(stream).await? else {
        return Err(Refusal::OutOfTurn);
    };
    let accepting = Accepting::new(me, cluster, &hello, nonce)?;
    say(stream, Kind::Challenge, accepting.challenge()).await?;
    let (Kind::Proof, proof) = hear(stream).await? else {
        return Err(Refusal::OutOfTurn);
    };
    let (claim, welcome) = accepting.proven(&proof)?;
    admit(&claim)?;
    say(stream, Kind::Welcome, &welcome).await?;
    Ok(claim)
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), kind: Kind, head: &[u8]) -> io::Result<()> {
    let mut bytes = frame::preamble(HANDSHAKE_VERSION, kind, head, &[]).to_vec();
    bytes.extend_from_slice(head);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn hear(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Kind, Vec<u8>), Refusal> {
    let mut preamble = [0; PREAMBLE_BYTES];
    let (first, rest) = preamble.split_at_mut(TELLING_BYTES);
    exact(stream, first).await?;
    if let Some(foreign) = frame::foreign([first[0], first[1], first[2], first[3]]) {
        return Err(Error::Foreign(foreign).into());
    }
    exact(stream, rest).await?;
    let preamble = Preamble::decode(&preamble, HANDSHAKE_VERSION, Limits::HANDSHAKE)?;
    let mut head = vec![0; preamble.head_bytes];
    exact(stream, &mut head).await?;
    preamble.check_head(&head)?;
    preamble.check_body(&[])?;
    Ok((preamble.kind, head))
}

async fn exact(stream: &mut (impl AsyncRead + Unpin), into: &mut [u8]) -> Result<(), Refusal> {
    match stream.read_exact(into).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Refusal::Closed,
            _ => Refusal::Io(error),
        }),
    }
}
