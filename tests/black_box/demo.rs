//! The README's first command.

use std::process::Command;

use floe_tests::tools;

#[test]
fn the_demo_of_the_readme_shows_what_it_promises() {
    floe_tests::node::binary();
    let home = tempfile::tempdir().unwrap();
    let mut demo = Command::new("bash");
    demo.arg("scripts/demo.sh").current_dir(tools::root());
    // An empty home, as on a fresh machine; cargo's own folders stay where they are.
    let old = std::env::var("HOME").unwrap_or_default();
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if std::env::var_os(name).is_none() {
            demo.env(name, format!("{old}/{folder}"));
        }
    }
    demo.env("HOME", home.path());
    let printed = tools::run(&mut demo);
    assert!(
        printed.contains("27,004") || printed.contains("27004"),
        "{printed}"
    );
}
