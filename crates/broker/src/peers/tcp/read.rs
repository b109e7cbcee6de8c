//! Reads one connection: frame after frame, each part checked before it is used.
//!
//! Guarantees: memory for a body is taken from the pool, after its length is proven and within the limits; when what came
//! from this node and is still kept has used its share up, nothing more is read. A frame that does not end and, on the
//! control connection, silence end the connection.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use floe_wire::peer::frame::{HEAD_BYTES_MAX, PREAMBLE_BYTES};
use floe_wire::peer::{Limits, Preamble};
use floe_world::{Clock, Pool};
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tokio::time::timeout;

use crate::peers::message::{self, Message};
use crate::peers::settings;
use crate::peers::{Lost, Metrics};

/// Small frames come many at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// A frame may take this long for each of its bytes, beside its time: 100 KB/s.
const BYTES_PER_MS: usize = 100;

/// How a connection is read.
pub(super) struct Reading<'a> {
    pub(super) version: u8,
    pub(super) pool: &'a Pool,
    pub(super) body_bytes_max: usize,
    /// Longest pause between two frames, if there is a limit.
    pub(super) silence_max: Option<Duration>,
    pub(super) frame_within: Duration,
    pub(super) clock: &'a dyn Clock,
    /// When something was heard last, in milliseconds.
    pub(super) heard_ms: &'a AtomicU64,
    pub(super) metrics: &'a Metrics,
}

impl Reading<'_> {
    /// Reads until the other side is gone.
    pub(super) async fn run(
        &self,
        stream: impl AsyncRead + Unpin,
        mut received: impl FnMut(Message),
    ) -> Lost {
        let mut stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut head = Vec::new();
        loop {
            match self.frame(&mut stream, &mut head).await {
                Ok(message) => received(message),
                Err(lost) => return lost,
            }
        }
    }

    async fn frame(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        head: &mut Vec<u8>,
    ) -> Result<Message, Lost> {
        let limits = Limits {
            head_bytes: HEAD_BYTES_MAX,
            body_bytes: settings::body_bytes_max(self.body_bytes_max, self.pool.limit()),
        };
        let mut preamble = [0; PREAMBLE_BYTES];
        let first = stream.read(&mut preamble);
        let filled = match self.silence_max {
            Some(most) => timeout(most, first)
                .await
                .map_err(|_| Lost::Silent(most.as_millis()))??,
            None => first.await?,
        };
        if filled == 0 {
            return Err(Lost::Closed);
        }
        let now = self.clock.monotonic().as_millis() as u64;
        self.heard_ms.store(now, Relaxed);
        within(
            self.frame_within,
            stream.read_exact(&mut preamble[filled..]),
        )
        .await?;
        let preamble = Preamble::decode(&preamble, self.version, limits)?;
        head.resize(preamble.head_bytes, 0);
        within(self.frame_within, stream.read_exact(head)).await?;
        preamble.check_head(head)?;
        let body = if preamble.body_bytes == 0 {
            preamble.check_body(&[])?;
            Bytes::new()
        } else {
            self.body(stream, &preamble).await?
        };
        self.metrics.frames_in.inc();
        let bytes = PREAMBLE_BYTES + preamble.head_bytes + preamble.body_bytes;
        self.metrics.bytes_in.inc_by(bytes as u64);
        let message = message::read(preamble.kind, head, body)?;
        // A rare long list leaves no room behind.
        head.shrink_to(BUFFER_BYTES);
        Ok(message)
    }

    async fn body(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        preamble: &Preamble,
    ) -> Result<Bytes, Lost> {
        let length = preamble.body_bytes;
        // This node's own want of memory is no fault of the other's: no limit here, but the other side's patience.
        let mut buffer = self.pool.get(length).await;
        let patience = self.frame_within + Duration::from_millis((length / BYTES_PER_MS) as u64);
        within(patience, stream.read_exact(&mut buffer[..length])).await?;
        preamble.check_body(&buffer[..length])?;
        Ok(buffer.freeze(length))
    }
}

async fn within(
    patience: Duration,
    reading: impl Future<Output = io::Result<usize>>,
) -> Result<(), Lost> {
    timeout(patience, reading).await.map_err(|_| Lost::Slow)??;
    Ok(())
}
