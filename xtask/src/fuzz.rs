//! Runs the fuzz targets of `fuzz/` one after the other and keeps what they found out in their corpora; installs what it
//! needs for that.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repository;

/// Every target; the same names stand in `fuzz/Cargo.toml`.
pub(crate) const TARGETS: [&str; 4] = ["kafka_request", "record_batch", "journal", "http_produce"];

/// Runs each target, or the one named, for so many minutes.
pub(crate) fn run(minutes: &str, target: &[&str]) -> Result<()> {
    let minutes: f64 = minutes
        .parse()
        .with_context(|| format!("'{minutes}' is no number of minutes"))?;
    let chosen: Vec<&str> = match target {
        [] => TARGETS.to_vec(),
        [one] if TARGETS.contains(one) => vec![one],
        other => bail!("no target {other:?}; there are {}", TARGETS.join(", ")),
    };
    install()?;
    for name in chosen {
        println!("fuzz: {name} for {minutes} min");
        let seconds = (minutes * 60.0) as u64;
        let mut command = nightly();
        // The folder's own lock and profile.
        command
            .current_dir(repository::root().join("fuzz"))
            .args([
                "fuzz",
                "run",
                "--fuzz-dir",
                ".",
                name,
                &format!("corpus/{name}"),
                "--",
            ])
            .args([
                &format!("-max_total_time={seconds}"),
                "-rss_limit_mb=1024",
                "-timeout=10",
            ])
            .arg(format!("-max_len={}", 64 << 10));
        repository::run(&mut command)?;
    }
    Ok(())
}

/// Installs the nightly toolchain and cargo-fuzz where they are missing.
fn install() -> Result<()> {
    let is_there = |command: &mut Command| {
        let output = command.output();
        output.is_ok_and(|output| output.status.success())
    };
    if !is_there(nightly().arg("--version")) {
        repository::run(Command::new("rustup").args([
            "toolchain",
            "install",
            "nightly",
            "--profile",
            "minimal",
        ]))?;
    }
    if !is_there(nightly().args(["fuzz", "--version"])) {
        repository::run(nightly().args(["install", "cargo-fuzz", "--locked"]))?;
    }
    Ok(())
}

/// Cargo of the nightly toolchain: the sanitizer's flags are unstable.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly");
    // rustup sets these for the pinned toolchain; the nightly one has to win here.
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    command
}
