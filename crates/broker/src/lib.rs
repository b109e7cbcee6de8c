//! A running node: drives log, catalog, groups and tables.
//!
//! Guarantees: the doors ask here and nowhere else; nothing here knows which door asked. Every refusal is typed and
//! grouped by what its caller does next. Knows no protocol: Kafka's codes and HTTP's problems are the doors' words.

mod broker;
mod error;
mod fetch;
pub mod groups;
mod offsets;
mod produce;
mod settings;
mod topics;

pub use broker::Broker;
pub use error::{
    CreateTopicError, DeleteTopicError, FetchError, OffsetError, ProduceError, StartError,
    Unavailable,
};
pub use fetch::{Fetch, FetchPart, FetchedPart, Isolation};
pub use floe_cluster::settings::{self as topic_settings, InForce, InvalidSetting, TopicSettings};
pub use floe_cluster::{
    Catalog, ClusterId, Endpoint, Leader, Member, Node, Partition, Sealed, Topic,
};
pub use groups::Groups;
pub use offsets::{EpochEnd, FoundOffset, OffsetSpec};
pub use produce::{Pending, ProduceOptions, Produced, ProducerIdentity};
pub use settings::{Settings, World};
pub use topics::NewTopic;
