//! Answers that can be large: pieces from the memory pool, given back one by one as the caller takes them.
//!
//! Guarantees: an answer is never larger than what the pool gave; while memory is short answers become smaller, so that
//! callers who do not read cannot keep it from those who do. An answer dropped before its end says so.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use floe_world::{Buffer, Pool};
use hyper::body::{Frame, SizeHint};

use super::body::piece;
use super::json::Text as _;
use super::problem::Problem;

/// Size of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Collects an answer.
pub(crate) struct Pages {
    pool: Pool,
    full: VecDeque<Bytes>,
    current: Buffer,
    filled: usize,
    len: usize,
}

impl Pages {
    /// Begins an answer; waits for its first piece if need be.
    pub(crate) async fn begin(pool: &Pool) -> Result<Self, Problem> {
        Ok(Self {
            current: piece(pool, PIECE_BYTES.min(pool.limit())).await?,
            pool: pool.clone(),
            full: VecDeque::new(),
            filled: 0,
            len: 0,
        })
    }

    /// How large an answer may become at the moment, at most `most`.
    pub(crate) fn room(pool: &Pool, most: usize) -> usize {
        let free = pool.limit().saturating_sub(pool.used());
        (free / 16).clamp(PIECE_BYTES, most.max(PIECE_BYTES))
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether an answer of so many bytes can ever be given, be the pool all its own.
    pub(crate) fn can_hold(pool: &Pool, bytes: usize) -> bool {
        bytes <= pool.limit() / PIECE_BYTES * PIECE_BYTES
    }

    /// Adds all that `write` writes, or nothing when the pool has no piece for it.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Addition<'_>)) -> Result<(), NoMemory> {
        let mut addition = Addition {
            filled: self.filled,
            pages: self,
            more: Vec::new(),
            bytes: 0,
            is_short: false,
        };
        write(&mut addition);
        addition.settle()
    }

    /// Adds all of `bytes`, or nothing.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), NoMemory> {
        self.write(|out| out.put(bytes))
    }

    /// The answer's body; `watch` is dropped with it and told first when it was given out whole.
    pub(crate) fn finish<W: Watch>(mut self, watch: W) -> Body {
        self.full.push_back(self.current.freeze(self.filled));
        Body::new(Paged {
            left: self.len,
            pieces: self.full,
            watch,
        })
    }
}

/// The pool has nothing left.
#[derive(Debug)]
pub(crate) struct NoMemory {
    /// Bytes that were to be added.
    pub(crate) bytes: usize,
}

/// What is being added to an answer: paid piece by piece, and only counted once the pool has none.
pub(crate) struct Addition<'a> {
    pages: &'a mut Pages,
    more: Vec<Buffer>,
    /// Of the last piece.
    filled: usize,
    bytes: usize,
    is_short: bool,
}

impl Addition<'_> {
    fn settle(self) -> Result<(), NoMemory> {
        if self.is_short {
            return Err(NoMemory { bytes: self.bytes });
        }
        let pages = self.pages;
        for next in self.more {
            let full = std::mem::replace(&mut pages.current, next);
            let len = full.len();
            pages.full.push_back(full.freeze(len));
        }
        pages.filled = self.filled;
        pages.len += self.bytes;
        Ok(())
    }
}

impl Write for Addition<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_short {
            let piece = self.more.last_mut().unwrap_or(&mut self.pages.current);
            let take = rest.len().min(piece.len() - self.filled);
            piece[self.filled..self.filled + take].copy_from_slice(&rest[..take]);
            self.filled += take;
            rest = &rest[take..];
            if rest.is_empty() {
                break;
            }
            if let Some(next) = self.pages.pool.try_get(PIECE_BYTES) {
                self.more.push(next);
                self.filled = 0;
            } else {
                self.is_short = true;
                self.more.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Wants to know what becomes of an answer.
pub(crate) trait Watch: Send + Unpin + 'static {
    /// All of it was handed to the connection.
    fn given(&mut self) {}
}

impl Watch for () {}

struct Paged<W> {
    pieces: VecDeque<Bytes>,
    left: usize,
    watch: W,
}

impl<W: Watch> HttpBody for Paged<W> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = self.pieces.pop_front() else {
            self.watch.given();
            return Poll::Ready(None);
        };
        self.left -= next.len();
        if self.pieces.is_empty() {
            self.watch.given();
        }
        Poll::Ready(Some(Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Given(Arc<AtomicBool>);
    impl Watch for Given {
        fn given(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn pages_come_back_in_order_and_are_freed() {
        let pool = Pool::new(1024 * 1024);
        let mut pages = Pages::begin(&pool).await.unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| i as u8).collect();
        for part in bytes.chunks(7_001) {
            pages.push(part).unwrap();
        }
        assert_eq!(pages.len(), bytes.len());
        let given = Arc::new(AtomicBool::new(false));
        let body = pages.finish(Given(Arc::clone(&given)));
        assert_eq!(body.size_hint().exact(), Some(200_000));
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
        assert!(given.load(Ordering::SeqCst));
        assert_eq!(pool.used(), 0);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_left_out_whole_and_an_unread_answer_is_not_given() {
        let pool = Pool::new(2 * PIECE_BYTES);
        let mut pages = Pages::begin(&pool).await.unwrap();
        pages.push(&vec![1; 2 * PIECE_BYTES - 1]).unwrap();
        assert_eq!(pages.push(&[2; 2]).unwrap_err().bytes, 2);
        let counted = pages.write(|out| (0..9).for_each(|_| out.put(&vec![2; PIECE_BYTES])));
        assert_eq!(counted.unwrap_err().bytes, 9 * PIECE_BYTES);
        assert_eq!(pool.used(), 2 * PIECE_BYTES);
        pages.push(&[3]).unwrap();
        assert_eq!(pages.len(), 2 * PIECE_BYTES);
        let given = Arc::new(AtomicBool::new(false));
        drop(pages.finish(Given(Arc::clone(&given))));
        assert!(!given.load(Ordering::SeqCst));
        assert_eq!(pool.used(), 0);
    }
}
