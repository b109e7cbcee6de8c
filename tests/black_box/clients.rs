//! Real clients: the contract for the two families that every test run has, and kcat's everyday lines.

use floe_tests::contract::{self, Family, Lacks, Outcome};
use floe_tests::{Node, tools};

fn keeps_the_contract(name: &str, program: &str, lacks: Lacks) {
    let node = Node::start();
    let program = tools::root().join("tests/clients/python").join(program);
    let program = vec![
        tools::python().display().to_string(),
        program.display().to_string(),
    ];
    let family = Family {
        name: name.to_owned(),
        program,
        lacks,
    };
    let failures: Vec<_> = contract::run(&family, &node)
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn kcat_keeps_the_clients_contract() {
    keeps_the_contract("kcat", "kcat.py", Lacks::KCAT);
}

#[test]
fn confluent_kafka_keeps_the_clients_contract() {
    keeps_the_contract("confluent-kafka", "confluent.py", Lacks::default());
}

#[test]
fn kcat_produces_and_consumes_a_topic_it_never_created() {
    let node = Node::start();
    let address = node.kafka_address();
    let lines: String = (0..1000).map(|n| n.to_string() + "\n").collect();
    tools::run_with_input(
        tools::kcat(&address).args(["-P", "-t", "greetings", "-p", "0"]),
        lines.as_bytes(),
    );
    let printed = tools::run(tools::kcat(&address).args([
        "-C",
        "-t",
        "greetings",
        "-p",
        "0",
        "-o",
        "beginning",
        "-e",
        "-q",
    ]));
    assert_eq!(printed, lines);
    let listed = tools::run(tools::kcat(&address).args(["-L", "-t", "greetings"]));
    assert!(
        listed.contains("topic \"greetings\" with 4 partitions"),
        "{listed}"
    );
}
