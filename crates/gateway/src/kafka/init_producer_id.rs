//! InitProducerId (key 22, versions 0 to 5; KIP-98): an id for an idempotent producer. Transactions are refused.

use floe_wire::ErrorCode;
use kacrab_protocol::generated::init_producer_id_request::InitProducerIdRequestData;
use kacrab_protocol::generated::init_producer_id_response::InitProducerIdResponseData;

use super::answer::{Answer, NONE, code};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(InitProducerIdRequestData::read)?;
    let refused = |error| {
        InitProducerIdResponseData::default()
            .with_error_code(code(error))
            .with_producer_id(-1)
            .with_producer_epoch(-1)
    };
    let message = if let Some(id) = asked.transactional_id {
        let peer = request.caller.peer;
        if let Some(kept_back) = door.is_due(peer, "transactions") {
            let id = id.as_str();
            tracing::info!(%peer, transactional_id = id, kept_back, "refused: transactions are not supported yet");
        }
        refused(ErrorCode::TransactionalIdAuthorizationFailed)
    } else {
        match door.broker().init_producer_id().await {
            Ok(identity) => InitProducerIdResponseData::default()
                .with_error_code(NONE)
                .with_producer_id(identity.id.0)
                .with_producer_epoch(identity.epoch),
            Err(error) => refused(errors::coordinate(&error)),
        }
    };
    Answer::encode(request, |out, version| message.write(out, version))
}
