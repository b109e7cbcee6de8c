//! Assembly of a node: addresses, the broker, the doors, and an orderly end.
//!
//! Order: the data directory is looked at; all ports are taken; the broker recovers; the doors begin to listen, Kafka's last; the node says it is ready.
//! Ends in the opposite order. A failed write ends the process without any order: what is acknowledged is on the disk.

pub mod banner;
pub mod bind;
pub mod directory;
mod doors;
mod fixed;
mod gauges;
mod limits;
mod memory;
mod signals;
mod start_error;

use std::sync::Arc;
use std::time::Duration;

use floe_broker::{Broker, ClusterId, Endpoint, Settings, TopicSettings, World};
use floe_model::NodeId;
use floe_world::{clock, disk, random};
use tokio::sync::watch;

pub use banner::Ready;
use bind::Door;
use doors::Doors;
pub(crate) use fixed::fixed;

use crate::config::listeners::Advertised;
use crate::config::{Config, Loaded, Place, kind};
use crate::exit::{Code, Failure, Outcome};

/// Runs a node until it is asked to stop or fails; `announce` is called once when it is ready.
pub async fn run(loaded: &Loaded, announce: impl FnOnce(&mut Ready<'_>) -> Outcome) -> Outcome {
    let config = &loaded.config;
    let mut signals = signals::Signals::catch()?;
    if loaded.place("socket.send.buffer.bytes") != Place::Default
        && let Some(granted) = limits::send_buffer(config)
    {
        tracing::warn!(
            granted,
            "the system grants less than socket.send.buffer.bytes; raise its limit (sysctl net.core.wmem_max)"
        );
    }
    let connections = match limits::open_files(config) {
        None => config.max_connections,
        Some(limit) => {
            let connections = limits::connections(limit).min(config.max_connections);
            tracing::warn!(
                limit,
                connections,
                "the limit of open files is below what max.connections needs; fewer connections are let in. Raise the limit \
                 (ulimit -n) or lower max.connections"
            );
            connections
        }
    };
    end_on_bugs();
    directory::make(&config.log_dir)?;
    let addresses_from = &loaded.place("listen.addresses");
    let bound = bind::bind(config, addresses_from)?;
    let host = host(config);
    let ports: Vec<(Door, u16)> = bound.iter().map(|one| (one.door, one.port)).collect();
    let (failed, mut failure) = watch::channel(None);
    let starting = Broker::start(
        world(config),
        settings(config, &host, &ports),
        move |what: &str| {
            failed.send_replace(Some(what.to_owned()));
        },
    );
    let broker = tokio::select! {
        started = starting => started.map_err(|error| start_error::failure(&error))?,
        signal = signals.next() => {
            tracing::info!(signal, "stopped before it was ready");
            return Ok(());
        }
    };
    let doors = Doors::open(&broker, config, connections, bound)?;
    // A relative path says little to who reads it later; where the system cannot tell, it stays.
    let data_dir = std::path::absolute(&config.log_dir).unwrap_or_else(|_| config.log_dir.clone());
    let mut ready = Ready {
        host: &host,
        ports: &ports,
        data_dir: &data_dir,
        took: Duration::ZERO,
    };
    announce(&mut ready)?;
    let failed = async {
        // An error means that the broker is gone, which it is not while this function holds it.
        let what = failure.wait_for(Option::is_some).await;
        what.map_or_else(|_| String::new(), |what| what.clone().unwrap_or_default())
    };
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "stopping"),
        what = failed => return Err(disk_failed(config, &what)),
    }
    tokio::select! {
        () = async { doors.close().await; broker.stop().await; } => Ok(()),
        signal = signals.next() => {
            // What is acknowledged is durable; only the next start takes longer.
            tracing::info!(signal, "stopping at once");
            Ok(())
        }
    }
}

/// A bug ends the process wherever it shows: an invariant that does not hold must not be built upon. What is acknowledged is
/// on the disk.
fn end_on_bugs() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

fn disk_failed(config: &Config, what: &str) -> Failure {
    Failure::new(
        Code::DiskFailed,
        format!(
            "a write to {} failed: {what}; nothing was acknowledged after it. Look at the disk, then start again: the \
             node comes back from what the disk holds",
            config.log_dir.display()
        ),
    )
}

/// The name under which callers on this machine find the node.
fn host(config: &Config) -> String {
    match config.listen_addresses.as_slice() {
        [only] => only.to_string(),
        _ => "localhost".to_owned(),
    }
}

fn world(config: &Config) -> World {
    World {
        disk: Arc::new(disk::Real::new()),
        clock: Arc::new(clock::System),
        random: Arc::new(random::System),
        memory: memory::buffers(config.memory_limit_bytes),
    }
}

/// Where other nodes send clients.
fn endpoints(config: &Config, host: &str, ports: &[(Door, u16)]) -> Vec<Endpoint> {
    let Advertised { kafka, http } = &config.advertised_listeners;
    let advertised = |door| match door {
        Door::Kafka => kafka.clone(),
        Door::Produce => http.as_ref().map(|h| (h.host.clone(), h.produce_port)),
        Door::Consume => http.as_ref().map(|h| (h.host.clone(), h.consume_port)),
        Door::Discovery | Door::Metrics => None,
    };
    let endpoint = |&(door, bound): &(Door, u16)| {
        let (host, port) = advertised(door).unwrap_or_else(|| (host.to_owned(), bound));
        Endpoint {
            door: door.endpoint().to_owned(),
            host,
            port,
        }
    };
    ports.iter().map(endpoint).collect()
}

fn settings(config: &Config, host: &str, ports: &[(Door, u16)]) -> Settings {
    let unlimited = |limit: i64| u64::try_from(limit).ok();
    let ms = Duration::from_millis;
    Settings {
        node: NodeId(config.node_id),
        cluster: kind::cluster_id(&config.cluster_id).map(ClusterId),
        endpoints: endpoints(config, host, ports),
        log: floe_log::Config {
            ring_bytes: config.journal_bytes,
            segment_bytes: config.log_segment_bytes,
            batch_bytes_max: config.message_max_bytes,
            decompressed_bytes_max: config.message_decompressed_max_bytes,
            ..floe_log::Config::default()
        },
        auto_create_topics: config.auto_create_topics_enable,
        partitions_default: config.num_partitions,
        topic_defaults: TopicSettings {
            retention_ms: unlimited(config.log_retention_hours).map(|hours| hours * 3_600_000),
            retention_bytes: unlimited(config.log_retention_bytes),
            max_message_bytes: config.message_max_bytes as u32,
            segment_bytes: config.log_segment_bytes,
            ..TopicSettings::default()
        },
        retention_check_interval: ms(config.log_retention_check_interval_ms),
        producer_expiration: ms(config.producer_id_expiration_ms),
        offset_metadata_bytes_max: config.offset_metadata_max_bytes,
        group_initial_rebalance_delay: ms(config.group_initial_rebalance_delay_ms),
        group_session_timeout_min: ms(config.group_min_session_timeout_ms),
        group_session_timeout_max: ms(config.group_max_session_timeout_ms),
        ..Settings::new(config.log_dir.clone())
    }
}
