//! The load tool: `bench/load-tool/load.c` over librdkafka, built from the source that the `rdkafka-sys` crate carries.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repository;

/// The built tool.
pub(crate) struct Load {
    program: PathBuf,
}

/// The folder of librdkafka's source.
pub(crate) fn librdkafka_source() -> Result<PathBuf> {
    let manifest = repository::root().join("bench/load-tool/Cargo.toml");
    let metadata = repository::output(
        repository::cargo()
            .args(["metadata", "--format-version", "1", "--manifest-path"])
            .arg(&manifest),
    )?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let package = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "rdkafka-sys")
        .context("rdkafka-sys in the load tool's packages")?;
    let manifest = package["manifest_path"].as_str().context("manifest path")?;
    Ok(Path::new(manifest)
        .parent()
        .context("folder of rdkafka-sys")?
        .join("librdkafka"))
}

/// Builds librdkafka with what the bench and its own test suite need; gives source and build folders.
pub(crate) fn build_librdkafka(home: &Path, target: &str) -> Result<(PathBuf, PathBuf)> {
    repository::run(
        Command::new("bash")
            .arg(repository::root().join("scripts/install-tools.sh"))
            .arg("--bench"),
    )?;
    let source = librdkafka_source()?;
    let build = home.join("librdkafka");
    let log = std::fs::File::create(home.join("librdkafka.log"))?;
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(&source)
        .arg("-B")
        .arg(&build)
        .args([
            "-DCMAKE_BUILD_TYPE=Release",
            "-DRDKAFKA_BUILD_STATIC=ON",
            "-DWITH_SSL=OFF",
            "-DWITH_SASL=OFF",
            "-DWITH_CURL=OFF",
            "-DWITH_ZSTD=OFF",
            "-DENABLE_LZ4_EXT=OFF",
            "-DWITH_PLUGINS=OFF",
        ]);
    repository::run(configure.stdout(log.try_clone()?).stderr(log.try_clone()?))?;
    let mut make = Command::new("cmake");
    make.arg("--build")
        .arg(&build)
        .args(["--target", target, "--parallel", "2"]);
    repository::run(make.stdout(log.try_clone()?).stderr(log))?;
    Ok((source, build))
}

impl Load {
    /// Builds the tool where it is not built yet.
    pub(crate) fn build(home: &Path) -> Result<Self> {
        let (source, build) = build_librdkafka(home, "rdkafka")?;
        let program = home.join("load");
        repository::run(
            Command::new("cc")
                .args(["-O2", "-o"])
                .arg(&program)
                .arg("-I")
                .arg(source.join("src"))
                .arg(repository::root().join("bench/load-tool/load.c"))
                .arg(build.join("src/librdkafka.a"))
                .args(["-lz", "-lpthread", "-lm", "-ldl"]),
        )?;
        Ok(Self { program })
    }

    fn call(&self, arguments: &[&str]) -> Result<Value> {
        let printed = repository::output(Command::new(&self.program).args(arguments))?;
        if printed.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&printed).with_context(|| format!("the load tool printed {printed}"))
    }

    /// Creates a topic.
    pub(crate) fn create(&self, address: &str, topic: &str, partitions: u64) -> Result<()> {
        self.call(&["create", address, topic, &partitions.to_string()])
            .map(drop)
    }

    /// Produces; a rate of 0 is as fast as it goes.
    pub(crate) fn produce(
        &self,
        address: &str,
        topic: &str,
        count: u64,
        size: u64,
        keys: u64,
        rate: u64,
    ) -> Result<Value> {
        let numbers = [count, size, keys, rate].map(|number| number.to_string());
        self.call(&[
            "produce",
            address,
            topic,
            &numbers[0],
            &numbers[1],
            &numbers[2],
            &numbers[3],
        ])
    }

    /// Consumes from the beginning, so many times over.
    pub(crate) fn consume(
        &self,
        address: &str,
        topic: &str,
        count: u64,
        partitions: u64,
        passes: u64,
    ) -> Result<Value> {
        let numbers = [count, partitions, passes].map(|number| number.to_string());
        self.call(&[
            "consume",
            address,
            topic,
            &numbers[0],
            &numbers[1],
            &numbers[2],
        ])
    }

    /// Latencies of the tool itself, against a broker inside it that keeps nothing.
    pub(crate) fn floor(&self, count: u64, size: u64, rate: u64) -> Result<Value> {
        let numbers = [count, size, rate].map(|number| number.to_string());
        self.call(&["floor", &numbers[0], &numbers[1], &numbers[2]])
    }
}
