//! What nodes say to one another: frames, the small heads in them, and the proof of the cluster secret.
//!
//! ```text
//! dialler ──Hello──► acceptor     both nonces, both nodes, incarnations, boots, the cluster, the versions
//!         ◄─Challenge─
//!         ──Proof──►              HMAC over both, as dialler
//!         ◄─Welcome─              HMAC over both, as acceptor; only now is anything else read or said
//! ```
//! A frame is a preamble of 24 bytes ([`frame`]), a head in Protocol Buffers ([`head`]), and a body that is never looked
//! into here: record batches by reference, or bytes that others draw.
//!
//! Guarantees: each part is checksummed and checked before it is used, each length bounded before memory is taken for it. The
//! frames of the handshake have version 0 for ever, so that nodes of all releases can tell one another why they do not
//! speak. Does not encrypt: who can change bytes on the way after the handshake is kept out by the network.

pub mod frame;
pub mod head;
pub mod proof;

pub use frame::{Error, Foreign, Kind, Limits, Preamble};

/// Version of the frames of the handshake.
pub const HANDSHAKE_VERSION: u8 = 0;
/// Oldest version of the protocol that this release speaks.
pub const VERSION_MIN: u8 = 1;
/// Newest version of the protocol that this release speaks.
pub const VERSION_MAX: u8 = 1;

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Oldest.
    pub min: u8,
    /// Newest.
    pub max: u8,
}

impl Versions {
    /// What this release speaks.
    pub const OURS: Self = Self {
        min: VERSION_MIN,
        max: VERSION_MAX,
    };

    /// The highest version in both, if there is one. Version 0 is the handshake's and never agreed on.
    pub fn common(self, other: Self) -> Option<u8> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min).max(1)).then_some(highest)
    }
}

impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.max)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;

    fn common(one: (u8, u8), other: (u8, u8)) -> Option<u8> {
        let versions = |(min, max)| Versions { min, max };
        let found = versions(one).common(versions(other));
        assert_eq!(found, versions(other).common(versions(one)), "both agree");
        found
    }

    #[test]
    fn the_highest_version_both_speak_is_agreed_on_and_none_if_there_is_none() {
        assert_eq!(common((1, 1), (1, 1)), Some(1));
        assert_eq!(common((1, 4), (2, 3)), Some(3));
        assert_eq!(common((1, 2), (2, 5)), Some(2));
        assert_eq!(common((1, 1), (2, 3)), None);
        assert_eq!(common((0, 0), (0, 0)), None, "the handshake's own");
        assert_eq!(common((3, 2), (1, 9)), None, "an empty range");
    }
}
