//! What the group APIs share: callers, states and the consumer-group words of Kafka.

use std::sync::Arc;

use floe_broker::groups::State;
use floe_groups::classic::Caller;
use floe_groups::{GenerationId, InstanceId, MemberId};
use kacrab_protocol::KafkaString;

/// What anybody may do to a group while there are no ACLs: read, delete, describe, describe and alter configs.
pub(super) const GROUP_OPERATIONS: i32 = 0b1101_0100_1000;

/// A member as its requests name it.
pub(super) fn caller(
    member_id: &KafkaString,
    instance_id: Option<&KafkaString>,
    generation: i32,
) -> Caller {
    Caller {
        member_id: MemberId::from(member_id.as_str()),
        instance_id: instance(instance_id),
        generation: GenerationId(generation),
    }
}

/// `group.instance.id`, copied out of the frame.
pub(super) fn instance(id: Option<&KafkaString>) -> Option<InstanceId> {
    id.map(|id| InstanceId::from(id.as_str()))
}

/// A string, copied out of the frame.
pub(super) fn shared(text: &KafkaString) -> Arc<str> {
    text.as_str().into()
}

/// Kafka's name of a state.
pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::Empty => "Empty",
        State::PreparingRebalance => "PreparingRebalance",
        State::CompletingRebalance => "CompletingRebalance",
        State::Stable => "Stable",
    }
}
