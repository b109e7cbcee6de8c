//! One position as a record of `__group_positions`, and as a row of its table.
//!
//! ```text
//! key    format u8 = 1 | group length u16 | group | topic id 16 | partition u32
//! value  format u8 = 2 | offset u64 | leader epoch u32 (2^32 - 1: none) | committed at i64 (ms) | kind u8 | metadata length u16 | metadata
//! kind   0: classic, 1: assigned by the server (HTTP consumers)
//! ```
//! A value of format 1 has no kind: its group counts as classic. Integers are big-endian, so that the rows of a group lie together, by topic and partition. A null value deletes.

use bytes::Buf;
use floe_groups::{GroupId, Kind, Position};
use floe_model::{LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId, TopicPartition};

/// Format of the keys.
pub(super) const KEY_FORMAT: u8 = 1;
/// The format of values that this release writes; it reads the one before, too.
pub(super) const VALUE_FORMAT: u8 = 2;
const FORMAT_WITHOUT_KIND: u8 = 1;
const NO_EPOCH: u32 = u32::MAX;

/// What the keys of all positions of a group begin with.
pub(super) fn prefix(group: &GroupId) -> Vec<u8> {
    let name = group.as_str().as_bytes();
    let mut key = Vec::with_capacity(3 + name.len() + 20);
    key.push(KEY_FORMAT);
    key.extend_from_slice(&(name.len() as u16).to_be_bytes());
    key.extend_from_slice(name);
    key
}

/// The key of one position.
pub(super) fn key(group: &GroupId, partition: TopicPartition) -> Vec<u8> {
    let mut key = prefix(group);
    key.extend_from_slice(&partition.topic.0);
    key.extend_from_slice(&partition.partition.0.to_be_bytes());
    key
}

/// Group and partition of a key; `None` for foreign bytes.
pub(super) fn parse_key(mut key: &[u8]) -> Option<(&str, TopicPartition)> {
    if key.try_get_u8().ok()? != KEY_FORMAT {
        return None;
    }
    let len = usize::from(key.try_get_u16().ok()?);
    let (name, mut rest) = key.split_at_checked(len)?;
    let mut topic = [0; 16];
    rest.try_copy_to_slice(&mut topic).ok()?;
    let partition = PartitionIndex(rest.try_get_u32().ok()?);
    let partition = TopicPartition {
        topic: TopicId(topic),
        partition,
    };
    rest.is_empty()
        .then_some((std::str::from_utf8(name).ok()?, partition))
}

/// The value of one position.
pub(super) fn value(position: &Position) -> Vec<u8> {
    let metadata = position.metadata.as_bytes();
    let mut value = Vec::with_capacity(24 + metadata.len());
    value.push(VALUE_FORMAT);
    value.extend_from_slice(&position.offset.0.to_be_bytes());
    let epoch = position.leader_epoch.map_or(NO_EPOCH, |epoch| epoch.0);
    value.extend_from_slice(&epoch.to_be_bytes());
    value.extend_from_slice(&position.committed_at.0.to_be_bytes());
    value.push(match position.kind {
        Kind::Classic => 0,
        Kind::Assigned => 1,
    });
    value.extend_from_slice(&(metadata.len() as u16).to_be_bytes());
    value.extend_from_slice(metadata);
    value
}

/// The position in a value; `None` for foreign bytes.
pub(super) fn parse_value(mut value: &[u8]) -> Option<Position> {
    let format = value.try_get_u8().ok()?;
    if !(FORMAT_WITHOUT_KIND..=VALUE_FORMAT).contains(&format) {
        return None;
    }
    let offset = Offset(value.try_get_u64().ok()?);
    let epoch = value.try_get_u32().ok()?;
    let committed_at = Timestamp(value.try_get_i64().ok()?);
    let kind = match format {
        FORMAT_WITHOUT_KIND => Kind::Classic,
        _ => kind(value.try_get_u8().ok()?)?,
    };
    let len = usize::from(value.try_get_u16().ok()?);
    if value.len() != len {
        return None;
    }
    Some(Position {
        offset,
        leader_epoch: (epoch != NO_EPOCH).then_some(LeaderEpoch(epoch)),
        metadata: std::str::from_utf8(value).ok()?.into(),
        committed_at,
        kind,
    })
}

fn kind(byte: u8) -> Option<Kind> {
    match byte {
        0 => Some(Kind::Classic),
        1 => Some(Kind::Assigned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> TopicPartition {
        TopicPartition {
            topic: TopicId([7; 16]),
            partition: PartitionIndex(258),
        }
    }

    #[test]
    fn the_layout_is_as_drawn() {
        let group = GroupId::from("gé");
        let mut expected = b"\x01\x00\x03g\xc3\xa9".to_vec();
        expected.extend_from_slice(&[7; 16]);
        expected.extend_from_slice(b"\0\0\x01\x02");
        assert_eq!(key(&group, partition()), expected);
        assert_eq!(parse_key(&expected), Some(("gé", partition())));

        let position = Position {
            offset: Offset(5),
            leader_epoch: Some(LeaderEpoch(2)),
            metadata: "note".into(),
            committed_at: Timestamp(9),
            kind: Kind::Assigned,
        };
        let expected = b"\x02\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\0\0\0\0\x09\x01\0\x04note";
        assert_eq!(value(&position), expected);
        assert_eq!(parse_value(expected), Some(position));
    }

    #[test]
    fn a_value_of_the_format_before_is_read_as_of_a_classic_group() {
        let position = Position {
            offset: Offset(5),
            leader_epoch: Some(LeaderEpoch(2)),
            metadata: "note".into(),
            committed_at: Timestamp(9),
            kind: Kind::Classic,
        };
        let before = b"\x01\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\0\0\0\0\x09\0\x04note";
        assert_eq!(parse_value(before), Some(position));
    }

    #[test]
    fn position_0_without_an_epoch_is_kept_as_such() {
        let position = Position {
            offset: Offset::ZERO,
            leader_epoch: None,
            metadata: "".into(),
            committed_at: Timestamp(0),
            kind: Kind::Classic,
        };
        assert_eq!(parse_value(&value(&position)), Some(position));
    }

    #[test]
    fn foreign_bytes_are_none() {
        let whole = key(&GroupId::from("g"), partition());
        let position = b"\x02\0\0\0\0\0\0\0\x05\0\0\0\x02\0\0\0\0\0\0\0\x09\x01\0\x04note";
        for cut in 0..whole.len() {
            assert_eq!(parse_key(&whole[..cut]), None);
        }
        for cut in 0..position.len() {
            assert_eq!(parse_value(&position[..cut]), None);
        }
        assert_eq!(parse_key(b"\x02"), None);
        assert_eq!(parse_value(b"\x03"), None);
        let mut other_kind = *position;
        other_kind[21] = 2;
        assert_eq!(parse_value(&other_kind), None);
    }
}
