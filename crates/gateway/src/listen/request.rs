//! Requests of a connection: each knows its connection, and the connection knows how many are in flight.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::{Request, Response};
use tower::Service;

use super::activity::{Activity, Owed};
use super::connection::Connection;

/// Marks requests with their connection, and the connection with its requests.
pub(super) struct Tracked {
    pub(super) router: axum::Router,
    pub(super) connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Tracked {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request
            .extensions_mut()
            .insert(Arc::clone(&self.connection));
        let mut flight = InFlight::begin(Arc::clone(&self.connection.activity));
        // A router is always ready (axum's own promise for `Router`).
        let answer = self.router.clone().call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let bytes = answer.body().size_hint().lower();
            flight.owed = flight.activity.answer_began(bytes);
            Ok(answer.map(|body| Answer {
                body,
                _flight: flight,
            }))
        })
    }
}

/// Counts one request in flight until it is dropped.
struct InFlight {
    activity: Arc<Activity>,
    owed: Option<Owed>,
}

impl InFlight {
    fn begin(activity: Arc<Activity>) -> Self {
        activity.request_began();
        Self {
            activity,
            owed: None,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(owed) = &self.owed {
            self.activity.answer_ended(owed);
        }
        self.activity.request_ended();
    }
}

/// A body that keeps its request in flight until it has been handed over.
pub(super) struct Answer {
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
