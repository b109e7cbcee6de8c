//! Power cuts at many moments, failed flushes, flipped bytes: what was acknowledged is there, or its loss is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use floe_broker::{FetchError, NewTopic, ProduceError, Unavailable};
use floe_model::{Offset, TopicPartition};
use floe_world::OpenOptions;
use floe_world::disk::Disk as _;

use crate::harness::{Node, Outside, batch, sequenced};

/// What a client knows after talking to a node that may have died under it.
#[derive(Default)]
struct Known {
    /// Topics whose creation was answered, and what was appended to them and answered: offset to value.
    created: BTreeMap<String, BTreeMap<u64, String>>,
    /// Topics whose deletion was asked for; `true`: and answered.
    deleted: BTreeMap<String, bool>,
    /// The leader epoch each was seen under.
    epochs: BTreeMap<String, u32>,
}

impl Known {
    /// Creates, appends and deletes until it is done or the node fails.
    async fn work(&mut self, node: &Node) -> Result<(), ()> {
        for name in ["a", "b", "c"] {
            let at = self.create(node, name).await?;
            for n in 0..6_i32 {
                // Small ones go through the journal, every third straight to its segment.
                let value = format!(
                    "{name}{n}-{}",
                    "x".repeat(if n % 3 == 2 { 90_000 } else { 10 })
                );
                let appended = sequenced(5, 0, n, &[&value]);
                let produced = node.append(at, &appended).await.map_err(drop)?;
                let known = self.created.entry(name.to_owned()).or_default();
                known.insert(produced.base_offset.0, value);
            }
            if name == "b" {
                self.deleted.insert("a".to_owned(), false);
                node.0.delete_topic("a").await.map_err(drop)?;
                self.deleted.insert("a".to_owned(), true);
            }
        }
        Ok(())
    }

    async fn create(&mut self, node: &Node, name: &str) -> Result<TopicPartition, ()> {
        let new = NewTopic {
            name: name.to_owned(),
            partitions: Some(2),
            ..NewTopic::default()
        };
        node.0.create_topic(new).await.map_err(drop)?;
        self.created.insert(name.to_owned(), BTreeMap::new());
        let at = node.find(name);
        self.epochs.insert(name.to_owned(), node.epoch(at));
        Ok(at)
    }

    /// Every answer still holds on the node that came up afterwards.
    async fn check(&self, node: &Node) {
        for (name, answered) in &self.created {
            match self.deleted.get(name) {
                Some(true) => {
                    assert!(node.0.catalog().topic(name).is_none(), "{name} came back");
                    continue;
                }
                Some(false) if node.0.catalog().topic(name).is_none() => continue,
                _ => {}
            }
            let at = node.find(name);
            assert!(node.epoch(at) > self.epochs[name], "the leader epoch rises");
            let there = node.read(at, 0).await;
            assert_eq!(there.len() as u64, node.end(at).await, "offsets are dense");
            for (offset, value) in answered {
                assert_eq!(there[*offset as usize], *value, "{name} at {offset}");
            }
            // What was answered was appended once: its producer goes on exactly behind it.
            for (offset, value) in answered {
                let again = sequenced(5, 0, *offset as i32, &[value]);
                if there.len() as u64 - offset <= 5 {
                    let produced = node.append(at, &again).await.unwrap();
                    assert_eq!(produced.base_offset.0, *offset);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn power_may_go_at_any_operation_and_every_answer_holds() {
    for round in 0..48_u64 {
        let mut outside = Outside::seeded(round);
        outside.settings.log.ring_bytes = 40 << 20;
        let node = outside.start().await;
        let mut known = Known::default();
        let from = outside.disk.operations();
        outside.disk.cut_power_at(from + 1 + round * 2);
        let finished = known.work(&node).await;
        if finished.is_ok() {
            outside.disk.cut_power();
        }
        drop(node);
        outside.disk = outside.disk.after_power_cut();
        // Again during recovery, in every second round.
        if round % 2 == 0 {
            outside.disk.cut_power_at(1 + round / 2);
            drop(outside.try_start().await);
            outside.disk.cut_power();
            outside.disk = outside.disk.after_power_cut();
        }
        let node = outside.start().await;
        known.check(&node).await;
        node.0.stop().await;
    }
}

/// R17: after a failed flush nothing is acknowledged, and the owner is told once.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_flush_ends_every_answer_and_is_told() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["a"]).await;
    let next = outside.disk.flushes() + 1;
    for flush in next..next + 50 {
        outside
            .disk
            .fail_flush_at(flush, floe_world::disk::Failure::Device);
    }
    let stopping = ProduceError::Unavailable(Unavailable::Stopping);
    assert_eq!(node.append(at, &batch(&["b"])).await, Err(stopping.clone()));
    assert_eq!(node.append(at, &batch(&["c"])).await, Err(stopping));
    assert!(node.0.delete_topic("t").await.is_err());
    assert_eq!(outside.failures.lock().unwrap().len(), 1);
    drop(node);
    outside.disk = outside.disk.after_power_cut();
    let node = outside.start().await;
    let at = node.find("t");
    assert_eq!(node.read(at, 0).await[0], "a");
}

/// A flipped byte in the journal: the node comes up, names the loss, and serves the rest.
#[tokio::test(flavor = "multi_thread")]
async fn damage_of_the_only_copy_is_recorded_for_ever_and_the_rest_is_served() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    for n in 0..20 {
        node.write(at, &[&format!("{n}")]).await;
    }
    outside.disk.cut_power();
    drop(node);
    outside.disk = outside.disk.after_power_cut();
    // In what was written last, each write a group of one sector: one that later groups know to be flushed goes bad.
    let journal = Path::new("/data/journal");
    let mut written = vec![0; 4096 * 256];
    let file = outside.disk.open(journal, OpenOptions::default()).unwrap();
    file.read_at(&mut written, 0).unwrap();
    let mut sectors = written.chunks(4096);
    let last = sectors.rposition(|sector| sector.iter().any(|byte| *byte != 0));
    let place = 4096 * (last.unwrap() as u64 - 5) + 77;
    outside.disk.flip(journal, place, 0x40).unwrap();
    let node = outside.start().await;
    let at = node.find("t");
    let sealed = node.0.catalog().partition(at).unwrap().sealed.clone();
    assert!(sealed.iter().any(|sealed| sealed.lossy), "{sealed:?}");
    let end = node.end(at).await;
    assert!(node.write(at, &["after"]).await >= end);
    node.0.stop().await;
    let node = outside.start().await;
    let again = node.0.catalog().partition(at).unwrap().sealed.clone();
    assert!(again.iter().any(|sealed| sealed.lossy), "{again:?}");
}

/// The newest batch lies in a segment and goes bad while the node is down: it starts, and exactly that batch is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_last_batch_keeps_no_node_from_starting() {
    let mut outside = Outside::new();
    let node = outside.start().await;
    let at = node.topic("t", 1).await;
    node.write(at, &["small"]).await;
    // Large enough to go straight to its segment.
    node.write(at, &[&"x".repeat(90_000)]).await;
    drop(node);
    outside.disk.cut_power();
    outside.disk = outside.disk.after_power_cut();
    let holds = |path: &PathBuf| {
        let file = outside.disk.open(path, OpenOptions::default()).unwrap();
        let mut bytes = vec![0; file.len().unwrap().next_multiple_of(4096) as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes.windows(8).position(|some| some == b"xxxxxxxx")
    };
    let segments = segments(&outside.disk, Path::new("/data"));
    let mut found = segments
        .iter()
        .filter_map(|path| Some((path, holds(path)?)));
    let (segment, place) = found.next().expect("the large batch lies in a segment");
    outside.disk.flip(segment, place as u64, 1).unwrap();
    let node = outside.start().await;
    let at = node.find("t");
    let first = node.fetch(at, 0, Duration::ZERO).await;
    assert_eq!((first.error, first.next), (None, Offset(1)));
    let lost = node.fetch(at, 1, Duration::ZERO).await;
    let named = FetchError::Damaged {
        from: Offset(1),
        to: Offset(2),
    };
    assert_eq!(lost.error, Some(named));
    let next = node.write(at, &["after"]).await;
    assert_eq!(node.read(at, next).await, ["after"]);
}

/// Segment files below a directory.
fn segments(disk: &floe_world::disk::Simulated, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in disk.list(dir).unwrap() {
        let path = dir.join(name);
        if path.extension().is_some_and(|extension| extension == "seg") {
            found.push(path);
        } else if disk.list(&path).is_ok() {
            found.extend(segments(disk, &path));
        }
    }
    found
}
