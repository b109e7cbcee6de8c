//! The commands against a running node: what they print, in which form, and how they end.

use std::io::Write as _;
use std::process::{Output, Stdio};

use floe_tests::Node;
use floe_tests::node::{binary, floe};
use serde_json::Value;

/// Exit codes as `docs/commands.md` gives them.
const USAGE: i32 = 2;
const REFUSED: i32 = 5;

/// Runs a command against the node, with this standard input.
fn run(node: &Node, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = floe()
        .args(arguments)
        .env("FLOE_SERVER", node.discovery_address())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::Builder::new()
        .spawn(move || stdin.write_all(&input))
        .unwrap();
    let output = child.wait_with_output().unwrap();
    // A command that takes no input may have ended before it was written.
    drop(writer.join().unwrap());
    output
}

/// Runs a command that must do well, and returns what it printed.
fn ok(node: &Node, arguments: &[&str], input: &[u8]) -> String {
    let output = run(node, arguments, input);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(node: &Node, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(node, arguments, b"")).unwrap()
}

#[test]
fn records_go_in_and_come_out_from_a_terminal() {
    let node = Node::start();
    let lines: Vec<String> = (0..5000)
        .map(|n| format!("{{\"place\":\"p{}\",\"n\":{n}}}", n % 17))
        .collect();
    let input = lines.join("\n");
    ok(
        &node,
        &["topic", "create", "events", "--partitions", "3"],
        b"",
    );
    assert!(ok(&node, &["topic", "list"], b"").contains("events"));
    let arguments = ["produce", "events", "--key-field", "place"];
    let said = ok(&node, &arguments, input.as_bytes());
    assert!(said.starts_with("5,000 records acknowledged"), "{said}");
    let read = ok(&node, &["consume", "events", "--key"], b"");
    let mut next = [0; 17];
    for line in read.lines() {
        let (key, value) = line.split_once('\t').unwrap();
        let value: Value = serde_json::from_str(value).unwrap();
        let place: usize = key.strip_prefix('p').unwrap().parse().unwrap();
        let expected = next[place] * 17 + place;
        assert_eq!(value["n"], expected, "{line}");
        next[place] += 1;
    }
    assert_eq!(next.iter().sum::<usize>(), 5000);
    let one = ok(&node, &["consume", "events", "--max", "1", "--json"], b"");
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["topic"], "events");
    assert_eq!(one["offset"], 0);
    ok(&node, &["topic", "delete", "events"], b"");
    assert!(!ok(&node, &["topic", "list"], b"").contains("events"));
}

#[test]
fn a_group_goes_on_where_it_ended_and_its_lag_is_told() {
    let node = Node::start();
    ok(
        &node,
        &["topic", "create", "jobs", "--partitions", "1"],
        b"",
    );
    ok(&node, &["produce", "jobs"], b"a\nb\nc\n");
    let read = ["consume", "jobs", "--group", "workers"];
    assert_eq!(ok(&node, &read, b""), "a\nb\nc\n");
    ok(&node, &["produce", "jobs"], b"d\n\ne\n");
    let group = json(&node, &["group", "describe", "workers", "--json"]);
    assert_eq!(group["positions"][0]["lag"], 2, "{group}");
    assert!(ok(&node, &["group", "describe", "workers"], b"").contains("Lag in all: 2 records."));
    assert_eq!(ok(&node, &read, b""), "d\ne\n");
    let listed = json(&node, &["group", "list", "--json"]);
    assert_eq!(listed["groups"][0]["group"], "workers", "{listed}");
    ok(&node, &["group", "delete", "workers"], b"");
    let gone = run(&node, &["group", "describe", "workers"], b"");
    assert_eq!(gone.status.code(), Some(REFUSED));
}

#[test]
fn a_group_goes_on_after_the_last_record_that_was_written_out() {
    let node = Node::start();
    ok(
        &node,
        &["topic", "create", "jobs", "--partitions", "1"],
        b"",
    );
    ok(&node, &["produce", "jobs"], b"a\nb\nc\n");
    let one = ["consume", "jobs", "--group", "workers", "--max", "1"];
    assert_eq!(ok(&node, &one, b""), "a\n");
    assert_eq!(ok(&node, &one, b""), "b\n");
    let group = json(&node, &["group", "describe", "workers", "--json"]);
    assert_eq!(group["positions"][0]["lag"], 1, "{group}");
    let rest = ["consume", "jobs", "--group", "workers"];
    assert_eq!(ok(&node, &rest, b""), "c\n");
}

#[test]
fn a_reader_of_the_output_that_leaves_is_a_quiet_end() {
    let node = Node::start();
    let input = "x".repeat(100) + "\n";
    ok(
        &node,
        &["produce", "lines"],
        input.repeat(20_000).as_bytes(),
    );
    let script = format!(
        "set -o pipefail; '{}' consume lines | head -n 1",
        binary().display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("FLOE_SERVER", node.discovery_address())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    assert_eq!(output.stdout, input.as_bytes());
    assert_eq!(error, "");
}

#[test]
fn a_follower_sees_records_that_come_later() {
    let node = Node::start();
    ok(
        &node,
        &["topic", "create", "news", "--partitions", "2"],
        b"",
    );
    let follower = floe()
        .args(["consume", "news", "--follow", "--max", "3"])
        .env("FLOE_SERVER", node.discovery_address())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for line in ["one\n", "two\n", "three\n"] {
        ok(&node, &["produce", "news"], line.as_bytes());
    }
    let output = follower.wait_with_output().unwrap();
    assert!(output.status.success());
    let mut lines: Vec<&str> = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "three", "two"]);
}

#[test]
fn refusals_name_the_thing_and_have_their_exit_code() {
    let node = Node::start();
    for (arguments, code, part) in [
        (&["topic", "describe", "none"][..], REFUSED, "none"),
        (&["group", "describe", "idle"], REFUSED, "'idle'"),
        (&["group", "delete", "idle"], REFUSED, "'idle'"),
        (&["topic", "create", "a/b"], REFUSED, "a/b"),
        (&["topic", "create", "a b"], REFUSED, "a b"),
        (&["consume", "none"], REFUSED, "none"),
        (
            &["topic", "create", "t", "--set", "no.such=1"],
            REFUSED,
            "no.such",
        ),
        (&["topic", "create", "t", "--set", "x"], USAGE, "key=value"),
        (&["consume", "t", "--from", "soon"], USAGE, "soon"),
        (&["nonsense"], USAGE, "nonsense"),
    ] {
        let output = run(&node, arguments, b"");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    ok(&node, &["topic", "create", "twice"], b"");
    let again = run(&node, &["topic", "create", "twice"], b"");
    assert_eq!(again.status.code(), Some(REFUSED));
    let error = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(error.contains("twice"), "{error}");
}

#[test]
fn a_stopped_nodes_directory_is_verified_whole() {
    let mut node = Node::start();
    ok(&node, &["produce", "kept"], b"a\nb\n");
    let data = node.data().to_owned();
    let data = data.to_str().unwrap();
    let running = floe().args(["verify", data]).output().unwrap();
    assert_eq!(running.status.code(), Some(10), "the node runs");
    assert!(node.stop().success());
    let output = floe().args(["verify", data, "--json"]).output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["condition"], "whole", "{report}");
    let mut generations = report["generations"].as_array().unwrap().iter();
    assert!(generations.any(|one| one["topic"] == "kept"), "{report}");
}
