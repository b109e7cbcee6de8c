//! The Kafka door: port 9092, Kafka's protocol as of release 4.3 (see [`api`] for what is spoken).
//!
//! One file per API: the type, how it is read, how it acts, how it answers. [`connection`] reads frames and keeps the
//! order of answers; [`answer`] is what goes out; [`errors`] turns the broker's refusals into Kafka's codes.
//!
//! Guarantees: a request is decoded from checked bytes, never trusted for an allocation; answers leave in the order
//! of their requests; records leave by reference. Decides nothing: what a request means is the broker's.

mod answer;
mod api;
mod api_versions;
mod connection;
mod create_topics;
mod decode;
mod delete_groups;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod door;
mod errors;
mod fetch;
mod find_coordinator;
mod fixed;
mod group;
mod heartbeat;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod metadata;
pub mod metrics;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod request;
mod sync_group;
mod topics;

pub use api::RELEASE;
pub use decode::{Refused, decode};
pub use door::{Door, Settings};
pub(crate) use fixed::fixed;
