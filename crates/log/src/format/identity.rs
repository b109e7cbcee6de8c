//! `node.id`: whose data this is. Written at format, and once more when a node that had no cluster has one; two copies of 4 KiB,
//! the second after the first is flushed, the first that is whole counts.
//!
//! ```text
//!  0 magic 8   8 u16 version  10 u16 sector bytes  12 u32 crc of all but itself   16 cluster 16   32 u32 node
//! 36 u32 ring sectors   40 u64 journal id (random; every journal sector's checksum starts from it)
//! 48 u8 1: this node began its cluster   49 zeros
//! ```

use super::{BLOCK, FormatError, VERSION, crc};

const MAGIC: &[u8; 8] = b"FloeNode";

/// Whose data this is, and the journal's fixed shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster; zeros while there is none.
    pub cluster: [u8; 16],
    /// This node began it, alone.
    pub is_founder: bool,
    /// The node.
    pub node: u32,
    /// Journal sectors in the ring. A sector's place is its number modulo this, so it never changes.
    pub ring_sectors: u32,
    /// Random.
    pub journal_id: u64,
}

impl Identity {
    /// One copy.
    pub fn encode(&self, into: &mut [u8]) {
        let into = &mut into[..BLOCK];
        into.fill(0);
        into[..8].copy_from_slice(MAGIC);
        into[8..10].copy_from_slice(&VERSION.to_le_bytes());
        into[10..12].copy_from_slice(&(super::sector::SECTOR as u16).to_le_bytes());
        into[16..32].copy_from_slice(&self.cluster);
        into[32..36].copy_from_slice(&self.node.to_le_bytes());
        into[36..40].copy_from_slice(&self.ring_sectors.to_le_bytes());
        into[40..48].copy_from_slice(&self.journal_id.to_le_bytes());
        into[48] = self.is_founder.into();
        let sum = crc(&[&into[..12], &into[16..]]);
        into[12..16].copy_from_slice(&sum.to_le_bytes());
    }

    /// From one copy.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let short = FormatError::Inconsistent("node.id");
        let bytes = bytes.get(..BLOCK).ok_or(short)?;
        if &bytes[..8] != MAGIC {
            return Err(FormatError::Magic("node.id"));
        }
        let mut fields = super::Fields(&bytes[8..48]);
        let version = fields.u16().ok_or(short)?;
        let sector = fields.u16().ok_or(short)?;
        let sum = fields.u32().ok_or(short)?;
        if sum != crc(&[&bytes[..12], &bytes[16..]]) {
            return Err(FormatError::Checksum("node.id"));
        }
        if version > VERSION {
            return Err(FormatError::Newer(version));
        }
        if usize::from(sector) != super::sector::SECTOR {
            return Err(FormatError::Inconsistent("node.id (sector size)"));
        }
        Ok(Self {
            is_founder: bytes[48] == 1,
            cluster: fields.array().ok_or(short)?,
            node: fields.u32().ok_or(short)?,
            ring_sectors: fields.u32().ok_or(short)?,
            journal_id: fields.u64().ok_or(short)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Identity {
        Identity {
            cluster: *b"0123456789abcdef",
            is_founder: false,
            node: 3,
            ring_sectors: 16_384,
            journal_id: 0x1122_3344_5566_7788,
        }
    }

    #[test]
    fn an_identity_is_laid_out_as_drawn() {
        let mut bytes = [0xff; BLOCK];
        example().encode(&mut bytes);
        assert_eq!(&bytes[..12], b"FloeNode\x02\x00\x00\x10");
        assert_eq!(&bytes[16..32], b"0123456789abcdef");
        assert_eq!(
            &bytes[32..48],
            b"\x03\0\0\0\0\x40\0\0\x88\x77\x66\x55\x44\x33\x22\x11"
        );
        assert!(bytes[48..].iter().all(|byte| *byte == 0));
        assert_eq!(Identity::decode(&bytes), Ok(example()));
    }

    #[test]
    fn a_flip_anywhere_is_seen() {
        let mut bytes = [0; BLOCK];
        example().encode(&mut bytes);
        for at in [0, 9, 13, 20, 35, 47, 4095] {
            bytes[at] ^= 1;
            assert!(Identity::decode(&bytes).is_err(), "{at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = [0; BLOCK];
        example().encode(&mut bytes);
        bytes[8] = 9;
        let sum = crc(&[&bytes[..12], &bytes[16..]]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Identity::decode(&bytes), Err(FormatError::Newer(9)));
    }
}
