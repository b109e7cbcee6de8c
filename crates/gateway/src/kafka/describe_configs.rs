//! DescribeConfigs (key 32, versions 1 to 4; KIP-133, KIP-226, KIP-569): every setting of a topic or of the node with
//! its value, where it comes from and what it would be otherwise.

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
            BROKER => node(door, resource.resource_name.as_str()),
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
fn node(door: &Door, name: &str) -> Result<Vec<Setting>, (ErrorCode, String)> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name != door.node().to_string() {
        let reason = format!("node '{name}' is not this node ({})", door.node());
        return Err((ErrorCode::InvalidRequest, reason));
    }
    Ok(node_settings(door.broker(), door))
}

fn node_settings(broker: &Broker, door: &Door) -> Vec<Setting> {
    let settings = broker.settings();
    let topic = |name: &str| settings.topic_defaults.value(name).unwrap_or_default();
    let millis = |duration: std::time::Duration| duration.as_millis().to_string();
    let node = broker.node().to_string();
    let is = |yes: bool| if yes { "true" } else { "false" }.to_owned();
    [
        (
            "auto.create.topics.enable",
            Kind::Boolean,
            is(settings.auto_create_topics),
        ),
        ("broker.id", Kind::Int, node.clone()),
        ("compression.type", Kind::Text, topic("compression.type")),
        ("default.replication.factor", Kind::Int, "1".to_owned()),
        ("delete.topic.enable", Kind::Boolean, is(true)),
        (
            "fetch.max.bytes",
            Kind::Int,
            door.settings().fetch_bytes_max.to_string(),
        ),
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
        ("log.cleanup.policy", Kind::List, topic("cleanup.policy")),
        (
            "log.message.timestamp.after.max.ms",
            Kind::Long,
            topic("message.timestamp.after.max.ms"),
        ),
        (
            "log.message.timestamp.before.max.ms",
            Kind::Long,
            topic("message.timestamp.before.max.ms"),
        ),
        (
            "log.message.timestamp.type",
            Kind::Text,
            topic("message.timestamp.type"),
        ),
        ("log.retention.bytes", Kind::Long, topic("retention.bytes")),
        (
            "log.retention.check.interval.ms",
            Kind::Long,
            millis(settings.retention_check_interval),
        ),
        ("log.retention.ms", Kind::Long, topic("retention.ms")),
        ("log.segment.bytes", Kind::Int, topic("segment.bytes")),
        ("message.max.bytes", Kind::Int, topic("max.message.bytes")),
        (
            "min.insync.replicas",
            Kind::Int,
            topic("min.insync.replicas"),
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
        (
            "socket.request.max.bytes",
            Kind::Int,
            door.frame_bytes_max().to_string(),
        ),
    ]
    .into_iter()
    .map(|(name, kind, value)| Setting {
        name: name.to_owned(),
        default: value.clone(),
        value,
        source: STATIC_BROKER,
        kind,
        documentation: "Set when the node starts; see the configuration reference.",
        read_only: true,
    })
    .collect()
}
