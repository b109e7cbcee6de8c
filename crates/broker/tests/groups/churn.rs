//! R22: a group of eight through a hundred joins and leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use floe_groups::classic::{Caller, Join, Joined, Leaving, Sync};
use floe_groups::{MemberId, Refusal};
use floe_model::{PartitionIndex, TopicPartition};
use floe_world::tasks;
use parking_lot::Mutex;

use crate::harness::{Node, Outside};
use crate::words::{caller, group, newcomer, position};

const MEMBERS: usize = 8;
const PARTITIONS: u32 = 16;
const COMINGS_AND_GOINGS: usize = 100;

/// What the members share with the test.
struct Group {
    node: Node,
    at: TopicPartition,
    leaves: AtomicUsize,
    is_over: AtomicBool,
    /// Who believes to own a partition now: set after a sync, taken back before the next join.
    owners: Mutex<BTreeMap<u32, (i32, MemberId)>>,
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_members_come_to_rest_after_a_hundred_joins_and_leaves() {
    let mut outside = Outside::new();
    outside.settings.group_initial_rebalance_delay = Duration::ZERO;
    let node = outside.start().await;
    let at = node.topic("t", PARTITIONS as i32).await;
    let shared = Arc::new(Group {
        node,
        at,
        leaves: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        owners: Mutex::default(),
    });
    let members: Vec<_> = (0..MEMBERS)
        .map(|number| tasks::spawn(live(Arc::clone(&shared), number)))
        .collect();
    while shared.leaves.load(Ordering::SeqCst) < COMINGS_AND_GOINGS || !shared.is_at_rest() {
        floe_world::time::sleep(Duration::from_millis(5)).await;
    }
    shared.is_over.store(true, Ordering::SeqCst);
    for member in members {
        member.await;
    }
}

impl Group {
    /// All eight are in one generation and every partition has an owner.
    fn is_at_rest(&self) -> bool {
        let owners = self.owners.lock();
        let mut generations: Vec<_> = owners.values().map(|(number, _)| *number).collect();
        generations.dedup();
        let mut members: Vec<_> = owners.values().map(|(_, id)| id.clone()).collect();
        members.sort();
        members.dedup();
        owners.len() == PARTITIONS as usize && generations.len() == 1 && members.len() == MEMBERS
    }

    fn partition(&self, number: u32) -> TopicPartition {
        TopicPartition {
            partition: PartitionIndex(number),
            ..self.at
        }
    }

    async fn join(&self, join: Join) -> Result<Joined, Refusal> {
        self.node.0.groups().join(&group("g"), join).await
    }

    async fn sync(&self, joined: &Joined) -> Result<Vec<u32>, Refusal> {
        let assignments = if joined.leader == joined.member_id {
            deal(joined)
        } else {
            Vec::new()
        };
        let sync = Sync {
            caller: fence(joined),
            protocol_type: None,
            protocol: None,
            assignments,
        };
        let synced = self.node.0.groups().sync(&group("g"), sync).await?;
        Ok(synced
            .assignment
            .iter()
            .map(|byte| u32::from(*byte))
            .collect())
    }

    /// Reads each own partition on by one and commits it, as long as the generation lasts.
    async fn work(&self, joined: &Joined, mine: &[u32]) -> Result<(), Refusal> {
        let groups = self.node.0.groups();
        groups.caught_up(&group("g")).await;
        let mut next: BTreeMap<u32, u64> = mine
            .iter()
            .map(|number| {
                let committed = self.node.committed("g", self.partition(*number));
                (*number, committed.unwrap_or(0))
            })
            .collect();
        for (number, offset) in &mut next {
            *offset += 1;
            let new = vec![position(self.partition(*number), *offset)];
            let committed = groups.commit(&group("g"), &fence(joined), new).await;
            if let Err(error) = committed {
                return Err(crate::words::refused::<()>(Err(error)));
            }
            let now = self.node.committed("g", self.partition(*number));
            assert!(
                now >= Some(*offset),
                "partition {number} went back to {now:?} from {offset}"
            );
        }
        groups.heartbeat(&group("g"), &fence(joined))
    }

    fn own(&self, joined: &Joined, mine: &[u32]) {
        let mut owners = self.owners.lock();
        for number in mine {
            let me = (joined.generation.0, joined.member_id.clone());
            let before = owners.insert(*number, me);
            if let Some((generation, other)) = before {
                // Whoever had it is of an older generation and has been told, or will be with its next call.
                assert!(
                    generation < joined.generation.0 || other == joined.member_id,
                    "partition {number} has two owners in generation {generation}"
                );
            }
        }
    }

    fn disown(&self, member: &MemberId) {
        self.owners.lock().retain(|_, (_, owner)| owner != member);
    }
}

async fn live(shared: Arc<Group>, number: usize) {
    let mut id = MemberId::from("");
    let mut rounds = number;
    while !shared.is_over.load(Ordering::SeqCst) {
        let mut join = newcomer();
        join.member_id = id.clone();
        let joined = match shared.join(join).await {
            Ok(joined) => joined,
            Err(Refusal::UnknownMember) => {
                id = MemberId::from("");
                continue;
            }
            Err(refusal) => panic!("{refusal}"),
        };
        id = joined.member_id.clone();
        let Ok(mine) = shared.sync(&joined).await else {
            continue;
        };
        shared.own(&joined, &mine);
        while shared.work(&joined, &mine).await.is_ok() {
            if shared.is_over.load(Ordering::SeqCst) {
                return;
            }
            rounds += 1;
            let has_had_enough = rounds.is_multiple_of(MEMBERS * 2);
            if has_had_enough && shared.leaves.fetch_add(1, Ordering::SeqCst) < COMINGS_AND_GOINGS {
                leave(&shared, &id);
                id = MemberId::from("");
                break;
            }
        }
        shared.disown(&joined.member_id);
    }
}

fn leave(shared: &Group, id: &MemberId) {
    shared.disown(id);
    let one = Leaving {
        member_id: id.clone(),
        instance_id: None,
    };
    let left = shared.node.0.groups().leave(&group("g"), &[one]);
    assert!(matches!(left[..], [Ok(()) | Err(Refusal::UnknownMember)]));
}

fn fence(joined: &Joined) -> Caller {
    caller(joined.member_id.as_str(), joined.generation.0)
}

/// One byte per partition, dealt in turn.
fn deal(joined: &Joined) -> Vec<(MemberId, Bytes)> {
    let count = joined.members.len() as u32;
    joined
        .members
        .iter()
        .zip(0..)
        .map(|(member, place): (_, u32)| {
            let mine = (place..PARTITIONS).step_by(count as usize);
            let bytes: Vec<u8> = mine.map(|number| number as u8).collect();
            (member.member_id.clone(), bytes.into())
        })
        .collect()
}
