//! Writes one connection: what has gathered in its queue leaves in one vectored write.
//!
//! Guarantees: batches leave by reference, small parts are gathered; the write ends when the other side takes nothing for
//! too long.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use floe_wire::peer::frame;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::queue::Queue;
use crate::peers::message::Drawn;
use crate::peers::{Lost, Metrics};

/// About how much leaves in one write.
const GATHER_BYTES: usize = 256 << 10;
/// Most frames that leave in one write.
const GATHER_FRAMES: usize = 512;
/// Parts of a body below this are copied: cheaper than a slice of their own.
const COPIED_BYTES: usize = 512;

/// Writes until the other side is gone.
pub(super) async fn write(
    mut stream: impl AsyncWrite + Unpin,
    queue: &Queue,
    version: u8,
    stall_max: Duration,
    metrics: &Metrics,
) -> Lost {
    let mut frames = Vec::new();
    let mut gathered = Gathered::default();
    loop {
        frames.clear();
        gathered.clear();
        let bytes = queue.take(&mut frames, GATHER_BYTES, GATHER_FRAMES).await;
        for frame in &frames {
            gathered.push(version, frame);
        }
        if let Err(lost) = write_all(&mut stream, &gathered, stall_max, metrics).await {
            return lost;
        }
        metrics.frames_out.inc_by(frames.len() as u64);
        metrics.bytes_out.inc_by(bytes as u64);
        // Bodies go before their bytes are counted as gone.
        frames.clear();
        gathered.clear();
        queue.written(bytes);
    }
}

async fn write_all(
    stream: &mut (impl AsyncWrite + Unpin),
    gathered: &Gathered,
    stall_max: Duration,
    metrics: &Metrics,
) -> Result<(), Lost> {
    let mut slices = gathered.slices();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let written = timeout(stall_max, stream.write_vectored(rest))
            .await
            .map_err(|_| Lost::Stalled(stall_max.as_millis()))??;
        if written == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        metrics.writes.inc();
        IoSlice::advance_slices(&mut rest, written);
    }
    Ok(())
}

/// Frames as they will be written.
#[derive(Default)]
struct Gathered {
    small: Vec<u8>,
    pieces: Vec<Piece>,
}

enum Piece {
    Small(Range<usize>),
    Large(Bytes),
}

impl Gathered {
    fn clear(&mut self) {
        self.small.clear();
        self.pieces.clear();
    }

    fn push(&mut self, version: u8, frame: &Drawn) {
        let preamble = frame::preamble(version, frame.kind, &frame.head, &frame.body);
        self.copy(&preamble);
        self.copy(&frame.head);
        for part in &frame.body {
            if part.len() < COPIED_BYTES {
                self.copy(part);
            } else {
                self.pieces.push(Piece::Large(part.clone()));
            }
        }
    }

    fn copy(&mut self, bytes: &[u8]) {
        let start = self.small.len();
        self.small.extend_from_slice(bytes);
        let end = self.small.len();
        match self.pieces.last_mut() {
            Some(Piece::Small(range)) => range.end = end,
            _ => self.pieces.push(Piece::Small(start..end)),
        }
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Small(range) => IoSlice::new(&self.small[range.clone()]),
                Piece::Large(bytes) => IoSlice::new(bytes),
            })
            .filter(|slice| !slice.is_empty())
            .collect()
    }
}
