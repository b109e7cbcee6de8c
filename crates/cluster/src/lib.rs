//! The catalog: nodes, topics, partitions and their generations, settings; pure: entries in, facts and effects out.
//!
//! Guarantees: the same entries give the same catalog on every node; [`mod@format`] draws every persisted message.
//! Touches no disk, clock or chance: whoever proposes a command has already chosen its random ids.

mod apply;
mod catalog;
mod command;
pub mod consensus;
mod duties;
mod effect;
pub mod format;
pub mod placement;
pub mod plan;
mod refusal;
mod rule;
pub mod settings;
#[cfg(test)]
mod tests;

pub use apply::Applied;
pub use catalog::{Catalog, ClusterId, Endpoint, Node, Partition, Times, Tombstone, Topic};
pub use command::{Claim, Command, Forgetting, NewPartition, NewTopic, RenewedCopy, Transition};
pub use consensus::{Consensus, Entry, Ready, Vote};
pub use duties::{Holdings, duties};
pub use effect::Effect;
pub use floe_replication::{EpochEnd, Leader, Member, Sealed};
pub use format::Undecodable;
pub use refusal::{NotThatNode, Refusal, Unfit};
pub use settings::{InvalidSetting, TopicSettings};

/// Transitions of one `SealAndOpen` at most: a node with more partitions proposes several entries.
pub const TRANSITIONS_PER_ENTRY_MAX: usize = 1_000;
/// Producer ids handed to a node at a time.
pub const PRODUCER_IDS_PER_BLOCK: u64 = 1_000;
