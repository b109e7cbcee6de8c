//! SyncGroup (key 14, versions 0 to 5; KIP-345, KIP-559): a member asks for its assignment and waits until the leader
//! has brought everybody's.

use bytes::Bytes;
use floe_groups::classic::Sync;
use floe_groups::{GroupId, MemberId};
use kacrab_protocol::generated::sync_group_request::SyncGroupRequestData;
use kacrab_protocol::generated::sync_group_response::SyncGroupResponseData;

use super::answer::{Answer, NONE, code, text};
use super::door::Door;
use super::errors;
use super::group::{caller, shared};
use super::request::{Close, Request};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let room = door.room_to_decode(request).await;
    let asked = request.read(SyncGroupRequestData::read)?;
    let group = GroupId::from(asked.group_id.as_str());
    let assignments = asked.assignments.iter().map(|assignment| {
        let member = MemberId::from(assignment.member_id.as_str());
        (member, Bytes::copy_from_slice(&assignment.assignment))
    });
    let sync = Sync {
        caller: caller(
            &asked.member_id,
            asked.group_instance_id.as_ref(),
            asked.generation_id,
        ),
        protocol_type: asked.protocol_type.as_ref().map(shared),
        protocol: asked.protocol_name.as_ref().map(shared),
        assignments: assignments.collect(),
    };
    drop(asked);
    drop(room);
    let message = match door.broker().groups().sync(&group, sync).await {
        Ok(synced) => {
            let message = SyncGroupResponseData::default()
                .with_error_code(NONE)
                .with_assignment(synced.assignment);
            if request.version >= 5 {
                message
                    .with_protocol_type(Some(text(&synced.protocol_type)))
                    .with_protocol_name(Some(text(&synced.protocol)))
            } else {
                message
            }
        }
        Err(refused) => {
            SyncGroupResponseData::default().with_error_code(code(errors::refusal(&refused)))
        }
    };
    Answer::encode(request, |out, version| message.write(out, version))
}
