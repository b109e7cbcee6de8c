//! The doors of a running node: opened in order, closed at once.

use std::sync::Arc;
use std::time::Duration;

use floe_broker::Broker;
use floe_gateway::listen::{self, Full, Gate, Limits, Phase, Stopper};
use floe_gateway::{http, kafka, metrics};
use floe_world::tasks;
use floe_world::tasks::Handle;
use prometheus_client::registry::Registry;

use super::bind::{Bound, Door};
use super::gauges::Gauges;
use crate::config::Config;
use crate::config::listeners::bracketed;
use crate::exit::Outcome;

/// Connections that only look at metrics; they count apart, so that a full house can be seen, and give way to one another,
/// so that nobody keeps the next scrape out.
pub(super) const METRICS_CONNECTIONS: usize = 64;
/// Requests in flight may take this long once the node is asked to stop.
pub(super) const DRAIN: Duration = Duration::from_millis(300);
/// And this is how long their connections may take to end after that.
pub(super) const CUT: Duration = Duration::from_millis(200);
/// Part of the buffers that hold Kafka requests: a quarter.
pub(super) const KAFKA_SHARE: usize = 4;

/// The open doors.
pub(super) struct Doors {
    stopper: Stopper,
    accepting: Vec<Handle<()>>,
}

impl Doors {
    /// Begins to listen, door by door in the order of [`Door::ALL`].
    pub(super) fn open(
        broker: &Broker,
        config: &Config,
        connections: usize,
        bound: Vec<Bound>,
    ) -> Outcome<Self> {
        let (stopper, stop) = Stopper::new();
        let clock = Arc::clone(&broker.world().clock);
        let counted = listen::Metrics::default();
        let limits = limits(config, connections);
        let few = Limits {
            connections: METRICS_CONNECTIONS,
            full: Full::GiveWay,
            ..limits.clone()
        };
        let gate = Gate::new(limits, stop.clone(), Arc::clone(&clock), counted.clone());
        let metrics_counted = listen::Metrics::default();
        let metrics_gate = Gate::new(few, stop, clock, metrics_counted.clone());
        let kafka_metrics = kafka::metrics::Metrics::default();

        let mut registry = Registry::with_prefix("floe");
        counted.register(&mut registry);
        metrics_counted.register(registry.sub_registry_with_prefix("metrics"));
        broker.metrics().register(&mut registry);
        broker.log_metrics().register(&mut registry);
        broker.groups().register_metrics(&mut registry);
        registry.register_collector(Box::new(Gauges(broker.world().memory.clone())));
        kafka_metrics.register(registry.sub_registry_with_prefix("kafka"));

        let http_metrics = http::Metrics::default();
        http_metrics.register(&mut registry);
        let registry = Arc::new(registry);

        let http = http_settings(config, &bound);
        let http = http::Door::new(broker.clone(), gate.clone(), http, http_metrics);
        let buffers = &broker.world().memory;
        let kafka = kafka::Door::new(
            broker.clone(),
            gate.clone(),
            kafka::Settings {
                advertised: config.advertised_listeners.kafka.clone(),
                frame_bytes_max: config.socket_request_max_bytes,
                fetch_bytes_max: config.fetch_max_bytes,
                in_flight_max: config.max_in_flight_requests,
                send_buffer_bytes: config.socket_send_buffer_bytes,
            },
            buffers.share(buffers.limit() / KAFKA_SHARE),
            kafka_metrics,
        );
        let mut accepting = Vec::new();
        for one in bound {
            let door = one.door;
            for listener in one.listen()? {
                let task = match door {
                    Door::Kafka => {
                        let (gate, kafka) = (gate.clone(), kafka.clone());
                        tasks::spawn(async move { gate.run(listener, kafka).await })
                    }
                    Door::Discovery | Door::Produce | Door::Consume => {
                        let http = http.clone();
                        tasks::spawn(async move { http.run(listener).await })
                    }
                    Door::Metrics => {
                        let (gate, registry) = (metrics_gate.clone(), Arc::clone(&registry));
                        tasks::spawn(metrics::run(gate, listener, registry))
                    }
                };
                accepting.push(task);
            }
        }
        Ok(Self { stopper, accepting })
    }

    /// Ends all connections: idle ones now, those with a request in flight when it is answered, and after a moment all.
    pub(super) async fn close(self) {
        self.stopper.advance(Phase::Draining);
        let mut accepting = self.accepting;
        let all = async {
            for task in &mut accepting {
                // A door that panicked has said so; the others still end in order.
                drop(task.join().await);
            }
        };
        let mut all = std::pin::pin!(all);
        if tokio::time::timeout(DRAIN, &mut all).await.is_err() {
            self.stopper.advance(Phase::Stopped);
            if tokio::time::timeout(CUT, all).await.is_err() {
                tracing::warn!("some connections did not end in time; leaving them");
            }
        }
    }
}

fn http_settings(config: &Config, bound: &[Bound]) -> http::Settings {
    let port = |door| bound.iter().find(|b| b.door == door).map_or(0, |b| b.port);
    let produce_body_bytes_max = config.produce_body_max_bytes;
    match &config.advertised_listeners.http {
        Some(http) => http::Settings {
            produce_body_bytes_max,
            advertised: Some(bracketed(&http.host)),
            produce_port: http.produce_port,
            consume_port: http.consume_port,
        },
        None => http::Settings {
            produce_body_bytes_max,
            advertised: None,
            produce_port: port(Door::Produce),
            consume_port: port(Door::Consume),
        },
    }
}

fn limits(config: &Config, connections: usize) -> Limits {
    Limits {
        connections,
        idle: Duration::from_millis(config.connections_max_idle_ms),
        drain: DRAIN,
        ..Limits::default()
    }
}
