//! What decompression writes into: grown as bytes come, and one at a time when large.
//!
//! Guarantees: one byte above the limit is the most that is kept; of all buffers of the process one at most holds more
//! than [`SMALL_BYTES_MAX`], the next one blocks until it is given back. A large buffer is reserved once, so that it is
//! never copied while it grows; the system gives it memory only where it is written.

use std::io::Read;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Stop;

/// Any number of buffers may hold so much.
pub(super) const SMALL_BYTES_MAX: usize = 4 * 1024 * 1024;
const FIRST_BYTES: usize = 64 * 1024;

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static GIVEN_BACK: Condvar = Condvar::new();

/// The right to be the large buffer of the process.
struct Place;

impl Place {
    fn take() -> Self {
        let taken = GIVEN_BACK.wait_while(locked(), |is_taken| *is_taken);
        *taken.unwrap_or_else(PoisonError::into_inner) = true;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *locked() = false;
        GIVEN_BACK.notify_one();
    }
}

/// A flag is right also after a panic elsewhere.
fn locked() -> MutexGuard<'static, bool> {
    IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Decompressed bytes.
#[derive(Default)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
    /// Of the batch at hand.
    pub(super) limit: usize,
    large: Option<Place>,
}

impl Out {
    /// Empties it; more than `keep` bytes of room are given back.
    pub(super) fn clear(&mut self, keep: usize) {
        self.bytes.clear();
        if self.bytes.capacity() > keep {
            self.bytes = Vec::new();
        }
        self.large = None;
    }

    /// Says that `len` bytes will be held, which may mean to wait for the place of the large one.
    pub(super) fn expect(&mut self, len: usize) {
        if len > SMALL_BYTES_MAX && self.large.is_none() {
            self.large = Some(Place::take());
            self.bytes
                .reserve_exact(self.limit.max(len) + 1 - self.bytes.len());
        }
    }

    /// Room for more bytes; the limit is in what is written, not in what is claimed.
    pub(super) fn grow(&mut self) {
        let (len, room) = (self.bytes.len(), self.bytes.capacity());
        if len < room {
            return;
        }
        self.expect(len + 1);
        if len == self.bytes.capacity() {
            self.bytes
                .reserve_exact(room.clamp(FIRST_BYTES, SMALL_BYTES_MAX));
        }
    }

    /// Takes all of a reader.
    pub(super) fn drain(&mut self, mut from: impl Read) -> Result<(), Stop> {
        // One byte more than the limit tells "exactly the limit" from "above it".
        let end = self.limit + 1;
        for end in [end.min(SMALL_BYTES_MAX), end] {
            let missing = end - self.bytes.len();
            if missing > 0 {
                self.expect(end);
                from.by_ref()
                    .take(missing as u64)
                    .read_to_end(&mut self.bytes)
                    .map_err(Stop::Bad)?;
            }
            if self.bytes.len() < end {
                return Ok(());
            }
        }
        Err(Stop::Limit)
    }
}
