//! ListGroups (key 16, versions 0 to 5; KIP-518, KIP-848): every group, filtered by state and type.
//!
//! Groups of HTTP consumers are listed beside Kafka's own, as type `classic`: clients describe them the same way.

use kacrab_protocol::KafkaString;
use kacrab_protocol::generated::list_groups_request::ListGroupsRequestData;
use kacrab_protocol::generated::list_groups_response::{ListGroupsResponseData, ListedGroup};

use super::answer::{Answer, NONE, text};
use super::door::Door;
use super::group::state_name;
use super::request::{Close, Request};

const TYPE: &str = "classic";

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(ListGroupsRequestData::read)?;
    let passes = |filter: &[KafkaString], name: &str| {
        filter.is_empty() || filter.iter().any(|f| f.as_str().eq_ignore_ascii_case(name))
    };
    let listed = door.broker().groups().list();
    let groups = listed.iter().filter(|group| {
        passes(&asked.states_filter, state_name(group.state)) && passes(&asked.types_filter, TYPE)
    });
    let groups = groups.map(|group| {
        let mut entry = ListedGroup::default()
            .with_group_id(text(group.group.as_str()))
            .with_protocol_type(text(&group.protocol_type));
        if request.version >= 4 {
            entry = entry.with_group_state(text(state_name(group.state)));
        }
        if request.version >= 5 {
            entry = entry.with_group_type(text(TYPE));
        }
        entry
    });
    let message = ListGroupsResponseData::default()
        .with_error_code(NONE)
        .with_groups(groups.collect());
    Answer::encode(request, |out, version| message.write(out, version))
}
