//! Produce requests (KIP-98, KIP-482, KIP-516), decoded for the hot path: records are slices of the frame.
//!
//! ```text
//! versions 3 to 8:  transactional id nullable string | acks i16 | timeout ms i32
//!                   | [ topic string [ index i32 | records nullable bytes ] ]
//! versions 9 to 12: the same with compact lengths and tagged fields behind each structure
//! version 13:       a topic id (16 bytes) in place of each name
//! ```
//! Guarantees: takes memory for partitions only, at most [`PARTITIONS_MAX`] of them; tagged fields are stepped over.

use bytes::Bytes;

use crate::frame::{self, skip_tagged_fields};
use crate::varint::read_u32;

/// Most partitions in one request.
pub const PARTITIONS_MAX: usize = 10_000;

/// A decoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRequest {
    /// Transactional id, if one is given.
    pub transactional_id: Option<Bytes>,
    /// 0, 1 or -1 (all).
    pub acks: i16,
    /// How long to wait for the acknowledgement, in milliseconds.
    pub timeout_ms: i32,
    /// Partitions in the order given.
    pub partitions: Vec<PartitionData>,
}

/// What is sent to one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionData {
    /// Its topic.
    pub topic: TopicRef,
    /// Its index in the topic.
    pub index: i32,
    /// One record batch, unchecked; null and empty are both empty here.
    pub records: Bytes,
}

/// How a topic is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicRef {
    /// By name (up to version 12); UTF-8.
    Name(Bytes),
    /// By id (version 13).
    Id([u8; 16]),
}

impl TopicRef {
    /// The name; empty for an id.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => std::str::from_utf8(name).unwrap_or_default(),
            Self::Id(_) => "",
        }
    }
}

/// Why a body does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It ends inside this field, or the field's length is negative where it cannot be.
    #[error("request ends inside its {0}, or its length is wrong")]
    Short(&'static str),
    /// A string is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// Too many partitions.
    #[error("more than {PARTITIONS_MAX} partitions in one request; send several")]
    TooMany,
    /// Tagged fields are cut short or too many.
    #[error(transparent)]
    Tagged(#[from] frame::Error),
}

impl ProduceRequest {
    /// Decodes a body of `version` (3 to 13).
    pub fn read(body: &Bytes, version: i16) -> Result<Self, Error> {
        let mut input = Input {
            bytes: body,
            at: 0,
            is_flexible: version >= 9,
        };
        let transactional_id = input.string("transactional id")?;
        let acks = i16::from_be_bytes(input.array("acks")?);
        let timeout_ms = i32::from_be_bytes(input.array("timeout")?);
        let topics = input.count("topics")?;
        let mut partitions = Vec::new();
        for _ in 0..topics {
            let topic = if version >= 13 {
                TopicRef::Id(input.array("topic id")?)
            } else {
                TopicRef::Name(input.string("topic")?.ok_or(Error::Short("topic"))?)
            };
            for _ in 0..input.count("partitions")? {
                let index = i32::from_be_bytes(input.array("partition index")?);
                let records = input.records()?;
                input.tagged()?;
                if partitions.len() == PARTITIONS_MAX {
                    return Err(Error::TooMany);
                }
                partitions.push(PartitionData {
                    topic: topic.clone(),
                    index,
                    records,
                });
            }
            input.tagged()?;
        }
        input.tagged()?;
        Ok(Self {
            transactional_id,
            acks,
            timeout_ms,
            partitions,
        })
    }
}

struct Input<'a> {
    bytes: &'a Bytes,
    at: usize,
    is_flexible: bool,
}

impl Input<'_> {
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        let rest = self.bytes.get(self.at..).ok_or(Error::Short(field))?;
        let array = rest.first_chunk::<N>().ok_or(Error::Short(field))?;
        self.at += N;
        Ok(*array)
    }

    /// A length: compact ones are one more than they say and 0 is null; `None` is null.
    fn length(&mut self, field: &'static str, is_short: bool) -> Result<Option<usize>, Error> {
        if self.is_flexible {
            let raw = read_u32(self.bytes, &mut self.at).ok_or(Error::Short(field))?;
            return Ok(raw.checked_sub(1).map(|length| length as usize));
        }
        let length = if is_short {
            i32::from(i16::from_be_bytes(self.array(field)?))
        } else {
            i32::from_be_bytes(self.array(field)?)
        };
        match length {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| Error::Short(field)),
        }
    }

    fn slice(&mut self, length: usize, field: &'static str) -> Result<Bytes, Error> {
        if self.bytes.len() - self.at < length {
            return Err(Error::Short(field));
        }
        let slice = self.bytes.slice(self.at..self.at + length);
        self.at += length;
        Ok(slice)
    }

    fn string(&mut self, field: &'static str) -> Result<Option<Bytes>, Error> {
        let Some(length) = self.length(field, true)? else {
            return Ok(None);
        };
        let text = self.slice(length, field)?;
        if std::str::from_utf8(&text).is_err() {
            return Err(Error::Text(field));
        }
        Ok(Some(text))
    }

    /// Every element takes a byte at least, so a false count ends with the bytes.
    fn count(&mut self, field: &'static str) -> Result<usize, Error> {
        Ok(self.length(field, false)?.unwrap_or(0))
    }

    fn records(&mut self) -> Result<Bytes, Error> {
        match self.length("records", false)? {
            None => Ok(Bytes::new()),
            Some(length) => self.slice(length, "records"),
        }
    }

    fn tagged(&mut self) -> Result<(), Error> {
        if self.is_flexible {
            skip_tagged_fields(self.bytes, &mut self.at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use kacrab_protocol::generated::produce_request::{
        PartitionProduceData, ProduceRequestData, TopicProduceData,
    };
    use kacrab_protocol::{KafkaString, KafkaUuid};
    use proptest::prelude::*;

    fn string(text: &str) -> KafkaString {
        KafkaString::new(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    type Topics = Vec<(String, u64, Vec<(i32, Option<Vec<u8>>)>)>;

    proptest! {
        #[test]
        fn every_version_decodes_as_the_message_definitions_write_it(
            version in 3_i16..=13, transactional in prop::option::of("[a-z]{0,5}"), acks: i16, timeout: i32,
            topics in prop::collection::vec(("[a-z]{1,200}", any::<u64>(), prop::collection::vec(
                (any::<i32>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..300))), 0..4)), 0..4),
        ) {
            let topics: Topics = topics;
            let data = ProduceRequestData::default()
                .with_acks(acks)
                .with_timeout_ms(timeout)
                .with_transactional_id(transactional.as_deref().map(string))
                .with_topic_data(topics.iter().map(|(name, id, partitions)| {
                    let topic = TopicProduceData::default().with_partition_data(
                        partitions.iter().map(|(index, records)| PartitionProduceData::default()
                            .with_index(*index)
                            .with_records(records.clone().map(Bytes::from))).collect());
                    if version >= 13 {
                        topic.with_topic_id(KafkaUuid::from_parts(*id, 7))
                    } else {
                        topic.with_name(string(name))
                    }
                }).collect());
            let mut body = BytesMut::new();
            data.write(&mut body, version).unwrap();
            let body = body.freeze();
            let read = ProduceRequest::read(&body, version).unwrap();
            prop_assert_eq!((read.acks, read.timeout_ms), (acks, timeout));
            prop_assert_eq!(read.transactional_id.as_deref(), transactional.as_deref().map(str::as_bytes));
            let expected: Vec<_> = topics.iter().flat_map(|(name, id, partitions)| partitions.iter().map(move |(index, records)| {
                let topic = if version >= 13 {
                    TopicRef::Id(KafkaUuid::from_parts(*id, 7).to_bytes())
                } else {
                    TopicRef::Name(Bytes::copy_from_slice(name.as_bytes()))
                };
                PartitionData { topic, index: *index, records: records.clone().unwrap_or_default().into() }
            })).collect();
            prop_assert_eq!(read.partitions, expected);
            for cut in 0..body.len() {
                prop_assert!(ProduceRequest::read(&body.slice(..cut), version).is_err());
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes: Vec<u8>, version in 3_i16..=13) {
            drop(ProduceRequest::read(&Bytes::from(bytes), version));
        }
    }

    #[test]
    fn counts_that_lie_end_with_the_bytes() {
        let mut body = vec![0xff, 0xff, 0, 1, 0, 0, 0, 0];
        body.extend_from_slice(&i32::MAX.to_be_bytes());
        assert!(ProduceRequest::read(&body.into(), 3).is_err());
    }
}
