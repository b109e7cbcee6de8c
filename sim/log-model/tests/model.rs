//! Small scopes, whole; every rule taken out once; of the larger scopes the start (whole ones: the binary).

use log_model::{search::explore, *};

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
        let o = explore(&s, 100_000);
        println!(
            "{name}: {} states, {} steps, depth {}, complete {}",
            o.states, o.steps, o.depth, o.complete
        );
        assert!(o.broken.is_none(), "{name}: {:#?}", o.broken);
    }
}

#[test]
fn assumptions_are_as_named() {
    for (name, s) in scopes::assumptions() {
        let o = explore(&s, usize::MAX);
        println!("{name}: {} states", o.states);
        assert_eq!(
            o.broken.is_some(),
            name.ends_with("breaks"),
            "{name}: {:#?}",
            o.broken
        );
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
