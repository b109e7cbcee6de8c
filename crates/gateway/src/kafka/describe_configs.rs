//! DescribeConfigs (key 32, versions 1 to 4; KIP-133, KIP-226, KIP-569): every setting of a topic or of the node with
//! its value, where it comes from and what it would be otherwise.

use std::net::SocketAddr;
use std::time::Duration;

use floe_broker::topic_settings::Kind;
use floe_broker::{Broker, InForce};
use floe_wire::ErrorCode;
use kacrab_protocol::KafkaString;
use kacrab_protocol::generated::describe_configs_request::{
    DescribeConfigsRequestData, DescribeConfigsResource,
};
use kacrab_protocol::generated::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponseData, DescribeConfigsResult,
    DescribeConfigsSynonym,
};

use super::answer::{Answer, code, text};
use super::door::Door;
use super::request::{Close, Request};

/// `ConfigResource.Type`.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// `DescribeConfigsResponse.ConfigSource`.
const DYNAMIC_TOPIC: i8 = 1;
const STATIC_BROKER: i8 = 4;
const DEFAULT: i8 = 5;

/// Where a topic's value comes from.
pub(super) fn source(setting: &InForce) -> i8 {
    if setting.overridden {
        DYNAMIC_TOPIC
    } else {
        DEFAULT
    }
}

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(DescribeConfigsRequestData::read)?;
    let (synonyms, documentation) = (asked.include_synonyms, asked.include_documentation);
    let results = asked.resources.into_iter().map(|resource| {
        let found = match resource.resource_type {
            TOPIC => topic(door, resource.resource_name.as_str()),
            BROKER => node(door, request.caller.local, resource.resource_name.as_str()),
            other => Err((
                ErrorCode::InvalidRequest,
                format!("settings of resource type {other} are not kept here"),
            )),
        };
        let result = DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone());
        match found {
            Err((error, reason)) => result
                .with_error_code(code(error))
                .with_error_message(Some(text(&reason))),
            Ok(settings) => result.with_configs(
                settings
                    .into_iter()
                    .filter(|setting| is_wanted(&resource, &setting.name))
                    .map(|s| s.answer(request.version, synonyms, documentation))
                    .collect(),
            ),
        }
    });
    let message = DescribeConfigsResponseData::default().with_results(results.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}

/// No list of names, or an empty one, wants all.
fn is_wanted(resource: &DescribeConfigsResource, name: &str) -> bool {
    resource
        .configuration_keys
        .as_ref()
        .is_none_or(|keys| keys.is_empty() || keys.iter().any(|key| key.as_str() == name))
}

/// One setting as it is answered.
struct Setting {
    name: String,
    value: String,
    default: String,
    source: i8,
    kind: Kind,
    documentation: &'static str,
    read_only: bool,
}

impl Setting {
    fn answer(
        self,
        version: i16,
        with_synonyms: bool,
        with_documentation: bool,
    ) -> DescribeConfigsResourceResult {
        let synonym = |value: &str, source| {
            DescribeConfigsSynonym::default()
                .with_name(text(&self.name))
                .with_value(Some(text(value)))
                .with_source(source)
        };
        let mut synonyms = Vec::new();
        if with_synonyms {
            if self.source != DEFAULT {
                synonyms.push(synonym(&self.value, self.source));
            }
            synonyms.push(synonym(&self.default, DEFAULT));
        }
        let result = DescribeConfigsResourceResult::default()
            .with_name(text(&self.name))
            .with_value(Some(text(&self.value)))
            .with_read_only(self.read_only)
            .with_config_source(self.source)
            .with_synonyms(synonyms);
        if version < 3 {
            return result;
        }
        let documentation: Option<KafkaString> =
            with_documentation.then(|| text(self.documentation));
        result
            .with_config_type(kind_number(self.kind))
            .with_documentation(documentation)
    }
}

/// `DescribeConfigsResponse.ConfigType`.
fn kind_number(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean => 1,
        Kind::Text => 2,
        Kind::Int => 3,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
    }
}

fn topic(door: &Door, name: &str) -> Result<Vec<Setting>, (ErrorCode, String)> {
    let catalog = door.broker().catalog();
    let topic = catalog.topic(name).ok_or_else(|| {
        let reason = format!("unknown topic '{name}'");
        (ErrorCode::UnknownTopicOrPartition, reason)
    })?;
    let settings = door.broker().describe_settings(topic);
    let settings = settings.into_iter().map(|setting| Setting {
        name: setting.name.to_owned(),
        source: source(&setting),
        value: setting.value,
        default: setting.default,
        kind: setting.kind,
        documentation: setting.documentation,
        read_only: false,
    });
    Ok(settings.collect())
}

/// The node's own settings, under Kafka's names. The empty name asks for the cluster's dynamic defaults: there are
/// none.
fn node(door: &Door, local: SocketAddr, name: &str) -> Result<Vec<Setting>, (ErrorCode, String)> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name != door.node().to_string() {
        let reason = format!("node '{name}' is not this node ({})", door.node());
        return Err((ErrorCode::InvalidRequest, reason));
    }
    Ok(node_settings(door, local))
}

fn node_settings(door: &Door, local: SocketAddr) -> Vec<Setting> {
    let mut settings: Vec<(&str, Kind, String)> = topic_defaults(door.broker())
        .chain(of_broker(door.broker()))
        .chain(of_door(door, local))
        .collect();
    settings.sort_by_key(|(name, ..)| *name);
    let setting = |(name, kind, value): (&str, Kind, String)| Setting {
        name: name.to_owned(),
        default: value.clone(),
        value,
        source: STATIC_BROKER,
        kind,
        documentation: "Set when the node starts; see the configuration reference.",
        read_only: true,
    };
    settings.into_iter().map(setting).collect()
}

type Rows = std::vec::IntoIter<(&'static str, Kind, String)>;

/// What holds for topics that do not say otherwise: the node's name of a setting, its kind, its name among a topic's.
const TOPIC_DEFAULTS: &[(&str, Kind, &str)] = &[
    ("compression.type", Kind::Text, "compression.type"),
    ("log.cleanup.policy", Kind::List, "cleanup.policy"),
    (
        "log.message.timestamp.after.max.ms",
        Kind::Long,
        "message.timestamp.after.max.ms",
    ),
    (
        "log.message.timestamp.before.max.ms",
        Kind::Long,
        "message.timestamp.before.max.ms",
    ),
    (
        "log.message.timestamp.type",
        Kind::Text,
        "message.timestamp.type",
    ),
    ("log.retention.bytes", Kind::Long, "retention.bytes"),
    ("log.retention.ms", Kind::Long, "retention.ms"),
    ("log.segment.bytes", Kind::Int, "segment.bytes"),
    ("message.max.bytes", Kind::Int, "max.message.bytes"),
    ("min.insync.replicas", Kind::Int, "min.insync.replicas"),
];

fn topic_defaults(broker: &Broker) -> impl Iterator<Item = (&'static str, Kind, String)> {
    let defaults = &broker.settings().topic_defaults;
    TOPIC_DEFAULTS
        .iter()
        .map(|(name, kind, of_topic)| (*name, *kind, defaults.value(of_topic).unwrap_or_default()))
}

fn of_broker(broker: &Broker) -> Rows {
    let settings = broker.settings();
    let node = broker.node().to_string();
    let is = |yes: bool| if yes { "true" } else { "false" }.to_owned();
    vec![
        (
            "auto.create.topics.enable",
            Kind::Boolean,
            is(settings.auto_create_topics),
        ),
        ("broker.id", Kind::Int, node.clone()),
        ("default.replication.factor", Kind::Int, "1".to_owned()),
        ("delete.topic.enable", Kind::Boolean, is(true)),
        (
            "group.initial.rebalance.delay.ms",
            Kind::Int,
            millis(settings.group_initial_rebalance_delay),
        ),
        (
            "group.max.session.timeout.ms",
            Kind::Int,
            millis(settings.group_session_timeout_max),
        ),
        (
            "group.min.session.timeout.ms",
            Kind::Int,
            millis(settings.group_session_timeout_min),
        ),
        (
            "log.retention.check.interval.ms",
            Kind::Long,
            millis(settings.retention_check_interval),
        ),
        ("node.id", Kind::Int, node),
        (
            "num.partitions",
            Kind::Int,
            settings.partitions_default.to_string(),
        ),
        (
            "offset.metadata.max.bytes",
            Kind::Int,
            settings.offset_metadata_bytes_max.to_string(),
        ),
        ("process.roles", Kind::List, "broker,controller".to_owned()),
        (
            "producer.id.expiration.ms",
            Kind::Int,
            millis(settings.producer_expiration),
        ),
    ]
    .into_iter()
}

/// `local` is the address that was called: it is advertised unless another one is set.
fn of_door(door: &Door, local: SocketAddr) -> Rows {
    let settings = door.settings();
    let limits = &door.gate().limits;
    vec![
        (
            "advertised.listeners",
            Kind::List,
            listener(door.address(local)),
        ),
        ("connections.max.idle.ms", Kind::Long, millis(limits.idle)),
        (
            "fetch.max.bytes",
            Kind::Int,
            settings.fetch_bytes_max.to_string(),
        ),
        ("max.connections", Kind::Int, limits.connections.to_string()),
        (
            "socket.request.max.bytes",
            Kind::Int,
            door.frame_bytes_max().to_string(),
        ),
        (
            "socket.send.buffer.bytes",
            Kind::Int,
            settings.send_buffer_bytes.to_string(),
        ),
    ]
    .into_iter()
}

fn listener((host, port): (String, i32)) -> String {
    if host.contains(':') {
        format!("PLAINTEXT://[{host}]:{port}")
    } else {
        format!("PLAINTEXT://{host}:{port}")
    }
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
