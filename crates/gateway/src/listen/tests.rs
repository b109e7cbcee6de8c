//! The listener, over real sockets on ports that the system chose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use floe_world::tasks::Handle;
use floe_world::{clock, tasks};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

struct Door {
    address: std::net::SocketAddr,
    stopper: Stopper,
    ends: Arc<Mutex<Vec<bool>>>,
    gate: Gate,
    running: Handle<()>,
}

async fn door(limits: Limits) -> Door {
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route(
            "/refuse",
            post(|| async { (http::StatusCode::BAD_REQUEST, "no") }),
        )
        .route("/large", get(|| async { vec![b'x'; 32 * 1024 * 1024] }))
        .route("/wait", get(std::future::pending::<&str>));
    let (stopper, stop) = Stopper::new();
    let gate = Gate::new(limits, stop, Arc::new(clock::System), Metrics::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ends);
    let http = Http::new(gate.clone(), router, move |c: &Connection| {
        seen.lock().push(c.is_broken());
    });
    let on = gate.clone();
    let running = tasks::spawn(async move { on.run(listener, http).await });
    Door {
        address,
        stopper,
        ends,
        gate,
        running,
    }
}

impl Door {
    async fn call(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn ended(&self, count: usize) -> Vec<bool> {
        until(|| self.ends.lock().len() >= count).await;
        self.ends.lock().clone()
    }
}

async fn until(mut state: impl FnMut() -> bool) {
    let wait = async {
        while !state() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait)
        .await
        .expect("the state comes");
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A reset after the answer is an end, too.
    drop(
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut all))
            .await
            .unwrap(),
    );
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn a_caller_above_the_limit_is_told_so_and_a_freed_place_is_given_again() {
    let door = door(Limits {
        connections: 1,
        ..Limits::default()
    })
    .await;
    let mut first = door.call().await;
    until(|| door.gate.metrics.open.get() == 1).await;
    let told = rest(&mut door.call().await).await;
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    let body = told.split("\r\n\r\n").nth(1).unwrap();
    assert!(
        told.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{told}"
    );
    serde_json::from_str::<serde_json::Value>(body).unwrap();
    first
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(rest(&mut first).await.ends_with("hello"));
    until(|| door.gate.metrics.open.get() == 0).await;
    let mut next = door.call().await;
    next.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(rest(&mut next).await.ends_with("hello"));
}

#[tokio::test]
async fn where_connections_give_way_the_next_caller_is_answered_whoever_holds_the_places() {
    let door = door(Limits {
        connections: 4,
        full: Full::GiveWay,
        ..Limits::default()
    })
    .await;
    let mut asking = door.call().await;
    asking
        .write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut holding = Vec::new();
    for words in [&b""[..], b"GET / HTTP/1.1\r\nHo", b"PRI * HTTP/2.0\r\n\r\n"] {
        let mut caller = door.call().await;
        caller.write_all(words).await.unwrap();
        until(|| door.gate.metrics.open.get() == 2 + holding.len() as i64).await;
        holding.push(caller);
    }
    // Kept alive, so each of them holds a place, too.
    for round in 1..=9 {
        let mut next = door.call().await;
        next.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 512];
        let count = next.read(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(text.starts_with("HTTP/1.1 200"), "{round}: {text}");
        holding.push(next);
    }
    assert_eq!(door.gate.metrics.gave_way.get(), 9);
    assert_eq!(door.gate.metrics.refused.get(), 0);
    for gone in &mut holding[..9] {
        rest(gone).await;
    }
    let mut byte = [0];
    let waiting = tokio::time::timeout(Duration::from_millis(50), asking.read(&mut byte)).await;
    assert!(waiting.is_err(), "a request in flight keeps its place");
    drop(door.stopper);
}

#[tokio::test]
async fn http2_that_asks_nothing_is_closed_like_silence() {
    let door = door(Limits {
        first_byte: Duration::from_millis(50),
        ..Limits::default()
    })
    .await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    for words in [&preface[..], &[&preface[..], &settings].concat()] {
        let mut caller = door.call().await;
        caller.write_all(words).await.unwrap();
        rest(&mut caller).await;
    }
    assert_eq!(door.gate.metrics.overdue.get(), 2);
}

#[tokio::test]
async fn silent_and_dripping_callers_are_closed_after_their_time() {
    let short = Duration::from_millis(50);
    let door = door(Limits {
        first_byte: short,
        head: short,
        ..Limits::default()
    })
    .await;
    let mut silent = door.call().await;
    let mut dripping = door.call().await;
    dripping.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    assert_eq!(rest(&mut dripping).await, "");
    assert_eq!(
        door.gate.metrics.overdue.get(),
        1,
        "the silent one never was a request"
    );
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up_and_marked_so() {
    let short = Duration::from_millis(100);
    let door = door(Limits {
        write_stall: short,
        ..Limits::default()
    })
    .await;
    let mut caller = door.call().await;
    caller
        .write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(door.ended(1).await, [true]);
}

#[tokio::test]
async fn a_refusal_sent_before_the_body_was_read_arrives() {
    let door = door(Limits::default()).await;
    let mut caller = door.call().await;
    let length = 6 * 1024 * 1024;
    let head = format!("POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    caller.write_all(head.as_bytes()).await.unwrap();
    // As naive clients do: all of the body first, then the answer.
    caller.write_all(&vec![b'x'; length]).await.unwrap();
    let told = rest(&mut caller).await;
    assert!(told.starts_with("HTTP/1.1 400"), "{told}");
}

#[tokio::test]
async fn a_clean_close_is_not_a_broken_connection_and_a_reset_is() {
    let door = door(Limits::default()).await;
    let mut clean = door.call().await;
    clean
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 512];
    assert!(clean.read(&mut answer).await.unwrap() > 0);
    drop(clean);
    assert_eq!(door.ended(1).await, [false]);
    let mut reset = door.call().await;
    reset
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    // Closing with the answer unread makes the kernel send a reset.
    reset.readable().await.unwrap();
    drop(reset);
    assert_eq!(door.ended(2).await, [false, true]);
}

#[tokio::test]
async fn a_stop_ends_thousands_of_idle_connections_at_once() {
    let door = door(Limits::default()).await;
    let mut idle = Vec::new();
    for place in 0..2000 {
        let mut caller = door.call().await;
        if place % 2 == 0 {
            caller
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
        }
        idle.push(caller);
    }
    until(|| door.gate.metrics.open.get() == 2000).await;
    door.stopper.advance(Phase::Draining);
    tokio::time::timeout(Duration::from_secs(3), door.running)
        .await
        .expect("at once");
    assert_eq!(door.ends.lock().len(), 2000);
}

#[tokio::test]
async fn a_stop_cuts_a_request_in_flight_after_the_drain_time_or_when_told() {
    let door = door(Limits::default()).await;
    let mut caller = door.call().await;
    caller
        .write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    until(|| door.gate.metrics.open.get() == 1).await;
    door.stopper.advance(Phase::Draining);
    door.stopper.advance(Phase::Stopped);
    tokio::time::timeout(Duration::from_secs(3), door.running)
        .await
        .expect("at once");
}

#[tokio::test]
async fn http2_with_prior_knowledge_shares_the_port_and_its_requests_the_connection() {
    let door = door(Limits::default()).await;
    let stream = door.call().await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake::<_, _, axum::body::Body>(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    )
    .await
    .unwrap();
    tasks::spawn(connection);
    let done = AtomicUsize::new(0);
    for _ in 0..3 {
        let request = http::Request::get(format!("http://{}/", door.address))
            .body(axum::body::Body::empty())
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_2);
        assert_eq!(answer.status(), 200);
        done.fetch_add(1, Ordering::Relaxed);
    }
    assert_eq!(door.gate.metrics.open.get(), 1);
}

#[tokio::test]
async fn a_connection_that_fell_quiet_goes_on_where_it_was_half_a_head_included() {
    let door = door(Limits::default()).await;
    let mut caller = door.call().await;
    let mut answer = [0; 512];
    // The second head has begun when the first request is answered.
    caller
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
        .await
        .unwrap();
    assert!(caller.read(&mut answer).await.unwrap() > 0);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    for rest in [
        &b"TP/1.1\r\nHost: x\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        caller.write_all(rest).await.unwrap();
        let count = caller.read(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(
            text.starts_with("HTTP/1.1 200") && text.ends_with("hello"),
            "{text}"
        );
    }
    assert_eq!(door.gate.metrics.open.get(), 1);
}
