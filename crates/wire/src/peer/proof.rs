//! The proof of the cluster secret: HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the whole hello and the whole challenge.
//!
//! ```text
//! mac = HMAC(secret, label of the role (16 bytes) | u32 bytes of hello | hello | u32 bytes of challenge | challenge)
//! ```
//! Hello and challenge carry a fresh nonce each, so that a proof is of use once, and everything that was claimed, so that none
//! of it can be changed on the way; the label keeps a proof from being sent back as the other side's.
//!
//! Guarantees: compared in a time that does not depend on where two proofs differ; the secret is never shown.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Shortest secret.
pub const SECRET_BYTES_MIN: usize = 16;
/// Longest secret.
pub const SECRET_BYTES_MAX: usize = 1024;

/// What all nodes of a cluster know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Why a text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Fewer bytes than the least.
    #[error(
        "the cluster secret has {0} bytes without the white space around it; write at least {SECRET_BYTES_MIN}, for instance what `openssl rand -base64 32` prints"
    )]
    Short(usize),
    /// More bytes than the most.
    #[error(
        "the cluster secret has {0} bytes; write at most {SECRET_BYTES_MAX}, for instance what `openssl rand -base64 32` prints"
    )]
    Long(usize),
}

impl Secret {
    /// From the bytes of a file or a variable; white space around it is not part of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unfit> {
        let bytes = bytes.trim_ascii();
        match bytes.len() {
            len if len < SECRET_BYTES_MIN => Err(Unfit::Short(len)),
            len if len > SECRET_BYTES_MAX => Err(Unfit::Long(len)),
            _ => Ok(Self(bytes.to_vec())),
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that dialled.
    Dialler,
    /// The one that was dialled.
    Acceptor,
}

impl Role {
    fn label(self) -> &'static [u8; 16] {
        match self {
            Self::Dialler => b"floe peer dials\n",
            Self::Acceptor => b"floe peer takes\n",
        }
    }
}

/// The proof of a role.
pub fn prove(secret: &Secret, role: Role, hello: &[u8], challenge: &[u8]) -> [u8; PROOF_BYTES] {
    mac(secret, role, hello, challenge)
        .finalize()
        .into_bytes()
        .into()
}

/// Whether it is that proof.
pub fn is_proven(
    secret: &Secret,
    role: Role,
    hello: &[u8],
    challenge: &[u8],
    proof: &[u8],
) -> bool {
    mac(secret, role, hello, challenge)
        .verify_slice(proof)
        .is_ok()
}

fn mac(secret: &Secret, role: Role, hello: &[u8], challenge: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
    mac.update(role.label());
    for part in [hello, challenge] {
        mac.update(&(part.len() as u32).to_le_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[u8] = b"hello";
    const CHALLENGE: &[u8] = b"challenge";

    fn secret(text: &str) -> Secret {
        Secret::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_proof_holds_for_its_secret_role_hello_and_challenge_and_no_other() {
        let right = secret("a secret of a cluster");
        let proof = prove(&right, Role::Dialler, HELLO, CHALLENGE);
        assert!(is_proven(&right, Role::Dialler, HELLO, CHALLENGE, &proof));
        let wrong = secret("a secret of a clusteR");
        assert!(!is_proven(&wrong, Role::Dialler, HELLO, CHALLENGE, &proof));
        assert!(!is_proven(&right, Role::Acceptor, HELLO, CHALLENGE, &proof));
        assert!(!is_proven(&right, Role::Dialler, CHALLENGE, HELLO, &proof));
        assert!(!is_proven(
            &right,
            Role::Dialler,
            b"helloc",
            b"hallenge",
            &proof
        ));
        assert!(!is_proven(
            &right,
            Role::Dialler,
            HELLO,
            CHALLENGE,
            &proof[..31]
        ));
        assert!(!is_proven(&right, Role::Dialler, HELLO, CHALLENGE, &[]));
    }

    #[test]
    fn a_proof_is_the_hmac_that_the_picture_says() {
        // Made with Python's hmac module from the picture.
        let proof = prove(
            &secret("0123456789abcdef"),
            Role::Acceptor,
            HELLO,
            CHALLENGE,
        );
        let expected = [
            0xca, 0xfe, 0x06, 0xa2, 0xb3, 0xcf, 0x61, 0xff, 0x75, 0x5b, 0xca, 0x5f, 0xab, 0xbc,
            0x0d, 0x3a, 0xe4, 0xbd, 0x74, 0xa7, 0x0e, 0x88, 0x55, 0xdf, 0x4a, 0x47, 0x28, 0xab,
            0xe8, 0x72, 0xe0, 0x0c,
        ];
        assert_eq!(proof, expected);
    }

    #[test]
    fn a_secret_is_taken_within_its_lengths_without_the_space_around_it_and_never_shown() {
        let of = |len: usize| Secret::parse("x".repeat(len).as_bytes());
        assert!(of(SECRET_BYTES_MIN).is_ok() && of(SECRET_BYTES_MAX).is_ok());
        assert_eq!(of(15), Err(Unfit::Short(15)));
        assert_eq!(of(1025), Err(Unfit::Long(1025)));
        assert_eq!(Secret::parse(b"  \n"), Err(Unfit::Short(0)));
        let spaced = Secret::parse(b"\n0123456789abcdef \n").unwrap();
        assert_eq!(spaced, secret("0123456789abcdef"));
        assert_eq!(format!("{spaced:?}"), "Secret(..)");
    }
}
