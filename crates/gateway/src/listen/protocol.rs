//! HTTP/1.1 and HTTP/2 with prior knowledge on one accepted connection.
//!
//! Guarantees: nothing is allocated for a connection before its first byte; heads, idle time and answers that are not
//! taken are bounded by [`super::Limits`]; a stop ends idle connections at once and the others when their request
//! ends or the drain time passes. Routing belongs to the service given.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tower::Service;

use super::accept::{Accepted, Gate, Serve};
use super::activity::{Activity, Overdue};
use super::connection::Connection;
use super::socket::Socket;
use super::stop::Phase;

/// HTTP/2: bytes of a request body that may be under way unread.
const STREAM_WINDOW: u32 = 128 * 1024;
/// HTTP/2: the same of all requests of a connection.
const CONNECTION_WINDOW: u32 = 512 * 1024;
/// HTTP/2: bytes of an answer waiting for the caller's window.
const SEND_BUFFER: usize = 64 * 1024;
/// HTTP/2: streams reset by the caller that still wait for their task (CVE-2023-44487).
const RESETS: usize = 32;

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\
Content-Type: application/problem+json\r\nContent-Length: 143\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Too many connections\",\"status\":503,\"detail\":\"all places are \
taken; retry in a second, or raise max.connections\"}";

/// Serves a router on the connections of a gate.
#[derive(Clone)]
pub struct Http<H> {
    gate: Gate,
    router: axum::Router,
    on_end: H,
}

impl<H: Fn(&Connection) + Clone + Send + Sync + 'static> Http<H> {
    /// `on_end` is told of each connection that has ended.
    pub fn new(gate: Gate, router: axum::Router, on_end: H) -> Self {
        Self {
            gate,
            router,
            on_end,
        }
    }

    async fn drive(&self, accepted: &Accepted) {
        let activity = Arc::clone(&accepted.connection.activity);
        let mut builder = auto::Builder::new(TokioExecutor::new());
        let limits = &self.gate.limits;
        builder
            .http1()
            .header_read_timeout(None)
            .max_buf_size(limits.head_bytes.max(8192))
            .max_headers(100);
        builder
            .http2()
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(limits.head_bytes as u32)
            .max_pending_accept_reset_streams(RESETS)
            .keep_alive_interval(limits.idle / 4)
            .keep_alive_timeout(limits.head);
        let socket = Socket::new(
            Arc::clone(&accepted.stream),
            Arc::clone(&activity),
            self.gate.stop.clone(),
        );
        let service = Tracked {
            router: self.router.clone(),
            connection: Arc::clone(&accepted.connection),
        };
        let mut work = pin!(builder.serve_connection(TokioIo::new(socket), service));
        let mut draining = pin!(self.gate.stop.reached(Phase::Draining));
        let mut is_draining = false;
        let cut = async {
            self.gate.stop.reached(Phase::Draining).await;
            tokio::select! {
                () = tokio::time::sleep(limits.drain) => {}
                () = self.gate.stop.reached(Phase::Stopped) => {}
            }
        };
        let mut cut = pin!(cut);
        let mut overdue = pin!(watch(&activity, &self.gate));
        loop {
            tokio::select! {
                outcome = &mut work => {
                    if outcome.is_err() {
                        activity.set_broken();
                    }
                    return;
                }
                () = &mut draining, if !is_draining => {
                    is_draining = true;
                    work.as_mut().graceful_shutdown();
                }
                () = &mut cut => {
                    activity.set_broken();
                    return;
                }
                why = &mut overdue => {
                    self.gate.metrics.overdue.inc();
                    tracing::debug!(peer = %accepted.connection.peer, ?why, "connection closed");
                    if why == Overdue::Write {
                        activity.set_broken();
                    }
                    return;
                }
            }
        }
    }
}

impl<H: Fn(&Connection) + Clone + Send + Sync + 'static> Serve for Http<H> {
    async fn serve(&self, accepted: Accepted) {
        let limits = &self.gate.limits;
        let began = tokio::select! {
            () = self.gate.stop.reached(Phase::Draining) => false,
            first = tokio::time::timeout(limits.first_byte, accepted.stream.readable()) => {
                matches!(first, Ok(Ok(())))
            }
        };
        if began {
            // Boxed: an idle connection that has not spoken yet costs its socket and little else.
            Box::pin(self.drive(&accepted)).await;
        }
        (self.on_end)(&accepted.connection);
    }

    fn full(&self) -> &'static [u8] {
        FULL
    }
}

async fn watch(activity: &Activity, gate: &Gate) -> Overdue {
    loop {
        match activity.next(&gate.limits) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(why) => return why,
        }
    }
}

/// Marks requests with their connection, and the connection with its requests.
struct Tracked {
    router: axum::Router,
    connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Tracked {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request
            .extensions_mut()
            .insert(Arc::clone(&self.connection));
        let flight = InFlight::begin(Arc::clone(&self.connection.activity));
        // A router is always ready (axum's own promise for `Router`).
        let answer = self.router.clone().call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| Answer {
                body,
                _flight: flight,
            }))
        })
    }
}

/// Counts one request in flight until it is dropped.
struct InFlight(Arc<Activity>);

impl InFlight {
    fn begin(activity: Arc<Activity>) -> Self {
        activity.request_began();
        Self(activity)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

/// A body that keeps its request in flight until it has been handed over.
pub(crate) struct Answer {
    body: Body,
    _flight: InFlight,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
