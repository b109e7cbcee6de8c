//! Topic settings: Kafka's names, what each accepts here, and the values in force.
//!
//! Guarantees: a setting is honoured or refused by name; none is accepted and ignored. A name that is not honoured
//! yet is accepted only with the value in force. Decides nothing about disks: the broker acts on the typed values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Typed values in force for one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// `retention.ms`: records older than this may go; `None` keeps them for ever.
    pub retention_ms: Option<u64>,
    /// `retention.bytes`: size of a partition above which its oldest segments may go; `None` is without limit.
    pub retention_bytes: Option<u64>,
    /// `max.message.bytes`: largest stored batch.
    pub max_message_bytes: u32,
    /// `message.timestamp.type`: `LogAppendTime` when true, else `CreateTime`.
    pub log_append_time: bool,
    /// `message.timestamp.before.max.ms`: how far behind the broker's clock a record may be.
    pub timestamp_before_max_ms: u64,
    /// `message.timestamp.after.max.ms`: how far ahead of the broker's clock a record may be.
    pub timestamp_after_max_ms: u64,
    /// `segment.bytes`: size at which a segment is rolled.
    pub segment_bytes: u64,
    /// `segment.ms`: age at which a segment is rolled.
    pub segment_ms: u64,
    /// `cleanup.policy` is `compact`: only for Floe's own topics so far.
    pub compact: bool,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            retention_ms: Some(floe_model::limits::RETENTION_HOURS * 3_600_000),
            retention_bytes: None,
            max_message_bytes: floe_model::limits::BATCH_BYTES_MAX as u32,
            log_append_time: false,
            timestamp_before_max_ms: i64::MAX as u64,
            timestamp_after_max_ms: 3_600_000,
            segment_bytes: 256 << 20,
            segment_ms: 7 * 24 * 3_600_000,
            compact: false,
        }
    }
}

/// How Kafka types a setting (`ConfigDef.Type`), as DescribeConfigs shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// 32 bit.
    Int,
    /// 64 bit.
    Long,
    /// A floating point number.
    Double,
    /// Text.
    Text,
    /// Comma-separated texts.
    List,
}

/// One setting a topic can have.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Kafka's name, or Floe's own.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// One sentence.
    pub documentation: &'static str,
    /// The value that is always in force, for a setting that cannot be changed yet.
    pub fixed: Option<&'static str>,
}

/// One setting with its value in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Its name.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// What the node's defaults say.
    pub default: String,
    /// Whether the topic sets it itself.
    pub overridden: bool,
    /// Its type.
    pub kind: Kind,
    /// One sentence.
    pub documentation: &'static str,
}

/// A refused setting; its text names setting, value, rule and remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// No such setting.
    #[error("unknown topic setting '{name}'; GET or describe the topic's settings for the names")]
    Unknown {
        /// As given.
        name: String,
    },
    /// The value does not parse or is out of bounds.
    #[error("topic setting '{name}' = '{value}': {expected}")]
    Value {
        /// The setting.
        name: String,
        /// As given.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Known, but only one value is supported yet.
    #[error(
        "topic setting '{name}' = '{value}' is not supported; only '{in_force}', the value in force, is"
    )]
    Unsupported {
        /// The setting.
        name: String,
        /// As given.
        value: String,
        /// What would be accepted.
        in_force: String,
    },
}

/// Kafka 4's least `segment.bytes`.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
const LONG_MAX: &str = "9223372036854775807";

macro_rules! declared {
    ($($name:literal $kind:ident $fixed:expr, $doc:literal;)*) => {
        &[$(Declared { name: $name, kind: Kind::$kind, documentation: $doc, fixed: $fixed }),*]
    };
}

/// Every setting of a topic, sorted by name; Kafka 4.4's list and Floe's own.
pub const DECLARED: &[Declared] = declared! {
    "cleanup.policy" List Some("delete"), "What happens to old data: delete by time and size.";
    "compression.gzip.level" Int Some("-1"), "Level when the broker compresses with gzip; it never does.";
    "compression.lz4.level" Int Some("9"), "Level when the broker compresses with lz4; it never does.";
    "compression.type" Text Some("producer"), "Batches are kept as the producer compressed them.";
    "compression.zstd.level" Int Some("3"), "Level when the broker compresses with zstd; it never does.";
    "delete.retention.ms" Long Some("86400000"), "How long a tombstone is kept on a compacted topic.";
    "durability" Text Some("flushed"), "A record is on stable storage on a quorum before it is acknowledged.";
    "errors.deadletterqueue.group.enable" Boolean Some("false"), "Whether share groups may write here.";
    "file.delete.delay.ms" Long Some("60000"), "Kafka's delay before a deleted file goes; Floe does not wait.";
    "flush.messages" Long Some(LONG_MAX), "Every acknowledged record is flushed; there is nothing to set.";
    "flush.ms" Long Some(LONG_MAX), "Every acknowledged record is flushed; there is nothing to set.";
    "follower.replication.throttled.replicas" List Some(""), "Throttled followers.";
    "index.interval.bytes" Int Some("4096"), "Kafka's index density; Floe indexes every run.";
    "leader.replication.throttled.replicas" List Some(""), "Throttled leaders.";
    "local.retention.bytes" Long Some("-2"), "Size kept locally of a tiered topic.";
    "local.retention.ms" Long Some("-2"), "Time kept locally of a tiered topic.";
    "max.compaction.lag.ms" Long Some(LONG_MAX), "Longest time a record stays uncompacted.";
    "max.message.bytes" Int None, "Largest record batch that is stored, after compression.";
    "message.timestamp.after.max.ms" Long None, "How far a record's time may be ahead of the broker's clock.";
    "message.timestamp.before.max.ms" Long None, "How far a record's time may be behind the broker's clock.";
    "message.timestamp.type" Text None, "CreateTime or LogAppendTime.";
    "min.cleanable.dirty.ratio" Double Some("0.5"), "Share of uncompacted data that starts compaction.";
    "min.compaction.lag.ms" Long Some("0"), "Shortest time a record stays uncompacted.";
    "min.insync.replicas" Int Some("1"), "Copies that hold a record before it is acknowledged: the quorum q.";
    "preallocate" Boolean Some("false"), "Kafka's file preallocation; Floe always preallocates.";
    "remote.copy.lag.bytes" Long Some("0"), "Bytes after which data is due for tiering.";
    "remote.copy.lag.ms" Long Some("0"), "Time after which data is due for tiering.";
    "remote.log.copy.disable" Boolean Some("false"), "Stops tiering of new data.";
    "remote.log.delete.on.disable" Boolean Some("false"), "Deletes tiered data when tiering is switched off.";
    "remote.storage.enable" Boolean Some("false"), "Tiering to object storage.";
    "retention.bytes" Long None, "Size of a partition above which its oldest segments go; -1 is without limit.";
    "retention.ms" Long None, "Age above which segments go; -1 keeps them for ever.";
    "segment.bytes" Int None, "Size at which a segment is rolled.";
    "segment.index.bytes" Int Some("10485760"), "Kafka's index file size; Floe's grows as needed.";
    "segment.jitter.ms" Long Some("0"), "Random part of segment.ms.";
    "segment.ms" Long None, "Age at which a segment is rolled.";
    "unclean.leader.election.enable" Boolean Some("false"), "Never: an acknowledged record is not given up silently.";
};

impl TopicSettings {
    /// The settings in force: these defaults, with `overrides` on top. Names every fault, not only the first.
    pub fn resolve(
        defaults: &Self,
        overrides: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<InvalidSetting>> {
        let mut settings = defaults.clone();
        let faults: Vec<_> = overrides
            .iter()
            .filter_map(|(name, value)| settings.set(name, value).err())
            .collect();
        if faults.is_empty() {
            Ok(settings)
        } else {
            Err(faults)
        }
    }

    /// Sets one value by name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidSetting> {
        let declared = DECLARED
            .iter()
            .find(|declared| declared.name == name)
            .ok_or_else(|| InvalidSetting::Unknown { name: name.into() })?;
        if let Some(in_force) = declared.fixed {
            return if value == in_force {
                Ok(())
            } else {
                Err(InvalidSetting::Unsupported {
                    name: name.into(),
                    value: value.into(),
                    in_force: in_force.into(),
                })
            };
        }
        let wrong = |expected: &str| InvalidSetting::Value {
            name: name.into(),
            value: value.into(),
            expected: expected.into(),
        };
        let unlimited = |expected: &str| match value.parse::<i64>() {
            Ok(-1) => Ok(None),
            Ok(number) if number >= 0 => Ok(Some(number as u64)),
            _ => Err(wrong(expected)),
        };
        let millis = || match value.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(number as u64),
            _ => Err(wrong("give milliseconds from 0 to 9223372036854775807")),
        };
        match name {
            "retention.ms" => {
                self.retention_ms = unlimited("give milliseconds from 0, or -1 to keep for ever")?;
            }
            "retention.bytes" => {
                self.retention_bytes = unlimited("give bytes from 0, or -1 for no limit")?;
            }
            "max.message.bytes" => {
                self.max_message_bytes = value
                    .parse::<i32>()
                    .ok()
                    .and_then(|bytes| u32::try_from(bytes).ok())
                    .ok_or_else(|| wrong("give bytes from 0 to 2147483647"))?;
            }
            "message.timestamp.type" => {
                self.log_append_time = match value {
                    "CreateTime" => false,
                    "LogAppendTime" => true,
                    _ => return Err(wrong("give CreateTime or LogAppendTime")),
                };
            }
            "segment.bytes" => {
                self.segment_bytes = value
                    .parse::<i32>()
                    .ok()
                    .and_then(|bytes| u64::try_from(bytes).ok())
                    .filter(|bytes| *bytes >= SEGMENT_BYTES_MIN)
                    .ok_or_else(|| wrong("give bytes from 1048576 to 2147483647"))?;
            }
            "segment.ms" => {
                self.segment_ms = millis()
                    .ok()
                    .filter(|millis| *millis >= 1)
                    .ok_or_else(|| wrong("give milliseconds from 1 to 9223372036854775807"))?;
            }
            "message.timestamp.before.max.ms" => self.timestamp_before_max_ms = millis()?,
            "message.timestamp.after.max.ms" => self.timestamp_after_max_ms = millis()?,
            _ => {
                unreachable!("every declared setting is fixed or set above; a test walks the table")
            }
        }
        Ok(())
    }

    /// The value of one setting, as text; `None` for an unknown name.
    pub fn value(&self, name: &str) -> Option<String> {
        let declared = DECLARED.iter().find(|declared| declared.name == name)?;
        let unlimited = |value: Option<u64>| value.map_or("-1".to_owned(), |v| v.to_string());
        Some(match name {
            "cleanup.policy" if self.compact => "compact".to_owned(),
            "retention.ms" => unlimited(self.retention_ms),
            "retention.bytes" => unlimited(self.retention_bytes),
            "max.message.bytes" => self.max_message_bytes.to_string(),
            "message.timestamp.type" if self.log_append_time => "LogAppendTime".to_owned(),
            "message.timestamp.type" => "CreateTime".to_owned(),
            "segment.bytes" => self.segment_bytes.to_string(),
            "segment.ms" => self.segment_ms.to_string(),
            "message.timestamp.before.max.ms" => self.timestamp_before_max_ms.to_string(),
            "message.timestamp.after.max.ms" => self.timestamp_after_max_ms.to_string(),
            _ => declared.fixed.unwrap_or_default().to_owned(),
        })
    }

    /// Every setting with its value, as DescribeConfigs lists them.
    pub fn describe(&self, defaults: &Self, overrides: &BTreeMap<String, String>) -> Vec<InForce> {
        DECLARED
            .iter()
            .map(|declared| InForce {
                name: declared.name,
                value: self.value(declared.name).unwrap_or_default(),
                default: defaults.value(declared.name).unwrap_or_default(),
                overridden: overrides.contains_key(declared.name),
                kind: declared.kind,
                documentation: declared.documentation,
            })
            .collect()
    }
}

/// One text for several faults.
pub fn join(faults: &[InvalidSetting]) -> String {
    faults.iter().fold(String::new(), |mut text, fault| {
        let between = if text.is_empty() { "" } else { "; " };
        write!(text, "{between}{fault}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_setting_accepts_its_value_in_force() {
        let defaults = TopicSettings::default();
        for declared in DECLARED {
            let value = defaults.value(declared.name).unwrap();
            assert_eq!(defaults.clone().set(declared.name, &value), Ok(()));
        }
        assert!(DECLARED.is_sorted_by_key(|declared| declared.name));
    }

    #[test]
    fn a_setting_that_is_not_honoured_is_refused_by_name() {
        let overrides = [
            ("durability", "replicated"),
            ("cleanup.policy", "compact"),
            ("x", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let faults = TopicSettings::resolve(&TopicSettings::default(), &overrides).unwrap_err();
        assert_eq!(faults.len(), 3);
        assert!(join(&faults).contains("'durability' = 'replicated' is not supported"));
    }

    #[test]
    fn honoured_settings_are_set_and_read_back() {
        let overrides = [
            ("retention.ms", "-1"),
            ("retention.bytes", "1000"),
            ("max.message.bytes", "2000"),
            ("message.timestamp.type", "LogAppendTime"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let settings = TopicSettings::resolve(&TopicSettings::default(), &overrides).unwrap();
        for (name, value) in &overrides {
            assert_eq!(settings.value(name).as_ref(), Some(value));
        }
        assert_eq!(settings.retention_ms, None);
    }
}
