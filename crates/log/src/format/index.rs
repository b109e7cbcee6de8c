//! `.idx`, the offset and time index of a segment, and `.psn`, a producer snapshot. Both are caches: every hit is proved
//! by the run header it points at, a bad page is rebuilt when first needed.
//!
//! ```text
//! .idx page  0 u32 crc of 4..   4 u32 count   8 count x { u32 offset - file base | u32 block | i64 max timestamp so far }
//! .psn       0 magic 8   8 u32 crc of 12..   12 u32 bytes   16 u64 at offset   24 the owner's bytes
//! ```

use super::{BLOCK, Fields, FormatError, crc};

/// Entries of a page.
pub const PAGE_ENTRIES: usize = 255;
const ENTRY: usize = 16;
const PRODUCERS_MAGIC: &[u8; 8] = b"FloeProd";
/// Bytes before the owner's in a `.psn`.
pub const PRODUCERS_HEADER: usize = 24;

/// One run of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First offset less the file's base.
    pub delta: u32,
    /// Block.
    pub block: u32,
    /// Largest record timestamp up to the end of the run.
    pub max_timestamp: i64,
}

/// Writes one page of at most [`PAGE_ENTRIES`].
pub fn encode_page(entries: &[Entry], into: &mut [u8]) {
    let into = &mut into[..BLOCK];
    into.fill(0);
    into[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    for (entry, place) in entries.iter().zip(into[8..].chunks_exact_mut(ENTRY)) {
        place[..4].copy_from_slice(&entry.delta.to_le_bytes());
        place[4..8].copy_from_slice(&entry.block.to_le_bytes());
        place[8..].copy_from_slice(&entry.max_timestamp.to_le_bytes());
    }
    let sum = crc(&[&into[4..]]);
    into[..4].copy_from_slice(&sum.to_le_bytes());
}

/// Appends the entries of one page.
pub fn decode_page(page: &[u8], into: &mut Vec<Entry>) -> Result<(), FormatError> {
    let wrong = FormatError::Inconsistent("index page");
    let page = page.get(..BLOCK).ok_or(wrong)?;
    let mut fields = Fields(page);
    if fields.u32().ok_or(wrong)? != crc(&[&page[4..]]) {
        return Err(FormatError::Checksum("index page"));
    }
    let count = fields.u32().ok_or(wrong)? as usize;
    if count > PAGE_ENTRIES {
        return Err(wrong);
    }
    for _ in 0..count {
        into.push(Entry {
            delta: fields.u32().ok_or(wrong)?,
            block: fields.u32().ok_or(wrong)?,
            max_timestamp: fields.i64().ok_or(wrong)?,
        });
    }
    Ok(())
}

/// The bytes before a producer snapshot.
pub fn encode_producers(at: u64, snapshot: &[u8]) -> [u8; PRODUCERS_HEADER] {
    let mut header = [0; PRODUCERS_HEADER];
    header[..8].copy_from_slice(PRODUCERS_MAGIC);
    header[12..16].copy_from_slice(&(snapshot.len() as u32).to_le_bytes());
    header[16..].copy_from_slice(&at.to_le_bytes());
    let sum = crc(&[&header[12..], snapshot]);
    header[8..12].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Offset and owner's bytes of a producer snapshot.
pub fn decode_producers(bytes: &[u8]) -> Result<(u64, &[u8]), FormatError> {
    let wrong = FormatError::Inconsistent("producer snapshot");
    let mut fields = Fields(bytes);
    if fields.bytes(8) != Some(PRODUCERS_MAGIC) {
        return Err(FormatError::Magic("producer snapshot"));
    }
    let sum = fields.u32().ok_or(wrong)?;
    let len = fields.u32().ok_or(wrong)? as usize;
    let at = fields.u64().ok_or(wrong)?;
    let snapshot = fields.bytes(len).ok_or(wrong)?;
    if sum != crc(&[&bytes[12..PRODUCERS_HEADER], snapshot]) {
        return Err(FormatError::Checksum("producer snapshot"));
    }
    Ok((at, snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_laid_out_as_drawn() {
        let entries = [
            Entry {
                delta: 0,
                block: 1,
                max_timestamp: 5,
            },
            Entry {
                delta: 9,
                block: 3,
                max_timestamp: 6,
            },
        ];
        let mut page = [9; BLOCK];
        encode_page(&entries, &mut page);
        assert_eq!(
            &page[4..24],
            b"\x02\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0\0\0\0\0"
        );
        assert_eq!(&page[24..40], b"\x09\0\0\0\x03\0\0\0\x06\0\0\0\0\0\0\0");
        let mut read = Vec::new();
        decode_page(&page, &mut read).unwrap();
        assert_eq!(read, entries);
        page[4095] ^= 1;
        assert_eq!(
            decode_page(&page, &mut read),
            Err(FormatError::Checksum("index page"))
        );
    }

    #[test]
    fn a_producer_snapshot_is_laid_out_as_drawn() {
        let mut bytes = encode_producers(7, b"abc").to_vec();
        bytes.extend(b"abc and more");
        assert_eq!(&bytes[..8], b"FloeProd");
        assert_eq!(&bytes[12..24], b"\x03\0\0\0\x07\0\0\0\0\0\0\0");
        assert_eq!(decode_producers(&bytes), Ok((7, &b"abc"[..])));
        bytes[25] ^= 1;
        assert_eq!(
            decode_producers(&bytes),
            Err(FormatError::Checksum("producer snapshot"))
        );
    }
}
