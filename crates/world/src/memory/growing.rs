//! A piece that one owner fills from the front while others read, by reference, what is already filled.
//!
//! The log's open run: `front` bytes for a header that is known last, then batches, each published when whole, then
//! room for a table and padding. Readers never see the front, nor bytes that are not published.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Buffer;
use super::piece::Shared;

/// The writing end. There is one.
#[derive(Debug)]
pub struct Growing {
    shared: Arc<Shared>,
}

/// A reading end; cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    shared: Arc<Shared>,
}

impl Growing {
    /// Over a buffer, with the first `front` bytes kept from readers.
    pub fn new(buffer: Buffer, front: usize) -> Self {
        Self {
            shared: Arc::new(Shared::new(buffer, front)),
        }
    }

    /// A reading end.
    pub fn view(&self) -> View {
        View {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Where the next published byte goes, from the start of the piece.
    pub fn position(&self) -> usize {
        self.shared.published()
    }

    /// Bytes of room after what is published.
    pub fn room(&self) -> usize {
        self.shared.len() - self.shared.published()
    }

    /// Length of the piece.
    pub fn capacity(&self) -> usize {
        self.shared.len()
    }

    /// All room after what is published; what is written here is seen by nobody before [`Growing::publish`].
    pub fn rest_mut(&mut self) -> &mut [u8] {
        writer::rest(self)
    }

    /// The part kept from readers.
    pub fn front_mut(&mut self) -> &mut [u8] {
        writer::front(self)
    }

    /// Shows `len` more bytes, written before through [`Growing::rest_mut`].
    ///
    /// # Panics
    /// If there is not so much room.
    pub fn publish(&mut self, len: usize) {
        self.shared.publish(len);
    }

    /// What is published.
    pub fn published(&self) -> &[u8] {
        self.shared
            .read(self.shared.front()..self.shared.published())
    }

    /// Ends writing: the first `len` bytes of the piece, front and all, by reference.
    ///
    /// # Panics
    /// If `len` exceeds the piece.
    pub fn close(self, len: usize) -> Bytes {
        assert!(
            len <= self.shared.len(),
            "close at {len} of {}",
            self.shared.len()
        );
        Bytes::from_owner(writer::Closed::new(self, len))
    }
}

impl View {
    /// End of what is published, from the start of the piece.
    pub fn published(&self) -> usize {
        self.shared.published()
    }

    /// Published bytes by position in the piece, by reference.
    ///
    /// # Panics
    /// If the range is not within front and [`View::published`].
    pub fn bytes(&self, range: Range<usize>) -> Bytes {
        let _checked = self.shared.read(range.clone());
        Bytes::from_owner(Part {
            shared: Arc::clone(&self.shared),
            range,
        })
    }

    /// As [`View::bytes`], borrowed.
    pub fn slice(&self, range: Range<usize>) -> &[u8] {
        self.shared.read(range)
    }
}

struct Part {
    shared: Arc<Shared>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.shared.read(self.range.clone())
    }
}

/// The three places that rely on there being one [`Growing`] to a piece.
mod writer {
    #![allow(
        unsafe_code,
        reason = "that there is one writer is a promise of Growing, not of Shared"
    )]
    use super::{Arc, Growing, Shared};

    pub(super) fn rest(growing: &mut Growing) -> &mut [u8] {
        // SAFETY: there is one Growing to a Shared (it is not Clone), borrowed mutably for as long as the slice.
        unsafe { growing.shared.rest() }
    }

    pub(super) fn front(growing: &mut Growing) -> &mut [u8] {
        // SAFETY: as in `rest`; `whole` is called only by Closed, which has consumed the Growing.
        unsafe { growing.shared.front_mut() }
    }

    pub(super) struct Closed {
        shared: Arc<Shared>,
        len: usize,
    }

    impl Closed {
        pub(super) fn new(growing: Growing, len: usize) -> Self {
            Self {
                shared: growing.shared,
                len,
            }
        }
    }

    impl AsRef<[u8]> for Closed {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: the one Growing was consumed to make this value.
            unsafe { &self.shared.whole()[..self.len] }
        }
    }
}
