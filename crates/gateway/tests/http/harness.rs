//! A node with its HTTP door, and a client of few words.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use floe_broker::{Broker, ProduceOptions, Settings, World};
use floe_gateway::{http as door, listen};
use floe_model::{PartitionIndex, TopicName};
use floe_wire::batch::Builder;
use floe_wire::codec::Codec;
use floe_world::{Pool, clock, disk, random, tasks};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

pub(crate) const JSON: (&str, &str) = ("accept", "application/json");
pub(crate) const RECORDS: (&str, &str) = ("content-type", "application/vnd.floe.records+json");
pub(crate) const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

pub(crate) struct Node {
    pub(crate) address: std::net::SocketAddr,
    broker: Broker,
    pub(crate) disk: disk::Simulated,
    _stopper: listen::Stopper,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The kind of a problem.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let body = self.json();
        assert!(!body["detail"].as_str().unwrap().is_empty());
        assert_eq!(body["status"], self.status.as_u16());
        let kind = body["type"].as_str().unwrap();
        kind.strip_prefix("urn:floe:problem:").unwrap().to_owned()
    }
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::made(None, listen::Limits::default()).await
    }

    /// One that tells its callers this host.
    pub(crate) async fn advertising(advertised: Option<String>) -> Self {
        Self::made(advertised, listen::Limits::default()).await
    }

    pub(crate) async fn with(limits: listen::Limits) -> Self {
        Self::made(None, limits).await
    }

    async fn made(advertised: Option<String>, limits: listen::Limits) -> Self {
        let disk = disk::Simulated::new(7);
        let mut settings = Settings::new(PathBuf::from("/data"));
        settings.log.ring_bytes = 64 << 20;
        let world = World {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(clock::System),
            random: Arc::new(random::System),
            memory: Pool::new(128 << 20),
        };
        let broker = Broker::start(world, settings, |_| {}).await.unwrap();
        let (stopper, stop) = listen::Stopper::new();
        let clock = Arc::clone(&broker.world().clock);
        let counted = listen::Metrics::default();
        let gate = listen::Gate::new(limits, stop, clock, counted);
        let settings = door::Settings {
            produce_body_bytes_max: 1024 * 1024,
            advertised,
            produce_port: 9251,
            consume_port: 9252,
        };
        let door = door::Door::new(broker.clone(), gate, settings, door::Metrics::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tasks::spawn(async move { door.run(listener).await });
        Self {
            address,
            broker,
            disk,
            _stopper: stopper,
        }
    }

    /// Appends one batch, compressed as Kafka clients do, to partition 0 of a topic, which is made if there is none.
    pub(crate) async fn append(&self, topic: &str, values: &[&[u8]]) {
        let path = format!("/v1/topic/{topic}");
        self.call("PUT", &path, &[], r#"{"partitions": 1}"#).await;
        let mut batch = Builder::new(Codec::Gzip);
        for value in values {
            let time = self.broker.world().clock.now();
            batch.record(time, None, Some(value), &[]).unwrap();
        }
        let batch = Bytes::from(batch.finish().unwrap());
        let name = TopicName::parse(topic).unwrap();
        let partition = self.broker.catalog().topics[&name].address(PartitionIndex(0));
        let options = ProduceOptions::default();
        let pending = self.broker.produce(partition, &batch, options).unwrap();
        pending.await.unwrap();
    }

    pub(crate) async fn open(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tasks::spawn(connection);
        Client(sender)
    }

    /// A connection of HTTP/2 with prior knowledge.
    pub(crate) async fn open_http2(&self) -> http2::SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let io = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tasks::spawn(connection);
        sender
    }

    /// One call on a connection of its own.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.open().await.call(method, path, headers, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.call("POST", path, headers, body).await
    }

    /// Where a partition ends.
    pub(crate) async fn end(&self, topic: &str, partition: usize) -> u64 {
        let described = self.get(&format!("/v1/topic/{topic}")).await.expect(200);
        let end = &described.json()["partitions"][partition]["commitOffset"];
        end.as_u64().unwrap()
    }

    /// The records of a partition from an offset.
    pub(crate) async fn records(&self, topic: &str, partition: u64, query: &str) -> Vec<Value> {
        let path = format!("/v1/topic/{topic}/partitions/{partition}/records?{query}");
        let answer = self.get(&path).await.expect(200).json();
        answer["records"].as_array().unwrap().clone()
    }
}

/// One connection.
pub(crate) struct Client(http1::SendRequest<Full<Bytes>>);

impl Client {
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let request = request(method, path, headers, body);
        self.0.ready().await.unwrap();
        answer(self.0.send_request(request).await.unwrap()).await
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    if !path.starts_with("http") {
        request = request.header("host", "floe.example:9250");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}

pub(crate) async fn answer(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    Answer {
        status: head.status,
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}
