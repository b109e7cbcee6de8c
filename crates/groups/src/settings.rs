//! What an operator can set about groups.

use std::time::Duration;

/// Bounds and delays of groups; names are Kafka's where Kafka has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Duration,
    /// `group.initial.rebalance.delay.ms`: how long the first rebalance of an empty group waits for more members.
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`: most members of one group.
    pub members_max: usize,
    /// Most groups with members at one time.
    pub groups_max: usize,
    /// Most bytes of protocol metadata one member may register, and of assignment it may be given.
    pub member_bytes_max: usize,
    /// Idle time after which an HTTP consumer is gone, unless its registration says otherwise.
    pub consumer_idle_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_mins(30),
            initial_rebalance_delay: Duration::from_secs(3),
            members_max: 10_000,
            groups_max: 100_000,
            member_bytes_max: 1024 * 1024,
            consumer_idle_timeout: Duration::from_mins(2),
        }
    }
}
