//! Membership, assignment and positions of consumers, whatever door they came by; pure.
//!
//! Two kinds of group: [`classic`], where Kafka clients elect a leader that assigns, and [`assigned`], where the
//! server assigns (HTTP consumers). Both are state machines: an event and the time go in, answers come out; the
//! driver in `floe_broker::groups` owns clock, locks and storage.
//!
//! Guarantees: no clock, no I/O, no chance in here, so every run can be replayed; every collection has a limit in
//! [`Settings`]. Does not store positions and does not know topics' contents.

pub mod assigned;
pub mod classic;
mod ids;
mod kind;
mod position;
mod refusal;
mod settings;

pub use ids::{ConnectionId, ConsumerId, GenerationId, GroupId, InstanceId, MemberId};
pub use kind::Kind;
pub use position::{NewPosition, Position};
pub use refusal::Refusal;
pub use settings::Settings;

/// Longest group id, in bytes.
pub const GROUP_ID_BYTES_MAX: usize = 4096;

/// What a member takes in memory beside what it brings, about.
const MEMBER_BYTES: usize = 512;
