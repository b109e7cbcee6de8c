//! HTTP/1.1 and HTTP/2 with prior knowledge on one accepted connection.
//!
//! Guarantees: a connection that has not spoken yet, or has been quiet for a moment, costs its socket and little else;
//! heads, idle time and answers that are not taken are bounded by [`super::Limits`]; a stop ends idle connections at
//! once and the others when their request ends or the drain time passes. Routing belongs to the router given.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;

use super::accept::{Accepted, Gate, Serve};
use super::activity::{Activity, Overdue};
use super::connection::Connection;
use super::request::Tracked;
use super::socket::{Socket, Version};
use super::stop::Phase;

/// HTTP/2: bytes of a request body that may be under way unread.
pub(super) const STREAM_WINDOW: u32 = 128 * 1024;
/// HTTP/2: the same of all requests of a connection.
pub(super) const CONNECTION_WINDOW: u32 = 512 * 1024;
/// HTTP/2: bytes of an answer waiting for the caller's window.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// HTTP/2: streams reset by the caller that still wait for their task (CVE-2023-44487).
pub(super) const RESETS: usize = 32;
/// Fields of one head.
pub(super) const FIELDS: usize = 100;

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

    /// Waits for the caller to say something; `None` when it does not within `limit`, or the node stops.
    async fn listen(
        &self,
        accepted: &Accepted,
        socket: &mut Socket,
        limit: Duration,
    ) -> Option<Version> {
        let first_words = async {
            tokio::time::timeout(limit, accepted.stream.readable())
                .await
                .ok()?
                .ok()?;
            let head = self.gate.limits.head;
            tokio::time::timeout(head, socket.sniff()).await.ok()?
        };
        tokio::select! {
            () = self.gate.stop.reached(Phase::Draining) => None,
            version = first_words => version,
        }
    }

    /// HTTP/1.1 until the connection ends, or falls quiet: then the socket is given back, so that a connection kept
    /// alive for later costs no buffers.
    async fn http1(&self, accepted: &Accepted, socket: Socket) -> Option<Socket> {
        let activity = &accepted.connection.activity;
        let limits = &self.gate.limits;
        let mut connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(limits.head_bytes.max(8192))
            .max_headers(FIELDS)
            .serve_connection(TokioIo::new(socket), self.tracked(accepted));
        let mut watch = pin!(self.watch(activity, true));
        let mut draining = pin!(self.gate.stop.reached(Phase::Draining));
        let mut cut = pin!(self.cut());
        let (mut is_quiet, mut is_draining) = (false, false);
        let outcome = loop {
            tokio::select! {
                outcome = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break outcome,
                () = &mut draining, if !is_draining => {
                    is_draining = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
                () = &mut cut => {
                    activity.set_broken();
                    return None;
                }
                found = &mut watch, if !is_quiet => {
                    if let Some(why) = found {
                        self.overdue(accepted, why);
                        return None;
                    }
                    is_quiet = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        let parts = connection.into_parts();
        let mut socket = parts.io.into_inner();
        if outcome.is_err() {
            activity.set_broken();
        } else if is_quiet && !is_draining {
            socket.put_back(&parts.read_buf);
            return Some(socket);
        }
        tokio::select! {
            () = self.gate.stop.reached(Phase::Draining) => {}
            ended = socket.shutdown() => if ended.is_err() {
                activity.set_broken();
            },
        }
        None
    }

    /// HTTP/2 until the connection ends.
    async fn http2(&self, accepted: &Accepted, socket: Socket) {
        let activity = &accepted.connection.activity;
        let limits = &self.gate.limits;
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(limits.head_bytes as u32)
            .max_pending_accept_reset_streams(RESETS)
            .keep_alive_interval(limits.idle / 4)
            .keep_alive_timeout(limits.head)
            .serve_connection(TokioIo::new(socket), self.tracked(accepted));
        let mut connection = pin!(connection);
        let mut watch = pin!(self.watch(activity, false));
        let mut draining = pin!(self.gate.stop.reached(Phase::Draining));
        let mut cut = pin!(self.cut());
        let mut is_draining = false;
        loop {
            tokio::select! {
                outcome = &mut connection => {
                    if outcome.is_err() {
                        activity.set_broken();
                    }
                    return;
                }
                () = &mut draining, if !is_draining => {
                    is_draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = &mut cut => {
                    activity.set_broken();
                    return;
                }
                found = &mut watch => {
                    if let Some(why) = found {
                        self.overdue(accepted, why);
                    }
                    return;
                }
            }
        }
    }

    fn tracked(&self, accepted: &Accepted) -> Tracked {
        Tracked {
            router: self.router.clone(),
            connection: Arc::clone(&accepted.connection),
        }
    }

    /// Ends when something is overdue, or with `None` when the connection has fallen quiet, if that is of interest.
    async fn watch(&self, activity: &Activity, or_quiet: bool) -> Option<Overdue> {
        loop {
            if or_quiet && activity.is_quiet() {
                return None;
            }
            match activity.next(&self.gate.limits) {
                Ok(wait) => tokio::time::sleep(wait).await,
                Err(why) => return Some(why),
            }
        }
    }

    /// Ends when nothing is waited for any more.
    async fn cut(&self) {
        self.gate.stop.reached(Phase::Draining).await;
        tokio::select! {
            () = tokio::time::sleep(self.gate.limits.drain) => {}
            () = self.gate.stop.reached(Phase::Stopped) => {}
        }
    }

    fn overdue(&self, accepted: &Accepted, why: Overdue) {
        self.gate.metrics.overdue.inc();
        tracing::debug!(peer = %accepted.connection.peer, ?why, "connection closed");
        if why == Overdue::Write {
            accepted.connection.activity.set_broken();
        }
    }
}

impl<H: Fn(&Connection) + Clone + Send + Sync + 'static> Serve for Http<H> {
    async fn serve(&self, accepted: Accepted) {
        let activity = Arc::clone(&accepted.connection.activity);
        let stop = self.gate.stop.clone();
        let mut socket = Socket::new(Arc::clone(&accepted.stream), activity, stop);
        let mut limit = self.gate.limits.first_byte;
        // Boxed: between its conversations a connection holds none of their state.
        while let Some(version) = self.listen(&accepted, &mut socket, limit).await {
            limit = self.gate.limits.idle;
            if version == Version::Two {
                Box::pin(self.http2(&accepted, socket)).await;
                break;
            }
            match Box::pin(self.http1(&accepted, socket)).await {
                Some(quiet) => socket = quiet,
                None => break,
            }
        }
        (self.on_end)(&accepted.connection);
    }

    fn full(&self) -> &'static [u8] {
        FULL
    }
}
