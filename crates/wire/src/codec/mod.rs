//! The four codecs of record batches: gzip (RFC 1952), snappy (framed as `snappy-java` does, or raw), LZ4 frames
//! (KIP-57), Zstandard (KIP-110, RFC 8878).
//!
//! Guarantees: decompression writes into a recycled buffer and stops at its limit, whatever the bytes claim; a
//! buffer that grew large is given back. Blocks; a batch is small.

mod snappy;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};

use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

/// How a batch's records are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// From its number in a batch's attributes.
    pub fn from_bits(bits: u8) -> Result<Self, u8> {
        Self::ALL.get(usize::from(bits)).copied().ok_or(bits)
    }

    /// Its number in a batch's attributes.
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// Kafka's name (`compression.type`).
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Why bytes could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The codec does not accept them.
    #[error("records do not decompress as {}: {reason}", .codec.name())]
    Undecodable {
        /// The codec their batch names.
        codec: Codec,
        /// What the codec says.
        reason: io::Error,
    },
    /// They give more than the limit.
    #[error("records decompress to more than {limit} bytes; send smaller batches")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Largest uncompressed records region, unless said otherwise: 64 times the default batch.
pub const DECOMPRESSED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a scratch buffer keeps between batches.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
const FIRST_BYTES: usize = 64 * 1024;

/// Recycled room for decompressed records; one per thread that checks or walks batches.
pub struct Scratch {
    limit: usize,
    out: Vec<u8>,
    zstd: Option<DCtx<'static>>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("limit", &self.limit)
            .field("capacity", &self.out.capacity())
            .finish_non_exhaustive()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new(DECOMPRESSED_BYTES_MAX)
    }
}

impl Scratch {
    /// Takes no memory until a compressed batch comes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            out: Vec::new(),
            zstd: None,
        }
    }

    fn clear(&mut self) {
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::new();
        }
        if self
            .zstd
            .as_ref()
            .is_some_and(|c| c.sizeof() > KEPT_BYTES_MAX)
        {
            self.zstd = None;
        }
    }
}

/// Decompresses a records region; uncompressed ones are given back as they are.
pub fn decompress<'a>(
    codec: Codec,
    packed: &'a [u8],
    scratch: &'a mut Scratch,
) -> Result<&'a [u8], Error> {
    if codec == Codec::None {
        return Ok(packed);
    }
    scratch.clear();
    let limit = scratch.limit;
    let full = match codec {
        Codec::None => Ok(()),
        Codec::Gzip => drain(
            flate2::bufread::MultiGzDecoder::new(packed),
            &mut scratch.out,
            limit,
        ),
        Codec::Snappy => snappy::decompress(packed, &mut scratch.out, limit),
        Codec::Lz4 => unlz4(packed, &mut scratch.out, limit),
        Codec::Zstd => unzstd(packed, scratch),
    };
    match full {
        Ok(()) => Ok(&scratch.out),
        Err(Stop::Limit) => Err(Error::TooLarge { limit }),
        Err(Stop::Bad(reason)) => Err(Error::Undecodable { codec, reason }),
    }
}

/// Compresses a records region as Kafka's own clients do by default.
pub fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => plain.to_vec(),
        Codec::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(plain)
                .and_then(|()| out.finish())
                .expect("writing into memory does not fail")
        }
        Codec::Snappy => snappy::compress(plain),
        Codec::Lz4 => {
            let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
            out.write_all(plain)
                .expect("writing into memory does not fail");
            out.finish().expect("writing into memory does not fail")
        }
        Codec::Zstd => zstd::bulk::compress(plain, 3).expect("its output buffer is large enough"),
    }
}

/// Why output stopped early.
enum Stop {
    Limit,
    Bad(io::Error),
}

fn bad(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Stop {
    Stop::Bad(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// Room for `more` bytes, grown by doubling; the limit is in what is written, not in what is claimed.
fn grow(out: &mut Vec<u8>, limit: usize) {
    if out.len() == out.capacity() {
        let step = out.capacity().clamp(FIRST_BYTES, limit.max(FIRST_BYTES));
        out.reserve_exact(step);
    }
}

fn drain(mut from: impl Read, out: &mut Vec<u8>, limit: usize) -> Result<(), Stop> {
    // One byte more than the limit tells "exactly the limit" from "above it".
    match from.by_ref().take(limit as u64 + 1).read_to_end(out) {
        Ok(_) if out.len() > limit => Err(Stop::Limit),
        Ok(_) => Ok(()),
        Err(reason) => Err(Stop::Bad(reason)),
    }
}

/// The decoder takes a frame without its end mark for complete; Java's reader does not, so neither do we.
fn unlz4(packed: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), Stop> {
    const CONTENT_CHECKSUM: u8 = 1 << 2;
    let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
    drain(&mut decoder, out, limit)?;
    let consumed = &packed[..packed.len() - decoder.get_ref().len()];
    let has_checksum = packed
        .get(4)
        .is_some_and(|flags| flags & CONTENT_CHECKSUM != 0);
    let end = consumed
        .len()
        .saturating_sub(if has_checksum { 4 } else { 0 });
    if consumed[..end].ends_with(&[0; 4]) {
        Ok(())
    } else {
        Err(bad("the frame has no end mark"))
    }
}

fn unzstd(packed: &[u8], scratch: &mut Scratch) -> Result<(), Stop> {
    let context = match &mut scratch.zstd {
        Some(context) => context,
        none => none.insert(DCtx::try_create().ok_or_else(|| bad("no memory for a context"))?),
    };
    context
        .reset(ResetDirective::SessionOnly)
        .map_err(|code| bad(zstd::zstd_safe::get_error_name(code)))?;
    let mut input = InBuffer::around(packed);
    loop {
        grow(&mut scratch.out, scratch.limit);
        let filled = scratch.out.len();
        let consumed = input.pos();
        let mut output = OutBuffer::around_pos(&mut scratch.out, filled);
        let hint = context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| bad(zstd::zstd_safe::get_error_name(code)))?;
        let written = output.pos() - filled;
        if scratch.out.len() > scratch.limit {
            return Err(Stop::Limit);
        }
        if hint == 0 && input.pos() == packed.len() {
            return Ok(());
        }
        if written == 0 && input.pos() == consumed && scratch.out.len() < scratch.out.capacity() {
            return Err(bad("the frame is cut short"));
        }
    }
}
