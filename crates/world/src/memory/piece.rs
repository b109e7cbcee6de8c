//! Aligned memory from the allocator: the one file of Floe with raw pointers.
//!
//! Guarantees: every page of a piece is touched when it is made, so later use never faults; a piece is always
//! initialised. [`Shared`] lets one writer fill a piece from the front while readers hold what is published.
#![allow(
    unsafe_code,
    reason = "aligned memory and a piece that grows under its readers cannot be had from Vec"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ALIGNMENT, Buffer};

/// `len` bytes, aligned to 4096, owned.
#[derive(Debug)]
pub(super) struct Piece {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a piece owns its memory exclusively; nothing in it is bound to a thread.
unsafe impl Send for Piece {}
// SAFETY: shared access only reads, but for `Shared`, which keeps writers and readers on disjoint ranges.
unsafe impl Sync for Piece {}

impl Piece {
    /// A fresh piece of zeros. `len` is a positive multiple of 4096.
    pub(super) fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero (asserted in `layout`).
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        for page in (0..len).step_by(ALIGNMENT) {
            // SAFETY: `page < len`, inside the allocation. Volatile, so that the page is really touched.
            unsafe { start.as_ptr().add(page).write_volatile(0) };
        }
        Self { start, len }
    }

    fn layout(len: usize) -> Layout {
        assert!(
            len > 0 && len.is_multiple_of(ALIGNMENT),
            "a piece of {len} bytes"
        );
        Layout::from_size_align(len, ALIGNMENT)
            .expect("a piece is far below half the address space")
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is `len` initialised bytes; `&self` keeps writers away (`Shared` never calls this).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: made by `alloc_zeroed` with this same layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) };
    }
}

/// A piece of which `front..published` is read by anyone and the rest is written by one writer.
///
/// Invariant: `published` only grows, and only [`Shared::publish`] moves it, called by the one writer.
#[derive(Debug)]
pub(super) struct Shared {
    buffer: Buffer,
    start: NonNull<u8>,
    front: usize,
    published: AtomicUsize,
}

// SAFETY: the pointer is that of `buffer`, which is Send; access is split by `published` as the methods say.
unsafe impl Send for Shared {}
// SAFETY: readers see `front..published` only, the one writer writes outside of it only.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(mut buffer: Buffer, front: usize) -> Self {
        let len = buffer.len();
        assert!(front <= len, "a front of {front} bytes in {len}");
        let start = NonNull::new(buffer.as_mut_ptr()).expect("a piece is never null");
        Self {
            buffer,
            start,
            front,
            published: AtomicUsize::new(front),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.0.piece().len()
    }

    pub(super) fn front(&self) -> usize {
        self.front
    }

    pub(super) fn published(&self) -> usize {
        // Order: pairs with the release in `publish`, so a reader sees the bytes below.
        self.published.load(Ordering::Acquire)
    }

    /// Published bytes. Panics outside `front..published`.
    pub(super) fn read(&self, range: Range<usize>) -> &[u8] {
        assert!(
            self.front <= range.start && range.start <= range.end && range.end <= self.published(),
            "read of {range:?} with {}..{} published",
            self.front,
            self.published()
        );
        // SAFETY: inside the piece, initialised, and never written again: it is published.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// Room after what is published, for the writer.
    ///
    /// # Safety
    /// Only the one writer may call this, with no other slice of its own alive.
    #[allow(
        clippy::mut_from_ref,
        reason = "the one writer is told apart by Growing, not by the borrow"
    )]
    pub(super) unsafe fn rest(&self) -> &mut [u8] {
        let from = self.published.load(Ordering::Relaxed);
        // SAFETY: inside the piece; readers stay below `published`; the caller is the one writer.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), self.len() - from) }
    }

    /// The part before what is ever published, for the writer.
    ///
    /// # Safety
    /// As [`Shared::rest`]; and not after [`Shared::whole`].
    #[allow(
        clippy::mut_from_ref,
        reason = "the one writer is told apart by Growing, not by the borrow"
    )]
    pub(super) unsafe fn front_mut(&self) -> &mut [u8] {
        // SAFETY: inside the piece; readers stay at and above `front`; the caller is the one writer.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.front) }
    }

    /// Shows `len` more bytes to readers. Called by the one writer.
    pub(super) fn publish(&self, len: usize) {
        let now = self.published.load(Ordering::Relaxed) + len;
        assert!(now <= self.len(), "published {now} of {} bytes", self.len());
        self.published.store(now, Ordering::Release);
    }

    /// All bytes from the very first.
    ///
    /// # Safety
    /// The writer is gone for good.
    pub(super) unsafe fn whole(&self) -> &[u8] {
        // SAFETY: inside the piece, initialised, and nobody writes any more.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len()) }
    }
}
