//! Random orders of events.

use std::time::Duration;

use floe_model::Offset;

use super::super::{Delivery, Group, Range, Reading, Received};
use super::Run;
use crate::ConsumerId;

/// R22 on random schedules: committed positions never go back, every record is delivered, one reader at a time.
#[test]
fn any_schedule_reads_every_partition_to_the_end_and_never_back() {
    let mut seed = 0x5eed_u64;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for _ in 0..500 {
        let mut run = Run::default();
        run.event("0s topics t:5");
        let mut committed = [0_u64; 5];
        let mut out: Vec<(&str, Delivery)> = Vec::new();
        for step in 0..200 {
            let id = ["a", "b", "c"][below(3) as usize];
            let consumer = ConsumerId::from(id);
            match if step < 150 { below(8) } else { 4 + below(4) } {
                0 => {
                    run.event(&format!("0s register {id} topics=t"));
                }
                1 => {
                    run.event(&format!("0s leave {id}"));
                }
                2 => {
                    for (id, delivery) in out.drain(..) {
                        run.group.lost(&ConsumerId::from(id), delivery.token);
                    }
                }
                3 => {
                    let delivery = run.group.begin_commit(Duration::ZERO, &consumer);
                    if let Ok(Some(delivery)) = delivery {
                        commit(&mut run.group, &consumer, &mut committed, &delivery);
                    }
                }
                _ => {
                    let Ok(plan) =
                        run.group
                            .begin_poll(Duration::ZERO, &consumer, Received::Unsaid)
                    else {
                        run.event(&format!("0s register {id} topics=t"));
                        continue;
                    };
                    if let Some(delivery) = &plan.commit {
                        commit(&mut run.group, &consumer, &mut committed, delivery);
                    }
                    if let Reading::Again(delivery) = plan.reading {
                        for range in &delivery.ranges {
                            let at = range.partition.partition.0 as usize;
                            assert_eq!(range.start.0, committed[at]);
                        }
                        run.group
                            .redelivered(Duration::ZERO, &consumer, plan.poll)
                            .unwrap();
                        continue;
                    }
                    let ranges = run
                        .group
                        .readable(&consumer)
                        .into_iter()
                        .map(|partition| {
                            let start = committed[partition.partition.0 as usize];
                            Range {
                                partition,
                                start: Offset(start),
                                end: Offset(start + 1 + below(3)),
                            }
                        })
                        .collect();
                    let delivered = run
                        .group
                        .deliver(Duration::ZERO, &consumer, plan.poll, ranges)
                        .unwrap();
                    out.extend(delivered.map(|delivery| (id, delivery)));
                }
            }
            run.assert_one_reader_per_partition();
        }
        assert!(committed.iter().all(|offset| *offset > 0), "{committed:?}");
    }
}

fn commit(group: &mut Group, consumer: &ConsumerId, committed: &mut [u64; 5], delivery: &Delivery) {
    for range in &delivery.ranges {
        let position = &mut committed[range.partition.partition.0 as usize];
        assert_eq!(
            range.start.0, *position,
            "a range was committed out of order"
        );
        *position = range.end.0;
    }
    group.committed(consumer, delivery.token);
}
