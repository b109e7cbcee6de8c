//! Input that was never meant well (R32 of the faults, 10.3 k): it costs its connection, never the node, and nothing
//! that was acknowledged.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use floe_tests::batch::Record;
use floe_tests::{Node, http, wait};

/// A node with one acknowledged record, and the question whether it is still there.
struct Victim {
    node: Node,
}

impl Victim {
    fn start(settings: &[(&str, &str)]) -> Self {
        let node = Node::start_with(settings);
        let mut kafka = node.kafka();
        kafka.create_topic("kept", 1);
        kafka.produce("kept", 0, &[Record::value("{}")]);
        Self { node }
    }

    fn is_fine(&mut self, after: &str) {
        assert!(self.node.is_alive(), "the node died of {after}");
        let records = self.node.kafka().read_all("kept", 0, 0);
        assert_eq!(records.len(), 1, "after {after}");
        http::get(&self.node.discovery_address(), "/status").expect(200);
    }
}

/// Sends bytes and reads until the other side ends or says nothing for a moment.
fn throw(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    // The other side may close while this is still being sent.
    let _sent = stream.write_all(bytes);
    let _closed = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ended = stream.take(1 << 20).read_to_end(&mut answer);
    answer
}

#[test]
fn random_bytes_on_every_port_harm_nobody() {
    let mut victim = Victim::start(&[]);
    let mut seed = 42_u64;
    for address in victim.node.addresses() {
        for round in 0..40 {
            let length = [1, 3, 4, 17, 300, 70_000][round % 6];
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    seed = seed
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 33) as u8
                })
                .collect();
            throw(&address, &bytes);
        }
    }
    victim.is_fine("random bytes");
}

#[test]
fn frames_that_lie_about_their_length_are_refused_without_memory() {
    let mut victim = Victim::start(&[]);
    let before = victim.node.resident_bytes();
    let address = victim.node.kafka_address();
    let mut held = Vec::new();
    for length in [i32::MAX, 100 << 20, (100 << 20) + 1, -1, i32::MIN, 0, 1, 7] {
        throw(&address, &length.to_be_bytes());
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&length.to_be_bytes()).unwrap();
        held.push(stream);
    }
    // Announced and never sent: many at once.
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&(90_i32 << 20).to_be_bytes()).unwrap();
        held.push(stream);
    }
    victim.is_fine("lying lengths");
    let grown = victim.node.resident_bytes().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes more for announcements");
}

#[test]
fn unknown_apis_and_versions_are_answered_or_closed() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.kafka_address();
    let frame = |key: i16, version: i16| {
        let mut frame = Vec::new();
        frame.extend_from_slice(&key.to_be_bytes());
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&7_i32.to_be_bytes());
        frame.extend_from_slice(&(-1_i16).to_be_bytes());
        [&(frame.len() as i32).to_be_bytes()[..], &frame].concat()
    };
    for key in [0, 1, 3, 18, 200, -1, i16::MAX] {
        for version in [-1, 0, 99, i16::MAX] {
            throw(&address, &frame(key, version));
        }
    }
    // ApiVersions of the future is answered as version 0 with UNSUPPORTED_VERSION (KIP-511); its header is flexible.
    let mut future = frame(18, 99);
    future.push(0);
    let length = future.len() as i32 - 4;
    future[..4].copy_from_slice(&length.to_be_bytes());
    let mut connection = victim.node.kafka();
    connection.stream().write_all(&future).unwrap();
    let answer = connection.frame().expect("an answer");
    assert_eq!(answer[..6], [0, 0, 0, 7, 0, 35], "{answer:?}");
    victim.is_fine("unknown APIs");
}

#[test]
fn a_scanner_of_the_kafka_port_is_counted_and_does_not_fill_the_log() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.kafka_address();
    for _ in 0..200 {
        throw(&address, b"GET / HTTP/1.1\r\n\r\n");
    }
    let metrics = http::get(&victim.node.metrics_address(), "/metrics").expect(200);
    let counted = "floe_kafka_connections_unanswerable_total{reason=\"frame\"} 200\n";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
    let kept_back = "floe_kafka_complaints_kept_back_total 199\n";
    assert!(metrics.text().contains(kept_back), "{}", metrics.text());
    let log = victim.node.log();
    let lines = log.matches("cannot be answered").count();
    assert_eq!(lines, 1, "{log}");
    victim.is_fine("a scanner");
}

#[test]
fn every_cut_of_a_request_is_only_a_closed_connection() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.kafka_address();
    let request = floe_tests::kafka::produce_request(
        "kept",
        0,
        floe_tests::batch::encode(&[Record::value("never")], floe_tests::batch::NO_PRODUCER),
    );
    let spec = kacrab_protocol::frame::RequestFrameSpec {
        api_key: kacrab_protocol::generated::ApiKey::Produce,
        api_version: 9,
        correlation_id: 1,
        client_id: "cut",
        capacity_hint: 512,
    };
    let frame =
        kacrab_protocol::frame::encode_request_frame(spec, |out| request.write(out, 9)).unwrap();
    for length in (0..frame.len()).step_by(7) {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&frame[..length]).unwrap();
    }
    victim.is_fine("cut requests");
}

#[test]
fn http_bodies_without_end_or_sense_are_refused_by_name() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.produce_address();
    let path = "/v1/topic/kept/messages";
    let only_blank =
        http::post(&address, path, "application/x-ndjson", b"\n\n  \r\n\n").expect(400);
    assert_eq!(
        only_blank.header("content-type"),
        Some("application/problem+json")
    );
    let problem = only_blank.json();
    assert!(
        problem["title"].is_string() && problem["detail"].is_string(),
        "{problem}"
    );

    // Refused from its declared length, before it is read.
    let mut large = http::Client::open(&address);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        (1 << 20) + 1
    );
    large.stream().write_all(head.as_bytes()).unwrap();
    let refused = large
        .receive()
        .expect("an answer before the body")
        .expect(400);
    assert!(refused.text().contains("1048576"), "{}", refused.text());

    // A chunked body has no declared length; it ends at the limit.
    let mut chunked = TcpStream::connect(&address).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    chunked.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
    let mut sent = 0;
    while sent < 64 << 20 && chunked.write_all(&chunk).is_ok() {
        sent += 0x10000;
    }
    assert!(
        sent < 64 << 20,
        "a body without end was read to {sent} bytes"
    );

    http::post(&address, path, "application/json", b"").expect(400);
    let long = format!("/v1/topic/{}/messages", "n".repeat(100_000));
    let refused = throw(
        &address,
        format!("POST {long} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").as_bytes(),
    );
    assert!(
        refused.is_empty() || refused.starts_with(b"HTTP/1.1 4"),
        "{}",
        String::from_utf8_lossy(&refused)
    );
    victim.is_fine("senseless bodies");
}

#[test]
fn a_slow_head_is_given_up_and_delays_nobody() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.produce_address();
    let mut slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream
                .write_all(b"POST /v1/topic/kept/messages HTTP/1.1\r\nHost: x\r\nX-Slow: ")
                .unwrap();
            stream
        })
        .collect();
    let started = Instant::now();
    victim.is_fine("slow heads, while they last");
    assert!(started.elapsed() < Duration::from_secs(5));
    wait::until("a slow head to be given up", || {
        let stream = slow.last_mut().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut bytes = [0; 512];
        match stream.read(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Ok(_) | Err(_) => Some(()),
        }
    });
    victim.is_fine("slow heads");
}

#[test]
fn the_metrics_are_told_whoever_holds_connections_to_their_port() {
    let victim = Victim::start(&[]);
    let address = victim.node.metrics_address();
    let held: Vec<TcpStream> = (0..200)
        .map(|place| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let words = [&b""[..], b"GET /met", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
            // The other side may have let it go already for those that came after it.
            let _sent = stream.write_all(words[place % words.len()]);
            stream
        })
        .collect();
    for _ in 0..3 {
        let metrics = http::get(&address, "/metrics").expect(200).text();
        assert!(metrics.contains("floe_metrics_connections_refused_total 0\n"));
        let gave_way = |line: &str| line.starts_with("floe_metrics_connections_gave_way_total ");
        assert!(metrics.lines().any(gave_way), "{metrics}");
    }
    assert_eq!(held.len(), 200);
}

/// W-17 of the earlier broker: sockets that announce bodies and never send them.
#[test]
fn announced_bodies_that_never_come_block_no_producer() {
    let mut victim = Victim::start(&[]);
    let address = victim.node.produce_address();
    let held: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream
                .write_all(b"POST /v1/topic/other/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        http::post(
            &address,
            "/v1/topic/other/messages",
            "application/json",
            b"{}",
        )
        .expect(200);
    }
    assert_eq!(held.len(), 200);
    victim.is_fine("announced bodies");
}

#[test]
fn readers_that_never_read_cost_only_themselves() {
    let mut victim = Victim::start(&[("memory.limit.bytes", "256MiB")]);
    let mut kafka = victim.node.kafka();
    kafka.create_topic("big", 1);
    for _ in 0..64 {
        kafka.produce("big", 0, &[Record::value(vec![b'x'; 900_000])]);
    }
    let mut stuck = Vec::new();
    for _ in 0..100 {
        let mut connection = victim.node.kafka();
        for _ in 0..4 {
            connection.send(&floe_tests::kafka::fetch_request("big", 0, 0, 0), 11);
        }
        stuck.push(connection);
        let mut stream = TcpStream::connect(victim.node.consume_address()).unwrap();
        stream
            .write_all(b"GET /v1/topic/big/partitions/0/records HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
    }
    for n in 0..50 {
        assert_eq!(kafka.produce("big", 0, &[Record::value("v")]), 64 + n);
    }
    victim.is_fine("stuck readers");
    let resident = victim.node.resident_bytes();
    assert!(
        resident < 320 << 20,
        "{resident} bytes resident under a limit of 256 MiB"
    );
}
