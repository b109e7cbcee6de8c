//! What a producer and a consumer may rely on, one story each.

use std::sync::Arc;
use std::time::Duration;

use floe_model::{LeaderEpoch, NodeId, Offset, TopicId, TopicPartition};
use floe_replication::message::{Append, Batch, Checksum, Pull, Run, Session};
use floe_replication::replica::{Command, Event};
use floe_wire::batch::{View, stamp};

use super::rig::{AT, Rig, batch, on_rig};
use crate::peers::{Batches, Line, Message, Settings};

/// As long as so many bytes.
fn value(name: &str, bytes: usize) -> String {
    format!("{name}{}", ".".repeat(bytes.saturating_sub(name.len())))
}

/// Appends so many on a node.
fn append_all(rig: &mut Rig, id: u32, names: std::ops::Range<u32>, bytes: usize) {
    for name in names {
        rig.append(id, &value(&name.to_string(), bytes)).unwrap();
    }
}

#[test]
fn a_record_is_committed_when_a_quorum_has_flushed_it_and_not_before() {
    on_rig(async {
        let mut rig = Rig::new(1, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        for id in [2, 3] {
            rig.node(id).is_slow = true;
        }
        let end = rig.append(1, "one").unwrap().0;
        rig.run(100).await;
        assert_eq!(rig.end(2, 1), end, "the follower has it in memory");
        assert_eq!(rig.committed(1, 1), 0, "the leader alone has flushed it");
        rig.node(3).is_slow = false;
        rig.run(10).await;
        assert_eq!(rig.committed(1, 1), end);
        assert_eq!(rig.values(3, 1), [(0, "one".to_owned())]);
        rig.run(60).await;
        assert_eq!(rig.committed(3, 1), end, "the follower learns it");
        let two = rig.append(1, "two").unwrap().0;
        rig.node(1).is_slow = true;
        rig.node(2).is_slow = false;
        rig.run(10).await;
        assert_eq!(rig.committed(1, 1), two, "two followers are a quorum");
    });
}

#[test]
fn a_follower_that_is_cut_off_holds_nobody_up_and_catches_up() {
    on_rig(async {
        let mut rig = Rig::new(2, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        rig.cut(1, 3);
        append_all(&mut rig, 1, 0..20, 100);
        rig.run(20).await;
        assert_eq!((rig.committed(1, 1), rig.end(3, 1)), (20, 0));
        rig.heal(1, 3);
        rig.run(20).await;
        assert_eq!(rig.values(3, 1), rig.values(1, 1));
    });
}

#[test]
fn a_follower_far_behind_is_fed_from_segments() {
    on_rig(async {
        let mut rig = Rig::new(3, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        rig.cut(1, 3);
        // More than the tail keeps in memory.
        for part in 0..10 {
            append_all(&mut rig, 1, part * 40..part * 40 + 40, 20_000);
            rig.run(30).await;
        }
        assert_eq!((rig.committed(1, 1), rig.end(3, 1)), (400, 0));
        let in_memory = rig.is_in_memory(1, 1, 0);
        assert!(!in_memory, "the first records are on disk only");
        rig.heal(1, 3);
        rig.until("it has caught up", |rig| rig.end(3, 1) == 400)
            .await;
        assert_eq!(rig.values(3, 1), rig.values(1, 1));
        append_all(&mut rig, 1, 400..401, 10);
        rig.run(20).await;
        assert_eq!(rig.end(3, 1), 401, "and goes on with the others");
    });
}

#[test]
fn a_batch_larger_than_what_is_sent_at_once_goes_on_too() {
    on_rig(async {
        let config = floe_log::Config {
            run_bytes_max: 2 << 20,
            batch_bytes_max: 1_300_000,
            ..super::rig::config()
        };
        let mut rig = Rig::with(4, 2, config, Settings::default()).await;
        rig.open_first(&[1, 2], 2).await;
        rig.cut(1, 2);
        for name in 0..3 {
            append_all(&mut rig, 1, name..name + 1, 1_200_000);
            rig.run(20).await;
        }
        rig.heal(1, 2);
        rig.until("it has caught up", |rig| rig.committed(1, 1) == 3)
            .await;
        assert_eq!(rig.values(2, 1), rig.values(1, 1));
    });
}

#[test]
fn a_full_queue_delays_and_loses_nothing() {
    on_rig(async {
        let settings = Settings {
            data_queue_bytes: 100_000,
            ..Settings::default()
        };
        let mut rig = Rig::with(5, 3, super::rig::config(), settings).await;
        rig.open_first(&[1, 2, 3], 2).await;
        append_all(&mut rig, 1, 0..60, 20_000);
        let began = rig.now();
        rig.until("all is everywhere", |rig| {
            rig.end(2, 1) == 60 && rig.end(3, 1) == 60
        })
        .await;
        let took = rig.now().saturating_sub(began);
        assert!(
            took < Duration::from_secs(1),
            "nothing waited to be resent: {took:?}"
        );
        assert_eq!(rig.values(3, 1), rig.values(1, 1));
    });
}

#[test]
fn what_the_network_loses_is_sent_again() {
    on_rig(async {
        let mut rig = Rig::new(6, 3).await;
        rig.open_first(&[1, 2, 3], 3).await;
        let lost = Line {
            is_cut: true,
            ..Line::default()
        };
        rig.network.set(NodeId(1), NodeId(2), lost);
        append_all(&mut rig, 1, 0..5, 100);
        rig.run(50).await;
        rig.network.set(NodeId(1), NodeId(2), Line::default());
        rig.until("all three have it", |rig| rig.committed(1, 1) == 5)
            .await;
    });
}

#[test]
fn a_generation_is_sealed_over_the_network_and_what_a_quorum_lacks_is_copied() {
    on_rig(async {
        let mut rig = Rig::new(7, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        append_all(&mut rig, 1, 0..10, 3_000);
        rig.run(20).await;
        // Only node 2 has the next ones beside their leader, which ends.
        rig.cut(1, 3);
        append_all(&mut rig, 1, 10..100, 3_000);
        rig.run(30).await;
        assert_eq!((rig.committed(1, 1), rig.end(3, 1)), (100, 10));
        rig.stop(1, true).await;
        rig.seal(3, &[2, 3], None).await;
        let past = rig.past[0].clone();
        assert_eq!(past.end.0, 100);
        assert_eq!(rig.values(3, 1), rig.values(2, 1));
        let open = rig.open().unwrap().clone();
        assert_eq!((open.epoch.0, open.start.0), (2, 100));
        let leader = open.leader.node.0;
        append_all(&mut rig, leader, 100..105, 100);
        rig.run(20).await;
        assert_eq!(rig.committed(leader, 2), 105);
    });
}

#[test]
fn a_follower_that_lost_power_goes_on_with_what_it_had_flushed() {
    on_rig(async {
        let mut rig = Rig::new(8, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        append_all(&mut rig, 1, 0..10, 1_000);
        rig.run(20).await;
        rig.node(3).is_slow = true;
        append_all(&mut rig, 1, 10..20, 1_000);
        rig.run(20).await;
        assert_eq!((rig.committed(1, 1), rig.end(3, 1)), (20, 20));
        rig.stop(3, true).await;
        append_all(&mut rig, 1, 20..25, 1_000);
        rig.run(20).await;
        rig.node(3).is_slow = false;
        rig.start(3);
        assert_eq!(rig.end(3, 1), 10, "what was not flushed is gone");
        rig.learn(3);
        rig.until("it has caught up", |rig| rig.end(3, 1) == 25)
            .await;
        assert_eq!(rig.values(3, 1), rig.values(1, 1));
    });
}

#[test]
fn a_deposed_leader_acknowledges_nothing_and_drops_what_it_has_above_the_seal() {
    on_rig(async {
        let mut rig = Rig::new(9, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        append_all(&mut rig, 1, 0..5, 100);
        rig.run(20).await;
        rig.cut(1, 2);
        rig.cut(1, 3);
        append_all(&mut rig, 1, 5..9, 100);
        let mut controller = rig.begin_seal(2, &[1, 2, 3], Some(2));
        rig.until("it is sealed", |rig| {
            rig.control(&mut controller);
            rig.catalog.len() == 3
        })
        .await;
        rig.learn(2);
        rig.learn(3);
        append_all(&mut rig, 2, 5..8, 200);
        rig.run(20).await;
        assert_eq!((rig.committed(2, 2), rig.past[0].end.0), (8, 5));
        // It is heard again, and knows of nothing: refused, it asks for a seal.
        rig.heal(1, 2);
        rig.heal(1, 3);
        drop(rig.answers(1));
        append_all(&mut rig, 1, 9..10, 100);
        rig.until("it asks for a seal", |rig| {
            let is_wish = |word: &Command| matches!(word, Command::AskForSeal { .. });
            rig.answers(1).iter().any(is_wish)
        })
        .await;
        assert_eq!((rig.committed(1, 1), rig.end(1, 1)), (5, 10));
        rig.learn(1);
        rig.until("it follows", |rig| rig.end(1, 2) == 8).await;
        rig.run(5).await;
        assert_eq!(rig.end(1, 1), 5);
        assert_eq!(rig.values(1, 2), rig.values(2, 2));
    });
}

#[test]
fn two_controllers_that_ask_by_the_same_name_each_hear_their_own_answer() {
    on_rig(async {
        let mut rig = Rig::new(10, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        append_all(&mut rig, 1, 0..5, 100);
        rig.run(20).await;
        for at in 1..=3 {
            drop(rig.answers(at));
        }
        let controllers = [2, 3].map(|at| rig.begin_seal(at, &[1, 2, 3], None));
        rig.run(10).await;
        drop(controllers);
        for at in [2, 3] {
            let mut who: Vec<u32> = rig.answers(at).iter().filter_map(fenced_by).collect();
            who.sort_unstable();
            assert_eq!(who, [1, 2, 3], "at {at}");
        }
        assert!(rig.answers(1).iter().all(|word| fenced_by(word).is_none()));
    });
}

fn fenced_by(word: &Command) -> Option<u32> {
    match word {
        Command::Fenced { from, .. } => Some(from.node.0),
        _ => None,
    }
}

#[test]
fn a_lease_is_granted_over_the_network_and_ends_with_it() {
    on_rig(async {
        let mut rig = Rig::new(11, 3).await;
        rig.has_table = true;
        rig.open_first(&[1, 2, 3], 2).await;
        rig.run(100).await;
        assert!(rig.replica(1).has_lease());
        rig.cut(1, 2);
        rig.run(1_000).await;
        assert!(rig.replica(1).has_lease(), "one grant is a quorum");
        rig.cut(1, 3);
        rig.run(600).await;
        assert!(!rig.replica(1).has_lease());
    });
}

#[test]
fn a_copy_that_was_begun_later_is_known_as_such_after_a_restart() {
    on_rig(async {
        let mut rig = Rig::new(12, 3).await;
        rig.open_first(&[1, 2], 2).await;
        append_all(&mut rig, 1, 0..40, 10_000);
        rig.run(20).await;
        rig.seal(1, &[1, 2, 3], None).await;
        let past = rig.past[0].clone();
        let as_of = rig.catalog.len() as u64;
        rig.backfill(3, &past).await;
        assert_eq!(rig.values(3, 1), rig.values(1, 1));
        rig.stop(3, false).await;
        rig.start(3);
        // What the catalog let go before is another copy than this one.
        let epoch = past.opened.epoch;
        let index = as_of - 1;
        drop(rig.replica(3).step(Event::Forgotten { epoch, index }));
        rig.run(5).await;
        assert_eq!(rig.end(3, 1), 40);
        let index = as_of + 1;
        drop(rig.replica(3).step(Event::Forgotten { epoch, index }));
        rig.run(5).await;
        assert_eq!(rig.values(3, 1), [], "this one is forgotten");
    });
}

#[test]
fn words_about_what_is_not_here_or_by_another_than_they_say_are_dropped_and_counted() {
    on_rig(async {
        let mut rig = Rig::new(13, 3).await;
        rig.open_first(&[1, 2, 3], 2).await;
        let [first, third] = [1, 3].map(|id| rig.member(id));
        let pull = |from, partition| Message::Pull {
            partition,
            pull: Pull {
                from,
                to: third,
                epoch: LeaderEpoch(1),
                base: Offset(0),
                end: Offset(0),
            },
        };
        let elsewhere = TopicPartition {
            topic: TopicId([1; 16]),
            ..AT
        };
        let transport = Arc::clone(&rig.life(1).outside.transport);
        transport.send(NodeId(2), pull(first, elsewhere)).unwrap();
        transport.send(NodeId(2), pull(third, AT)).unwrap();
        rig.run(2).await;
        let metrics = Arc::clone(&rig.life(2).metrics);
        assert_eq!(metrics.dropped_for("unknown_partition"), 1);
        assert_eq!(metrics.dropped_for("other_node"), 1);
    });
}

#[test]
fn batches_that_are_not_those_their_message_speaks_of_are_not_taken() {
    on_rig(async {
        let mut rig = Rig::new(14, 2).await;
        rig.open_first(&[1, 2], 2).await;
        let [first, second] = [1, 2].map(|id| rig.member(id));
        let mut bytes = batch("forged").to_vec();
        stamp(&mut bytes, Offset(0), LeaderEpoch(1));
        let checksum = Checksum(View::first(&bytes).unwrap().crc());
        for (end, epoch) in [(2, 1), (1, 2)] {
            let end = Offset(end);
            let run = Run::new(Offset(0), None, vec![Batch { end, checksum }]).unwrap();
            let append = Append {
                from: first,
                to: second,
                epoch: LeaderEpoch(epoch),
                start: Offset(0),
                session: Session(1),
                commit: Offset(0),
                run,
            };
            let message = Message::Append {
                partition: AT,
                append,
                batches: Batches::of(vec![bytes.clone().into()]),
            };
            let transport = Arc::clone(&rig.life(1).outside.transport);
            transport.send(NodeId(2), message).unwrap();
        }
        rig.run(2).await;
        assert_eq!(rig.life(2).metrics.dropped_for("mismatch"), 2);
        assert_eq!((rig.end(2, 1), rig.end(2, 2)), (0, 0));
    });
}
