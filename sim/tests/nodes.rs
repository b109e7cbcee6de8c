//! A few dozen seeds of whole nodes in every test run; thousands behind the binary.

use floe_sim::nodes::{Summary, run};

fn hold(seeds: std::ops::Range<u64>) -> Summary {
    let mut total = Summary::default();
    for seed in seeds {
        match run(seed) {
            Ok(summary) => total.add(&summary),
            Err(broken) => panic!("{broken}"),
        }
    }
    total
}

#[test]
fn nodes_that_fall_in_every_way_keep_what_their_clients_were_told() {
    let total = hold(0..60);
    for fault in floe_sim::nodes::Fault::ALL {
        assert!(total.faults[&fault] > 10, "{total:?}");
    }
    let compared = total.compared;
    let least = [
        compared.durable,
        compared.ordered,
        compared.exactly_once,
        compared.positions,
        compared.delivered,
        compared.topics,
    ];
    assert!(least.iter().all(|count| *count > 300), "{total:?}");
    assert!(total.operations > 60 * 400, "{total:?}");
}

#[test]
fn two_runs_of_one_seed_are_the_same() {
    for seed in 100..120 {
        assert_eq!(run(seed).unwrap(), run(seed).unwrap());
    }
}
