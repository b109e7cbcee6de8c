//! A TCP stream that notes what happens on it and closes so that its last answer arrives.
//!
//! Guarantees: an error of the stream is remembered in its [`Activity`]; closing sends FIN first and then takes in,
//! for a bounded time and a bounded number of bytes, what the caller still sends: a close with unread bytes is a
//! reset, and a reset can destroy an answer on its way (RFC 9112, 9.6).

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::activity::Activity;
use super::connection::has_ended;
use super::stop::{Phase, Stop};

/// What HTTP/2 with prior knowledge begins with (RFC 9113, 3.4), as far as no HTTP/1.1 request does.
const PREFACE: &[u8] = b"PRI";
/// Longest wait for the caller's own end after ours.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// Most bytes taken in meanwhile.
pub(super) const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// See the file's head. The stream is shared so that [`super::Connection`] can ask it for errors at any moment.
pub(crate) struct Socket {
    stream: Arc<TcpStream>,
    /// Bytes taken from the stream that still count as unread.
    ahead: Vec<u8>,
    activity: Arc<Activity>,
    stop: Stop,
    closing: Option<Closing>,
}

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// HTTP/1.0 or 1.1.
    One,
    /// HTTP/2.
    Two,
}

struct Closing {
    deadline: Pin<Box<Sleep>>,
    taken: usize,
}

impl Socket {
    pub(crate) fn new(stream: Arc<TcpStream>, activity: Arc<Activity>, stop: Stop) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
            activity,
            stop,
            closing: None,
        }
    }

    /// Which HTTP the caller speaks, told from its first bytes, which stay unread; `None` when it is gone.
    pub(crate) async fn sniff(&mut self) -> Option<Version> {
        loop {
            if self.ahead.starts_with(PREFACE) {
                return Some(Version::Two);
            }
            if !PREFACE.starts_with(&self.ahead) {
                return Some(Version::One);
            }
            let mut bytes = [0; PREFACE.len()];
            let missing = PREFACE.len() - self.ahead.len();
            let count = poll_fn(|cx| self.poll_take(cx, &mut bytes[..missing])).await;
            match count {
                Ok(0) => return None,
                Ok(count) => self.ahead.extend_from_slice(&bytes[..count]),
                Err(_) => {
                    self.activity.set_broken();
                    return None;
                }
            }
        }
    }

    /// Gives bytes back that were read too far.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.ahead.splice(..0, bytes.iter().copied());
    }

    fn poll_take(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_give(
        &self,
        cx: &mut Context<'_>,
        give: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let outcome = loop {
            match self.stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(e)) => break Poll::Ready(Err(e)),
                Poll::Pending => break Poll::Pending,
            }
            // Who has gone before these bytes cannot have had them.
            if has_ended(&self.stream) {
                self.activity.set_broken();
            }
            match give(&self.stream) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                outcome => break Poll::Ready(outcome),
            }
        };
        match &outcome {
            Poll::Ready(Ok(_)) => self.activity.write(false),
            Poll::Ready(Err(_)) => self.activity.set_broken(),
            Poll::Pending => self.activity.write(true),
        }
        outcome
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buffer.remaining());
            let ahead: Vec<u8> = self.ahead.drain(..count).collect();
            self.activity.read(&ahead);
            buffer.put_slice(&ahead);
            return Poll::Ready(Ok(()));
        }
        let room = buffer.initialize_unfilled();
        match ready!(self.poll_take(cx, room)) {
            Ok(count) => {
                if count > 0 {
                    self.activity.read(&room[..count]);
                }
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Err(e) => {
                self.activity.set_broken();
                Poll::Ready(Err(e))
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_give(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_give(cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Called by hyper when its own buffers are empty.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.activity.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            SockRef::from(&*self.stream).shutdown(Shutdown::Write)?;
            self.closing = Some(Closing {
                deadline: Box::pin(tokio::time::sleep(LINGER)),
                taken: 0,
            });
        }
        if self.stop.phase() != Phase::Serving {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 4096];
        loop {
            match self.poll_take(cx, &mut scratch) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(_)) => {
                    self.activity.set_broken();
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(count)) => {
                    let Some(closing) = &mut self.closing else {
                        return Poll::Ready(Ok(()));
                    };
                    closing.taken += count;
                    if closing.taken > LINGER_BYTES {
                        return Poll::Ready(Ok(()));
                    }
                }
                Poll::Pending => {
                    let Some(closing) = &mut self.closing else {
                        return Poll::Ready(Ok(()));
                    };
                    return closing.deadline.as_mut().poll(cx).map(Ok);
                }
            }
        }
    }
}
