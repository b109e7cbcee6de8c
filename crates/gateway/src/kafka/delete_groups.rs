//! DeleteGroups (key 42, versions 0 to 2; KIP-229): groups without members go, with their positions.

use floe_groups::GroupId;
use kacrab_protocol::generated::delete_groups_request::DeleteGroupsRequestData;
use kacrab_protocol::generated::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponseData,
};

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(DeleteGroupsRequestData::read)?;
    let mut results = Vec::new();
    for id in asked.groups_names {
        let group = GroupId::from(id.as_str());
        let error = match door.broker().groups().delete_group(&group).await {
            Ok(()) => NONE,
            Err(error) => code(errors::group(&error)),
        };
        results.push(
            DeletableGroupResult::default()
                .with_group_id(id)
                .with_error_code(error),
        );
    }
    let message = DeleteGroupsResponseData::default().with_results(results);
    Answer::encode(request, |out, version| message.write(out, version))
}
