//! Simulated processes, driven by hand.

use std::sync::Arc;
use std::time::Duration;

use floe_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{Executor, Ran};
use crate::clock::{Clock as _, Simulated};
use crate::tasks::{self, Step};
use crate::{Random as _, random, time};

const MS: Duration = Duration::from_millis(1);

fn executor() -> Executor {
    Executor::new(Box::new(|_, _, now| Some(now + MS)))
}

/// Runs until nothing is left; what was run.
fn run(executor: &Executor, seed: u64) -> Vec<Ran> {
    let random = random::Seeded::new(seed);
    let mut ran = Vec::new();
    loop {
        let mut choose = |count: usize| (random.next_u64() % count as u64) as usize;
        match executor.run_one(Duration::from_hours(1), &mut choose) {
            Ran::Nothing => return ran,
            some => ran.push(some),
        }
    }
}

/// Notes of what happened, in order.
type Notes = Arc<Mutex<Vec<String>>>;

fn note(notes: &Notes, text: impl Into<String>) {
    notes.lock().push(text.into());
}

#[test]
fn time_passes_only_when_nothing_else_can_happen() {
    let executor = executor();
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let clock = Simulated::new(executor.clone(), Timestamp(1_000));
    let process = executor.process();
    process.enter(|| {
        tasks::spawn(async move {
            time::sleep(Duration::from_mins(1)).await;
            note(&seen, "slept");
            let never = time::timeout(Duration::from_secs(5), std::future::pending::<()>());
            assert_eq!(never.await, Err(time::Elapsed));
            note(&seen, "gave up");
        })
    });
    run(&executor, 1);
    assert_eq!(*notes.lock(), ["slept", "gave up"]);
    assert_eq!(executor.now(), Duration::from_secs(65));
    assert_eq!(clock.monotonic(), Duration::from_secs(65));
    assert_eq!(clock.now(), Timestamp(66_000));
    clock.jump(-6_000);
    assert_eq!(clock.now(), Timestamp(60_000));
}

#[test]
fn a_timer_that_nobody_waits_for_any_more_moves_no_time() {
    let executor = executor();
    let process = executor.process();
    process.enter(|| {
        tasks::spawn(async {
            let done = time::timeout(Duration::from_hours(1), std::future::ready(7));
            assert_eq!(done.await, Ok(7));
        })
    });
    run(&executor, 1);
    assert_eq!(executor.now(), Duration::ZERO);
}

#[test]
fn a_handle_gives_what_its_task_or_call_gave() {
    let executor = executor();
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let process = executor.process();
    process.enter(|| {
        tasks::spawn(async move {
            let one = tasks::spawn(async {
                time::sleep(MS).await;
                1
            });
            let two = tasks::blocking(|| 2);
            assert!(!one.is_finished());
            note(&seen, format!("{} {}", one.await, two.await));
        })
    });
    run(&executor, 1);
    assert_eq!(*notes.lock(), ["1 2"]);
}

/// Three tasks that pass numbers on, with pauses; the order in which they are received.
fn race(seed: u64) -> (Vec<String>, Vec<Ran>) {
    let executor = executor();
    let notes = Notes::default();
    let (sender, mut receiver) = mpsc::channel(4);
    for name in ["a", "b", "c"] {
        let sender = sender.clone();
        executor.process().enter(|| {
            tasks::spawn(async move {
                for n in 0..20 {
                    sender.send(format!("{name}{n}")).await.unwrap();
                    if n % 5 == 0 {
                        time::sleep(MS).await;
                    }
                }
            })
        });
    }
    drop(sender);
    let seen = Arc::clone(&notes);
    executor.process().enter(|| {
        tasks::spawn(async move {
            while let Some(text) = receiver.recv().await {
                note(&seen, text);
            }
        })
    });
    let ran = run(&executor, seed);
    (notes.lock().clone(), ran)
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    assert_eq!(race(1), race(1));
    assert_eq!(race(1).0.len(), 60);
    let others: std::collections::BTreeSet<_> = (0..10).map(|seed| race(seed).0).collect();
    assert!(others.len() > 5, "{} different runs", others.len());
}

#[test]
fn a_process_that_has_ended_does_nothing_any_more() {
    struct Last(Notes);
    impl Drop for Last {
        fn drop(&mut self) {
            note(&self.0, "dropped");
            let notes = Arc::clone(&self.0);
            tasks::spawn(async move { note(&notes, "after its end") });
        }
    }
    let executor = executor();
    let notes = Notes::default();
    let process = executor.process();
    let last = Last(Arc::clone(&notes));
    let seen = Arc::clone(&notes);
    process.enter(|| {
        tasks::spawn(async move {
            let _last = last;
            time::sleep(MS).await;
            note(&seen, "ran on");
        });
        let seen = Arc::clone(&notes);
        tasks::part("thread", move || {
            note(&seen, "stepped");
            Step::Idle
        });
    });
    let mut choose = |_: usize| 0;
    assert_eq!(
        executor.run_one(Duration::ZERO, &mut choose),
        Ran::Task(process.number())
    );
    process.end();
    assert_eq!(run(&executor, 1), []);
    assert_eq!(*notes.lock(), ["dropped"]);
}

#[test]
fn a_part_steps_at_its_pace_after_something_has_happened_in_its_process() {
    let executor = executor();
    let process = executor.process();
    let todo = Arc::new(Mutex::new(0));
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (left, seen, clock) = (Arc::clone(&todo), Arc::clone(&steps), executor.clone());
    process.enter(|| {
        tasks::part("thread", move || {
            let mut left = left.lock();
            if *left == 0 {
                return Step::Idle;
            }
            *left -= 1;
            seen.lock().push(clock.now());
            Step::Worked
        });
    });
    run(&executor, 1);
    assert_eq!(*steps.lock(), []);
    executor
        .process()
        .enter(|| tasks::spawn(time::sleep(9 * MS)));
    run(&executor, 1);
    assert_eq!(*steps.lock(), [], "another process is none of its business");
    let work = Arc::clone(&todo);
    process.enter(|| tasks::spawn(async move { *work.lock() = 2 }));
    run(&executor, 1);
    assert_eq!(*steps.lock(), [11 * MS, 12 * MS]);
}

#[test]
fn a_part_that_hangs_goes_on_when_it_may() {
    let may = Arc::new(Mutex::new(false));
    let asked = Arc::clone(&may);
    let executor = Executor::new(Box::new(move |_, _, now| asked.lock().then_some(now)));
    let steps = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&steps);
    executor.process().enter(|| {
        tasks::part("thread", move || {
            *seen.lock() += 1;
            Step::Idle
        });
    });
    run(&executor, 1);
    assert_eq!(*steps.lock(), 0);
    *may.lock() = true;
    executor.resume();
    run(&executor, 1);
    assert_eq!(*steps.lock(), 1);
}
