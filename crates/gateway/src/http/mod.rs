//! The HTTP door: one file per resource; translates and never decides.
//!
//! Guarantees: every resource answers on every HTTP port; every refusal is a problem (RFC 9457); a body is bounded
//! before, while and after it is read; an answer is bounded and paid from the door's share of the memory budget until
//! the caller has taken it. What each resource takes and gives stands in `docs/http.md`.
//!
//! ```text
//! PUT POST        /v1/consumer/register        consumer/register.rs
//! POST            /v1/consumer/poll            consumer/poll.rs
//! POST            /v1/consumer/{commit,goodbye}   consumer/end.rs
//! POST            /v1/topic/{t}/messages       produce/
//! GET             /v1/topic/{t}/partitions/{p}/records   read/
//! GET PUT DELETE  /v1/topic, /v1/topic/{t}     topics.rs
//! GET DELETE      /v1/group, /v1/group/{g}     groups.rs
//! GET             /v1/brokers, /status         node.rs
//! ```

mod answer;
mod body;
mod consumer;
mod errors;
mod fixed;
mod groups;
mod json;
mod media;
mod metrics;
mod node;
mod object;
mod path;
pub(crate) mod problem;
mod produce;
mod query;
mod read;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};
use floe_broker::Broker;
use floe_world::Pool;
use tokio::net::TcpListener;

use crate::listen::{Connection, Gate, Http};
pub(crate) use fixed::fixed;
pub use metrics::Metrics;
pub use problem::Problem;
pub use produce::decode as decode_body;

/// Longest long poll.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Most bytes of records in one answer, unless a single record is larger.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Part of the node's buffers that request bodies may take: answers that nobody reads cannot keep producers out.
const BODIES_SHARE: usize = 16;
/// Part of the node's buffers that answers may take.
const ANSWERS_SHARE: usize = 8;

/// What the door is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http.produce.body.max.bytes`.
    pub produce_body_bytes_max: usize,
    /// `advertised.listeners`: host told to clients, as it stands in a URL; `None` tells each the one it called.
    pub advertised: Option<String>,
    /// Port told to producers.
    pub produce_port: u16,
    /// Port told to consumers.
    pub consume_port: u16,
}

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct Door {
    api: Arc<Api>,
}

/// What every resource works with.
pub(crate) struct Api {
    broker: Broker,
    gate: Gate,
    settings: Settings,
    bodies: Pool,
    answers: Pool,
    metrics: Metrics,
    gatherer: produce::Gatherer,
    turns: produce::Turns,
    deliveries: consumer::Deliveries,
    scratches: read::Scratches,
}

impl Door {
    /// A door of `broker`; its connections count at `gate`.
    pub fn new(broker: Broker, gate: Gate, settings: Settings, metrics: Metrics) -> Self {
        let buffers = &broker.world().memory;
        let scratches = read::Scratches::new(broker.settings().log.decompressed_bytes_max);
        let api = Api {
            bodies: buffers.share(buffers.limit() / BODIES_SHARE),
            answers: buffers.share(buffers.limit() / ANSWERS_SHARE),
            broker,
            gate,
            settings,
            metrics,
            gatherer: produce::Gatherer::default(),
            turns: produce::Turns::default(),
            deliveries: consumer::Deliveries::default(),
            scratches,
        };
        Self { api: Arc::new(api) }
    }

    /// Serves a listener until the gate's stop, then until its connections have ended.
    pub async fn run(&self, listener: TcpListener) {
        let api = Arc::clone(&self.api);
        let on_end = move |connection: &Connection| consumer::connection_ended(&api, connection);
        let http = Http::new(self.api.gate.clone(), router(Arc::clone(&self.api)), on_end);
        self.api.gate.run(listener, http).await;
    }
}

type State = axum::extract::State<Arc<Api>>;

fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/status", get(node::status))
        .route("/v1/brokers", get(node::brokers))
        .route("/v1/topic", get(topics::list))
        .route(
            "/v1/topic/{topic}",
            get(topics::describe)
                .put(topics::create)
                .delete(topics::delete),
        )
        .route("/v1/topic/{topic}/messages", post(produce::produce))
        .route(
            "/v1/topic/{topic}/partitions/{partition}/records",
            get(read::read),
        )
        .route("/v1/group", get(groups::list))
        .route(
            "/v1/group/{group}",
            get(groups::describe).delete(groups::delete),
        )
        .route(
            "/v1/consumer/register",
            post(consumer::register).put(consumer::register),
        )
        .route("/v1/consumer/poll", post(consumer::poll))
        .route("/v1/consumer/commit", post(consumer::commit))
        .route("/v1/consumer/goodbye", post(consumer::goodbye))
        .fallback(no_resource)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(body::check_transfer))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&api),
            metrics::count,
        ))
        .with_state(api)
}

async fn no_resource(uri: Uri) -> Problem {
    let path = problem::shown(uri.path());
    Problem::absent(
        "unknown-resource",
        format!("no resource at '{path}'; the resources of this node are listed in docs/http.md"),
    )
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    let path = problem::shown(uri.path());
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        format!("{method} is not possible on '{path}'; the Allow header says what is"),
    )
}

/// An answer or a problem.
type Answered = Result<Response, Problem>;
