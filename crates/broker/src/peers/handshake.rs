//! The handshake, decided: both sides prove the cluster secret and say who they are. Pure: frames' heads in, heads out.
//!
//! ```text
//! Dialling ──hello──► Accepting          versions, cluster and the node dialled are checked
//!          ◄─challenge─
//!          ──proof──► proven             then who else is here ([`Claim`] is admitted or refused by its caller)
//! Proving  ◄─welcome──
//! ```
//! Guarantees: nothing that was claimed is believed before the proof over it; a proof given back, given again or made for
//! another connection is a wrong one; neither side learns more from a stranger's attempt than its versions and whether
//! it is the node and cluster that were asked for.

use floe_cluster::ClusterId;
use floe_model::{Boot, Incarnation, NodeId};
use floe_wire::peer::proof::{self, NONCE_BYTES, Role, Secret};
use floe_wire::peer::{Versions, head};
use prost::Message as _;

use super::message::Lane;
use super::refusal::Refusal;

/// Who this process is, to its peers.
#[derive(Clone, Debug)]
pub struct Me {
    /// The node.
    pub node: NodeId,
    /// The life of its data.
    pub incarnation: Incarnation,
    /// The life of its process.
    pub boot: Boot,
    /// Random for each process: tells a copied data directory from a connection made again.
    pub process: u64,
    /// What the cluster's nodes know.
    pub secret: Secret,
    /// What this release speaks.
    pub versions: Versions,
}

/// Who the other side is, as it has proven to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) node: NodeId,
    pub(super) incarnation: Incarnation,
    pub(super) boot: Boot,
    pub(super) process: u64,
    pub(super) cluster: Option<ClusterId>,
    /// The version that is spoken from here on.
    pub(super) version: u8,
    pub(super) lane: Lane,
    pub(super) set: u64,
}

/// Which connection a dialler opens, to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errand {
    pub(super) to: NodeId,
    pub(super) lane: Lane,
    /// Random; the same for the connections of one set.
    pub(super) set: u64,
    pub(super) nonce: [u8; NONCE_BYTES],
}

/// A dialler that has said hello.
pub(super) struct Dialling<'a> {
    me: &'a Me,
    cluster: Option<ClusterId>,
    errand: Errand,
    hello: Vec<u8>,
}

/// A dialler that has proven.
pub(super) struct Proving<'a> {
    me: &'a Me,
    hello: Vec<u8>,
    challenge: Vec<u8>,
    claim: Claim,
}

/// An acceptor that has heard a hello.
pub(super) struct Accepting<'a> {
    me: &'a Me,
    hello: Vec<u8>,
    challenge: Vec<u8>,
    claim: Claim,
}

impl<'a> Dialling<'a> {
    pub(super) fn new(me: &'a Me, cluster: Option<ClusterId>, errand: Errand) -> Self {
        let hello = head::Hello {
            version_min: me.versions.min.into(),
            version_max: me.versions.max.into(),
            cluster: cluster.map_or_else(Vec::new, |id| id.0.to_vec()),
            node: me.node.0,
            to: errand.to.0,
            incarnation: me.incarnation.0,
            boot: me.boot.0,
            process: me.process,
            lane: match errand.lane {
                Lane::Control => 1,
                Lane::Data => 2,
            },
            set: errand.set,
            nonce: errand.nonce.to_vec(),
        };
        let hello = hello.encode_to_vec();
        Self {
            me,
            cluster,
            errand,
            hello,
        }
    }

    pub(super) fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// The challenge came; gives the proof.
    pub(super) fn challenged(self, bytes: &[u8]) -> Result<(Proving<'a>, Vec<u8>), Refusal> {
        let challenge = head::Challenge::decode(bytes).map_err(Refusal::damaged)?;
        let theirs = versions(challenge.version_min, challenge.version_max)?;
        let version = agree(self.me.versions, theirs)?;
        if challenge.version != u32::from(version) {
            return Err(Refusal::Invalid("version"));
        }
        let cluster = same_cluster(self.cluster, &challenge.cluster)?;
        if challenge.node != self.errand.to.0 {
            return Err(Refusal::WrongNode {
                meant: self.errand.to,
                is: Some(NodeId(challenge.node)),
            });
        }
        check_nonce(&challenge.nonce)?;
        let claim = Claim {
            node: self.errand.to,
            incarnation: Incarnation(challenge.incarnation),
            boot: Boot(challenge.boot),
            process: challenge.process,
            cluster,
            version,
            lane: self.errand.lane,
            set: self.errand.set,
        };
        let mac = proof::prove(&self.me.secret, Role::Dialler, &self.hello, bytes);
        let proving = Proving {
            me: self.me,
            hello: self.hello,
            challenge: bytes.to_vec(),
            claim,
        };
        Ok((proving, sealed(mac)))
    }
}

impl Proving<'_> {
    /// The welcome came; gives who is there.
    pub(super) fn welcomed(self, bytes: &[u8]) -> Result<Claim, Refusal> {
        let welcome = head::Proof::decode(bytes).map_err(Refusal::damaged)?;
        let secret = &self.me.secret;
        let (hello, challenge) = (&self.hello, &self.challenge);
        if !proof::is_proven(secret, Role::Acceptor, hello, challenge, &welcome.mac) {
            return Err(Refusal::WrongSecret);
        }
        Ok(self.claim)
    }
}

impl<'a> Accepting<'a> {
    /// A hello came.
    pub(super) fn new(
        me: &'a Me,
        cluster: Option<ClusterId>,
        bytes: &[u8],
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Self, Refusal> {
        let hello = head::Hello::decode(bytes).map_err(Refusal::damaged)?;
        let version = agree(me.versions, versions(hello.version_min, hello.version_max)?)?;
        let theirs = same_cluster(cluster, &hello.cluster)?;
        if hello.to != me.node.0 {
            return Err(Refusal::WrongNode {
                meant: NodeId(hello.to),
                is: Some(me.node),
            });
        }
        check_nonce(&hello.nonce)?;
        let lane = match hello.lane {
            1 => Lane::Control,
            2 => Lane::Data,
            _ => return Err(Refusal::Invalid("lane")),
        };
        let claim = Claim {
            node: NodeId(hello.node),
            incarnation: Incarnation(hello.incarnation),
            boot: Boot(hello.boot),
            process: hello.process,
            cluster: theirs,
            version,
            lane,
            set: hello.set,
        };
        let challenge = head::Challenge {
            version_min: me.versions.min.into(),
            version_max: me.versions.max.into(),
            version: version.into(),
            cluster: cluster.map_or_else(Vec::new, |id| id.0.to_vec()),
            node: me.node.0,
            incarnation: me.incarnation.0,
            boot: me.boot.0,
            process: me.process,
            nonce: nonce.to_vec(),
        };
        Ok(Self {
            me,
            hello: bytes.to_vec(),
            challenge: challenge.encode_to_vec(),
            claim,
        })
    }

    pub(super) fn challenge(&self) -> &[u8] {
        &self.challenge
    }

    /// The proof came; gives who is there and the welcome, to be sent if it is admitted.
    pub(super) fn proven(self, bytes: &[u8]) -> Result<(Claim, Vec<u8>), Refusal> {
        let sent = head::Proof::decode(bytes).map_err(Refusal::damaged)?;
        let secret = &self.me.secret;
        let (hello, challenge) = (&self.hello, &self.challenge);
        if !proof::is_proven(secret, Role::Dialler, hello, challenge, &sent.mac) {
            return Err(Refusal::WrongSecret);
        }
        let mac = proof::prove(secret, Role::Acceptor, hello, challenge);
        Ok((self.claim, sealed(mac)))
    }
}

fn sealed(mac: [u8; proof::PROOF_BYTES]) -> Vec<u8> {
    let proof = head::Proof { mac: mac.to_vec() };
    proof.encode_to_vec()
}

fn agree(ours: Versions, theirs: Versions) -> Result<u8, Refusal> {
    let common = ours.common(theirs);
    common.ok_or(Refusal::NoCommonVersion { ours, theirs })
}

fn versions(min: u32, max: u32) -> Result<Versions, Refusal> {
    let narrow = |number: u32| u8::try_from(number).map_err(|_| Refusal::Invalid("versions"));
    Ok(Versions {
        min: narrow(min)?,
        max: narrow(max)?,
    })
}

/// A node that is in no cluster yet may speak to one that is, and learns which it is.
fn same_cluster(ours: Option<ClusterId>, theirs: &[u8]) -> Result<Option<ClusterId>, Refusal> {
    if theirs.is_empty() {
        return Ok(None);
    }
    let id = theirs.try_into().map_err(|_| Refusal::Invalid("cluster"))?;
    let theirs = ClusterId(id);
    match ours {
        Some(ours) if ours != theirs => Err(Refusal::WrongCluster {
            ours: Some(ours),
            theirs: Some(theirs),
        }),
        _ => Ok(Some(theirs)),
    }
}

fn check_nonce(nonce: &[u8]) -> Result<(), Refusal> {
    let is_whole = nonce.len() == NONCE_BYTES;
    is_whole.then_some(()).ok_or(Refusal::Invalid("nonce"))
}

#[cfg(test)]
pub(super) mod tests;
