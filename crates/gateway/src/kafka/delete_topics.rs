//! DeleteTopics (key 20, versions 1 to 6; KIP-4, KIP-516): by name, from version 6 on also by id.

use floe_broker::DeleteTopicError;
use floe_wire::ErrorCode;
use kacrab_protocol::generated::delete_topics_request::{
    DeleteTopicState, DeleteTopicsRequestData,
};
use kacrab_protocol::generated::delete_topics_response::{
    DeletableTopicResult, DeleteTopicsResponseData,
};
use kacrab_protocol::{KafkaString, KafkaUuid};

use super::answer::{Answer, code, text, topic_id};
use super::door::Door;
use super::errors;
use super::request::{Close, Request};

pub(super) async fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(DeleteTopicsRequestData::read)?;
    let mut results = Vec::new();
    for name in asked.topic_names {
        let outcome = door.broker().delete_topic(name.as_str()).await;
        results.push(answer(
            Some(name),
            KafkaUuid::ZERO,
            outcome,
            request.version,
        ));
    }
    for topic in asked.topics {
        results.push(one(door, topic, request.version).await);
    }
    let message = DeleteTopicsResponseData::default().with_responses(results);
    Answer::encode(request, |out, version| message.write(out, version))
}

async fn one(door: &Door, asked: DeleteTopicState, version: i16) -> DeletableTopicResult {
    match (asked.name, asked.topic_id) {
        (Some(name), KafkaUuid::ZERO) => {
            let outcome = door.broker().delete_topic(name.as_str()).await;
            answer(Some(name), KafkaUuid::ZERO, outcome, version)
        }
        (None, id) => {
            let catalog = door.broker().catalog();
            let name = catalog
                .topic_by_id(topic_id(id))
                .map(|t| text(t.name.as_str()));
            match door.broker().delete_topic_by_id(topic_id(id)).await {
                Err(DeleteTopicError::Unknown(_)) => DeletableTopicResult::default()
                    .with_name(None)
                    .with_topic_id(id)
                    .with_error_code(code(ErrorCode::UnknownTopicId)),
                outcome => answer(name, id, outcome, version),
            }
        }
        (Some(name), id) => DeletableTopicResult::default()
            .with_name(Some(name))
            .with_topic_id(id)
            .with_error_code(code(ErrorCode::InvalidRequest))
            .with_error_message(Some(text("give a topic's name or its id, not both"))),
    }
}

fn answer(
    name: Option<KafkaString>,
    id: KafkaUuid,
    outcome: Result<(), DeleteTopicError>,
    version: i16,
) -> DeletableTopicResult {
    let mut result = DeletableTopicResult::default().with_name(name);
    if version >= 6 {
        result = result.with_topic_id(id);
    }
    let Err(error) = outcome else {
        return result;
    };
    result = result.with_error_code(code(errors::delete_topic(&error)));
    if version >= 5 {
        result = result.with_error_message(Some(text(&error.to_string())));
    }
    result
}
