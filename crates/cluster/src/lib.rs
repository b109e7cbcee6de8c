//! The catalog: nodes, topics, partitions and their generations, settings; pure: entries in, facts and effects out.
//!
//! Guarantees: the same entries give the same catalog on every node; [`format`] draws every persisted message.
//! Touches no disk, clock or chance: whoever proposes a command has already chosen its random ids.

mod catalog;
pub mod settings;

pub use catalog::{Catalog, ClusterId, Endpoint, Node, Partition, Replica, Sealed, Topic};
pub use settings::{InvalidSetting, TopicSettings};
