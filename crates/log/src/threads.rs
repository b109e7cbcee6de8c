//! The threads: each loops over one kind of step. In a simulated process they are parts that are stepped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use floe_world::tasks;

use crate::engine::Engine;
use crate::journal::Step;
use crate::{Failure, checkpoint, fill, read, removal, segment};

/// How long an idle thread sleeps unless woken.
const NAP: Duration = Duration::from_millis(500);
/// How long the journal waits for room before it looks again.
const BLOCKED_NAP: Duration = Duration::from_millis(5);
/// How long a full disk is left alone.
const FULL_NAP: Duration = Duration::from_millis(200);
/// How much longer than a piece of a removed file took to give back the pause after it is.
const REMOVAL_REST: u32 = 3;
/// How long a removed file is left to a read that is under way.
const READ_NAP: Duration = Duration::from_millis(5);
/// Longest pause before a group when the ring is nearly full.
const SLOW_DOWN_MS: u64 = 20;

type Body = fn(&Arc<Engine>);

pub(crate) fn start(engine: &Arc<Engine>) -> Result<(), Failure> {
    if tasks::is_simulated() {
        simulate(engine);
        return Ok(());
    }
    let mut bodies: Vec<(String, Body)> = vec![
        ("floe-journal".to_owned(), journal),
        ("floe-checkpoint".to_owned(), checkpoints),
        ("floe-fill".to_owned(), filling),
        ("floe-remove".to_owned(), removals),
    ];
    for number in 0..engine.config.segment_threads.max(1) {
        bodies.push((format!("floe-segment-{number}"), segments));
    }
    for number in 0..engine.config.reader_threads.max(1) {
        bodies.push((format!("floe-reader-{number}"), reads));
    }
    let mut threads = engine.threads.lock();
    for (name, body) in bodies {
        let engine = Arc::clone(engine);
        let started = tasks::thread(&name, move || body(&engine));
        threads.push(started.map_err(Engine::failed("start thread", name.as_ref()))?);
    }
    Ok(())
}

/// Ends and joins all threads; what was accepted is journaled first.
pub(crate) fn stop(engine: &Engine) {
    engine.is_closing.store(true, Ordering::Release);
    engine.checkpoint_wanted.set();
    drop(engine.inbox.mail.lock());
    engine.inbox.arrived.notify_all();
    engine.room.ring();
    engine.jobs.wake_all();
    engine.removals.wake_all();
    engine.cold.wake_all();
    let threads = std::mem::take(&mut *engine.threads.lock());
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread of the log has panicked");
        }
    }
    // Reads that nobody serves any more end unanswered.
    drop(engine.cold.drain());
}

fn journal(engine: &Arc<Engine>) {
    loop {
        slow_down(engine);
        let step = engine.journal.lock().step(engine);
        if step == Step::Worked {
            continue;
        }
        let mut mail = engine.inbox.mail.lock();
        let is_empty = mail.partitions.is_empty() && mail.commands.is_empty();
        if step == Step::Idle && is_empty {
            if engine.is_closing() {
                return;
            }
            mail.is_awaited = true;
            engine.inbox.arrived.wait_for(&mut mail, NAP);
        } else if step == Step::Blocked {
            engine.checkpoint_wanted.set();
            if engine.is_closing() {
                return;
            }
            engine.inbox.arrived.wait_for(&mut mail, BLOCKED_NAP);
        }
    }
}

/// From 3/4 of the ring on, appends are slowed, the more the fuller it is.
fn slow_down(engine: &Engine) {
    let sectors = engine.ring.sectors;
    let above = engine.ring.used().saturating_sub(sectors / 4 * 3);
    if above > 0 && !engine.is_closing() {
        let pause = (SLOW_DOWN_MS * above / (sectors / 8)).min(SLOW_DOWN_MS);
        engine.checkpoint_wanted.set();
        std::thread::sleep(Duration::from_millis(pause));
    }
}

fn segments(engine: &Arc<Engine>) {
    loop {
        match segment::step(engine) {
            Step::Worked => {}
            Step::Blocked if !engine.is_closing() => std::thread::sleep(FULL_NAP),
            Step::Idle | Step::Blocked => {
                if engine.is_closing() {
                    return;
                }
                engine.jobs.wait(NAP, &engine.is_closing);
            }
        }
    }
}

fn reads(engine: &Arc<Engine>) {
    loop {
        if read::cold::step(engine) == Step::Idle {
            if engine.is_closing() {
                return;
            }
            engine.cold.wait(NAP, &engine.is_closing);
        }
    }
}

fn checkpoints(engine: &Arc<Engine>) {
    let mut seen = engine.last_append.load(Ordering::Relaxed);
    loop {
        let is_wanted = engine.checkpoint_wanted.take(NAP);
        if engine.is_closing() {
            return;
        }
        // Nothing was new, or the disk has no room for it: no haste.
        if checkpoint_if_due(engine, &mut seen, is_wanted) == Step::Blocked {
            std::thread::sleep(FULL_NAP);
        }
    }
}

/// After every eighth of the ring, and a while after the last append.
fn checkpoint_if_due(engine: &Engine, seen: &mut u64, is_wanted: bool) -> Step {
    let now = engine.clock.monotonic().as_millis() as u64;
    let last = engine.last_append.load(Ordering::Relaxed);
    let idle = engine.config.checkpoint_idle.as_millis() as u64;
    let is_idle = last > *seen && now.saturating_sub(last) >= idle;
    if !is_wanted && !is_idle {
        return Step::Idle;
    }
    *seen = last;
    if let Some(failure) = engine.failure() {
        checkpoint::give_up(engine, failure);
        return Step::Idle;
    }
    match checkpoint::step(engine, false) {
        Ok(true) => Step::Worked,
        Ok(false) => Step::Blocked,
        Err(failure) => {
            drop(engine.poison(failure));
            Step::Idle
        }
    }
}

/// The same steps, one at a time. What is blocked is tried again when something has happened.
fn simulate(engine: &Arc<Engine>) {
    let part = |name, step: fn(&Arc<Engine>) -> Step| {
        let engine = Arc::clone(engine);
        tasks::part(name, move || taken(&engine, step(&engine)));
    };
    part("journal", |engine| {
        let step = engine.journal.lock().step(engine);
        if step == Step::Blocked {
            engine.checkpoint_wanted.set();
        }
        step
    });
    part("segment", |engine| segment::step(engine));
    part("reader", |engine| read::cold::step(engine));
    part("fill", |engine| fill::step(engine));
    part("removal", |engine| removal::step(engine));
    let engine = Arc::clone(engine);
    let mut seen = engine.last_append.load(Ordering::Relaxed);
    tasks::part("checkpoint", move || {
        let is_wanted = engine.checkpoint_wanted.take(Duration::ZERO);
        let step = checkpoint_if_due(&engine, &mut seen, is_wanted);
        taken(&engine, step)
    });
}

/// The last steps of a log that closes are taken by who closes it.
fn taken(engine: &Engine, step: Step) -> tasks::Step {
    if step == Step::Worked && !engine.is_closing() {
        tasks::Step::Worked
    } else {
        tasks::Step::Idle
    }
}

/// Half of the time, so that appends of the first minute hardly notice.
fn filling(engine: &Arc<Engine>) {
    loop {
        let before = engine.clock.monotonic();
        if engine.is_closing() || fill::step(engine) != Step::Worked {
            return;
        }
        let took = engine.clock.monotonic().saturating_sub(before);
        std::thread::sleep(took.min(NAP));
    }
}

/// A quarter of the time at most: others wait for the device as long as it is told what is free.
fn removals(engine: &Arc<Engine>) {
    loop {
        let before = engine.clock.monotonic();
        let step = removal::step(engine);
        if engine.is_closing() {
            // What is left goes on the thread that closes, without pauses.
            return;
        }
        match step {
            Step::Worked => {
                let took = engine.clock.monotonic().saturating_sub(before);
                std::thread::sleep((took * REMOVAL_REST).min(NAP));
            }
            Step::Blocked => std::thread::sleep(READ_NAP),
            Step::Idle => engine.removals.wait(NAP, &engine.is_closing),
        }
    }
}
