//! FindCoordinator (key 10, versions 0 to 6; KIP-699): who keeps a group. One node keeps all.
//!
//! Versions up to 3 ask for one key and have the answer at the top; later ones ask for many and have it in a list.

use floe_wire::ErrorCode;
use kacrab_protocol::KafkaString;
use kacrab_protocol::generated::find_coordinator_request::FindCoordinatorRequestData;
use kacrab_protocol::generated::find_coordinator_response::{
    Coordinator, FindCoordinatorResponseData,
};

use super::answer::{Answer, NONE, code, text};
use super::door::Door;
use super::request::{Close, Request};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(FindCoordinatorRequestData::read)?;
    let refusal = match asked.key_type {
        GROUP => None,
        // The one code that makes every client give up at once, with our words where it shows them.
        TRANSACTION => Some((
            ErrorCode::TransactionalIdAuthorizationFailed,
            "transactions are not supported yet; produce without transactional.id",
        )),
        _ => Some((
            ErrorCode::InvalidRequest,
            "there are coordinators of groups (key type 0) only",
        )),
    };
    let (host, port) = door.address(request.caller.local);
    let message = FindCoordinatorResponseData::default();
    let message = if request.version >= 4 {
        let one = |key: KafkaString| {
            let coordinator = Coordinator::default().with_key(key);
            match refusal {
                None => coordinator
                    .with_error_code(NONE)
                    .with_node_id(door.node())
                    .with_host(text(&host))
                    .with_port(port),
                Some((error, reason)) => coordinator
                    .with_error_code(code(error))
                    .with_error_message(Some(text(reason)))
                    .with_node_id(-1)
                    .with_port(-1),
            }
        };
        message.with_coordinators(asked.coordinator_keys.into_iter().map(one).collect())
    } else if let Some((error, reason)) = refusal {
        let message = message
            .with_error_code(code(error))
            .with_node_id(-1)
            .with_port(-1);
        if request.version >= 1 {
            message.with_error_message(Some(text(reason)))
        } else {
            message
        }
    } else {
        message
            .with_error_code(NONE)
            .with_node_id(door.node())
            .with_host(text(&host))
            .with_port(port)
    };
    Answer::encode(request, |out, version| message.write(out, version))
}
