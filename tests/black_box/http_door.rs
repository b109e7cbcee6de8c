//! The HTTP door. Here is what its tests share: a producer and a consumer of few words.

mod consuming;
mod membership;
mod producing;

use floe_tests::http::{self, Response};
use floe_tests::{Node, wait};
use serde_json::Value;

const NDJSON: &str = "application/x-ndjson";
const JSON: (&str, &str) = ("Accept", "application/json");

fn produce(node: &Node, topic: &str, query: &str, content_type: &str, body: &[u8]) -> Response {
    http::post(
        &node.produce_address(),
        &format!("/v1/topic/{topic}/messages{query}"),
        content_type,
        body,
    )
}

/// A consumer known by its id.
struct Consumer<'a> {
    node: &'a Node,
    id: &'a str,
}

impl<'a> Consumer<'a> {
    fn register(node: &'a Node, id: &'a str, query: &str) -> Self {
        let consumer = Self { node, id };
        consumer.try_register(query).expect(200);
        consumer
    }

    fn try_register(&self, query: &str) -> Response {
        let path = format!("/v1/consumer/register?consumerId={}&{query}", self.id);
        http::request(&self.node.consume_address(), "PUT", &path, &[], b"")
    }

    fn call(&self, verb: &str, query: &str) -> Response {
        let path = format!("/v1/consumer/{verb}?consumerId={}{query}", self.id);
        http::request(&self.node.consume_address(), "POST", &path, &[JSON], b"")
    }

    /// Items of one poll, on a connection of its own.
    fn poll(&self, query: &str) -> Vec<Value> {
        let response = self.call("poll", query);
        if response.status == 204 {
            return Vec::new();
        }
        response.expect(200).json().as_array().unwrap().clone()
    }

    /// Polls until so many values have come; gives (partition, offset, value), in the order they came.
    fn collect(&self, count: usize) -> Vec<(i64, i64, Value)> {
        let mut values = Vec::new();
        wait::until(&format!("{count} values at {}", self.id), || {
            values.extend(flat(&self.poll("&wait=1000")));
            (values.len() >= count).then_some(())
        });
        assert_eq!(values.len(), count, "{values:?}");
        values
    }
}

fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn flat(items: &[Value]) -> Vec<(i64, i64, Value)> {
    items
        .iter()
        .flat_map(|item| {
            let (partition, start) = (number(&item["partition"]), number(&item["startOffset"]));
            let values = item["values"].as_array().unwrap();
            values
                .iter()
                .enumerate()
                .map(move |(index, value)| (partition, start + index as i64, value.clone()))
        })
        .collect()
}
