//! DescribeGroups (key 15, versions 0 to 6; KIP-345, KIP-430, KIP-1043): groups with their members.
//!
//! A group that is not there is "Dead" without an error up to version 5, GROUP_ID_NOT_FOUND from version 6 on.

use floe_broker::groups::Description;
use floe_groups::GroupId;
use floe_wire::ErrorCode;
use kacrab_protocol::KafkaString;
use kacrab_protocol::generated::describe_groups_request::DescribeGroupsRequestData;
use kacrab_protocol::generated::describe_groups_response::{
    DescribeGroupsResponseData, DescribedGroup, DescribedGroupMember,
};

use super::answer::{Answer, NONE, code, text};
use super::door::Door;
use super::group::{GROUP_OPERATIONS, state_name};
use super::request::{Close, Request};

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(DescribeGroupsRequestData::read)?;
    let with_operations = asked.include_authorized_operations;
    let groups = asked.groups.into_iter().map(|id| {
        let found = door.broker().groups().describe(&GroupId::from(id.as_str()));
        let group = match found {
            Some(description) => present(id, &description, request.version),
            None => absent(id, request.version),
        };
        if with_operations && request.version >= 3 {
            group.with_authorized_operations(GROUP_OPERATIONS)
        } else {
            group
        }
    });
    let message = DescribeGroupsResponseData::default().with_groups(groups.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}

fn absent(id: KafkaString, version: i16) -> DescribedGroup {
    let message = format!("there is no group '{}'", id.as_str());
    let group = DescribedGroup::default()
        .with_group_id(id)
        .with_group_state(text("Dead"));
    if version >= 6 {
        group
            .with_error_code(code(ErrorCode::GroupIdNotFound))
            .with_error_message(Some(text(&message)))
    } else {
        group
    }
}

fn present(id: KafkaString, found: &Description, version: i16) -> DescribedGroup {
    let members = found.members.iter().map(|member| {
        let answer = DescribedGroupMember::default()
            .with_member_id(text(member.member_id.as_str()))
            .with_client_id(text(&member.client_id))
            .with_client_host(text(&member.client_host))
            .with_member_metadata(member.metadata.clone())
            .with_member_assignment(member.assignment.clone());
        match &member.instance_id {
            Some(id) if version >= 4 => answer.with_group_instance_id(Some(text(id.as_str()))),
            _ => answer,
        }
    });
    DescribedGroup::default()
        .with_error_code(NONE)
        .with_group_id(id)
        .with_group_state(text(state_name(found.listed.state)))
        .with_protocol_type(text(&found.listed.protocol_type))
        .with_protocol_data(text(&found.protocol))
        .with_members(members.collect())
}
