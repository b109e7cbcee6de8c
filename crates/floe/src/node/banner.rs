//! What a person, or a program, is told when a node is ready.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::bind::Door;

/// What there is to tell.
#[derive(Debug)]
pub struct Ready<'a> {
    /// Host that a caller on this machine uses.
    pub host: &'a str,
    /// Port of each door.
    pub ports: &'a [(Door, u16)],
    /// Where the data lies.
    pub data_dir: &'a Path,
    /// From the start of the process to now.
    pub took: Duration,
}

impl Ready<'_> {
    fn port(&self, door: Door) -> u16 {
        let found = self.ports.iter().find(|(d, _)| *d == door);
        found.map_or(0, |(_, port)| *port)
    }

    /// For people.
    pub fn text(&self) -> String {
        let Self {
            host,
            data_dir,
            took,
            ..
        } = self;
        let http = self.port(Door::Discovery);
        format!(
            "Floe {version} is ready ({ms} ms). Stop it with Ctrl-C.\n\
             \n  Kafka    {host}:{kafka}\n  HTTP     http://{host}:{http}   (producers {produce}, consumers {consume})\n  \
             Metrics  http://{host}:{metrics}/metrics\n  Data     {data}\n\
             \nTry it:\n  curl -d '{{\"hello\":\"floe\"}}' http://{host}:{produce}/v1/topic/greetings/messages\n",
            version = env!("CARGO_PKG_VERSION"),
            ms = took.as_millis(),
            kafka = self.port(Door::Kafka),
            produce = self.port(Door::Produce),
            consume = self.port(Door::Consume),
            metrics = self.port(Door::Metrics),
            data = data_dir.display(),
        )
    }

    /// For programs: one object on one line.
    pub fn json(&self) -> Value {
        json!({
            "ready": true,
            "version": env!("CARGO_PKG_VERSION"),
            "host": self.host,
            "kafkaPort": self.port(Door::Kafka),
            "discoveryPort": self.port(Door::Discovery),
            "producerPort": self.port(Door::Produce),
            "consumerPort": self.port(Door::Consume),
            "metricsPort": self.port(Door::Metrics),
            "dataDir": self.data_dir.to_string_lossy(),
            "startMs": self.took.as_millis() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_names_every_address_the_data_and_a_line_to_try() {
        let ports: Vec<(Door, u16)> = Door::ALL.into_iter().zip(1..).collect();
        let ready = Ready {
            host: "localhost",
            ports: &ports,
            data_dir: Path::new("/data"),
            took: Duration::from_millis(42),
        };
        let text = ready.text();
        for part in [
            "localhost:5\n",
            "http://localhost:1 ",
            "/data",
            "42 ms",
            "curl -d '{\"hello\":\"floe\"}' http://localhost:2/v1/topic/greetings/messages",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(ready.json()["kafkaPort"], 5);
    }
}
