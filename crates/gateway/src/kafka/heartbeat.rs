//! Heartbeat (key 12, versions 0 to 4; KIP-345): a member says that it lives and hears whether the group rebalances.

use floe_groups::GroupId;
use kacrab_protocol::generated::heartbeat_request::HeartbeatRequestData;
use kacrab_protocol::generated::heartbeat_response::HeartbeatResponseData;

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::group::caller;
use super::request::{Close, Request};

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(HeartbeatRequestData::read)?;
    let group = GroupId::from(asked.group_id.as_str());
    let caller = caller(
        &asked.member_id,
        asked.group_instance_id.as_ref(),
        asked.generation_id,
    );
    let error = match door.broker().groups().heartbeat(&group, &caller) {
        Ok(()) => NONE,
        Err(refused) => code(errors::refusal(&refused)),
    };
    let message = HeartbeatResponseData::default().with_error_code(error);
    Answer::encode(request, |out, version| message.write(out, version))
}
