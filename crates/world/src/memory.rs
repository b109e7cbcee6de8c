//! Large buffers: pieces that are faulted in once, counted against a budget and recycled.
//!
//! Guarantees: what is handed out and what is kept for reuse never exceed the budget together; whoever waits is
//! served in order of asking within its share; nobody polls. Pieces come in classes, the powers of two from 4 KiB
//! to 4 MiB; a larger one is an exact multiple of 4096 and is not kept.
//!
//! Deliberately does not clear recycled pieces: a piece holds whatever its last owner left. Deliberately has no
//! order between shares other than that of asking; give shares limits that add up if one must not starve another.

mod budget;
mod growing;
mod piece;

use std::sync::Arc;

use bytes::Bytes;

use budget::{Budget, Charge};
pub use growing::{Growing, View};

/// Alignment of every piece and smallest class.
pub const ALIGNMENT: usize = 4096;
/// Largest class that is kept for reuse.
pub const LARGEST_CLASS: usize = 4 << 20;

/// A byte budget and the pieces it has handed out or keeps for reuse. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    budget: Arc<Budget>,
    share: usize,
    limit: usize,
}

/// One piece: aligned to 4096, its length the class it was taken from. Goes back to its pool when dropped.
#[derive(Debug)]
pub struct Buffer(Charge);

/// Bytes that a piece for `len` bytes takes from the budget.
pub fn class(len: usize) -> usize {
    if len > LARGEST_CLASS {
        len.next_multiple_of(ALIGNMENT)
    } else {
        len.next_power_of_two().max(ALIGNMENT)
    }
}

impl Pool {
    /// A pool of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            budget: Arc::new(Budget::new(limit)),
            share: 0,
            limit,
        }
    }

    /// A part of this pool with a smaller limit of its own; what it hands out counts in both.
    #[must_use]
    pub fn share(&self, limit: usize) -> Self {
        let limit = limit.min(self.limit);
        Self {
            budget: Arc::clone(&self.budget),
            share: self.budget.share(self.share, limit),
            limit,
        }
    }

    /// A piece of at least `len` bytes, or `None` when the budget is used up or others of this share are waiting.
    pub fn try_get(&self, len: usize) -> Option<Buffer> {
        let bytes = class(len);
        let charge = Budget::try_charge(&self.budget, self.share, bytes)?;
        Some(Buffer(charge.with_piece()))
    }

    /// A piece of at least `len` bytes, once those who asked this share earlier have theirs and there is room.
    /// Dropping the future gives the place in the queue up.
    ///
    /// `class(len)` must not exceed [`Pool::limit`]: it would wait for ever, so it is a bug and asserted.
    pub async fn get(&self, len: usize) -> Buffer {
        let bytes = class(len);
        assert!(
            bytes <= self.limit,
            "a piece of {bytes} bytes asked of a share of {} bytes",
            self.limit
        );
        Buffer(
            Budget::charge(&self.budget, self.share, bytes)
                .await
                .with_piece(),
        )
    }

    /// Bytes handed out now.
    pub fn used(&self) -> usize {
        self.budget.used(self.share)
    }

    /// Most bytes handed out at once.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes kept for reuse, of the whole budget.
    pub fn kept(&self) -> usize {
        self.budget.kept()
    }

    /// Gives kept pieces back to the system until at most `keep` bytes are kept.
    pub fn trim(&self, keep: usize) {
        self.budget.trim(keep);
    }
}

impl Buffer {
    /// The first `len` bytes as shared, immutable bytes; the piece goes back when the last of them is dropped.
    ///
    /// # Panics
    /// If `len` exceeds the length of the piece.
    pub fn freeze(self, len: usize) -> Bytes {
        assert!(len <= self.len(), "freeze of {len} bytes of {}", self.len());
        Bytes::from_owner(Frozen { buffer: self, len })
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.piece().bytes()
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.piece_mut().bytes_mut()
    }
}

struct Frozen {
    buffer: Buffer,
    len: usize,
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

#[cfg(test)]
mod tests;
