//! A running node: drives log, catalog, groups and tables.
//!
//! Guarantees: the doors ask here and nowhere else; nothing here knows which door asked. Every refusal is typed and
//! grouped by what its caller does next. Knows no protocol: Kafka's codes and HTTP's problems are the doors' words.

mod broker;
mod controller;
mod error;
mod events;
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        reason = "for nodes that have others; one alone hears nobody"
    )
)]
mod exchange;
mod fetch;
pub mod groups;
pub mod metrics;
mod node;
mod offline;
mod offsets;
mod partition;
pub mod peers;
mod produce;
mod producer_ids;
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        reason = "for nodes that have others; one alone hears nobody"
    )
)]
mod replica;
mod retention;
mod settings;
mod start;
mod topics;
mod upkeep;

pub use broker::Broker;
pub use error::{
    CreateTopicError, DeleteTopicError, FetchError, OffsetError, ProduceError, StartError,
    Unavailable,
};
pub use fetch::{Fetch, FetchPart, FetchedPart, Isolation};
pub use floe_cluster::settings::{self as topic_settings, InForce, InvalidSetting, TopicSettings};
pub use floe_cluster::{
    Catalog, ClusterId, Endpoint, EpochEnd, Leader, Member, Node, Partition, Sealed, Topic,
    Undecodable,
};
pub use groups::Groups;
pub use offline::Topics;
pub use offsets::{FoundOffset, OffsetSpec};
pub use produce::{Pending, ProduceOptions, Produced, ProducerIdentity};
pub use settings::{Settings, World};
pub use topics::NewTopic;
