//! What is measured when somebody looks: the memory of the buffers.
//!
//! Guarantees: nothing is gathered while nobody asks. Counters and histograms are kept where things happen.

use std::fmt;

use floe_world::Pool;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The node's buffers.
#[derive(Debug)]
pub(super) struct Gauges(pub(super) Pool);

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in [
            (
                "memory_buffers",
                "Buffers for requests, tails and reads in use",
                self.0.used(),
            ),
            (
                "memory_buffers_limit",
                "What the buffers may take of memory.limit.bytes",
                self.0.limit(),
            ),
        ] {
            let gauge = ConstGauge::new(value as i64);
            let of =
                encoder.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?;
            gauge.encode(of)?;
        }
        Ok(())
    }
}
