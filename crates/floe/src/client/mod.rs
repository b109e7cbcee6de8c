//! A small HTTP/1.1 client for the commands: one kept connection to one node.
//!
//! Guarantees: a refusal of the node becomes the message its problem document (RFC 9457) carries; a connection that the
//! node closed while it was idle is opened again once. Does not follow redirects and speaks no TLS.

mod address;
pub mod api;
pub mod value;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub use address::Address;

use crate::exit::{Code, Failure, Outcome};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for an answer to a request that does not ask the node to wait itself.
const ANSWER: Duration = Duration::from_mins(1);
/// Largest answer taken in.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The client.
pub struct Client {
    address: Address,
    connection: Option<http1::SendRequest<Full<Bytes>>>,
}

/// An answer, whole.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its head.
    pub headers: hyper::HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    /// Media type of the body.
    pub content_type: Option<&'static str>,
    /// Media type wanted back.
    pub accept: &'static str,
    /// Body.
    pub body: Bytes,
}

impl Client {
    /// Of a node; connects with the first request.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    /// Sends one request and takes in the answer, whatever its status.
    pub async fn send(&mut self, ask: &Ask<'_>) -> Outcome<Answer> {
        let reused = self.connection.is_some();
        match self.try_send(ask).await {
            // The node may have closed an idle connection; a request that never left may be sent again.
            Err(Trouble::Unsent(_)) if reused => self.try_send(ask).await,
            outcome => outcome,
        }
        .map_err(|trouble| self.unreachable(trouble.text()))
    }

    async fn try_send(&mut self, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let mut sender = match self.connection.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(ask.path)
            .header(HOST, self.address.authority());
        if let Some(content_type) = ask.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request
            .header(ACCEPT, ask.accept)
            .body(Full::new(ask.body.clone()))
            .map_err(|error| Trouble::Sent(error.to_string()))?;
        let exchange = async {
            sender
                .ready()
                .await
                .map_err(|error| Trouble::Unsent(error.to_string()))?;
            let response = sender.try_send_request(request).await;
            let response = response.map_err(|mut failed| match failed.take_message() {
                Some(_) => Trouble::Unsent(failed.into_error().to_string()),
                None => Trouble::Sent(failed.into_error().to_string()),
            })?;
            let (head, body) = response.into_parts();
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX);
            let body = body
                .collect()
                .await
                .map_err(|error| Trouble::Sent(error.to_string()))?;
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        let answer = tokio::time::timeout(ANSWER, exchange)
            .await
            .map_err(|_| Trouble::Sent(format!("no answer within {} s", ANSWER.as_secs())))??;
        self.connection = Some(sender);
        Ok(answer)
    }

    async fn connect(&self) -> Result<http1::SendRequest<Full<Bytes>>, Trouble> {
        let unsent = |error: String| Trouble::Unsent(error);
        let stream = TcpStream::connect((self.address.host.as_str(), self.address.port));
        let stream = tokio::time::timeout(CONNECT, stream)
            .await
            .map_err(|_| unsent("the connection timed out".to_owned()))?
            .map_err(|error| unsent(error.to_string()))?;
        stream
            .set_nodelay(true)
            .map_err(|error| unsent(error.to_string()))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unsent(error.to_string()))?;
        // Its end shows in the sender, which is asked before each request.
        drop(floe_world::tasks::spawn(async move {
            drop(connection.await);
        }));
        Ok(sender)
    }

    fn unreachable(&self, why: &str) -> Failure {
        Failure::new(
            Code::Unreachable,
            format!(
                "cannot talk to {}: {why}; is a node running there? Start one with `floe dev`, or name it with --server URL",
                self.address
            ),
        )
    }

    /// Sends, and takes any status but 2xx as a refusal.
    pub async fn expect(&mut self, ask: &Ask<'_>) -> Outcome<Answer> {
        let answer = self.send(ask).await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(refusal(&answer))
    }

    /// A GET whose answer is JSON.
    pub async fn get(&mut self, path: &str) -> Outcome<Value> {
        let answer = self
            .expect(&Ask {
                method: Method::GET,
                path,
                content_type: None,
                accept: "application/json",
                body: Bytes::new(),
            })
            .await?;
        answer.json()
    }
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Outcome<Value> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::failed(format!(
                "the node's answer is not JSON ({error}); is it a Floe node's HTTP port?"
            ))
        })
    }
}

enum Trouble {
    /// The node has not seen the request.
    Unsent(String),
    /// It may have.
    Sent(String),
}

impl Trouble {
    fn text(&self) -> &str {
        match self {
            Self::Unsent(text) | Self::Sent(text) => text,
        }
    }
}

/// What the node said, as a failure of the command.
pub fn refusal(answer: &Answer) -> Failure {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |name: &str| problem.get(name).and_then(Value::as_str).map(str::to_owned);
    let said = text("detail")
        .or_else(|| text("title"))
        .unwrap_or_else(|| String::from_utf8_lossy(&answer.body).trim().to_owned());
    let code = if answer.status.is_client_error() {
        Code::Refused
    } else {
        Code::Failed
    };
    match said.as_str() {
        "" => Failure::new(code, format!("the node answered {}", answer.status)),
        said => Failure::new(code, said),
    }
}
