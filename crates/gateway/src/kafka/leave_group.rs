//! LeaveGroup (key 13, versions 0 to 5; KIP-345, KIP-800): members go. One per request up to version 2, any number
//! after.

use floe_groups::classic::Leaving;
use floe_groups::{GroupId, MemberId};
use kacrab_protocol::generated::leave_group_request::LeaveGroupRequestData;
use kacrab_protocol::generated::leave_group_response::{LeaveGroupResponseData, MemberResponse};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::group::instance;
use super::request::{Close, Request};

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(LeaveGroupRequestData::read)?;
    let group = GroupId::from(asked.group_id.as_str());
    let leave = |leaving: &[Leaving]| -> Vec<i16> {
        let outcomes = door.broker().groups().leave(&group, leaving);
        let codes = outcomes.into_iter().map(|outcome| match outcome {
            Ok(()) => NONE,
            Err(refused) => code(errors::refusal(&refused)),
        });
        codes.collect()
    };
    let message = if request.version < 3 {
        let codes = leave(&[Leaving {
            member_id: MemberId::from(asked.member_id.as_str()),
            instance_id: None,
        }]);
        LeaveGroupResponseData::default().with_error_code(codes.first().copied().unwrap_or(NONE))
    } else {
        let leaving = asked.members.iter().map(|member| Leaving {
            member_id: MemberId::from(member.member_id.as_str()),
            instance_id: instance(member.group_instance_id.as_ref()),
        });
        let codes = leave(&leaving.collect::<Vec<_>>());
        let members = asked.members.into_iter().zip(codes).map(|(member, error)| {
            MemberResponse::default()
                .with_member_id(member.member_id)
                .with_group_instance_id(member.group_instance_id)
                .with_error_code(error)
        });
        LeaveGroupResponseData::default().with_members(members.collect())
    };
    Answer::encode(request, |out, version| message.write(out, version))
}
