//! Snappy as Kafka carries it. Java clients frame it: `0x82 "SNAPPY" 0`, version i32, compatible version i32, then
//! blocks of {length i32, raw snappy}; others send one raw block. Both are read, the framed form is written.

use super::out::Out;
use super::{Stop, bad};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER_BYTES: usize = 16;
const BLOCK_BYTES: usize = 32 * 1024;
/// A raw block expands at most this many times (its longest copy is 64 bytes from a 3-byte element); a claim
/// above it is refused before memory is taken.
const EXPANSION_MAX: usize = 32;

pub(super) fn decompress(packed: &[u8], out: &mut Out) -> Result<(), Stop> {
    let Some(mut rest) = packed
        .get(HEADER_BYTES..)
        .filter(|_| packed.starts_with(&MAGIC))
    else {
        return block(packed, out);
    };
    while !rest.is_empty() {
        let Some((length, behind)) = rest.split_first_chunk::<4>() else {
            return Err(bad("a block length is cut short"));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some((packed, behind)) = behind.split_at_checked(length) else {
            return Err(bad("a block reaches beyond the end"));
        };
        block(packed, out)?;
        rest = behind;
    }
    Ok(())
}

fn block(packed: &[u8], out: &mut Out) -> Result<(), Stop> {
    let claimed = snap::raw::decompress_len(packed).map_err(bad)?;
    if claimed > packed.len().saturating_mul(EXPANSION_MAX) {
        return Err(bad("the announced length cannot be reached"));
    }
    let filled = out.bytes.len();
    if claimed > out.limit.saturating_sub(filled) {
        return Err(Stop::Limit);
    }
    out.expect(filled + claimed);
    out.bytes.resize(filled + claimed, 0);
    let written = snap::raw::Decoder::new()
        .decompress(packed, &mut out.bytes[filled..])
        .map_err(bad)?;
    out.bytes.truncate(filled + written);
    Ok(())
}

pub(super) fn compress(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + plain.len() / 2);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(BLOCK_BYTES) {
        let packed = encoder
            .compress_vec(block)
            .expect("a block of 32 KiB is far below snappy's limit");
        out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
        out.extend_from_slice(&packed);
    }
    out
}
