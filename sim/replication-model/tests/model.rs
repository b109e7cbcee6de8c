//! Small scopes, whole; every rule taken out once; of the larger scopes the start (whole ones: the binary).

use replication_model::{search::explore, *};

#[test]
fn small_scopes_hold() {
    for (name, s) in scopes::small() {
        let o = explore(&s, usize::MAX);
        println!(
            "{name}: {} states, {} steps, depth {}",
            o.states, o.steps, o.depth
        );
        assert!(o.complete && o.broken.is_none(), "{name}: {:#?}", o.broken);
    }
}

#[test]
fn larger_scopes_hold_at_their_start() {
    for (name, s) in scopes::large() {
        let o = explore(&s, 60_000);
        println!("{name}: {} states, depth {}", o.states, o.depth);
        assert!(o.broken.is_none(), "{name}: {:#?}", o.broken);
    }
}

#[test]
fn every_rule_is_needed() {
    let mutants = scopes::mutants();
    for rule in ALL_RULES {
        let (_, s) = mutants
            .iter()
            .find(|(r, _)| *r == rule)
            .expect("a scope for each rule");
        let (invariant, trace) = explore(s, 10_000_000)
            .broken
            .unwrap_or_else(|| panic!("nothing breaks without {rule:?}"));
        println!(
            "without {rule:?}: {invariant:?} after {} steps",
            trace.len()
        );
    }
}
