//! What a tool that looks at a stopped node's disk has to know of the catalog.

use std::collections::BTreeMap;

use floe_cluster::{Catalog, Undecodable};
use floe_log::Stream;
use floe_model::{Offset, PartitionIndex, TopicId, TopicName, TopicPartition};

use crate::controller::{CATALOG_GROUP, fold};

/// What the catalog says of the topics whose data lies there.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    /// The first offset kept of each partition. Of a topic whose deletion is not completed nothing is kept.
    pub log_starts: BTreeMap<TopicPartition, Offset>,
    /// Their names, also of those whose deletion is not completed.
    pub names: BTreeMap<TopicId, TopicName>,
}

impl Topics {
    /// By the catalog that the log's streams hold.
    pub fn read(streams: &[Stream]) -> Result<Self, Undecodable> {
        let stream = streams.iter().find(|stream| stream.group == CATALOG_GROUP);
        let catalog = stream.map(fold).transpose()?.unwrap_or_default();
        let deleted = catalog.tombstones.iter();
        let deleted = deleted.map(|(id, tombstone)| (*id, tombstone.name.clone()));
        let names = catalog.names.clone().into_iter().chain(deleted);
        Ok(Self {
            names: names.collect(),
            log_starts: log_starts(catalog),
        })
    }
}

fn log_starts(catalog: Catalog) -> BTreeMap<TopicPartition, Offset> {
    let mut starts = BTreeMap::new();
    for topic in catalog.topics.values() {
        let each = topic.partitions.iter();
        starts.extend(each.map(|kept| (topic.address(kept.index), kept.log_start)));
    }
    for (topic, tombstone) in catalog.tombstones {
        let each = (0..tombstone.partitions).map(PartitionIndex);
        let gone = Offset(u64::MAX);
        starts.extend(each.map(|partition| (TopicPartition { topic, partition }, gone)));
    }
    starts
}

#[cfg(test)]
mod tests {
    use floe_cluster::{Command, NewPartition, NewTopic, Node, format};
    use floe_log::{CatalogEntry, Snapshot};
    use floe_model::{Boot, Incarnation, NodeId};
    use floe_replication::{Leader, Member};

    use super::*;

    const TOPIC: TopicId = TopicId([3; 16]);

    fn create() -> Command {
        let leader = Leader {
            node: NodeId(0),
            incarnation: Incarnation(1),
            boot: Boot(1),
        };
        let members = vec![Member {
            node: NodeId(0),
            incarnation: Incarnation(1),
        }];
        let partition = NewPartition { leader, members };
        Command::CreateTopic(NewTopic {
            name: TopicName::parse("t").unwrap(),
            id: TOPIC,
            replication_factor: 1,
            quorum: 1,
            has_table: false,
            partitions: vec![partition.clone(), partition],
            overrides: BTreeMap::new(),
            internal: false,
        })
    }

    fn register() -> Command {
        Command::RegisterNode(Node {
            id: NodeId(0),
            incarnation: Incarnation(1),
            boot: Boot(1),
            endpoints: Vec::new(),
            protocol: 0,
        })
    }

    fn address(partition: u32) -> TopicPartition {
        TopicPartition {
            topic: TOPIC,
            partition: PartitionIndex(partition),
        }
    }

    fn stream(commands: &[Command]) -> Stream {
        let entries = commands
            .iter()
            .zip(1..)
            .map(|(command, index)| CatalogEntry {
                index,
                term: 1,
                data: format::encode(command),
            });
        Stream {
            group: CATALOG_GROUP,
            entries: entries.collect(),
            ..Stream::default()
        }
    }

    fn read(streams: &[Stream]) -> Topics {
        Topics::read(streams).unwrap()
    }

    #[test]
    fn log_starts_are_those_of_snapshot_and_entries() {
        let before = fold(&stream(&[register(), create()])).unwrap();
        let snapshot = Snapshot {
            index: 2,
            term: 1,
            data: format::encode_snapshot(&before),
        };
        let advance = Command::AdvanceLogStart(vec![(address(1), Offset(7))]);
        let mut after = stream(&[register(), create(), advance]);
        let whole = read(std::slice::from_ref(&after)).log_starts;
        assert_eq!(
            whole,
            [(address(0), Offset(0)), (address(1), Offset(7))].into()
        );
        after.snapshot = Some(snapshot);
        after.entries.drain(..2);
        assert_eq!(read(&[after]).log_starts, whole);
    }

    #[test]
    fn nothing_is_kept_of_a_topic_that_is_being_deleted() {
        let deleted = stream(&[register(), create(), Command::DeleteTopic(TOPIC)]);
        let topics = read(&[deleted]);
        let start = topics.log_starts.get(&address(1));
        assert_eq!(start, Some(&Offset(u64::MAX)));
        assert_eq!(
            topics.names[&TOPIC].as_str(),
            "t",
            "its data may still be there"
        );
    }

    #[test]
    fn a_catalog_that_cannot_be_read_is_said() {
        let mut broken = stream(&[create()]);
        broken.entries[0].data = bytes::Bytes::from_static(b"\xff\xff");
        assert!(Topics::read(&[broken]).is_err());
        assert!(read(&[]).names.is_empty());
    }
}
