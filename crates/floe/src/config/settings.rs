//! Every setting of a node, declared once: from this table come the typed [`Config`], the parsing of file,
//! environment and flags, the messages, and `docs/configuration.md`.
//!
//! Names are Kafka's where Kafka has one for the same thing. A setting is here only if the node honours it.

use std::net::IpAddr;
use std::path::PathBuf;

use super::kind::{Kind, Value};
use super::listeners::Advertised;

/// How a setting gets its value when nobody gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// This text, as one would write it in a variable.
    Is(&'static str),
    /// The limit of the control group, else 512 MiB.
    MemoryLimit,
    /// A sixteenth of `memory.limit.bytes`, at most 64 MiB.
    PartOfMemory,
    /// The user's data directory of the platform.
    UserDataDirectory,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name: the key in the file and after `--set`.
    pub name: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// What it is when nobody says.
    pub default: Default,
    /// What it does.
    pub doc: &'static str,
    /// The heading it stands under.
    pub section: &'static str,
}

impl Setting {
    /// Its variable in the environment.
    pub fn variable(&self) -> String {
        format!("FLOE_{}", self.name.to_uppercase().replace('.', "_"))
    }
}

/// The setting of this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The field of [`Config`] that a checked value becomes.
trait Field: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! field_of_number {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Number(number) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
field_of_number!(u16, u32, i64, u64, usize);

impl Field for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

impl Field for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Field for PathBuf {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Directory(path) => Some(path.clone()),
            _ => None,
        }
    }
}

impl Field for Vec<IpAddr> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Addresses(list) => Some(list.clone()),
            _ => None,
        }
    }
}

impl Field for Advertised {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Listeners(advertised) => Some(advertised.clone()),
            _ => None,
        }
    }
}

macro_rules! settings {
    ($($section:literal {
        $(#[doc = $doc:literal] $field:ident: $type:ty = $name:literal, $kind:expr, $default:expr;)*
    })*) => {
        /// A node's settings, checked.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            $($(#[doc = $doc] pub $field: $type,)*)*
        }

        /// The table.
        pub static SETTINGS: &[Setting] = &[
            $($(Setting {
                name: $name,
                kind: $kind,
                default: $default,
                doc: $doc,
                section: $section,
            },)*)*
        ];

        impl Config {
            /// Takes each field's value from `value_of`, which has one for every row of the table.
            pub(super) fn collect(value_of: impl Fn(&'static str) -> Value) -> Self {
                Self {
                    $($($field: <$type>::from_value(&value_of($name))
                        .expect("a kind's range fits its field: every_default_fits_its_field"),)*)*
                }
            }
        }
    };
}

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
const PORT: Kind = Kind::Number {
    unit: "port, 0 lets the system choose",
    min: 0,
    max: 65_535,
};

const fn ms(min: i64, max: i64) -> Kind {
    Kind::Number {
        unit: "milliseconds",
        min,
        max,
    }
}

settings! {
    "Node" {
        #[doc = "Id of the node: Kafka's broker id."]
        node_id: u32 = "node.id", Kind::Number { unit: "", min: 0, max: i32::MAX as i64 }, Default::Is("0");
        #[doc = "Cluster whose data the directory must hold; a fresh directory begins this one. `any` takes what is there, or begins a new one."]
        cluster_id: String = "cluster.id", Kind::Cluster, Default::Is("any");
        #[doc = "Directory of all that must survive. `--data-dir` sets it too."]
        log_dir: PathBuf = "log.dir", Kind::Directory, Default::UserDataDirectory;
        #[doc = "Memory the whole process may use, buffers for requests, tails and reads included."]
        memory_limit_bytes: usize = "memory.limit.bytes", Kind::Bytes { min: 128 * MIB, max: 1024 * GIB }, Default::MemoryLimit;
        #[doc = "Threads that serve sockets."]
        num_network_threads: usize = "num.network.threads", Kind::Number { unit: "threads", min: 1, max: 64 }, Default::Is("2");
    }
    "Addresses" {
        #[doc = "Addresses the doors listen on. A default address that the machine lacks (no IPv6) is left out."]
        listen_addresses: Vec<IpAddr> = "listen.addresses", Kind::Addresses, Default::Is("127.0.0.1,::1");
        #[doc = "Port of the Kafka protocol."]
        kafka_port: u16 = "kafka.port", PORT, Default::Is("9092");
        #[doc = "Port of HTTP for discovery and status."]
        discovery_port: u16 = "http.discovery.port", PORT, Default::Is("9250");
        #[doc = "Port of HTTP for producers."]
        produce_port: u16 = "http.produce.port", PORT, Default::Is("9251");
        #[doc = "Port of HTTP for consumers."]
        consume_port: u16 = "http.consume.port", PORT, Default::Is("9252");
        #[doc = "Port of the metrics in Prometheus' text format."]
        metrics_port: u16 = "metrics.port", PORT, Default::Is("9253");
        #[doc = "Addresses that clients are told (Metadata, FindCoordinator, DescribeCluster, `GET /v1/brokers`), for nodes behind a port mapping or a proxy. `called`: the address each of them called."]
        advertised_listeners: Advertised = "advertised.listeners", Kind::Listeners, Default::Is("called");
    }
    "Topics" {
        #[doc = "Partitions of a topic that is created without saying how many."]
        num_partitions: u32 = "num.partitions", Kind::Number { unit: "partitions", min: 1, max: 10_000 }, Default::Is("4");
        #[doc = "Whether a topic is created when it is first used."]
        auto_create_topics_enable: bool = "auto.create.topics.enable", Kind::Switch, Default::Is("true");
        #[doc = "Hours after which a segment's records may be deleted; -1 keeps them. A topic's `retention.ms` goes before it."]
        log_retention_hours: i64 = "log.retention.hours", Kind::Number { unit: "hours", min: -1, max: 876_000 }, Default::Is("168");
        #[doc = "Bytes of a partition above which its oldest segments are deleted; -1 sets no limit. A topic's `retention.bytes` goes before it."]
        log_retention_bytes: i64 = "log.retention.bytes", Kind::Bytes { min: -1, max: i64::MAX }, Default::Is("-1");
        #[doc = "How often retention looks for segments to delete."]
        log_retention_check_interval_ms: u64 = "log.retention.check.interval.ms", ms(1000, 86_400_000), Default::Is("300000");
        #[doc = "Size at which a segment is closed and the next begun."]
        log_segment_bytes: u64 = "log.segment.bytes", Kind::Bytes { min: MIB, max: 2 * GIB - 1 }, Default::Is("256MiB");
        #[doc = "Largest record batch, as it is stored. A topic's `max.message.bytes` goes before it."]
        message_max_bytes: usize = "message.max.bytes", Kind::Bytes { min: 1024, max: 64 * MIB }, Default::Is("1048588");
        #[doc = "Largest record batch once decompressed, of those that are compressed; at most a quarter of `memory.limit.bytes`. One batch above 4 MiB is decompressed at a time. HTTP readers get a batch stored under a larger value as `undecodable`."]
        message_decompressed_max_bytes: usize = "message.decompressed.max.bytes", Kind::Bytes { min: MIB, max: GIB }, Default::PartOfMemory;
        #[doc = "Size of the journal. A small one is checkpointed more often under load; see the note below."]
        journal_bytes: u64 = "journal.bytes", Kind::Bytes { min: 33 * MIB, max: 16 * GIB }, Default::Is("256MiB");
    }
    "Producers" {
        #[doc = "How long the sequence of a silent idempotent producer is remembered, in time of its partition's log. A node remembers 100,000; for more, those silent longest go first."]
        producer_id_expiration_ms: u64 = "producer.id.expiration.ms", ms(1000, 31_536_000_000), Default::Is("86400000");
    }
    "Groups" {
        #[doc = "How long a new Kafka group waits for more members before its first assignment."]
        group_initial_rebalance_delay_ms: u64 = "group.initial.rebalance.delay.ms", ms(0, 60_000), Default::Is("0");
        #[doc = "Shortest session time-out a Kafka group member may ask for."]
        group_min_session_timeout_ms: u64 = "group.min.session.timeout.ms", ms(1, 86_400_000), Default::Is("6000");
        #[doc = "Longest session time-out a Kafka group member may ask for."]
        group_max_session_timeout_ms: u64 = "group.max.session.timeout.ms", ms(1, 86_400_000), Default::Is("1800000");
        #[doc = "Largest metadata text of a committed offset."]
        offset_metadata_max_bytes: usize = "offset.metadata.max.bytes", Kind::Bytes { min: 0, max: MIB }, Default::Is("4096");
    }
    "Limits" {
        #[doc = "Largest frame of the Kafka protocol; at most what requests have of the memory, about a sixth of `memory.limit.bytes`."]
        socket_request_max_bytes: usize = "socket.request.max.bytes", Kind::Bytes { min: 64 << 10, max: GIB }, Default::Is("104857600");
        #[doc = "Most bytes of records in one Fetch answer, whatever the client asks; a larger batch comes alone."]
        fetch_max_bytes: usize = "fetch.max.bytes", Kind::Bytes { min: 1024, max: GIB }, Default::Is("8MiB");
        #[doc = "Requests of one Kafka connection that are read before the first of them is answered; the next one waits in the socket."]
        max_in_flight_requests: usize = "max.in.flight.requests.per.connection", Kind::Number { unit: "requests", min: 1, max: 10_000 }, Default::Is("64");
        #[doc = "Bytes that the kernel keeps of answers a Kafka client does not take; the system may grant less (`net.core.wmem_max`)."]
        socket_send_buffer_bytes: usize = "socket.send.buffer.bytes", Kind::Bytes { min: 4 << 10, max: 64 * MIB }, Default::Is("256KiB");
        #[doc = "Largest body of an HTTP produce request. Each record of it must also fit the `max.message.bytes` of its topic as a batch of its own, which takes 72 bytes more or so: by default a body that is one record has room for 1048516."]
        produce_body_max_bytes: usize = "http.produce.body.max.bytes", Kind::Bytes { min: 1024, max: 64 * MIB }, Default::Is("1MiB");
        #[doc = "Connections open at once, over all doors."]
        max_connections: usize = "max.connections", Kind::Number { unit: "connections", min: 1, max: 1_000_000 }, Default::Is("10000");
        #[doc = "How long a connection may be silent before it is closed."]
        connections_max_idle_ms: u64 = "connections.max.idle.ms", ms(1000, 86_400_000), Default::Is("600000");
    }
    "Logs" {
        #[doc = "Which log lines are written (to the standard error)."]
        logging_level: String = "logging.level", Kind::Filter, Default::Is("info");
        #[doc = "Form of the log lines: for people, or one JSON object a line."]
        logging_format: String = "logging.format", Kind::Choice(&["human", "json"]), Default::Is("human");
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Written;
    use super::*;

    #[test]
    fn every_default_fits_its_field() {
        let config = Config::collect(|name| {
            let setting = find(name).unwrap();
            match setting.default {
                Default::Is(text) => setting.kind.check(&Written::Bare(text.into())).unwrap(),
                Default::MemoryLimit => Value::Number(512 * MIB),
                Default::PartOfMemory => Value::Number(32 * MIB),
                Default::UserDataDirectory => Value::Directory("/x".into()),
            }
        });
        assert_eq!(config.num_partitions, 4);
    }

    #[test]
    fn both_ends_of_every_range_fit_their_field() {
        for end in [true, false] {
            Config::collect(|name| {
                let setting = find(name).unwrap();
                match setting.kind {
                    Kind::Number { min, max, .. } | Kind::Bytes { min, max } => {
                        Value::Number(if end { max } else { min })
                    }
                    Kind::Switch => Value::Switch(end),
                    Kind::Choice(_) | Kind::Filter | Kind::Cluster => Value::Text(String::new()),
                    Kind::Directory => Value::Directory(PathBuf::new()),
                    Kind::Addresses => Value::Addresses(Vec::new()),
                    Kind::Listeners => Value::Listeners(Advertised::default()),
                }
            });
        }
    }

    #[test]
    fn no_name_is_the_beginning_of_another_and_no_variable_is_twice() {
        for setting in SETTINGS {
            for other in SETTINGS {
                assert!(
                    !other.name.starts_with(&format!("{}.", setting.name)),
                    "{} and {} cannot both be keys of one file",
                    setting.name,
                    other.name
                );
            }
            let same = |other: &&Setting| other.variable() == setting.variable();
            assert_eq!(SETTINGS.iter().filter(same).count(), 1, "{}", setting.name);
        }
    }
}
