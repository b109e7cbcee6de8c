//! What is counted of groups: read from their state whenever the metrics are asked for.
//!
//! Bounded: lag is given for at most [`PAIRS_MAX`] pairs of group and topic, the largest first; how many more there are
//! is a metric too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Weak;

use floe_model::TopicId;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::shard::Machine;
use super::{Groups, Inner, row};

/// Most pairs of group and topic whose lag is given.
const PAIRS_MAX: usize = 1_000;

impl Groups {
    /// Adds what is counted of groups to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let inner = std::sync::Arc::downgrade(&self.0);
        registry.register_collector(Box::new(Scrape(inner)));
    }
}

struct Scrape(Weak<Inner>);

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

/// One look at all shards.
#[derive(Default)]
struct Counts {
    classic_groups: i64,
    assigned_groups: i64,
    classic_members: i64,
    assigned_members: i64,
    positions: i64,
    lag: BTreeMap<(String, TopicId), i64>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(inner) = self.0.upgrade() else {
            return Ok(());
        };
        let counts = inner.count();
        let one = |encoder: &mut DescriptorEncoder<'_>, name, help, value: i64| {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)
        };
        let encoder = &mut encoder;
        one(
            encoder,
            "group_positions",
            "Stored positions of groups",
            counts.positions,
        )?;
        one(
            encoder,
            "group_positions_bytes",
            "Memory of stored positions, keys and values",
            inner.usage.positions() as i64,
        )?;
        one(
            encoder,
            "group_members_bytes",
            "Memory of what members of groups have brought",
            inner.usage.members() as i64,
        )?;
        let kinds = |classic, assigned| [("classic", classic), ("assigned", assigned)];
        by_kind(
            encoder,
            "groups",
            "Groups with members",
            &kinds(counts.classic_groups, counts.assigned_groups),
        )?;
        by_kind(
            encoder,
            "group_members",
            "Members of groups",
            &kinds(counts.classic_members, counts.assigned_members),
        )?;
        inner.encode_lag(encoder, counts.lag)
    }
}

fn by_kind(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: &[(&str, i64)],
) -> fmt::Result {
    let kind = ConstGauge::new(0_i64).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (kind, value) in values {
        let labels = [("kind", *kind)];
        ConstGauge::new(*value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

impl Inner {
    fn count(&self) -> Counts {
        let mut counts = Counts::default();
        for shard in &self.shards {
            let state = shard.lock();
            for entry in state.groups.values() {
                match &entry.machine {
                    Machine::Classic(group) => {
                        counts.classic_groups += 1;
                        counts.classic_members += group.members().count() as i64;
                    }
                    Machine::Assigned(group) => {
                        counts.assigned_groups += 1;
                        counts.assigned_members += group.members().count() as i64;
                    }
                }
            }
            counts.positions += state.table.len() as i64;
            for (key, value) in state.table.rows() {
                let (Some((group, address)), Some(position)) =
                    (row::parse_key(key), row::parse_value(value))
                else {
                    continue;
                };
                let Some(partition) = self.node.partition(address) else {
                    continue;
                };
                let behind = partition.committed().0.saturating_sub(position.offset.0);
                let pair = (group.to_owned(), address.topic);
                *counts.lag.entry(pair).or_default() += behind as i64;
            }
        }
        counts
    }

    fn encode_lag(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        lag: BTreeMap<(String, TopicId), i64>,
    ) -> fmt::Result {
        let catalog = self.node.catalog.load_full();
        let omitted = lag.len().saturating_sub(PAIRS_MAX);
        let mut pairs: Vec<_> = lag.into_iter().collect();
        pairs.sort_by_key(|(_, lag)| std::cmp::Reverse(*lag));
        pairs.truncate(PAIRS_MAX);
        let gauge = ConstGauge::new(0_i64);
        let mut family = encoder.encode_descriptor(
            "group_lag_records",
            "Records between a group's positions and the ends of a topic's partitions",
            None,
            gauge.metric_type(),
        )?;
        for ((group, topic), lag) in pairs {
            let Some(name) = catalog.names.get(&topic) else {
                continue;
            };
            let labels = [("group", group.as_str()), ("topic", name.as_str())];
            ConstGauge::new(lag).encode(family.encode_family(&labels)?)?;
        }
        let gauge = ConstGauge::new(omitted as i64);
        let metric = encoder.encode_descriptor(
            "group_lag_omitted",
            "Pairs of group and topic whose lag is not given, since there are too many",
            None,
            gauge.metric_type(),
        )?;
        gauge.encode(metric)
    }
}
