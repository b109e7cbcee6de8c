//! The account behind a pool: who holds how much, who waits, what is kept for reuse.
//!
//! One lock for the whole tree of shares; it is held for a few comparisons, never while memory is asked of or given
//! back to the system.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::piece::Piece;
use super::{ALIGNMENT, LARGEST_CLASS};

const CLASSES: usize = (LARGEST_CLASS / ALIGNMENT).trailing_zeros() as usize + 1;

/// Of the budget, the most that is kept for reuse.
const KEPT_SHARE: usize = 2;

#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shares: Vec<Share>,
    free: [Vec<Piece>; CLASSES],
    free_bytes: usize,
    next_ticket: u64,
}

#[derive(Debug)]
struct Share {
    parent: Option<usize>,
    limit: usize,
    used: usize,
    /// In order of ticket. Bounded by the number of callers: a dropped one takes its place with it.
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    bytes: usize,
    granted: oneshot::Sender<Charge>,
}

/// Bytes charged to a share and its parents, and the piece they pay for; both are given back when dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    share: usize,
    bytes: usize,
    piece: Option<Piece>,
}

/// A place in the queue, left when dropped.
struct Place<'a> {
    budget: &'a Arc<Budget>,
    share: usize,
    ticket: u64,
}

fn index(bytes: usize) -> Option<usize> {
    (bytes <= LARGEST_CLASS).then(|| (bytes / ALIGNMENT).trailing_zeros() as usize)
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        let root = Share::new(None, limit);
        let state = State {
            shares: vec![root],
            ..State::default()
        };
        Self {
            limit,
            state: Mutex::new(state),
        }
    }

    pub(super) fn share(&self, parent: usize, limit: usize) -> usize {
        let mut state = self.state.lock();
        state.shares.push(Share::new(Some(parent), limit));
        state.shares.len() - 1
    }

    pub(super) fn used(&self, share: usize) -> usize {
        self.state.lock().shares[share].used
    }

    pub(super) fn kept(&self) -> usize {
        self.state.lock().free_bytes
    }

    pub(super) fn trim(&self, keep: usize) {
        let released = self.state.lock().release_down_to(keep);
        drop(released);
    }

    pub(super) fn try_charge(this: &Arc<Self>, share: usize, bytes: usize) -> Option<Charge> {
        let mut state = this.state.lock();
        if !state.shares[share].waiting.is_empty() || !state.has_room(share, bytes) {
            return None;
        }
        state.add(share, bytes);
        let mut charge = Charge::new(this, share, bytes);
        charge.piece = state.take_kept(bytes);
        Some(charge)
    }

    pub(super) async fn charge(this: &Arc<Self>, share: usize, bytes: usize) -> Charge {
        if let Some(charge) = Self::try_charge(this, share, bytes) {
            return charge;
        }
        let (granted, wait) = oneshot::channel();
        let place = Place {
            budget: this,
            share,
            ticket: this.state.lock().enqueue(share, bytes, granted),
        };
        // Room may have come between the attempt and the queue.
        Self::serve(this);
        let charge = wait
            .await
            .expect("a waiter leaves the queue by a grant or with its place");
        drop(place);
        charge
    }

    /// Grants what fits, in order of asking; a waiter that does not fit holds up its own share only.
    fn serve(this: &Arc<Self>) {
        let granted = this.state.lock().grant();
        for waiter in granted {
            let charge = Charge::new(this, waiter.share, waiter.bytes);
            // A receiver that has just gone hands the charge back, whose drop serves the next.
            drop(waiter.answer.send(charge));
        }
    }
}

struct Granted {
    share: usize,
    bytes: usize,
    answer: oneshot::Sender<Charge>,
}

impl State {
    fn has_room(&self, share: usize, bytes: usize) -> bool {
        let mut next = Some(share);
        while let Some(at) = next {
            let share = &self.shares[at];
            if bytes > share.limit - share.used {
                return false;
            }
            next = share.parent;
        }
        true
    }

    fn add(&mut self, share: usize, bytes: usize) {
        let mut next = Some(share);
        while let Some(at) = next {
            self.shares[at].used += bytes;
            next = self.shares[at].parent;
        }
    }

    fn subtract(&mut self, share: usize, bytes: usize) {
        let mut next = Some(share);
        while let Some(at) = next {
            self.shares[at].used -= bytes;
            next = self.shares[at].parent;
        }
    }

    fn enqueue(&mut self, share: usize, bytes: usize, granted: oneshot::Sender<Charge>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.shares[share].waiting.push_back(Waiter {
            ticket,
            bytes,
            granted,
        });
        ticket
    }

    fn grant(&mut self) -> Vec<Granted> {
        let mut granted = Vec::new();
        let mut held_up = vec![false; self.shares.len()];
        while let Some(share) = self.earliest(&held_up) {
            let bytes = self.shares[share].waiting[0].bytes;
            if !self.has_room(share, bytes) {
                held_up[share] = true;
                continue;
            }
            if let Some(waiter) = self.shares[share].waiting.pop_front() {
                self.add(share, bytes);
                granted.push(Granted {
                    share,
                    bytes,
                    answer: waiter.granted,
                });
            }
        }
        granted
    }

    /// The share whose first waiter asked first, of those that are not held up.
    fn earliest(&self, held_up: &[bool]) -> Option<usize> {
        let heads = self.shares.iter().enumerate().filter_map(|(at, share)| {
            let head = share.waiting.front()?;
            (!held_up[at]).then_some((head.ticket, at))
        });
        heads.min().map(|(_, at)| at)
    }

    fn take_kept(&mut self, bytes: usize) -> Option<Piece> {
        let piece = self.free[index(bytes)?].pop()?;
        self.free_bytes -= piece.len();
        Some(piece)
    }

    /// Keeps a piece for reuse; gives it back to the caller if `most` bytes are kept already or it has no class.
    fn keep(&mut self, piece: Piece, most: usize) -> Option<Piece> {
        let Some(at) = index(piece.len()) else {
            return Some(piece);
        };
        if self.free_bytes + piece.len() > most {
            return Some(piece);
        }
        self.free_bytes += piece.len();
        self.free[at].push(piece);
        None
    }

    /// Takes kept pieces out until at most `keep` bytes are kept, the largest first. The caller drops them unlocked.
    fn release_down_to(&mut self, keep: usize) -> Vec<Piece> {
        let mut released = Vec::new();
        for free in self.free.iter_mut().rev() {
            while self.free_bytes > keep {
                let Some(piece) = free.pop() else { break };
                self.free_bytes -= piece.len();
                released.push(piece);
            }
        }
        released
    }
}

impl Share {
    fn new(parent: Option<usize>, limit: usize) -> Self {
        Self {
            parent,
            limit,
            used: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl Charge {
    fn new(budget: &Arc<Budget>, share: usize, bytes: usize) -> Self {
        Self {
            budget: Arc::clone(budget),
            share,
            bytes,
            piece: None,
        }
    }

    /// Makes sure of the piece: a kept one of the charged size, or a fresh one, for which others that are kept go.
    pub(super) fn with_piece(mut self) -> Self {
        if self.piece.is_none() {
            let mut state = self.budget.state.lock();
            self.piece = state.take_kept(self.bytes);
            let room = self.budget.limit - state.shares[0].used;
            let released = match self.piece {
                Some(_) => Vec::new(),
                None => state.release_down_to(room),
            };
            drop(state);
            drop(released);
        }
        let bytes = self.bytes;
        self.piece.get_or_insert_with(|| Piece::new(bytes));
        self
    }

    pub(super) fn piece(&self) -> &Piece {
        self.piece
            .as_ref()
            .expect("a buffer is made with its piece")
    }

    pub(super) fn piece_mut(&mut self) -> &mut Piece {
        self.piece
            .as_mut()
            .expect("a buffer is made with its piece")
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        if let Some(piece) = self.piece.take() {
            // Too much is kept, or the piece has no class: it is dropped below, after the lock.
            self.piece = state.keep(piece, self.budget.limit / KEPT_SHARE);
        }
        state.subtract(self.share, self.bytes);
        let any_waits = state.shares.iter().any(|share| !share.waiting.is_empty());
        drop(state);
        self.piece = None;
        if any_waits {
            Budget::serve(&self.budget);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        let waiting = &mut state.shares[self.share].waiting;
        let left = waiting
            .binary_search_by_key(&self.ticket, |waiter| waiter.ticket)
            .ok()
            .and_then(|at| waiting.remove(at));
        drop(state);
        if left.is_some() {
            Budget::serve(self.budget);
        }
    }
}
