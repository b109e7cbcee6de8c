//! Finding a topic by what a message names it by.

use std::sync::Arc;

use floe_broker::{Catalog, Topic};
use floe_model::{PartitionIndex, TopicPartition};
use floe_wire::ErrorCode;
use kacrab_protocol::KafkaUuid;

use super::answer::topic_id;

/// How a message names a topic.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named<'a> {
    Name(&'a str),
    Id(KafkaUuid),
}

impl<'a> Named<'a> {
    /// By id from version `ids_from` on, by name before.
    pub(super) fn by(version: i16, ids_from: i16, name: &'a str, id: KafkaUuid) -> Self {
        if version >= ids_from {
            Self::Id(id)
        } else {
            Self::Name(name)
        }
    }

    /// The topic, or the code that says it is not there.
    pub(super) fn find(self, catalog: &Catalog) -> Result<&Arc<Topic>, ErrorCode> {
        match self {
            Self::Name(name) => catalog
                .topic(name)
                .ok_or(ErrorCode::UnknownTopicOrPartition),
            Self::Id(id) => catalog
                .topic_by_id(topic_id(id))
                .ok_or(ErrorCode::UnknownTopicId),
        }
    }
}

/// The address of a partition that exists.
pub(super) fn partition(topic: &Topic, index: i32) -> Result<TopicPartition, ErrorCode> {
    u32::try_from(index)
        .ok()
        .map(PartitionIndex)
        .filter(|index| topic.partition(*index).is_some())
        .map(|index| topic.address(index))
        .ok_or(ErrorCode::UnknownTopicOrPartition)
}

/// The address of a partition named by a message.
pub(super) fn find(
    catalog: &Catalog,
    named: Named<'_>,
    index: i32,
) -> Result<TopicPartition, ErrorCode> {
    partition(named.find(catalog)?, index)
}
