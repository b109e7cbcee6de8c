//! What a node is started with: the outside it lives in and the settings it obeys.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use floe_cluster::{ClusterId, Endpoint, TopicSettings};
use floe_model::{NodeId, limits};
use floe_world::{Clock, Disk, Pool, Random};

/// The outside, real or simulated.
#[derive(Clone)]
pub struct World {
    /// Where the data directory lies.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
    /// The node's memory budget.
    pub memory: Pool,
}

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// This node's id.
    pub node: NodeId,
    /// The cluster this node must belong to; `None` takes what the directory says, or makes a new one.
    pub cluster: Option<ClusterId>,
    /// Where this node's doors are reached: bound before the broker starts, so that ports given by the system are known.
    pub endpoints: Vec<Endpoint>,
    /// Sizes, ages and threads of the log; cluster and node in it are set from above.
    pub log: floe_log::Config,
    /// Memory for data on its way to disk, which is also what recent data is read from; `None` takes half of the budget.
    pub tail_bytes: Option<usize>,
    /// Memory for data read back from disk; `None` takes an eighth of the budget.
    pub read_bytes: Option<usize>,
    /// `auto.create.topics.enable`: a topic comes into being on first use.
    pub auto_create_topics: bool,
    /// `num.partitions`: partitions of a topic that does not say how many.
    pub partitions_default: u32,
    /// What holds for topics that do not say otherwise: `log.retention.*`, `message.max.bytes`, `log.message.timestamp.*`.
    pub topic_defaults: TopicSettings,
    /// `log.retention.check.interval.ms`: how often old data is looked for.
    pub retention_check_interval: Duration,
    /// `producer.id.expiration.ms`: log time after which a silent producer's sequence state goes.
    pub producer_expiration: Duration,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_bytes_max: usize,
    /// `group.initial.rebalance.delay.ms`.
    pub group_initial_rebalance_delay: Duration,
    /// `group.min.session.timeout.ms`.
    pub group_session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`.
    pub group_session_timeout_max: Duration,
}

impl Settings {
    /// The defaults, for one node over one directory.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir,
            node: NodeId(0),
            cluster: None,
            endpoints: Vec::new(),
            log: floe_log::Config::default(),
            tail_bytes: None,
            read_bytes: None,
            auto_create_topics: true,
            partitions_default: limits::PARTITIONS_DEFAULT,
            topic_defaults: TopicSettings::default(),
            retention_check_interval: Duration::from_mins(5),
            producer_expiration: Duration::from_hours(24),
            offset_metadata_bytes_max: limits::OFFSET_METADATA_BYTES_MAX,
            group_initial_rebalance_delay: Duration::from_secs(3),
            group_session_timeout_min: Duration::from_secs(6),
            group_session_timeout_max: Duration::from_mins(30),
        }
    }
}
