//! What the pages show is what happens.

use std::process::Command;

use floe_tests::{Node, tools};

/// Blocks of a page: the commands, and what they print.
fn examples(page: &str) -> Vec<(String, String)> {
    let mut blocks = page.split("\n```");
    let mut examples = Vec::new();
    while let Some(block) = blocks.next() {
        let Some(commands) = block.strip_prefix("sh\n") else {
            continue;
        };
        // The fence that ends the commands, then the fence that begins what they print.
        let printed = match (blocks.next(), blocks.clone().next()) {
            (Some(between), Some(next)) if between.trim().is_empty() => next.strip_prefix("text\n"),
            _ => None,
        };
        examples.push((commands.to_owned(), printed.unwrap_or("…").to_owned()));
    }
    examples
}

/// Whether the text is the pattern, where `…` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.trim().split('…');
    let Some(mut rest) = text.trim().strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        is_open = part.is_empty();
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    is_open || rest.is_empty()
}

#[test]
fn every_line_of_the_http_page_does_what_the_page_says() {
    let node = Node::start();
    let page = std::fs::read_to_string(tools::root().join("docs/http.md")).unwrap();
    let examples = examples(&page);
    assert!(examples.len() >= 10, "{} examples", examples.len());
    let ports = [
        ("localhost:9092", node.kafka_address()),
        ("localhost:9250", node.discovery_address()),
        ("localhost:9251", node.produce_address()),
        ("localhost:9252", node.consume_address()),
        ("localhost:9253", node.metrics_address()),
    ];
    for (commands, expected) in examples {
        let mut commands = commands;
        for (default, own) in &ports {
            commands = commands.replace(default, own);
        }
        let output = tools::output(Command::new("bash").arg("-c").arg(&commands));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            fits(&expected, &printed),
            "{commands}\nprinted\n{printed}\ninstead of\n{expected}"
        );
    }
}

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
