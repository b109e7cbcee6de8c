//! One connection: frames are read into pool buffers, requests begin in their order, answers leave in that order.
//!
//! One task drives both halves, joined by a queue: while as many requests as the setting allows wait for their answers,
//! nothing more is read. An append happens as its request is read, so that appends of one connection keep their order
//! without waiting for one another; every other request runs when the answers before it are out, as in Kafka. A caller
//! that closes its sending side is still answered what it asked for.
//!
//! Guarantees: a frame that does not end, an answer that is not taken and a silent caller cost their own connection,
//! after the times of [`Limits`](crate::listen::Limits); a connection closed for what it sent says why in the log,
//! once in a while for each address.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use floe_wire::frame;
use floe_world::{Buffer, memory};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::answer::{Answer, Outbox};
use super::door::Door;
use super::produce::Patience;
use super::request::{Caller, Close, Request};
use crate::listen::{Accepted, Phase};

/// A frame may take this long for each of its bytes, beside the time of a head: 100 KB/s.
const FRAME_BYTES_PER_MS: usize = 100;
/// A frame above this shows that its bytes come before it gets memory. They wait outside the budget, so that frames
/// that wait for memory never hold any.
const TRIAL_BYTES: usize = 4 * 1024;
/// While requests hold more than half of their memory, a frame that brings less in a second gives its memory up, ...
pub(super) const SCARCE_BYTES_PER_TICK: usize = 64 * 1024;
/// ... and so does one that brings less than this part of itself: the larger it is, the more wait for it.
pub(super) const SCARCE_TICKS: usize = 8;
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Small answers that are ready together leave in one write of about this size.
const GATHER_BYTES: usize = 64 * 1024;

/// What a request came to: an answer, nothing to say (acks=0), or the end of the connection.
pub(super) type Outcome = Result<Option<Answer>, Close>;

/// Whom an answer may wait for, long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nobody: it comes as soon as its work is done.
    Nobody,
    /// Producers (a long poll): cut when the node stops.
    Producers,
    /// Other members of a group: cut also when the caller sends no more, since a member that cannot go on is gone.
    Members,
}

/// The work behind one answer.
pub(super) struct Slot {
    /// Resolves to the answer; does nothing before it is polled.
    pub(super) work: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    /// Whom it may wait for.
    pub(super) wait: Wait,
    /// Place of the API in the table, for metrics.
    pub(super) api: usize,
    /// When its frame was read.
    pub(super) since: Duration,
}

/// Why a half of the connection ended.
enum Ended {
    /// The caller sends no more.
    Finished,
    /// The caller has gone.
    Gone,
    /// The node stops.
    Stopping,
    /// The caller took too long over this.
    Overdue(&'static str),
    /// The socket failed.
    Io(io::Error),
    /// What it sent cannot be answered.
    Close(Close),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Finished,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Gone,
            _ => Self::Io(error),
        }
    }
}

/// Serves one connection until it ends.
pub(super) async fn serve(door: &Door, accepted: &Accepted) {
    let peer = accepted.connection.peer;
    let buffer = door.settings().send_buffer_bytes;
    if let Err(error) = SockRef::from(&*accepted.stream).set_send_buffer_size(buffer) {
        tracing::debug!(%peer, %error, "cannot set the send buffer");
    }
    let places = Semaphore::new(door.settings().in_flight_max);
    let (queue, slots) = mpsc::channel(door.settings().in_flight_max);
    let reading = read(door, accepted, queue, &places);
    let mut writing = pin!(write(door, &accepted.stream, slots, &places));
    let (ended, is_writing) = tokio::select! {
        ended = reading => (ended, true),
        ended = &mut writing => (ended, false),
    };
    let limits = &door.gate().limits;
    let mut patience = limits.drain;
    match ended {
        Ended::Gone => return,
        // Its last request may be a long poll.
        Ended::Finished => patience = limits.idle,
        Ended::Overdue(what) => {
            door.metrics().closed_overdue.inc();
            if let Some(kept_back) = door.is_due(peer, what) {
                tracing::info!(%peer, what, kept_back, "Kafka connection closed: too slow");
            }
            return;
        }
        Ended::Io(error) => {
            tracing::debug!(%peer, %error, "Kafka connection failed");
            return;
        }
        Ended::Stopping => {}
        Ended::Close(reason) => {
            door.metrics().refused(reason.name());
            if let Some(kept_back) = door.is_due(peer, reason.name()) {
                tracing::warn!(%peer, %reason, kept_back, "Kafka connection closed: cannot be answered");
            }
        }
    }
    if is_writing {
        // Requests read before are answered still, if the caller takes the answers.
        drop(timeout(patience, writing).await);
    }
}

async fn read(
    door: &Door,
    accepted: &Accepted,
    queue: mpsc::Sender<Slot>,
    places: &Semaphore,
) -> Ended {
    let mut stopping = pin!(door.gate().stop.reached(Phase::Draining));
    let mut is_first = true;
    let mut patience = Patience::default();
    let caller = Caller {
        peer: accepted.connection.peer,
        local: accepted.connection.local,
    };
    loop {
        // A place is taken with the request below; nobody else takes any. The semaphore is never closed.
        drop(places.acquire().await);
        let frame = tokio::select! {
            frame = read_frame(door, &accepted.stream, is_first, places) => frame,
            () = &mut stopping => return Ended::Stopping,
        };
        is_first = false;
        let frame = match frame {
            Ok(frame) => frame,
            Err(ended) => return ended,
        };
        let begun = Request::parse(&frame, caller);
        drop(frame);
        let begun = match begun {
            Ok(request) => door.begin(request, &mut patience).await,
            Err(close) => Err(close),
        };
        match begun {
            Ok(None) => {}
            Ok(Some(slot)) => {
                places.forget_permits(1);
                if queue.send(slot).await.is_err() {
                    return Ended::Gone;
                }
            }
            Err(close) => return Ended::Close(close),
        }
    }
}

/// Reads one frame without its length.
async fn read_frame(
    door: &Door,
    stream: &TcpStream,
    is_first: bool,
    places: &Semaphore,
) -> Result<Bytes, Ended> {
    let limits = &door.gate().limits;
    let mut length = [0; frame::LENGTH_BYTES];
    let mut filled = 0;
    let patience = if is_first {
        limits.first_byte
    } else {
        limits.idle
    };
    loop {
        match timeout(patience, read_some(stream, &mut length[filled..])).await {
            Ok(read) => {
                filled += read?;
                break;
            }
            // A caller that waits for an answer is not idle.
            Err(_) if places.available_permits() < door.settings().in_flight_max => {}
            Err(_) => return Err(Ended::Overdue("no request")),
        }
    }
    timeout(limits.head, read_all(stream, &mut length[filled..]))
        .await
        .map_err(|_| Ended::Overdue("the length of a frame"))??;
    let length =
        frame::length(length, door.frame_bytes_max()).map_err(|e| Ended::Close(e.into()))?;
    let buffer = read_body(door, stream, length).await?;
    door.metrics().bytes_in.inc_by(length as u64);
    Ok(buffer.freeze(length))
}

/// Reads the rest of a frame. One that is only announced takes no memory; a slow one gives it up when others need it.
async fn read_body(door: &Door, stream: &TcpStream, length: usize) -> Result<Buffer, Ended> {
    const LATE: Ended = Ended::Overdue("a frame");
    let limits = &door.gate().limits;
    timeout(limits.head, stream.readable())
        .await
        .map_err(|_| LATE)??;
    if length <= TRIAL_BYTES {
        let mut buffer = door.memory().get(length).await;
        timeout(limits.head, read_all(stream, &mut buffer[..length]))
            .await
            .map_err(|_| LATE)??;
        return Ok(buffer);
    }
    let mut trial = vec![0; TRIAL_BYTES];
    timeout(limits.head, read_all(stream, &mut trial))
        .await
        .map_err(|_| LATE)??;
    let mut buffer = door.memory().get(length).await;
    buffer[..TRIAL_BYTES].copy_from_slice(&trial);
    drop(trial);
    let mut filled = TRIAL_BYTES;
    let mut left = limits.head + Duration::from_millis((length / FRAME_BYTES_PER_MS) as u64);
    let mut tick = pin!(tokio::time::sleep(TICK));
    let mut at_tick = filled;
    while filled < length {
        tokio::select! {
            biased;
            read = read_some(stream, &mut buffer[filled..length]) => filled += read?,
            () = &mut tick => {
                let is_scarce = door.memory().used() > door.memory().limit() / 2;
                let least = SCARCE_BYTES_PER_TICK.max(length / SCARCE_TICKS);
                let is_slow = filled - at_tick < least.min(length - at_tick);
                left = left.saturating_sub(TICK);
                if left.is_zero() || (is_scarce && is_slow) {
                    return Err(LATE);
                }
                at_tick = filled;
                tick.set(tokio::time::sleep(TICK));
            }
        }
    }
    Ok(buffer)
}

async fn read_all(stream: &TcpStream, into: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        filled += read_some(stream, &mut into[filled..]).await?;
    }
    Ok(())
}

async fn read_some(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.try_read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => return Ok(read),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => stream.readable().await?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

async fn write(
    door: &Door,
    stream: &TcpStream,
    mut slots: mpsc::Receiver<Slot>,
    places: &Semaphore,
) -> Ended {
    let mut stopping = pin!(door.gate().stop.reached(Phase::Draining));
    let mut is_stopping = false;
    let mut outbox = Outbox::new(door.waiting_out());
    let mut held = None;
    loop {
        let next = match held.take() {
            Some(slot) => Some(slot),
            None => slots.recv().await,
        };
        let Some(mut slot) = next else {
            return Ended::Gone;
        };
        let outcome = loop {
            if is_stopping && slot.wait != Wait::Nobody {
                return Ended::Stopping;
            }
            tokio::select! {
                outcome = &mut slot.work => break outcome,
                () = &mut stopping, if !is_stopping => is_stopping = true,
                () = reading_ended(&slots), if slot.wait == Wait::Members => return Ended::Gone,
            }
        };
        if let Err(close) = settle(door, &slot, outcome, &mut outbox) {
            return Ended::Close(close);
        }
        let mut done = 1;
        while outbox.len() < GATHER_BYTES {
            let Ok(mut slot) = slots.try_recv() else {
                break;
            };
            let Some(outcome) = poll_once(&mut slot).await else {
                held = Some(slot);
                break;
            };
            done += 1;
            if let Err(close) = settle(door, &slot, outcome, &mut outbox) {
                return Ended::Close(close);
            }
        }
        if let Err(ended) = flush(door, stream, &mut outbox).await {
            return ended;
        }
        places.add_permits(done);
    }
}

/// Ends when no more requests can come. Wakes nobody by itself: the task that reads is the one that writes.
async fn reading_ended(slots: &mpsc::Receiver<Slot>) {
    let ended = |_: &mut Context<'_>| {
        if slots.is_closed() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    };
    std::future::poll_fn(ended).await;
}

/// Takes a finished slot's answer into the outbox.
fn settle(
    door: &Door,
    slot: &Slot,
    outcome: Outcome,
    outbox: &mut Outbox<'_>,
) -> Result<(), Close> {
    door.metrics().answered(
        slot.api,
        door.gate().clock.monotonic().saturating_sub(slot.since),
    );
    if let Some(answer) = outcome? {
        outbox.push(answer);
    }
    Ok(())
}

/// The outcome, if it is there without waiting.
async fn poll_once(slot: &mut Slot) -> Option<Outcome> {
    std::future::poll_fn(|cx| {
        Poll::Ready(match slot.work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        })
    })
    .await
}

async fn flush(door: &Door, stream: &TcpStream, outbox: &mut Outbox<'_>) -> Result<(), Ended> {
    door.metrics().bytes_out.inc_by(outbox.len() as u64);
    while !outbox.is_empty() {
        match stream.try_write_vectored(&outbox.slices()) {
            Ok(written) => outbox.advance(written),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => writable(door, stream).await?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Waits until the caller takes more: as long as the limit says, or a moment only while answers that wait hold much of
/// the node's memory (they hold records that could otherwise go).
async fn writable(door: &Door, stream: &TcpStream) -> Result<(), Ended> {
    let mut left = door.gate().limits.write_stall;
    loop {
        let wait = left.min(TICK);
        match timeout(wait, stream.writable()).await {
            Ok(writable) => return Ok(writable?),
            Err(_) => left = left.saturating_sub(wait),
        }
        if left.is_zero() || door.is_scarce_for_answers() {
            return Err(Ended::Overdue("an answer"));
        }
    }
}

/// The largest frame that fits both limit and memory.
pub(super) fn frame_bytes_max(configured: usize, memory: &memory::Pool) -> usize {
    let by_memory = match memory.limit() {
        limit if limit > memory::LARGEST_CLASS => limit - limit % memory::ALIGNMENT,
        // The greatest power of two that the share can hand out.
        limit => 1 << limit.max(memory::ALIGNMENT).ilog2(),
    };
    configured.min(by_memory)
}
