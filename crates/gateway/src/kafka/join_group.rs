//! JoinGroup (key 11, versions 0 to 9; KIP-62, KIP-345, KIP-394, KIP-559, KIP-814): a member asks into the next
//! generation and waits until it begins.

use std::time::Duration;

use bytes::Bytes;
use floe_groups::classic::{Join, Joined};
use floe_groups::{GroupId, MemberId, Refusal};
use kacrab_protocol::generated::join_group_request::JoinGroupRequestData;
use kacrab_protocol::generated::join_group_response::{
    JoinGroupResponseData, JoinGroupResponseMember,
};

use super::answer::{Answer, NONE, code, text};
use super::door::Door;
use super::errors;
use super::group::{instance, shared};
use super::request::{Close, Request};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let room = door.room_to_decode(request).await;
    let asked = request.read(JoinGroupRequestData::read)?;
    let group = GroupId::from(asked.group_id.as_str());
    let join = join(request, &asked);
    let member_id = join.member_id.clone();
    drop(asked);
    drop(room);
    let outcome = door.broker().groups().join(&group, join).await;
    let message = match outcome {
        Ok(joined) => joined_message(&joined, request.version),
        Err(refused) => {
            // Who must come back with an id is told it.
            let member_id = match &refused {
                Refusal::MemberIdRequired(id) => id,
                _ => &member_id,
            };
            JoinGroupResponseData::default()
                .with_error_code(code(errors::refusal(&refused)))
                .with_member_id(text(member_id.as_str()))
        }
    };
    Answer::encode(request, |out, version| message.write(out, version))
}

fn join(request: &Request, asked: &JoinGroupRequestData) -> Join {
    let session_timeout = millis(asked.session_timeout_ms);
    let protocols = asked.protocols.iter().map(|protocol| {
        let metadata = Bytes::copy_from_slice(&protocol.metadata);
        (shared(&protocol.name), metadata)
    });
    Join {
        member_id: MemberId::from(asked.member_id.as_str()),
        instance_id: instance(asked.group_instance_id.as_ref()),
        client_id: request.header.client().into(),
        client_host: format!("/{}", request.caller.peer.ip().to_canonical()).into(),
        protocol_type: shared(&asked.protocol_type),
        protocols: protocols.collect(),
        session_timeout,
        rebalance_timeout: if request.version >= 1 {
            millis(asked.rebalance_timeout_ms)
        } else {
            session_timeout
        },
        needs_known_id: request.version >= 4,
        may_skip_assignment: request.version >= 9,
    }
}

fn millis(ms: i32) -> Duration {
    Duration::from_millis(ms.max(0) as u64)
}

fn joined_message(joined: &Joined, version: i16) -> JoinGroupResponseData {
    let members = joined.members.iter().map(|member| {
        let answer = JoinGroupResponseMember::default()
            .with_member_id(text(member.member_id.as_str()))
            .with_metadata(member.metadata.clone());
        match &member.instance_id {
            Some(id) if version >= 5 => answer.with_group_instance_id(Some(text(id.as_str()))),
            _ => answer,
        }
    });
    let message = JoinGroupResponseData::default()
        .with_error_code(NONE)
        .with_generation_id(joined.generation.0)
        .with_protocol_name(Some(text(&joined.protocol)))
        .with_leader(text(joined.leader.as_str()))
        .with_member_id(text(joined.member_id.as_str()))
        .with_members(members.collect());
    let message = if version >= 7 {
        message.with_protocol_type(Some(text(&joined.protocol_type)))
    } else {
        message
    };
    if version >= 9 {
        message.with_skip_assignment(joined.skip_assignment)
    } else {
        message
    }
}
