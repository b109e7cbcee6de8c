//! Consumers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, JSON, LINES, Node};

async fn register(node: &Node, query: &str) -> Answer {
    node.call("PUT", &format!("/v1/consumer/register?{query}"), &[], "")
        .await
}

async fn poll(node: &Node, query: &str) -> Answer {
    node.post(&format!("/v1/consumer/poll?{query}"), &[JSON], "")
        .await
}

/// Start offsets and numbers of values.
fn spans(answer: &Answer) -> Vec<(String, usize)> {
    if answer.status == 204 {
        return Vec::new();
    }
    let items = answer.json();
    let span = |i: &Value| {
        let start = i["startOffset"].as_str().unwrap().to_owned();
        (start, i["values"].as_array().unwrap().len())
    };
    items.as_array().unwrap().iter().map(span).collect()
}

async fn filled() -> Node {
    let node = Node::start().await;
    node.post("/v1/topic/t/messages?partition=0", &[LINES], "1\n2\n3")
        .await
        .expect(200);
    let query = "consumerId=c&group=g&topic=t&onNewGroup=startFromEarliest";
    assert_eq!(&register(&node, query).await.expect(200).body[..], b"OK");
    node
}

#[tokio::test]
async fn a_consumer_registers_polls_commits_and_says_goodbye() {
    let node = filled().await;
    let again = "consumer_id=c&group=g&topic=t&on_new_group=1";
    let again = register(&node, again).await.expect(200);
    assert_eq!(&again.body[..], b"Already registered");
    let other = register(&node, "consumerId=c&group=g&topic=u")
        .await
        .expect(400);
    assert_eq!(other.problem(), "registered-differently");
    let first = poll(&node, "consumerId=c").await.expect(200);
    let expected = json!([{
        "topic": "t", "token": "0", "partition": 0, "rangeIndex": 0, "version": 0, "startOffset": "0", "values": [1, 2, 3],
    }]);
    assert_eq!(first.json(), expected);
    let empty = poll(&node, "consumerId=c").await.expect(204);
    assert_eq!(
        (
            &empty.headers["retry-after"],
            &empty.headers["cache-control"]
        ),
        (&"1".parse().unwrap(), &"no-store".parse().unwrap())
    );
    node.post("/v1/consumer/commit?consumerId=c", &[], "")
        .await
        .expect(204);
    node.post("/v1/consumer/goodbye?consumerId=c", &[], "")
        .await
        .expect(200);
    for verb in ["poll", "commit", "goodbye"] {
        let gone = node
            .post(&format!("/v1/consumer/{verb}?consumerId=c"), &[], "")
            .await;
        assert_eq!(gone.expect(409).problem(), "not-registered", "{verb}");
    }
}

#[tokio::test]
async fn a_goodbye_commits_what_was_used_and_the_next_consumer_goes_on_there() {
    let node = filled().await;
    let mine = "group=g&topic=t&onNewGroup=startFromEarliest";
    // At its start, inside, at its end, and past it: never more than what was given.
    for (used, left) in [(0, 3), (2, 1), (3, 0), (9, 0)] {
        poll(&node, "consumerId=c").await;
        node.post(
            &format!("/v1/consumer/goodbye?consumerId=c&used=t:0:{used}"),
            &[],
            "",
        )
        .await
        .expect(200);
        register(&node, &format!("consumerId=c&{mine}"))
            .await
            .expect(200);
        let given: usize = spans(&poll(&node, "consumerId=c").await)
            .iter()
            .map(|(_, count)| count)
            .sum();
        assert_eq!(given, left, "used up to {used}");
        node.post("/v1/consumer/goodbye?consumerId=c&commit=false", &[], "")
            .await
            .expect(200);
        register(&node, &format!("consumerId=c&{mine}"))
            .await
            .expect(200);
    }
    for wrong in ["t:0", "t:x:1", "nope:0:1", "t:0:-1"] {
        let path = format!("/v1/consumer/goodbye?consumerId=c&used={wrong}");
        let refused = node.post(&path, &[], "").await.expect(400);
        assert_eq!(refused.problem(), "invalid-parameter", "{wrong}");
    }
    let both = "/v1/consumer/goodbye?consumerId=c&commit=false&used=t:0:1";
    node.post(both, &[], "").await.expect(400);
}

#[tokio::test]
async fn wrong_registrations_are_refused_by_name() {
    let node = Node::start().await;
    for (query, kind) in [
        ("consumerId=c", "invalid-registration"),
        ("topic=t", "invalid-registration"),
        ("consumerId=&topic=t", "invalid-registration"),
        ("consumerId=c&topic=a%2Fb", "invalid-topic"),
        (
            "consumerId=c&topic=t&onNewGroup=never",
            "invalid-registration",
        ),
        (
            "consumerId=c&topic=t&sessionTimeout=never",
            "invalid-parameter",
        ),
        ("consumerId=c&topic=t&grup=x", "unknown-parameter"),
        ("", "invalid-registration"),
    ] {
        assert_eq!(
            register(&node, query).await.expect(400).problem(),
            kind,
            "{query}"
        );
    }
    for body in [
        "{",
        "[]",
        "{\"id\":\"x\"}",
        "{\"topics\":[\"t\"]}",
        "{\"id\":\"x\",\"topics\":[\"t\"],\"onNewGroup\":7}",
    ] {
        let answer = node
            .post("/v1/consumer/register", &[], body)
            .await
            .expect(400);
        assert_eq!(answer.problem(), "invalid-registration", "{body}");
    }
}

#[tokio::test]
async fn a_token_makes_redelivery_exact() {
    let node = filled().await;
    let first = poll(&node, "consumerId=c").await.expect(200);
    let token = first.headers["floe-delivery"].to_str().unwrap().to_owned();
    let again = poll(&node, "consumerId=c&received=none").await.expect(200);
    assert_eq!(
        again.body, first.body,
        "nothing had arrived, so it comes again"
    );
    node.post("/v1/topic/t/messages?partition=0", &[], "4")
        .await
        .expect(200);
    let newest = again.headers["floe-delivery"].to_str().unwrap();
    let next = poll(&node, &format!("consumerId=c&received={newest}"))
        .await
        .expect(200);
    assert_eq!(spans(&next), [("3".to_owned(), 1)]);
    // A token of another registration says that nothing of this one has arrived.
    let old = poll(&node, "consumerId=c&received=0-1").await.expect(200);
    assert_eq!(spans(&old), [("3".to_owned(), 1)]);
    for wrong in ["x", "", &token.replace('-', "")] {
        let refused = poll(&node, &format!("consumerId=c&received={wrong}")).await;
        assert_eq!(refused.expect(400).problem(), "unknown-delivery", "{wrong}");
    }
}

/// W-49 of the broker before: the answer is lost on the wire, the same consumer polls again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_whose_answer_was_lost_comes_again_however_the_caller_vanished() {
    let node = filled().await;
    let request = b"POST /v1/consumer/poll?consumerId=c&wait=5s HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n";
    for round in 0..100 {
        let mut vanishing = TcpStream::connect(node.address).await.unwrap();
        vanishing.write_all(request).await.unwrap();
        match round % 4 {
            // Hung up at once; after the answer came but unread; reset; after part of the answer.
            0 => {}
            1 => vanishing.readable().await.unwrap(),
            2 => socket2::SockRef::from(&vanishing)
                .set_linger(Some(Duration::ZERO))
                .unwrap(),
            _ => {
                vanishing.read_exact(&mut [0; 20]).await.unwrap();
            }
        }
        drop(vanishing);
        let answer = poll(&node, "consumerId=c&wait=5s").await.expect(200);
        assert_eq!(spans(&answer), [("0".to_owned(), 3)], "round {round}");
        // Not received either, so that the next round begins as this one.
        let again = poll(&node, "consumerId=c&received=none").await.expect(200);
        assert_eq!(spans(&again), [("0".to_owned(), 3)], "round {round}");
        let mut lost = TcpStream::connect(node.address).await.unwrap();
        let none = b"POST /v1/consumer/poll?consumerId=c&received=none HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n";
        lost.write_all(none).await.unwrap();
        lost.readable().await.unwrap();
        drop(lost);
    }
}

#[tokio::test]
async fn a_consumer_bound_to_its_connection_goes_with_it() {
    let node = filled().await;
    let mut bound = node.open().await;
    let info = "{\"id\":\"b\",\"group\":\"h\",\"topics\":[\"t\"],\"onNewGroup\":1}";
    bound
        .call("POST", "/v1/consumer/register", &[], info)
        .await
        .expect(200);
    let answer = bound
        .call("POST", "/v1/consumer/poll", &[JSON], "")
        .await
        .expect(200);
    assert_eq!(spans(&answer), [("0".to_owned(), 3)]);
    assert_eq!(
        poll(&node, "").await.expect(409).problem(),
        "not-registered"
    );
    drop(bound);
    let gone = async {
        loop {
            let group = node.get("/v1/group/h").await;
            if group.status == 404 || group.json()["members"] == json!([]) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("at once, not after 120 s");
}

#[tokio::test]
async fn values_that_are_not_json_are_marked_and_records_carry_everything() {
    let node = Node::start().await;
    let body = r#"[{"key":"k","value":{"$json":"s"},"partition":0},{"value":"plain","partition":0},{"value":null,"partition":0},
        {"value":{"$base64":"/w=="},"partition":0},{"value":"","partition":0}]"#;
    let kind = ("content-type", "application/vnd.floe.records+json");
    node.post("/v1/topic/t/messages", &[kind], body)
        .await
        .expect(200);
    register(&node, "consumerId=c&topic=t&onNewGroup=1")
        .await
        .expect(200);
    let items = poll(&node, "consumerId=c").await.expect(200).json();
    let expected = json!(["s", {"$text": "plain"}, null, {"$base64": "/w=="}, {"$text": ""}]);
    assert_eq!(items[0]["values"], expected);
    let accept = [("accept", "application/vnd.floe.records+json")];
    let records = node
        .post("/v1/consumer/poll?consumerId=c&received=none", &accept, "")
        .await;
    let records = records.expect(200).json();
    assert_eq!(records.as_array().unwrap().len(), 5);
    assert_eq!(
        (
            &records[0]["key"],
            &records[0]["topic"],
            &records[4]["value"]
        ),
        (&json!("k"), &json!("t"), &json!(""))
    );
}

#[tokio::test]
async fn the_binary_answer_holds_the_same_records() {
    let node = filled().await;
    let answer = node
        .post("/v1/consumer/poll?consumerId=c", &[], "")
        .await
        .expect(200);
    assert_eq!(
        answer.headers["content-type"],
        "application/vnd.polar.consumermessage"
    );
    let body = &answer.body;
    // items 2 | token 8, range 1, version 4, name length 1, "t" 1, start 8, payload length 4 | payload
    assert_eq!(&body[..2], [0, 1]);
    assert_eq!(
        &body[2..17],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b't']
    );
    assert_eq!(&body[17..25], [0; 8]);
    let length = u32::from_be_bytes(body[25..29].try_into().unwrap()) as usize;
    assert_eq!(body.len(), 29 + length);
    let records = zstd::stream::decode_all(&body[29..]).unwrap();
    assert_eq!(records.len(), 3 * 13);
    assert_eq!((&records[8..12], records[12]), (&[0, 0, 0, 1][..], b'1'));
    assert_eq!(records[38], b'3');
}

/// Values that grow sixfold as JSON, beyond the memory for answers.
#[tokio::test]
async fn a_chunk_that_no_answer_can_hold_is_named_for_good_and_can_be_gone_on_without() {
    let node = Node::start().await;
    let large = vec![0_u8; 3 << 20];
    node.append("t", &[&large]).await;
    node.append("t", &[b"7"]).await;
    let register = "/v1/consumer/register?consumerId=c&topic=t&onNewGroup=1";
    node.call("PUT", register, &[], "").await.expect(200);
    let mut received = "none".to_owned();
    for form in ["application/json", "application/vnd.floe.records+json"] {
        let poll = format!("/v1/consumer/poll?consumerId=c&wait=5s&received={received}");
        let refused = node.post(&poll, &[("accept", form)], "").await.expect(500);
        assert_eq!(refused.problem(), "oversized");
        let delivery = refused.json()["delivery"].as_str().unwrap().to_owned();
        if form != "application/json" {
            received = delivery;
        }
    }
    node.append("t", &[b"8"]).await;
    let poll = format!("/v1/consumer/poll?consumerId=c&wait=5s&received={received}");
    let values = node.post(&poll, &[JSON], "").await.expect(200).json();
    assert!(
        values[0]["values"]
            .as_array()
            .unwrap()
            .contains(&serde_json::json!(8))
    );
}
