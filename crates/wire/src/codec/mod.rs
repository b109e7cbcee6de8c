//! The four codecs of record batches: gzip (RFC 1952), snappy (framed as `snappy-java` does, or raw), LZ4 frames
//! (KIP-57), Zstandard (KIP-110, RFC 8878).
//!
//! Guarantees: decompression writes into a recycled buffer and stops at its limit, whatever the bytes claim; a
//! buffer that grew large is given back, and the process has one such buffer at a time. Blocks; a batch is small.

mod out;
mod snappy;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

use out::Out;

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
    #[error(
        "records decompress to more than {limit} bytes; send smaller batches, or raise message.decompressed.max.bytes"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Largest uncompressed records region, unless said otherwise: 64 times the default batch.
pub const DECOMPRESSED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a scratch buffer keeps between batches.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Recycled room for decompressed records; one per thread that checks or walks batches.
///
/// One that holds more than a few mebibytes keeps every other from growing that far, so it is given to
/// [`Scratch::rest`] or dropped before its owner waits for anything.
pub struct Scratch {
    limit: usize,
    out: Out,
    zstd: Option<DCtx<'static>>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("limit", &self.limit)
            .field("capacity", &self.out.bytes.capacity())
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
            out: Out::default(),
            zstd: None,
        }
    }

    /// Gives back what is large; what was decompressed last is gone.
    pub fn rest(&mut self) {
        self.out.clear(KEPT_BYTES_MAX);
        let is_large = |context: &DCtx<'_>| context.sizeof() > KEPT_BYTES_MAX;
        if self.zstd.as_ref().is_some_and(is_large) {
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
    decompress_within(codec, packed, scratch, DECOMPRESSED_BYTES_MAX)
}

/// As [`decompress`], with a limit below the scratch buffer's own.
pub(crate) fn decompress_within<'a>(
    codec: Codec,
    packed: &'a [u8],
    scratch: &'a mut Scratch,
    limit: usize,
) -> Result<&'a [u8], Error> {
    if codec == Codec::None {
        return Ok(packed);
    }
    scratch.rest();
    let limit = limit.min(scratch.limit);
    let out = &mut scratch.out;
    out.limit = limit;
    let full = match codec {
        Codec::None => Ok(()),
        Codec::Gzip => out.drain(flate2::bufread::MultiGzDecoder::new(packed)),
        Codec::Snappy => snappy::decompress(packed, out),
        Codec::Lz4 => unlz4(packed, out),
        Codec::Zstd => unzstd(packed, out, &mut scratch.zstd),
    };
    match full {
        Ok(()) => Ok(&scratch.out.bytes),
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

/// The decoder takes a frame without its end mark for complete; Java's reader does not, so neither do we.
fn unlz4(packed: &[u8], out: &mut Out) -> Result<(), Stop> {
    const CONTENT_CHECKSUM: u8 = 1 << 2;
    let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
    out.drain(&mut decoder)?;
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

fn unzstd(packed: &[u8], out: &mut Out, context: &mut Option<DCtx<'static>>) -> Result<(), Stop> {
    let context = match context {
        Some(context) => context,
        none => none.insert(DCtx::try_create().ok_or_else(|| bad("no memory for a context"))?),
    };
    context
        .reset(ResetDirective::SessionOnly)
        .map_err(|code| bad(zstd::zstd_safe::get_error_name(code)))?;
    let mut input = InBuffer::around(packed);
    loop {
        out.grow();
        let filled = out.bytes.len();
        let consumed = input.pos();
        let mut output = OutBuffer::around_pos(&mut out.bytes, filled);
        let hint = context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| bad(zstd::zstd_safe::get_error_name(code)))?;
        let written = output.pos() - filled;
        if out.bytes.len() > out.limit {
            return Err(Stop::Limit);
        }
        if hint == 0 && input.pos() == packed.len() {
            return Ok(());
        }
        if written == 0 && input.pos() == consumed && out.bytes.len() < out.bytes.capacity() {
            return Err(bad("the frame is cut short"));
        }
    }
}
