//! Runs the scopes and prints what was found.

use replication_model::{search::*, *};
use std::time::Instant;

#[allow(
    clippy::disallowed_methods,
    reason = "the time a search takes is for the person who reads it"
)]
fn report(name: &str, s: &Scope, limit: usize) {
    let t = Instant::now();
    let o = explore(s, limit);
    let end = match &o.broken {
        None if o.complete => "holds, complete".into(),
        None => "holds so far, limit".to_string(),
        Some((i, p)) => format!("BROKEN {i:?} after {} steps", p.len()),
    };
    println!(
        "{name:44} {:>9} states {:>10} steps depth {:>3} {:>5.1} s  {end}",
        o.states,
        o.steps,
        o.depth,
        t.elapsed().as_secs_f32()
    );
    for (i, st) in o.broken.iter().flat_map(|b| b.1.iter()).enumerate() {
        println!("    {:2} {st:?}", i + 1)
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let limit = args
        .get(2)
        .and_then(|v| v.parse().ok())
        .unwrap_or(3_000_000);
    let name = args.get(3).map(String::as_str).unwrap_or("");
    match args.get(1).map(String::as_str) {
        Some("mutants") => {
            for (r, s) in scopes::mutants() {
                if format!("{r:?}").contains(name) {
                    report(&format!("without {r:?}"), &s, limit)
                }
            }
        }
        Some("large") => {
            for (n, s) in scopes::large() {
                if n.contains(name) {
                    report(n, &s, limit)
                }
            }
        }
        Some("walk") => {
            for (n, s) in scopes::large() {
                let o = wander(&s, 7, limit as u64 / 100, 100);
                println!("{n:44} {:>11} random steps  {:?}", o.steps, o.broken)
            }
        }
        Some("small") | None => {
            for (n, s) in scopes::small() {
                if n.contains(name) {
                    report(n, &s, limit)
                }
            }
        }
        Some(_) => eprintln!("usage: replication-model [small|large|mutants|walk] [limit] [name]"),
    }
}
