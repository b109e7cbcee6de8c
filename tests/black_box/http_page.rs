//! `docs/http.md` tells the truth: each of its shell blocks is run on one fresh node, in order, and what comes back is
//! compared with the block after it, in which `…` stands for anything.

use std::process::Command;

use floe_tests::Node;
use floe_tests::tools::root;

/// The fenced blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            blocks.push((language, text.join("\n")));
        }
    }
    blocks
}

/// Whether `text` is `pattern` with something in place of each `…`.
fn fits(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn every_line_of_the_page_about_http_does_what_it_says() {
    let node = Node::start();
    let page = std::fs::read_to_string(root().join("docs/http.md")).unwrap();
    let port = |address: String| address.rsplit_once(':').unwrap().1.to_owned();
    let ports = [
        ("9250", port(node.discovery_address())),
        ("9251", port(node.produce_address())),
        ("9252", port(node.consume_address())),
        ("9253", port(node.metrics_address())),
    ];
    let mut blocks = blocks(&page).into_iter();
    let mut run = 0;
    while let Some((language, script)) = blocks.next() {
        assert_eq!(
            language, "sh",
            "a block of another kind stands alone: {script}"
        );
        let mut here = script.clone();
        for (port, real) in &ports {
            here = here.replace(&format!("localhost:{port}"), &format!("localhost:{real}"));
        }
        let output = Command::new("sh").args(["-c", &here]).output().unwrap();
        let given = String::from_utf8_lossy(&output.stdout).into_owned();
        let (language, expected) = blocks
            .next()
            .expect("what comes back follows each shell block");
        assert_eq!(language, "text", "what comes back follows: {script}");
        assert!(
            fits(given.trim_end(), expected.trim_end()),
            "{script}\ngave\n{given}\ninstead of\n{expected}"
        );
        run += 1;
    }
    assert!(run > 10, "{run} blocks");
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    assert!(fits("a:5,b", "a:…,b"));
    assert!(fits("ab", "a…b"));
    assert!(fits("abab", "a…b"));
    assert!(fits("x", "x"));
    assert!(!fits("xy", "x"));
    assert!(!fits("a:5,c", "a:…,b"));
    assert!(!fits("yx", "x"));
}
