//! Topics, groups, the node.

use serde_json::json;

use crate::harness::{JSON, Node, answer, request};

#[tokio::test]
async fn topics_are_created_listed_described_and_deleted() {
    let node = Node::start().await;
    assert_eq!(
        node.get("/v1/topic").await.expect(200).json(),
        json!({"topics": []})
    );
    let body = json!({"partitions": 3, "settings": {"retention.ms": 5000}}).to_string();
    let made = node
        .call("PUT", "/v1/topic/a.b", &[], body)
        .await
        .expect(201);
    assert_eq!(made.headers["location"], "/v1/topic/a.b");
    let described = node.get("/v1/topic/a.b").await.expect(200).json();
    assert_eq!(made.json(), described);
    assert_eq!(described["settings"]["retention.ms"], "5000");
    let first = json!({"partition": 0, "leader": 0, "leaderEpoch": 0, "replicas": [0], "logStart": 0, "commitOffset": 0});
    assert_eq!(described["partitions"][0], first);
    assert_eq!(described["partitions"].as_array().unwrap().len(), 3);
    for (name, body, status, kind) in [
        ("a.b", "", 409, "topic-exists"),
        ("a_b", "", 409, "topic-collision"),
        ("c", "{\"partitions\":0}", 400, "invalid-partitions"),
        ("c", "{\"partitions\":100001}", 400, "invalid-partitions"),
        (
            "c",
            "{\"replicationFactor\":3}",
            400,
            "invalid-replication-factor",
        ),
        ("c", "{\"settings\":{\"nope\":1}}", 400, "invalid-setting"),
        (
            "c",
            "{\"settings\":{\"cleanup.policy\":\"compact\"}}",
            400,
            "invalid-setting",
        ),
        ("c", "{\"partitoins\":1}", 400, "invalid-json"),
        ("c", "{", 400, "invalid-json"),
        ("..", "", 400, "invalid-topic"),
    ] {
        let answer = node
            .call("PUT", &format!("/v1/topic/{name}"), &[], body)
            .await
            .expect(status);
        assert_eq!(answer.problem(), kind, "{name} {body}");
    }
    let checked = node
        .call("PUT", "/v1/topic/c", &[], "{\"validateOnly\":true}")
        .await;
    checked.expect(200);
    node.get("/v1/topic/c").await.expect(404);
    node.call("DELETE", "/v1/topic/a.b", &[], "")
        .await
        .expect(204);
    assert_eq!(
        node.get("/v1/topic/a.b").await.expect(404).problem(),
        "unknown-topic"
    );
    let gone = node.call("DELETE", "/v1/topic/a.b", &[], "").await;
    assert_eq!(gone.expect(404).problem(), "unknown-topic");
}

#[tokio::test]
async fn a_group_shows_members_positions_and_lag_and_is_deleted_when_empty() {
    let node = Node::start().await;
    for _ in 0..3 {
        node.post("/v1/topic/t/messages?partition=1", &[], "1")
            .await
            .expect(200);
    }
    let register = "/v1/consumer/register?consumerId=c&group=g%2F1&topic=t&onNewGroup=1";
    node.call("PUT", register, &[], "").await.expect(200);
    node.post("/v1/consumer/poll?consumerId=c", &[JSON], "")
        .await
        .expect(200);
    node.post("/v1/consumer/commit?consumerId=c", &[], "")
        .await
        .expect(204);
    node.post("/v1/topic/t/messages?partition=1", &[], "1")
        .await
        .expect(200);
    let groups = node.get("/v1/group").await.expect(200).json();
    assert_eq!(groups["groups"][0]["group"], "g/1");
    let group = node.get("/v1/group/g%2F1").await.expect(200).json();
    let positions = group["positions"].as_array().unwrap();
    let partitions = positions.iter().map(|p| p["partition"].as_u64().unwrap());
    assert_eq!(partitions.collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(group["lag"], 1);
    let position = &group["positions"][1];
    let shown = [
        "topic",
        "partition",
        "position",
        "commitOffset",
        "lag",
        "member",
    ]
    .map(|n| position[n].clone());
    assert_eq!(
        shown,
        [
            json!("t"),
            json!(1),
            json!(3),
            json!(4),
            json!(1),
            json!("c")
        ]
    );
    assert_eq!(
        group["members"][0]["partitions"].as_array().unwrap().len(),
        4
    );
    let busy = node
        .call("DELETE", "/v1/group/g%2F1", &[], "")
        .await
        .expect(409);
    assert_eq!(busy.problem(), "group-not-empty");
    node.post("/v1/consumer/goodbye?consumerId=c", &[], "")
        .await
        .expect(200);
    node.call("DELETE", "/v1/group/g%2F1", &[], "")
        .await
        .expect(204);
    assert_eq!(
        node.get("/v1/group/g%2F1").await.expect(404).problem(),
        "unknown-group"
    );
}

#[tokio::test]
async fn partitions_without_a_position_are_shown_with_the_lag_from_where_the_group_begins() {
    let node = Node::start().await;
    let register = "/v1/consumer/register?consumerId=c&group=g&topic=t&topic=later&onNewGroup=0";
    node.call("PUT", "/v1/topic/t", &[], "{\"partitions\": 1}")
        .await
        .expect(201);
    node.call("PUT", register, &[], "").await.expect(200);
    for partition in [0, 0, 2] {
        let path = format!("/v1/topic/later/messages?partition={partition}");
        node.post(&path, &[], "1").await.expect(200);
    }
    node.post("/v1/topic/t/messages", &[], "1")
        .await
        .expect(200);
    let rows = |group: &serde_json::Value| {
        let shown = ["topic", "partition", "position", "commitOffset", "lag"];
        let row = |p: &serde_json::Value| json!(shown.map(|name| p[name].clone()));
        let rows = group["positions"].as_array().unwrap().iter().map(row);
        json!(rows.collect::<Vec<_>>())
    };
    let expected = json!([
        ["later", 0, null, 2, 2],
        ["later", 1, null, 0, 0],
        ["later", 2, null, 1, 1],
        ["later", 3, null, 0, 0],
        ["t", 0, 0, 1, 1],
    ]);
    let group = node.get("/v1/group/g").await.expect(200).json();
    assert_eq!(rows(&group), expected);
    assert_eq!(group["lag"], 4);
    // Once its consumer is gone, what it read is known by its positions.
    node.post("/v1/consumer/goodbye?consumerId=c", &[], "")
        .await
        .expect(200);
    let group = node.get("/v1/group/g").await.expect(200).json();
    assert_eq!(rows(&group), json!([["t", 0, 0, 1, 1]]));
    assert_eq!(
        (&group["kind"], &group["state"], &group["lag"]),
        (&json!("assigned"), &json!("Empty"), &json!(1))
    );
}

#[tokio::test]
async fn the_node_tells_its_status_and_the_name_it_was_called_by() {
    let node = Node::start().await;
    let status = node.get("/status").await.expect(200);
    assert!(status.body.starts_with(b"Floe node 0 is ready"));
    let status = node
        .call("GET", "/status", &[JSON], "")
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&status["status"], &status["node"]),
        (&json!("ready"), &json!(0))
    );
    let brokers = node.get("/v1/brokers").await.expect(200).json();
    let expected =
        json!({"length": 1, "names": ["floe.example"], "producerPort": 9251, "consumerPort": 9252});
    assert_eq!(brokers, expected);
    assert_eq!(
        node.get("/nope").await.expect(404).problem(),
        "unknown-resource"
    );
}

#[tokio::test]
async fn an_advertised_host_is_told_to_everybody() {
    let node = Node::advertising(Some("floe.example".to_owned())).await;
    for header in [("host", "localhost:9250"), ("host", "127.0.0.1")] {
        let told = node.call("GET", "/v1/brokers", &[header], "").await;
        assert_eq!(
            told.expect(200).json(),
            json!({"length": 1, "names": ["floe.example"], "producerPort": 9251, "consumerPort": 9252})
        );
    }
}

#[tokio::test]
async fn over_http2_the_node_is_called_by_its_authority() {
    let node = Node::start().await;
    let mut sender = node.open_http2().await;
    let sent = sender.send_request(request("GET", "http://other.example:1/v1/brokers", &[], ""));
    let brokers = answer(sent.await.unwrap()).await.expect(200).json();
    assert_eq!(brokers["names"], json!(["other.example"]));
}
