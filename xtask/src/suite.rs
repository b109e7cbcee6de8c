//! Runs the chosen part of librdkafka's own test suite against Floe.
//!
//! Which tests, and why the others not, stands in `tests/clients/librdkafka.txt`, one a line.

use std::process::Command;

use anyhow::{Context, Result, bail};
use floe_tests::Node;

use crate::bench;
use crate::repository;

const CHOICE: &str = "tests/clients/librdkafka.txt";
const CHOSEN_AT_LEAST: usize = 30;

/// Runs the chosen tests, or those named.
pub(crate) fn run(only: &[&str]) -> Result<()> {
    let choice = std::fs::read_to_string(repository::root().join(CHOICE))?;
    let chosen: Vec<&str> = choice
        .lines()
        .filter_map(|line| line.strip_prefix("run "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|test| only.is_empty() || only.contains(test))
        .collect();
    if only.is_empty() && chosen.len() < CHOSEN_AT_LEAST {
        bail!(
            "{CHOICE} names {} tests, fewer than {CHOSEN_AT_LEAST}",
            chosen.len()
        );
    }
    let home = repository::target().join("bench");
    std::fs::create_dir_all(&home)?;
    let (source, build) = bench::build_librdkafka(&home, "test-runner")?;
    let node = Node::start();
    let settings = node.scratch().join("test.conf");
    std::fs::write(
        &settings,
        format!(
            "bootstrap.servers={}\ntest.timeout.multiplier=2\n",
            node.kafka_address()
        ),
    )?;
    let mut failed = Vec::new();
    for test in &chosen {
        let log = node.scratch().join(format!("{test}.log"));
        let out = std::fs::File::create(&log)?;
        let status = Command::new("timeout")
            .arg("300")
            .arg(build.join("tests/test-runner"))
            .args(["-p1", "-Q"])
            .current_dir(source.join("tests"))
            .env("TESTS", test)
            .env("RDKAFKA_TEST_CONF", &settings)
            .env("TEST_KAFKA_VERSION", "4.3.0")
            .env("TEST_LEVEL", "1")
            .stdout(out.try_clone()?)
            .stderr(out)
            .status()
            .context("test-runner")?;
        println!(
            "librdkafka {test}: {}",
            if status.success() { "passed" } else { "FAILED" }
        );
        if !status.success() {
            let said = std::fs::read_to_string(&log)?;
            let tail: Vec<&str> = said
                .lines()
                .filter(|line| line.contains("FAIL") || line.contains("rror"))
                .take(6)
                .collect();
            failed.push(format!("{test}: {}", tail.join(" | ")));
        }
    }
    println!(
        "{} passed, {} failed",
        chosen.len() - failed.len(),
        failed.len()
    );
    if !failed.is_empty() {
        bail!("librdkafka's tests\n  {}", failed.join("\n  "));
    }
    Ok(())
}
