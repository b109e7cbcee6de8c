//! Classic Kafka groups: members join, one of them leads and assigns, all sync.

mod requests;

pub use requests::{Answer, Caller, Join, Joined, JoinedMember, Leaving, Sync, Synced, Ticket};
