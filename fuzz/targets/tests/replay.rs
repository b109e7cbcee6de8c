//! The kept corpora, replayed without a fuzzer.

use std::path::Path;

use floe_fuzz_targets::TARGETS;

#[test]
fn no_kept_input_breaks_its_target() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (name, target) in TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(corpora.join(name)).expect("each target has a corpus") {
            let data = std::fs::read(entry.expect("a corpus can be listed").path())
                .expect("a corpus can be read");
            target(&data);
            count += 1;
        }
        assert!(count > 0, "the corpus of {name} is empty");
    }
}
