//! The accept loop, for any protocol: counted connections, no busy loop when files run out, a stop that is heard.
//!
//! Guarantees: at most [`Limits::connections`] of all listeners of one [`Gate`] at a time; a connection above that is
//! refused at once (the protocol says how) or another gives way, as [`Full`] says, so a full house costs no memory; every
//! connection's task has ended when the loop returns. Knows nothing of what is spoken.

use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use floe_world::{Clock, Complaints, tasks};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::activity::Activity;
use super::connection::{Connection, ConnectionId};
use super::limits::{Full, Limits};
use super::metrics::Metrics;
use super::stop::{Phase, Stop};

/// Pause after an accept that failed for want of files or memory.
const PAUSE: Duration = Duration::from_millis(100);
/// That accepting fails is logged once in this time.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);
/// Longest wait for a connection that was told to give way.
const GIVING_WAY: Duration = Duration::from_secs(1);

/// What several listeners share: the count of connections, their limits, and the wish to stop.
#[derive(Clone)]
pub struct Gate {
    /// Limits of each connection.
    pub limits: Arc<Limits>,
    /// The wish to stop.
    pub stop: Stop,
    /// The clock that limits are measured on.
    pub clock: Arc<dyn Clock>,
    /// What happens, counted.
    pub metrics: Metrics,
    room: Arc<Semaphore>,
    /// Those that may have to give way; empty where none does.
    open: Arc<Mutex<Vec<Weak<Connection>>>>,
    ids: Arc<AtomicU64>,
    complaints: Arc<Complaints>,
}

/// A connection and its place in the count, which it holds as long as it lives.
pub struct Accepted {
    /// Identity and state, for requests.
    pub connection: Arc<Connection>,
    /// The stream.
    pub stream: Arc<TcpStream>,
    _place: OwnedSemaphorePermit,
}

/// What a protocol does with its connections.
pub trait Serve: Clone + Send + Sync + 'static {
    /// Serves one until it ends. Heeds [`Gate::limits`] and [`Gate::stop`] by itself.
    fn serve(&self, accepted: Accepted) -> impl Future<Output = ()> + Send;
    /// What is sent to a caller for whom there is no room; short, written without waiting.
    fn full(&self) -> &'static [u8];
}

impl Gate {
    /// A gate with all its places free.
    pub fn new(limits: Limits, stop: Stop, clock: Arc<dyn Clock>, metrics: Metrics) -> Self {
        Self {
            room: Arc::new(Semaphore::new(limits.connections)),
            open: Arc::default(),
            limits: Arc::new(limits),
            stop,
            clock,
            metrics,
            ids: Arc::new(AtomicU64::new(1)),
            complaints: Arc::new(Complaints::new(COMPLAIN_EVERY)),
        }
    }

    /// Accepts on `listener` until the stop begins, then waits for the connections to end.
    pub async fn run(&self, listener: TcpListener, protocol: impl Serve) {
        let tracker = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = self.stop.reached(Phase::Draining) => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.admit(stream, &protocol, &tracker).await,
                Err(e) => self.pause_after(&e).await,
            }
        }
        drop(listener);
        tracker.close();
        tracker.wait().await;
    }

    async fn admit(&self, stream: TcpStream, protocol: &impl Serve, tracker: &TaskTracker) {
        // The caller may be gone already; then there is nothing to serve.
        let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
            return;
        };
        let Some(place) = self.place().await else {
            self.metrics.refused.inc();
            refuse(&stream, protocol.full());
            return;
        };
        if let Err(e) = stream.set_nodelay(true) {
            tracing::debug!(%peer, error = %e, "cannot set TCP_NODELAY");
        }
        let stream = Arc::new(stream);
        let connection = Arc::new(Connection {
            id: ConnectionId(self.ids.fetch_add(1, Ordering::Relaxed)),
            peer,
            local,
            activity: Arc::new(Activity::new(Arc::clone(&self.clock))),
            stream: Arc::downgrade(&stream),
        });
        if self.limits.full == Full::GiveWay {
            let mut open = self.open.lock();
            open.retain(|one| one.strong_count() > 0);
            open.push(Arc::downgrade(&connection));
        }
        let accepted = Accepted {
            connection,
            stream,
            _place: place,
        };
        let protocol = protocol.clone();
        let open = self.metrics.open.clone();
        open.inc();
        drop(tasks::spawn(tracker.track_future(async move {
            protocol.serve(accepted).await;
            open.dec();
        })));
    }

    /// A place, if there is one or another connection gives way.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.room);
        if let Ok(place) = Arc::clone(&room).try_acquire_owned() {
            return Some(place);
        }
        if self.limits.full == Full::Refuse {
            return None;
        }
        let open: Vec<_> = self.open.lock().iter().filter_map(Weak::upgrade).collect();
        open.iter().min_by_key(|one| one.activity.standing())?.cut();
        drop(open);
        self.metrics.gave_way.inc();
        // The semaphore is never closed.
        let freed = tokio::time::timeout(GIVING_WAY, room.acquire_owned());
        freed.await.ok()?.ok()
    }

    async fn pause_after(&self, error: &io::Error) {
        let caller_gone = matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
        );
        if !caller_gone {
            let now = self.clock.monotonic();
            if let Some(kept_back) = self.complaints.is_due("", "accept", now) {
                tracing::warn!(error = %error, kept_back, "cannot accept a connection; raise the limit of open files");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Says why, without waiting: what the caller has sent so far is taken in first, since a close with unread bytes is
/// a reset, which could overtake the answer.
fn refuse(stream: &TcpStream, why: &[u8]) {
    let socket = SockRef::from(stream);
    let mut scratch = [std::mem::MaybeUninit::uninit(); 4096];
    drop(socket.recv(&mut scratch));
    if let Err(e) = socket
        .send(why)
        .and_then(|_| socket.shutdown(Shutdown::Write))
    {
        tracing::debug!(error = %e, "a refused caller was gone already");
    }
}
