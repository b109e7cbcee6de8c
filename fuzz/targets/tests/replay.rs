//! The kept corpora, replayed without a fuzzer.

use std::collections::BTreeSet;
use std::path::Path;

use floe_fuzz_targets::TARGETS;

/// How many APIs the Kafka door speaks.
const APIS: usize = 22;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../corpus")
        .join(name);
    let files = std::fs::read_dir(corpus).expect("each target has a corpus");
    files
        .map(|entry| {
            let path = entry.expect("a corpus can be listed").path();
            std::fs::read(path).expect("a corpus can be read")
        })
        .collect()
}

#[test]
fn no_kept_input_breaks_its_target() {
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        for input in inputs {
            target(&input);
        }
    }
}

#[test]
fn the_kept_requests_reach_the_body_of_every_api() {
    let mut decoded = BTreeSet::new();
    for frame in corpus("kafka_request") {
        if floe_gateway::kafka::decode(&frame).is_ok() {
            decoded.insert([frame[0], frame[1]]);
        }
    }
    assert_eq!(decoded.len(), APIS, "{decoded:?}");
}
