//! Bodies at the border of what is taken: their size and their codings.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{LINES, Node};

const PATH: &str = "/v1/topic/t/messages?partition=0";
/// `http.produce.body.max.bytes`.
const BODY_MAX: usize = 1024 * 1024;
/// The largest body that is one record without a key: `max.message.bytes` less the 72 bytes of a batch of its own.
const RECORD_MAX: usize = 1_048_588 - 72;

/// Sends bytes; gives what comes back until the node ends.
async fn exchange(node: &Node, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(node.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the node ends")
        .unwrap();
    answer
}

#[tokio::test]
async fn at_the_limit_a_body_is_taken_and_one_byte_past_it_the_refusal_says_so_in_figures_that_add_up()
 {
    let node = Node::start().await;
    let lines = |bytes: usize| {
        let mut body = "0123456789abcde\n".repeat(BODY_MAX / 16).into_bytes();
        body.resize(bytes, b'x');
        body
    };
    node.post(PATH, &[LINES], lines(BODY_MAX)).await.expect(200);
    let past = node.post(PATH, &[LINES], lines(BODY_MAX + 1)).await;
    let past = past.expect(400);
    assert_eq!(past.problem(), "invalid-length");
    assert_eq!(past.json()["limit"], BODY_MAX);
    let told = past.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        told,
        "Content length must be greater than 0 and at most 1048576 bytes; the body has 1048577: send less per request, or \
         raise http.produce.body.max.bytes"
    );

    node.post(PATH, &[], vec![b'x'; RECORD_MAX])
        .await
        .expect(200);
    for (bytes, own) in [(RECORD_MAX + 1, 72), (BODY_MAX, 74)] {
        let past = node.post(PATH, &[], vec![b'x'; bytes]).await.expect(413);
        assert_eq!(past.problem(), "record-too-large");
        assert_eq!(past.json()["limit"], 1_048_588);
        let told = past.json()["detail"].as_str().unwrap().to_owned();
        let expected = format!(
            "a record of {bytes} bytes takes {} as a batch of its own, and the topic's max.message.bytes is 1048588; send \
             smaller records or raise it",
            bytes + own
        );
        assert!(told.contains(&expected), "{told}");
    }
    assert_eq!(node.end("t", 0).await, (BODY_MAX / 16 + 1) as u64);
}

#[tokio::test]
async fn a_body_in_a_transfer_coding_that_nothing_undoes_is_refused_and_not_stored() {
    let node = Node::start().await;
    node.post(PATH, &[], "1").await.expect(200);
    for (codings, status) in [
        ("Transfer-Encoding: gzip, chunked", "501 Not Implemented"),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            "501 Not Implemented",
        ),
        ("Transfer-Encoding: chunked, chunked", "501 Not Implemented"),
        (
            "Transfer-Encoding: identity, Chunked",
            "501 Not Implemented",
        ),
        // Where it ends cannot be told.
        ("Transfer-Encoding: gzip", "400 Bad Request"),
    ] {
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{codings}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        );
        let answer = exchange(&node, request.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{codings}: {answer}"
        );
        if status.starts_with("501") {
            assert!(
                answer.contains("urn:floe:problem:unsupported-transfer-coding"),
                "{answer}"
            );
            assert!(answer.contains("application/problem+json"), "{answer}");
        }
    }
    let chunked = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n"
    );
    let answer = exchange(&node, chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(node.end("t", 0).await, 2, "only what was taken is stored");
}
