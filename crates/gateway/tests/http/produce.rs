//! Producing.

use std::io::Write;
use std::time::Duration;

use floe_gateway::listen::Limits;
use floe_model::{PartitionIndex, partition_for_key};
use serde_json::{Value, json};

use crate::harness::{JSON, LINES, Node, RECORDS, answer, request};

#[tokio::test]
async fn a_body_is_one_record_and_the_answer_says_where_it_lies() {
    let node = Node::start().await;
    let plain = node
        .post("/v1/topic/t/messages?partition=2", &[], "{\"a\": 1}")
        .await
        .expect(200);
    assert_eq!(&plain.body[..], b"OK");
    assert_eq!(
        (
            &plain.headers["floe-partition"],
            &plain.headers["floe-offset"]
        ),
        (&"2".parse().unwrap(), &"0".parse().unwrap())
    );
    let told = node
        .post("/v1/topic/t/messages?partition=2", &[JSON], "not json")
        .await
        .expect(200);
    let expected = json!({
        "topic": "t", "partition": 2, "offset": 1, "count": 1,
        "offsets": [{"partition": 2, "offset": 1, "count": 1}],
    });
    assert_eq!(told.json(), expected);
    let records = node.records("t", 2, "").await;
    assert_eq!(
        (&records[0]["value"], &records[1]["value"]),
        (&json!({"a": 1}), &json!("not json"))
    );
    assert_eq!(
        node.get("/v1/topic/t/messages").await.expect(405).problem(),
        "method-not-allowed"
    );
}

/// C36 of the cases.
#[tokio::test]
async fn keys_are_decoded_once_and_come_back_as_they_were() {
    let node = Node::start().await;
    for (query, key) in [
        ("a%2Fb", &b"a/b"[..]),
        ("%252F", b"%2F"),
        ("a%252Fb", b"a%2Fb"),
        ("a%20b", b"a b"),
        ("a+b", b"a b"),
        ("%5E", b"^"),
        ("", b""),
        ("%00", b"\0"),
        ("%C3%A9%E2%82%AC", "é€".as_bytes()),
    ] {
        let path = format!("/v1/topic/keys/messages?partitionKey={query}");
        let told = node.post(&path, &[JSON], "1").await.expect(200).json();
        let partition = partition_for_key(key, 4);
        assert_eq!(told["partition"], partition.0, "{query}");
        let from = format!("offset={}", told["offset"]);
        let record = &node.records("keys", u64::from(partition.0), &from).await[0];
        assert_eq!(record["key"].as_str().unwrap().as_bytes(), key, "{query}");
    }
}

/// C24 of the cases.
#[tokio::test]
async fn null_empty_and_bytes_come_back_apart_in_key_value_and_headers() {
    let node = Node::start().await;
    let parts = [
        json!(null),
        json!(""),
        json!("x"),
        json!({"$base64": "/wA="}),
    ];
    let mut sent = Vec::new();
    for key in &parts {
        for value in &parts {
            sent.push(json!({
                "key": key, "value": value, "partition": 0, "timestamp": 1_700_000_000_000_u64,
                "headers": [{"key": "h", "value": key}, {"key": "h", "value": value}, {"key": "", "value": ""}],
            }));
        }
    }
    sent.push(json!({"value": {"$json": "text"}, "partition": 0, "key": null, "headers": [], "timestamp": 5}));
    sent.push(json!({"value": {"$json": null}, "partition": 0, "key": null, "headers": [], "timestamp": 5}));
    let body = serde_json::to_vec(&sent).unwrap();
    node.post("/v1/topic/t/messages", &[RECORDS], body)
        .await
        .expect(200);
    let read = node.records("t", 0, "").await;
    assert_eq!(read.len(), sent.len());
    for (offset, (mut read, sent)) in read.iter().cloned().zip(&sent).enumerate() {
        assert_eq!(read["offset"], offset);
        read.as_object_mut().unwrap().remove("offset");
        assert_eq!(&read, sent);
    }
    // What was read can be sent as it is.
    let lines = node
        .call(
            "GET",
            "/v1/topic/t/partitions/0/records",
            &[("accept", "application/x-ndjson")],
            "",
        )
        .await;
    node.post("/v1/topic/copy/messages", &[RECORDS], lines.body)
        .await
        .expect(200);
    assert_eq!(node.records("copy", 0, "").await, read);
}

#[tokio::test]
async fn lines_frames_and_compressed_bodies_give_their_records() {
    let node = Node::start().await;
    let query = "/v1/topic/t/messages?partition=0&partitionKey=k&timestamp=1000";
    let lines = "{\"n\":0}\r\n\n  \n{\"n\":1}\n{\"n\":2}";
    let parameters = ("content-type", "application/x-ndjson; charset=utf-8");
    node.post(query, &[parameters], lines).await.expect(200);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"{\"n\":3}\n{\"n\":4}\n").unwrap();
    let gzip = ("content-encoding", "gzip");
    node.post(query, &[LINES, gzip], packed.finish().unwrap())
        .await
        .expect(200);
    let zstd = zstd::bulk::compress(b"{\"n\":5}", 3).unwrap();
    node.post(query, &[("content-encoding", "zstd")], zstd)
        .await
        .expect(200);
    let frames = [&[0, 0, 0, 7][..], b"{\"n\":6}", &[0, 0, 0, 7], b"{\"n\":7}"].concat();
    let kind = ("content-type", "application/vnd.polar.producer.frames");
    node.post(query, &[kind], frames).await.expect(200);
    let records = node.records("t", 0, "").await;
    let numbers: Vec<&Value> = records.iter().map(|r| &r["value"]["n"]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(
        records
            .iter()
            .all(|r| r["key"] == "k" && r["timestamp"] == 1000)
    );
}

#[tokio::test]
async fn wrong_bodies_are_refused_by_name_and_nothing_is_appended() {
    let node = Node::start().await;
    node.post("/v1/topic/t/messages?partition=0", &[], "1")
        .await
        .expect(200);
    let path = "/v1/topic/t/messages?partition=0";
    let frames = ("content-type", "application/vnd.polar.producer.frames");
    for (headers, body, status, kind) in [
        (&[][..], &b""[..], 400, "invalid-length"),
        (&[LINES], b"\n \r\n\n", 400, "no-records"),
        (&[RECORDS], b"[]", 400, "no-records"),
        (
            &[RECORDS],
            b"[{\"value\":1},{\"key\":\"x\"}]",
            400,
            "invalid-record",
        ),
        (
            &[RECORDS],
            b"[{\"value\":1},{\"value\":1,\"partition\":9}]",
            404,
            "unknown-partition",
        ),
        (&[RECORDS], b"\xff\xfe", 400, "invalid-record"),
        (&[frames], b"\0\0\0\x09ab", 400, "invalid-frame"),
        (
            &[("content-encoding", "gzip")],
            b"plain",
            400,
            "undecodable-body",
        ),
        (
            &[("content-encoding", "br")],
            b"x",
            415,
            "unsupported-encoding",
        ),
    ] {
        let answer = node.post(path, headers, body).await.expect(status);
        assert_eq!(answer.problem(), kind, "{body:?}");
    }
    let large = vec![b'x'; 1024 * 1024 + 1];
    assert_eq!(
        node.post(path, &[], large).await.expect(400).problem(),
        "invalid-length"
    );
    let bomb = zstd::bulk::compress(&vec![b'x'; 8 << 20], 3).unwrap();
    let answer = node
        .post(path, &[("content-encoding", "zstd")], bomb)
        .await
        .expect(400);
    assert_eq!(answer.problem(), "invalid-length");
    for (query, kind) in [
        ("partition=4", "unknown-partition"),
        ("partition=-1", "invalid-parameter"),
        ("timestamp=x", "invalid-parameter"),
        ("timestamp=1764547200000000", "invalid-parameter"),
        ("partitonKey=x", "unknown-parameter"),
    ] {
        let answer = node
            .post(&format!("/v1/topic/t/messages?{query}"), &[], "1")
            .await;
        assert_eq!(answer.problem(), kind, "{query}");
    }
    assert_eq!(node.records("t", 0, "").await.len(), 1);
    for name in [
        "..",
        ".",
        "a%2Fb",
        "..%2F..%2Fevil",
        "a*b",
        &"x".repeat(250),
    ] {
        let answer = node
            .post(&format!("/v1/topic/{name}/messages"), &[], "1")
            .await;
        assert_eq!(answer.expect(400).problem(), "invalid-topic", "{name}");
    }
    let internal = node
        .post("/v1/topic/__group_positions/messages", &[], "1")
        .await;
    assert_eq!(internal.expect(403).problem(), "internal-topic");
}

#[tokio::test]
async fn a_record_that_fills_the_limit_exactly_is_taken_and_one_byte_more_is_not() {
    let node = Node::start().await;
    let settings = json!({"partitions": 1, "settings": {"max.message.bytes": 1000}}).to_string();
    node.call("PUT", "/v1/topic/small", &[], settings)
        .await
        .expect(201);
    let mut last = 0;
    let mut refused = 0;
    for length in 880..960 {
        let answer = node
            .post("/v1/topic/small/messages", &[], vec![b'x'; length])
            .await;
        match answer.status.as_u16() {
            200 => {
                assert_eq!(refused, 0, "all below the first refusal are taken");
                last = length;
            }
            413 => {
                assert_eq!(answer.problem(), "record-too-large");
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(last > 900 && refused > 0, "{last} {refused}");
    // A body of lines larger than a batch becomes several.
    let lines = format!("{}\n", "y".repeat(200)).repeat(20);
    let told = node
        .post("/v1/topic/small/messages", &[LINES, JSON], lines)
        .await
        .expect(200);
    assert_eq!(told.json()["count"], 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_records_of_many_callers_are_all_there_once_and_each_caller_knows_its_offset() {
    let node = Node::start().await;
    let mut calls = Vec::new();
    let sender = node.open_http2().await;
    for n in 0..500 {
        let mut sender = sender.clone();
        let uri = format!("http://{}/v1/topic/many/messages?partition=0", node.address);
        // One in fifty is refused for its time, alone.
        let uri = if n % 50 == 7 {
            uri + "&timestamp=99999999999999"
        } else {
            uri
        };
        calls.push(floe_world::tasks::spawn(async move {
            sender.ready().await.unwrap();
            let sent = sender.send_request(request("POST", &uri, &[JSON], n.to_string()));
            (n, answer(sent.await.unwrap()).await)
        }));
    }
    let mut expected = Vec::new();
    for call in calls {
        let (n, answer) = call.await;
        if n % 50 == 7 {
            assert_eq!(answer.expect(400).problem(), "invalid-timestamp");
        } else {
            expected.push((answer.expect(200).json()["offset"].as_u64().unwrap(), n));
        }
    }
    expected.sort_unstable();
    let read: Vec<(u64, u64)> = node
        .records("many", 0, "max=1000")
        .await
        .iter()
        .map(|r| (r["offset"].as_u64().unwrap(), r["value"].as_u64().unwrap()))
        .collect();
    assert_eq!(read, expected);
    assert_eq!(read.len(), 490);
}

#[tokio::test]
async fn bodies_without_key_go_round_and_keep_together() {
    let node = Node::start().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let told = node
            .post("/v1/topic/t/messages", &[LINES, JSON], "1\n2\n3")
            .await
            .expect(200)
            .json();
        assert_eq!(told["offsets"].as_array().unwrap().len(), 1);
        seen.insert(PartitionIndex(told["partition"].as_u64().unwrap() as u32));
    }
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn a_lone_record_waits_for_no_company() {
    let node = Node::start().await;
    let alone = async {
        for _ in 0..50 {
            let answer = node.post("/v1/topic/t/messages", &[], "1").await;
            answer.expect(200);
        }
    };
    let alone = tokio::time::timeout(Duration::from_secs(10), alone);
    alone.await.expect("each is answered when it is durable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_meets_a_full_disk_is_answered_in_time_and_the_outcome_is_called_unknown() {
    let node = Node::with(Limits {
        durable: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    node.post("/v1/topic/t/messages?partition=0", &[], "small")
        .await
        .expect(200);
    node.disk
        .set_capacity(node.disk.files().iter().map(|(_, len)| len).sum());
    let large = "x".repeat(300_000);
    let waited = node
        .post("/v1/topic/t/messages?partition=0", &[], large.clone())
        .await
        .json();
    assert_eq!(waited["outcome"], "unknown", "{waited}");
    // Whatever comes after the disk was found full is refused at once, and nothing is written.
    let refused = loop {
        let answer = node
            .post("/v1/topic/t/messages?partition=0", &[], large.clone())
            .await
            .json();
        if answer["outcome"] != "unknown" {
            break answer;
        }
    };
    assert_eq!(refused["type"], "urn:floe:problem:disk-full");
    node.disk.set_capacity(1 << 40);
    let taken = loop {
        let answer = node
            .post("/v1/topic/t/messages?partition=0", &[JSON], "room")
            .await;
        if answer.status == 200 {
            break answer.json();
        }
    };
    let kept = node.records("t", 0, "offset=0").await;
    assert!(kept.len() as u64 > taken["offset"].as_u64().unwrap());
    assert!(
        kept[1]["value"] == large.as_str(),
        "the one that waited is there"
    );
}
