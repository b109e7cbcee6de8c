//! Runs the fuzz targets of `fuzz/` one after the other and keeps what they found out in their corpora.

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
    for name in chosen {
        println!("fuzz: {name} for {minutes} min");
        let seconds = (minutes * 60.0) as u64;
        // The folder's own lock and profile; `+nightly` since the sanitizer's flags are unstable.
        let mut command = std::process::Command::new("cargo");
        command
            .current_dir(repository::root().join("fuzz"))
            .args([
                "+nightly",
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
        // rustup sets these for the pinned toolchain; the nightly one has to win here.
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .env_remove("RUSTC");
        repository::run(&mut command)?;
    }
    Ok(())
}
