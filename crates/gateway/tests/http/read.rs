//! Plain reads.

use std::time::Duration;

use floe_gateway::listen::Limits;
use http_body_util::BodyExt as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;

use crate::harness::{LINES, Node, request};

async fn filled() -> Node {
    let node = Node::start().await;
    for batch in 0..3 {
        let lines: String = (0..20)
            .map(|n| (batch * 20 + n).to_string() + "\n")
            .collect();
        let path = format!(
            "/v1/topic/t/messages?partition=0&timestamp={}",
            1000 + batch
        );
        node.post(&path, &[LINES], lines).await.expect(200);
    }
    node
}

/// C10 and C12 of the cases.
#[tokio::test]
async fn a_read_begins_at_exactly_the_offset_asked_for() {
    let node = filled().await;
    for from in [0, 1, 19, 20, 33, 59] {
        let records = node.records("t", 0, &format!("offset={from}&max=2")).await;
        assert_eq!(records[0]["offset"], from);
        assert_eq!(records[0]["value"], from);
    }
    let page = node
        .get("/v1/topic/t/partitions/0/records?offset=45&max=5")
        .await
        .expect(200);
    assert_eq!(page.headers["floe-next-offset"], "50");
    let page = page.json();
    assert_eq!(
        (
            &page["nextOffset"],
            &page["commitOffset"],
            &page["logStart"]
        ),
        (&json!(50), &json!(60), &json!(0))
    );
    assert_eq!(page["records"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_read_by_time_begins_at_the_first_record_of_that_time() {
    let node = filled().await;
    for (time, expected) in [(0, 0), (1000, 0), (1001, 20), (1002, 40)] {
        let records = node
            .records("t", 0, &format!("timestamp={time}&max=1"))
            .await;
        assert_eq!(records[0]["offset"], expected, "{time}");
    }
    let end = node
        .get("/v1/topic/t/partitions/0/records?timestamp=1003")
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&end["records"], &end["nextOffset"]),
        (&json!([]), &json!(60))
    );
}

#[tokio::test]
async fn reading_on_at_the_next_offset_gives_every_record_once() {
    let node = filled().await;
    let mut offset = 0;
    let mut seen = Vec::new();
    while offset < 60 {
        let path = format!("/v1/topic/t/partitions/0/records?offset={offset}&max=7");
        let page = node.get(&path).await.expect(200).json();
        seen.extend(
            page["records"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| r["value"].as_u64().unwrap()),
        );
        offset = page["nextOffset"].as_u64().unwrap();
    }
    assert_eq!(seen, (0..60).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_waiting_read_is_answered_by_the_next_record_and_else_when_its_time_is_over() {
    let node = filled().await;
    let path = "/v1/topic/t/partitions/0/records?offset=latest&wait=20s";
    let reading = node.get(path);
    let writing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        node.post("/v1/topic/t/messages?partition=0", &[], "\"new\"")
            .await
            .expect(200);
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        tokio::join!(reading, writing)
    });
    let (page, ()) = waited.await.expect("long before the time is over");
    let page = page.expect(200).json();
    assert_eq!(page["records"][0]["offset"], 60);
    assert_eq!(page["records"][0]["value"], json!({"$json": "new"}));
    let page = node
        .get("/v1/topic/t/partitions/0/records?offset=61&wait=50")
        .await
        .expect(200);
    assert_eq!(page.json()["records"], json!([]));
}

#[tokio::test]
async fn what_is_not_there_is_said_with_its_bounds() {
    let node = filled().await;
    let at = |query: &str| format!("/v1/topic/t/partitions/0/records?{query}");
    let beyond = node.get(&at("offset=61")).await.expect(416);
    assert_eq!(beyond.problem(), "offset-out-of-range");
    assert_eq!(
        (&beyond.json()["logStart"], &beyond.json()["end"]),
        (&json!(0), &json!(60))
    );
    for (query, kind) in [
        ("offset=-1", "invalid-parameter"),
        ("offset=x", "invalid-parameter"),
        ("offset=1&timestamp=1", "invalid-parameter"),
        ("max=0", "invalid-parameter"),
        ("max=100001", "invalid-parameter"),
        ("wait=61s", "invalid-parameter"),
        ("ofset=1", "unknown-parameter"),
    ] {
        assert_eq!(
            node.get(&at(query)).await.expect(400).problem(),
            kind,
            "{query}"
        );
    }
    let none = node
        .get("/v1/topic/t/partitions/4/records")
        .await
        .expect(404);
    assert_eq!(none.problem(), "unknown-partition");
    let none = node
        .get("/v1/topic/none/partitions/0/records")
        .await
        .expect(404);
    assert_eq!(none.problem(), "unknown-topic");
}

#[tokio::test]
async fn an_answer_ends_at_about_a_mebibyte_and_a_large_record_comes_whole() {
    let node = Node::start().await;
    let text = |n: usize| format!("\"{}\"", "x".repeat(n));
    for _ in 0..5 {
        node.post("/v1/topic/t/messages?partition=0", &[], text(400_000))
            .await
            .expect(200);
    }
    let page = node
        .get("/v1/topic/t/partitions/0/records")
        .await
        .expect(200);
    assert!(
        (400_000..2_500_000).contains(&page.body.len()),
        "{}",
        page.body.len()
    );
    let page = node
        .get("/v1/topic/t/partitions/0/records?offset=4&max=1")
        .await
        .expect(200);
    assert!(page.body.len() > 400_000);
}

/// A record that grows sixfold as JSON beyond the memory for answers, and one behind it.
#[tokio::test]
async fn a_record_that_no_answer_can_hold_is_named_for_good_and_can_be_stepped_over() {
    let node = Node::start().await;
    let large = vec![0_u8; 3 << 20];
    node.append("t", &[&large, b"7"]).await;
    let path = "/v1/topic/t/partitions/0/records?offset=0";
    for _ in 0..3 {
        let refused = node.get(path).await.expect(500);
        assert_eq!(refused.problem(), "oversized");
        let refused = refused.json();
        assert_eq!(
            (&refused["from"], &refused["nextOffset"]),
            (&json!(0), &json!(1))
        );
    }
    assert_eq!(node.records("t", 0, "offset=1").await[0]["value"], 7);
}

#[tokio::test]
async fn an_answer_that_an_http2_caller_lets_nothing_through_of_is_given_up_after_its_time() {
    let node = Node::with(Limits {
        write_stall: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let value = vec![b'x'; 20_000];
    node.append("t", &[&value]).await;
    let stream = TcpStream::connect(node.address).await.unwrap();
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    floe_world::tasks::spawn(connection);
    let path = format!(
        "http://{}/v1/topic/t/partitions/0/records?offset=0",
        node.address
    );
    let asked = sender.send_request(request("GET", &path, &[], ""));
    let answer = asked.await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = tokio::time::timeout(Duration::from_secs(20), answer.into_body().collect());
    assert!(body.await.expect("it is given up").is_err());
}
