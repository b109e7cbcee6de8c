//! Every on-disk layout of the log, drawn where it is encoded, with an encoded example in its test.
//!
//! Integers are little-endian (Kafka's batches keep their own order), checksums CRC-32C. Decoders take bytes of
//! unknown origin: they never panic and allocate nothing beyond what they were given.

pub mod batch;
pub mod checkpoint;
pub mod identity;
pub mod index;
pub mod record;
pub mod sector;
pub mod segment;

use crc_fast::{CrcAlgorithm, Digest};

/// Unit of segment files, and of every aligned transfer.
pub const BLOCK: usize = 4096;

/// Newest version of every layout here; one number for all, it is data (`version` fields), not a name.
pub const VERSION: u16 = 2;

/// Bytes that are not what they should be; says which check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A magic number does not match.
    #[error("not a {0}")]
    Magic(&'static str),
    /// A checksum does not match.
    #[error("{0} fails its checksum")]
    Checksum(&'static str),
    /// Written by a newer release.
    #[error("format {0} is newer than this release knows")]
    Newer(u16),
    /// Lengths or counts contradict one another, or the bytes end too early.
    #[error("{0} contradicts itself")]
    Inconsistent(&'static str),
}

/// CRC-32C of `parts` in sequence.
pub fn crc(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}

/// Reads fields from the front of bytes of unknown length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn crc_is_castagnoli_over_all_parts() {
        assert_eq!(super::crc(&[b"1234", b"56789"]), 0xe306_9283); // RFC 3720 B.4's polynomial, the catalogue's check
    }
}
